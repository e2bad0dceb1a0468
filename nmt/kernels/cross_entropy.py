"""Label-smoothed cross-entropy with its gradient in closed form.

The logits are the largest tensor of a training step. The loss and the unsmoothed likelihood share one softmax, which
the gradient overwrites. Measured: docs/benchmarks.md, "The losses". If Triton can run, neither probabilities nor
float32 logits are stored (`nmt.kernels.gpu`).
"""

from typing import Any

import torch
from torch import Tensor, nn

from nmt.kernels import gpu, is_fast

#: The target of ignored rows, torch's default.
IGNORED = -100
#: Above this probability the logarithm is exact: it is well above the smallest normal number of float32.
SMALLEST = 1e-30


def plain_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """torch's cross-entropy; arguments and results as in `smoothed_cross_entropy`."""
    if real is not None:
        targets = targets.masked_fill(~real, IGNORED)
    logits = in_float32(logits)
    loss = nn.functional.cross_entropy(
        logits, targets, ignore_index=IGNORED, reduction="sum", label_smoothing=smoothing
    )
    return loss, nn.functional.cross_entropy(logits.detach(), targets, ignore_index=IGNORED, reduction="none")


def fast_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """Both results from one softmax; the gradient of the loss can be taken only once."""
    if gpu.usable(logits):
        from nmt.kernels.gpu.triton_cross_entropy import BlockwiseCrossEntropy

        loss, plain = BlockwiseCrossEntropy.apply(logits, targets, smoothing, real)  # type: ignore[no-untyped-call]
        return loss, plain
    logits = in_float32(logits)
    loss, plain = _SmoothedCrossEntropy.apply(logits, targets, smoothing, real)  # type: ignore[no-untyped-call]
    return loss, plain


def smoothed_cross_entropy(
    logits: Tensor, targets: Tensor, smoothing: float, real: Tensor | None = None
) -> tuple[Tensor, Tensor]:
    """The summed label-smoothed cross-entropy of logits [N, V] with targets [N] (Szegedy et al. 2016, section 7).

    With q = (1 - eps) at the target plus eps / V everywhere, the loss is -sum_v q_v log p_v. Also returns each row's
    negative log-likelihood [N], without smoothing and without a gradient. Rows where `real` [N] is false count as 0.
    Logits may be bfloat16; both results are float32 at least.
    """
    return (fast_cross_entropy if is_fast() else plain_cross_entropy)(logits, targets, smoothing, real)


def in_float32(logits: Tensor) -> Tensor:
    """The logits, converted to float32 from 16-bit types."""
    return logits.float() if logits.dtype.itemsize < 4 else logits


def normalizers(logits: Tensor, probabilities: Tensor, targets: Tensor) -> Tensor:
    """The log-sum-exp [N] of each row of logits [N, V], from the softmax `probabilities` and targets [N].

    Any entry gives it, as logit - log(probability), if its probability did not underflow. On a CPU the target's entry
    is used, which takes no pass over the logits; otherwise the most probable entry, with at least 1 / V.
    """
    if logits.device.type == "cpu":
        columns = targets.unsqueeze(1)
        of_targets = probabilities.gather(1, columns)
        if bool((of_targets > SMALLEST).all()):
            return (logits.gather(1, columns) - of_targets.log()).squeeze(1)
    return logits.amax(1) - probabilities.amax(1).log()


class _SmoothedCrossEntropy(torch.autograd.Function):
    """The gradient of the loss with respect to the logits is p - q."""

    @staticmethod
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, smoothing: float, real: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        probabilities = torch.softmax(logits, 1)
        of_rows = normalizers(logits, probabilities, targets)
        plain = of_rows - logits.gather(1, targets.unsqueeze(1)).squeeze(1)
        if real is not None:
            plain = plain.masked_fill(~real, 0)
        loss = plain.sum()
        if smoothing:
            even = of_rows - logits.mean(1)
            loss = (1 - smoothing) * loss + smoothing * (even if real is None else even.masked_fill(~real, 0)).sum()
        ctx.save_for_backward(targets, real)
        ctx.probabilities, ctx.smoothing = probabilities, smoothing
        ctx.mark_non_differentiable(plain)
        return loss, plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None, None]:
        if ctx.probabilities is None:
            raise RuntimeError("the gradient of this loss can be taken only once: it overwrites probabilities")
        targets, real = ctx.saved_tensors
        gradient, ctx.probabilities = ctx.probabilities, None
        outer, even = gradients[0], ctx.smoothing / gradient.shape[1]
        if gradient.device.type == "cpu":  # one pass, but float(outer) would make the host wait for a GPU
            torch.add(-even * outer, gradient, alpha=float(outer), out=gradient)
        else:
            gradient.sub_(even).mul_(outer)
        at_target = ((ctx.smoothing - 1) * outer).to(gradient.dtype).expand(len(targets), 1)
        gradient.scatter_add_(1, targets.unsqueeze(1), at_target)
        if real is not None and gradient.device.type == "cpu":  # few rows are ignored
            gradient.index_fill_(0, (~real).nonzero().squeeze(1), 0)
        elif real is not None:
            gradient.masked_fill_(~real.unsqueeze(1), 0)
        return gradient, None, None, None
