"""v^T tanh(x), the energy of an additive score.

torch's sigmoid is several times as fast as its tanh on a CPU: docs/benchmarks.md, "tanh of [80, 15, 512]".
"""

import functools
import math

import torch
from torch import Tensor

from nmt.kernels import is_fast

#: The numbers computed at a time without gradients; they fit into a processor's cache.
BLOCK = 1 << 20


def plain_dot_tanh(v: Tensor, *terms: Tensor) -> Tensor:
    """v^T tanh(sum of terms)."""
    return _dot(torch.tanh(functools.reduce(torch.add, terms)), v)


def fast_dot_tanh(v: Tensor, *terms: Tensor) -> Tensor:
    """v^T (2 sigmoid(2 sum of terms) - 1); the terms are doubled while they are small, before broadcasting."""
    shape = torch.broadcast_shapes(*(term.shape for term in terms))
    rows = max(1, BLOCK * shape[0] // max(1, math.prod(shape)))
    learns = torch.is_grad_enabled() and any(numbers.requires_grad for numbers in (v, *terms))
    if learns or rows >= shape[0]:
        return _whole(v, *terms)
    energies = v.new_empty(shape[:-1])
    for start in range(0, shape[0], rows):
        block = slice(start, start + rows)
        parts = (term[block] if term.ndim == len(shape) and len(term) > 1 else term for term in terms)
        energies[block] = _whole(v, *parts)
    return energies


def _whole(v: Tensor, *terms: Tensor) -> Tensor:
    inner = functools.reduce(torch.add, (2 * term for term in terms))
    activated = torch.sigmoid(inner) if inner.requires_grad else inner.sigmoid_()
    return 2 * _dot(activated, v) - v.sum(-1)[..., None, None]


def dot_tanh(v: Tensor, *terms: Tensor) -> Tensor:
    """v^T tanh(sum of terms) [..., T, S] in float32 at least, for terms that broadcast to [..., T, S, A].

    v is [A], or [H, A] with a vector for each head of terms [..., H, T, S, A].
    """
    with torch.autocast(v.device.type, enabled=False):
        terms = tuple(at_least_float32(term) for term in terms)
        usable = v.device.type == "cpu" and v.dtype is torch.float32 and is_fast()
        return (fast_dot_tanh if usable else plain_dot_tanh)(v, *terms)


def at_least_float32(numbers: Tensor) -> Tensor:
    """Convert numbers to float32, unless they are float64."""
    return numbers.to(torch.promote_types(numbers.dtype, torch.float32))


def _dot(vectors: Tensor, v: Tensor) -> Tensor:
    """The products [..., T, S] of vectors [..., T, S, A] with v [A], or with v [H, A] head by head."""
    if v.ndim == 1:
        return vectors @ v
    products = vectors.flatten(-3, -2) @ v.unsqueeze(-1)
    return products.view(vectors.shape[:-1])
