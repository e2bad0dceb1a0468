"""Reads: what does a step take away from the slots it weighed?

Shapes: weights [B, H, T, S], values [B, H, S, Dv], context [B, H, T, Dv].
"""

from torch import Tensor, nn


class Read(nn.Module):
    """The contract."""

    def forward(self, weights: Tensor, values: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        """The context, and the terms [B, T] that the read adds to the loss, by name."""
        raise TypeError(f"{type(self).__name__} does not say what it reads")


class Soft(Read):
    """c_t = sum_j a_tj v_j. Bahdanau, Cho, Bengio 2015, section 3.1, eq. 5."""

    def forward(self, weights: Tensor, values: Tensor) -> tuple[Tensor, dict[str, Tensor]]:
        return weights @ values, {}
