"""Losses of two passes with gradients in closed form: R-Drop (Liang et al. 2021, eq. 1 to 4) and SimCut.

Cross-entropies and divergences share one softmax, which the gradient overwrites. Measured: docs/benchmarks.md, "The
losses".
"""

from typing import Any

import torch
from torch import Tensor

from nmt.kernels import gpu, is_fast
from nmt.kernels.cross_entropy import in_float32, normalizers, smoothed_cross_entropy


def divergences(first: Tensor, second: Tensor, real: Tensor | None = None, both: bool = True) -> Tensor:
    """KL(p || q) + KL(q || p) = sum (p - q) (log p - log q), summed over the rows of the logits [N, V] of p and q.

    Without `both`, only KL(p || q).
    """
    p, q = torch.log_softmax(in_float32(first), 1), torch.log_softmax(in_float32(second), 1)
    rows = ((p.exp() - q.exp() if both else p.exp()) * (p - q)).sum(1)
    return (rows if real is None else rows.masked_fill(~real, 0)).sum()


def plain_r_drop_loss(
    logits: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None = None, cut: bool = False
) -> tuple[Tensor, Tensor]:
    """The loss with autograd for divergences and cross-entropy; arguments and results as in `r_drop_loss`."""
    first, second = logits.chunk(2)
    first_real = None if real is None else real.chunk(2)[0]
    if cut:
        loss, plain = smoothed_cross_entropy(first, targets.chunk(2)[0], smoothing, first_real)
        with torch.no_grad():
            of_second = smoothed_cross_entropy(second, targets.chunk(2)[1], 0.0, first_real)[1]
        return loss + strength * divergences(first, second, first_real, both=False), torch.cat([plain, of_second])
    loss, plain = smoothed_cross_entropy(logits, targets, smoothing, real)
    return loss + strength / 2 * divergences(first, second, first_real), plain


def fast_r_drop_loss(
    logits: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None = None, cut: bool = False
) -> tuple[Tensor, Tensor]:
    """The loss with one softmax for all parts; its gradient can be taken only once."""
    if gpu.usable(logits):
        return plain_r_drop_loss(logits, targets, smoothing, strength, real, cut)
    loss, plain = _RDrop.apply(  # type: ignore[no-untyped-call]
        in_float32(logits), targets, smoothing, strength, real, cut
    )
    return loss, plain


def r_drop_loss(
    logits: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None = None, cut: bool = False
) -> tuple[Tensor, Tensor]:
    """L_NLL + `strength` L_KL of two passes: both label-smoothed cross-entropies, and the mean of both divergences.

    With `cut`, the loss is SimCut's (Gao et al. 2022, section 3.2): the cross-entropy of the first pass p only, plus
    `strength` KL(p || q), with gradients for both passes.

    Args:
        logits: [2N, V], first one pass, then the other; each pass draws its own dropout. May be bfloat16.
        targets: [2N], the N targets twice.
        smoothing: as in `smoothed_cross_entropy`.
        strength: alpha in Liang et al. and in Gao et al.
        real: [2N], false for rows that count as 0; None if all rows count.
        cut: whether the second pass is SimCut's, for a sentence pair from which some tokens are cut.

    Returns:
        The summed loss, and each row's negative log-likelihood [2N] without smoothing and without a gradient.
    """
    return (fast_r_drop_loss if is_fast() else plain_r_drop_loss)(logits, targets, smoothing, strength, real, cut)


class _RDrop(torch.autograd.Function):
    """With d = log p - log q, the gradient of the divergences with respect to p's logits is p (d - E_p d) + p - q."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None, cut: bool
    ) -> tuple[Tensor, Tensor]:
        probabilities = torch.softmax(logits, 1)
        of_rows = normalizers(logits, probabilities, targets)
        plain = of_rows - logits.gather(1, targets.unsqueeze(1)).squeeze(1)
        losses = plain
        if smoothing:
            losses = (1 - smoothing) * plain + smoothing * (of_rows - logits.mean(1))
        first, second = logits.chunk(2)
        of_first, of_second = of_rows.chunk(2)
        log_ratio = torch.sub(first, second).sub_((of_first - of_second).unsqueeze(1))
        # E_p d and E_q d as batched dot products of rows, which avoid another tensor [N, V].
        expected = [torch.bmm(half.unsqueeze(1), log_ratio.unsqueeze(2)).flatten() for half in probabilities.chunk(2)]
        if cut:
            losses = torch.cat([losses.chunk(2)[0] + strength * expected[0], torch.zeros_like(of_second)])
        else:
            # E_p d - E_q d is one number per pair of rows; each row of the pair gets half.
            apart = (expected[0] - expected[1]).repeat(2) / 2
            losses = losses + strength / 2 * apart
        if real is not None:
            losses, plain = losses.masked_fill(~real, 0), plain.masked_fill(~real, 0)
        ctx.save_for_backward(targets, real)
        ctx.intermediates, ctx.smoothing = (probabilities, log_ratio, *expected), smoothing
        ctx.strength, ctx.cut = strength, cut
        ctx.mark_non_differentiable(plain)
        return losses.sum(), plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None, None, None]:
        if ctx.intermediates is None:
            raise RuntimeError("the gradient of this loss can be taken only once: it overwrites probabilities")
        targets, real = ctx.saved_tensors
        (probabilities, log_ratio, by_first, by_second), ctx.intermediates = ctx.intermediates, None
        outer = gradients[0]
        share = outer * (ctx.strength if ctx.cut else ctx.strength / 2)
        result = torch.empty_like(probabilities)
        (p, q), (first, second) = probabilities.chunk(2), result.chunk(2)
        if ctx.cut:  # p (1 + share (d - E_p d)) and share (q - p)
            torch.mul(log_ratio, share, out=first).add_((outer - share * by_first).unsqueeze(1)).mul_(p)
            torch.sub(q, p, out=second).mul_(share)
        else:  # p (1 + share (d - E_p d + 1)) - share q, and the same with p and q exchanged and d negated
            torch.mul(log_ratio, share, out=first).add_((outer + share * (1 - by_first)).unsqueeze(1)).mul_(p)
            torch.mul(log_ratio, -share, out=second).add_((outer + share * (1 + by_second)).unsqueeze(1)).mul_(q)
            first.addcmul_(q, share, value=-1)
            second.addcmul_(p, share, value=-1)
        labelled, targets = (first, targets.chunk(2)[0]) if ctx.cut else (result, targets)
        if ctx.smoothing:
            labelled.sub_(outer * (ctx.smoothing / result.shape[1]))
        labelled.scatter_add_(1, targets.unsqueeze(1), (outer * (ctx.smoothing - 1)).expand(len(labelled), 1))
        if real is not None:
            result.masked_fill_(~real.unsqueeze(1), 0)
        return result, None, None, None, None, None
