"""Windows: which memory slots may a step look at?

Shapes: queries [B, T, Dq], steps [B, T] (target positions from 0), mask [B, S] (true where a source token is real).
A window answers with the visible slots, bool, [B, T, S] or what broadcasts to it, and with a factor on the weights
[B, T, S] where it has one.
"""

import torch
from torch import Tensor, nn


class Window(nn.Module):
    """The contract."""

    def __init__(self, query_size: int) -> None:
        """The size of a query, for windows that are predicted from it."""
        super().__init__()
        self.query_size = query_size

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        """Visible slots, and the factor on the weights or None."""
        raise TypeError(f"{type(self).__name__} does not say which slots are visible")


class Global(Window):
    """All real positions. Luong, Pham, Manning 2015, section 3.1."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        return mask.unsqueeze(-2), None


class Causal(Window):
    """Slots j <= t. Vaswani et al. 2017, section 3.2.3 (masked self-attention)."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        positions = torch.arange(mask.shape[-1], device=mask.device)
        return mask.unsqueeze(-2) & (positions <= steps.unsqueeze(-1)), None


class LocalMonotonic(Window):
    """Slots j in [p_t - D, p_t + D] around p_t = t. Luong, Pham, Manning 2015, section 3.2 (local-m).

    p_t is held at the sentence's last real position when the target is longer than the source.
    """

    def __init__(self, query_size: int, radius: int) -> None:
        """`radius` is the paper's D, in source positions."""
        super().__init__(query_size)
        self.radius = radius

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> tuple[Tensor, Tensor | None]:
        positions = torch.arange(mask.shape[-1], device=mask.device)
        last = mask.sum(-1, keepdim=True) - 1
        centre = torch.minimum(steps, last).unsqueeze(-1)
        return mask.unsqueeze(-2) & ((positions - centre).abs() <= self.radius), None
