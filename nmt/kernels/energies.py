"""Energies of the fused recurrences (`attentive_gru`, `input_feeding_gru`), step by step, forward and backward.

A recurrence multiplies its state once, by its recurrent matrix and the query's matrix together. Shapes: state [B, D],
query [B, A], keys [B, S, A] or [B, S, D], v [A], energies [B, S], terms [T, B, S, A].
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.kernels.dot_tanh import at_least_float32


class ProjectedMemory(NamedTuple):
    """The memory of a fused recurrence: shares (values, already multiplied by a weight matrix), keys and mask."""

    shares: Tensor
    keys: Tensor
    mask: Tensor


class Query(NamedTuple):
    """The parameters of an additive score: weight [A, D] for the query, and v [A]."""

    weight: Tensor
    v: Tensor


def masked_softmax(energies: Tensor, visible: Tensor) -> Tensor:
    """Softmax over the visible slots of the last axis, in float32 at least.

    A row without a visible slot gets zeros, never NaN.
    """
    energies = at_least_float32(energies)
    lowest = torch.finfo(energies.dtype).min
    return torch.softmax(energies.masked_fill(~visible, lowest), -1).masked_fill(~visible, 0.0)


def plain_energies(state: Tensor, keys: Tensor, query: Query | None) -> Tensor:
    """The energies v^T tanh(W s + k_j), or s^T k_j if `query` is None."""
    if query is None:
        return (keys @ state.unsqueeze(2)).squeeze(2)
    return torch.tanh(nn.functional.linear(state, query.weight).unsqueeze(1) + keys) @ query.v


class DotEnergies:
    """The energies s^T k_j. They need no column of the state's product: `query` is empty."""

    def __init__(self, keys: Tensor) -> None:
        self.keys = keys

    def __call__(self, t: int, state: Tensor, query: Tensor) -> Tensor:
        return torch.bmm(state.unsqueeze(1), self.keys.transpose(1, 2)).squeeze(1)

    def retreat(self, t: int, energy_grad: Tensor, query_grad: Tensor) -> Tensor | None:
        """The gradient of the state."""
        return torch.bmm(energy_grad.unsqueeze(1), self.keys).squeeze(1)

    def gradients(self, energies_grad: Tensor, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradient of the keys, and None for v, from all gradients [T, B, S] of energies and states [T, B, D]."""
        return torch.bmm(energies_grad.permute(1, 2, 0), states.transpose(0, 1)), None


class AdditiveEnergies:
    """The energies v^T sigmoid(W s + k_j), from the query W s.

    tanh x = 2 sigmoid(2 x) - 1, and torch's sigmoid is several times as fast on a CPU. `double` multiplies the
    arguments by 2. The missing constant, the sum of v, does not change the softmax.
    """

    def __init__(self, keys: Tensor, v: Tensor, terms: Tensor) -> None:
        """`terms` is a buffer for the terms of all steps, or of one step if no backward pass follows."""
        self.keys, self.v, self.terms = keys, v, terms
        self.keys_grad: Tensor | None = None

    def __call__(self, t: int, state: Tensor, query: Tensor) -> Tensor:
        term = torch.add(self.keys, query.unsqueeze(1), out=self.terms[t % len(self.terms)]).sigmoid_()
        return (term.view(-1, len(self.v)) @ self.v).view(term.shape[:2])

    def retreat(self, t: int, energy_grad: Tensor, query_grad: Tensor) -> Tensor | None:
        """Write the gradient of the query to `query_grad`."""
        slots_grad = torch.ops.aten.sigmoid_backward(energy_grad.unsqueeze(2) * self.v, self.terms[t])
        self.keys_grad = slots_grad if self.keys_grad is None else self.keys_grad.add_(slots_grad)
        torch.sum(slots_grad, 1, out=query_grad)
        return None

    def gradients(self, energies_grad: Tensor, states: Tensor) -> tuple[Tensor, Tensor | None]:
        """The gradients of keys and v, from the gradients [T, B, S] of the energies of all steps."""
        assert self.keys_grad is not None
        return self.keys_grad, energies_grad.flatten() @ self.terms.flatten(0, 2)


def double(keys: Tensor, query: Query | None) -> tuple[Tensor, Tensor | None, Tensor | None]:
    """Keys, the query's weight and v, doubled for `energies_of`: see `AdditiveEnergies`. Unchanged without a query."""
    return (keys, None, None) if query is None else (2 * keys, 2 * query.weight, 2 * query.v)


def terms_of(keys: Tensor, v: Tensor | None, steps: int) -> Tensor | None:
    """A buffer for the terms of an additive score, the largest tensor of a recurrence; None without v."""
    return None if v is None else keys.new_empty(steps, *keys.shape[:2], len(v))


def energies_of(keys: Tensor, v: Tensor | None, terms: Tensor | None) -> DotEnergies | AdditiveEnergies:
    """The energies of an additive score, or of a dot product if `v` is None."""
    return DotEnergies(keys) if v is None or terms is None else AdditiveEnergies(keys, v, terms)
