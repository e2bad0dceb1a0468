"""Label-smoothed cross-entropy on a GPU: one kernel per pass, a program per row, the vocabulary in blocks.

Logits keep the type of the product. Each block is converted to float32 when it is read, so neither float32 logits nor
log-probabilities are stored. `nmt.kernels.cross_entropy` has the equations and the version for CPUs.
"""

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

#: The most logits that a program reads at once.
_BLOCK = 4096


@triton.jit
def _losses(logits, targets, real, losses, plain, normalizers, smoothing, V: tl.constexpr, BLOCK: tl.constexpr):
    """Compute a row's loss, negative log-likelihood and log-sum-exp; maximum and sum are updated block by block."""
    row = tl.program_id(0).to(tl.int64)
    row_logits = logits + row * V
    highest, exponents, total = -3.0e38, 0.0, 0.0
    for start in range(0, V, BLOCK):
        word = start + tl.arange(0, BLOCK)
        values = tl.load(row_logits + word, mask=word < V, other=float("-inf")).to(tl.float32)
        higher = tl.maximum(highest, tl.max(values, 0))
        exponents = exponents * tl.exp(highest - higher) + tl.sum(tl.exp(values - higher), 0)
        total += tl.sum(tl.where(word < V, values, 0.0), 0)
        highest = higher
    normalizer = highest + tl.log(exponents)
    likelihood = normalizer - tl.load(row_logits + tl.load(targets + row)).to(tl.float32)
    loss = (1.0 - smoothing) * likelihood + smoothing * (normalizer - total / V)
    counts = tl.load(real + row) != 0
    tl.store(losses + row, tl.where(counts, loss, 0.0))
    tl.store(plain + row, tl.where(counts, likelihood, 0.0))
    tl.store(normalizers + row, normalizer)


@triton.jit
def _gradients(
    logits, targets, real, normalizers, outer, gradients, smoothing, V: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """Compute a row's p - q, times the gradient of the loss."""
    row = tl.program_id(0).to(tl.int64)
    word = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    factor = tl.where(tl.load(real + row) != 0, tl.load(outer), 0.0)
    values = tl.load(logits + row * V + word, mask=word < V, other=float("-inf")).to(tl.float32)
    wanted = tl.where(word == tl.load(targets + row), 1.0 - smoothing, 0.0) + smoothing / V
    gradient = factor * (tl.exp(values - tl.load(normalizers + row)) - wanted)
    tl.store(gradients + row * V + word, gradient.to(gradients.dtype.element_ty), mask=word < V)


def block_of(words: int) -> int:
    """The number of logits that a program reads at once for a vocabulary of `words`: a power of two."""
    return min(_BLOCK, 1 << (words - 1).bit_length())


class BlockwiseCrossEntropy(torch.autograd.Function):
    """logits [N, V], targets [N], smoothing, real [N] or None -> the summed loss, negative log-likelihoods [N]."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, real: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        rows, words = logits.shape
        logits, targets = logits.contiguous(), targets.contiguous()
        seen = (torch.ones_like(targets, dtype=torch.bool) if real is None else real.contiguous()).to(torch.int8)
        losses, plain, normalizers = (logits.new_empty(rows, dtype=torch.float32) for _ in range(3))
        block = block_of(words)
        if rows:
            _losses[(rows,)](logits, targets, seen, losses, plain, normalizers, smoothing, words, block)
        ctx.save_for_backward(logits, targets, seen, normalizers)
        ctx.smoothing, ctx.block = smoothing, block
        ctx.mark_non_differentiable(plain)
        return losses.sum(), plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        logits, targets, seen, normalizers = ctx.saved_tensors
        rows, words = logits.shape
        result, outer = torch.empty_like(logits), gradients[0].float().contiguous()
        if rows:
            grid = (rows, triton.cdiv(words, ctx.block))
            _gradients[grid](logits, targets, seen, normalizers, outer, result, ctx.smoothing, words, ctx.block)
        return result, None, None, None
