"""Parameters of several heads, stored side by side and used in one computation.

The matrices of H heads are stacked as [H * O, I], their vectors as [H * A], so that one product computes all heads.
With one head, these are the shapes of the equation. Inputs have the head axis third from the end, [..., H, N, I]; with
one head they may have any axes before the last two.
"""

from typing import TYPE_CHECKING

import torch
from torch import Tensor, nn


def by_head(parameter: Tensor, heads: int) -> Tensor:
    """The parameter [H * A, ...] as [H, A, ...]; unchanged with one head."""
    return parameter if heads == 1 else parameter.unflatten(0, (heads, -1))


def multiply(matrices: Tensor, vectors: Tensor) -> Tensor:
    """W x [..., H, N, O] for matrices W [H, O, I] or one matrix [O, I], and vectors x [..., H, N, I]."""
    if matrices.ndim == 2:
        return nn.functional.linear(vectors, matrices)
    return torch.einsum("hoi,...hni->...hno", matrices, vectors)


class HeadLinear(nn.Module):
    """W x without a bias, with a matrix for each head: [..., H, N, I] -> [..., H, N, O]."""

    def __init__(self, inputs: int, outputs: int, heads: int = 1, gain: float = 1.0) -> None:
        """`inputs` and `outputs` are the sizes I and O of one head; for `gain` see `reset_parameters`."""
        super().__init__()
        self.heads, self.gain = heads, gain
        self.weight = nn.Parameter(torch.empty(heads * outputs, inputs))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make each head's matrix uniform after Glorot and Bengio 2010, times the gain."""
        with torch.no_grad():
            for matrix in self.weight.chunk(self.heads):
                nn.init.xavier_uniform_(matrix).mul_(self.gain)

    def forward(self, vectors: Tensor) -> Tensor:
        """W x of each vector x."""
        return multiply(by_head(self.weight, self.heads), vectors)

    if TYPE_CHECKING:  # torch's own returns Any

        def __call__(self, vectors: Tensor) -> Tensor: ...
