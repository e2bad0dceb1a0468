"""The loss of R-Drop with its gradient in closed form (Liang et al. 2021, eq. 1 to 4).

Both cross-entropies and both divergences share two softmaxes, and the gradient overwrites them. Measured:
docs/benchmarks.md, "R-Drop".
"""

from typing import Any

import torch
from torch import Tensor

from nmt.kernels import gpu
from nmt.kernels.cross_entropy import in_float32, normalizers, smoothed_cross_entropy

#: The loss of two passes, and of each the negative log-likelihood of each row.
Losses = tuple[Tensor, Tensor, Tensor]


def divergences(first: Tensor, second: Tensor, real: Tensor | None = None) -> Tensor:
    """KL(p || q) + KL(q || p), summed over the rows of logits [N, V] of p and q: sum (p - q) (log p - log q)."""
    p, q = torch.log_softmax(in_float32(first), 1), torch.log_softmax(in_float32(second), 1)
    rows = ((p.exp() - q.exp()) * (p - q)).sum(1)
    return (rows if real is None else rows.masked_fill(~real, 0)).sum()


def plain_r_drop_loss(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None = None
) -> Losses:
    """Autograd through each cross-entropy and the divergences; arguments and results are those of `r_drop_loss`."""
    return _in_parts(first, second, targets, smoothing, strength, False, real)


def fast_r_drop_loss(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, strength: float, real: Tensor | None = None
) -> Losses:
    """One softmax of each pass for everything; the gradient of the loss can be taken once."""
    if gpu.usable(first):
        return _in_parts(first, second, targets, smoothing, strength, True, real)
    logits = in_float32(first), in_float32(second)
    loss, one, other = _RDrop.apply(*logits, targets, smoothing, strength, real)  # type: ignore[no-untyped-call]
    return loss, one, other


def r_drop_loss(
    first: Tensor,
    second: Tensor,
    targets: Tensor,
    smoothing: float,
    strength: float,
    fast: bool = True,
    real: Tensor | None = None,
) -> Losses:
    """The mean of both label-smoothed cross-entropies and `strength` / 4 times KL(p || q) + KL(q || p), summed.

    Args:
        first, second: logits [N, V] of two passes, each with dropout of its own. They may be bfloat16.
        targets: [N].
        smoothing: as in `smoothed_cross_entropy`.
        strength: alpha of Liang et al., for half of their loss.
        fast: whether to use the closed form.
        real: [N], false for rows that count as 0; None if all count.

    Returns:
        the loss, and each pass's negative log-likelihoods [N] without smoothing and without a gradient.
    """
    return (fast_r_drop_loss if fast else plain_r_drop_loss)(first, second, targets, smoothing, strength, real)


def _in_parts(
    first: Tensor, second: Tensor, targets: Tensor, smoothing: float, strength: float, fast: bool, real: Tensor | None
) -> Losses:
    (one, plain), (other, other_plain) = (
        smoothed_cross_entropy(logits, targets, smoothing, fast, real) for logits in (first, second)
    )
    return (one + other) / 2 + strength / 4 * divergences(first, second, real), plain, other_plain


class _RDrop(torch.autograd.Function):
    """With d = log p - log q, the divergences have the gradient p (d - E_p d) + p - q with respect to p's logits."""

    @staticmethod
    def forward(
        ctx: Any,
        first: Tensor,
        second: Tensor,
        targets: Tensor,
        smoothing: float,
        strength: float,
        real: Tensor | None,
    ) -> Losses:
        p, q = torch.softmax(first, 1), torch.softmax(second, 1)
        of_first, of_second = normalizers(first, p), normalizers(second, q)
        at = targets.unsqueeze(1)
        plain, other = of_first - first.gather(1, at).squeeze(1), of_second - second.gather(1, at).squeeze(1)
        losses = (plain + other) / 2
        if smoothing:
            even = (of_first + of_second - first.mean(1) - second.mean(1)) / 2
            losses = (1 - smoothing) * losses + smoothing * even
        log_ratio = torch.sub(first, second).sub_((of_first - of_second).unsqueeze(1))
        # A product of each row with a row makes no [N, V] of products.
        by_first, by_second = (torch.bmm(x.unsqueeze(1), log_ratio.unsqueeze(2)).flatten() for x in (p, q))
        losses = losses + strength / 4 * (by_first - by_second)
        if real is not None:
            losses, plain, other = (rows.masked_fill(~real, 0) for rows in (losses, plain, other))
        ctx.save_for_backward(targets, real)
        ctx.kept, ctx.smoothing, ctx.strength = (p, q, log_ratio, by_first, by_second), smoothing, strength
        ctx.mark_non_differentiable(plain, other)
        return losses.sum(), plain, other

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, Tensor, None, None, None, None]:
        if ctx.kept is None:
            raise RuntimeError("the gradient of this loss can be taken only once: it overwrites probabilities")
        targets, real = ctx.saved_tensors
        (p, q, log_ratio, by_first, by_second), ctx.kept = ctx.kept, None
        outer = gradients[0]
        half, share = outer / 2, outer * (ctx.strength / 4)
        # p (1/2 + share (d - E_p d + 1)) - share q, and the same with p and q exchanged and d negated.
        first = torch.mul(log_ratio, share).add_((half + share * (1 - by_first)).unsqueeze(1)).mul_(p)
        second = log_ratio.mul_(-share).add_((half + share * (1 + by_second)).unsqueeze(1)).mul_(q)
        at, at_target = targets.unsqueeze(1), (half * (ctx.smoothing - 1)).expand(len(p), 1)
        for gradient, others in ((first, q), (second, p)):
            gradient.addcmul_(others, share, value=-1)
            if ctx.smoothing:
                gradient.sub_(half * (ctx.smoothing / p.shape[1]))
            gradient.scatter_add_(1, at, at_target)
            if real is not None:
                gradient.masked_fill_(~real.unsqueeze(1), 0)
        return first, second, None, None, None, None
