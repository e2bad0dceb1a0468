"""The loss: cross-entropy with label smoothing over real target tokens, and the terms that a mechanism adds."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.data.batches import Batch
from nmt.model import Seq2Seq
from nmt.training.guiding import guided_alignment


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch: what is minimised, the plain negative log-likelihood, the count."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


class SmoothedCrossEntropy(torch.autograd.Function):
    """Label-smoothed cross-entropy (Szegedy et al. 2016, section 7) of logits [N, V] with targets [N], summed.

    With q = (1 - eps) at the target plus eps / V everywhere, the loss is -sum_v q_v log p_v and its gradient p - q.
    Returns the loss and the plain negative log-likelihood. Computing both from one log-softmax, and the gradient in
    closed form and in place, spares several passes over [N, V], the largest tensor of a step.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """See the class."""
        log_probs = torch.log_softmax(logits, 1)
        plain = -log_probs.gather(1, targets.unsqueeze(1)).sum()
        loss = plain if smoothing == 0 else (1 - smoothing) * plain - smoothing * log_probs.mean(1).sum()
        ctx.save_for_backward(targets)
        ctx.log_probs, ctx.smoothing = log_probs, smoothing
        ctx.mark_non_differentiable(plain)
        return loss.clone(), plain

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None, None]:
        """See the class."""
        if ctx.log_probs is None:
            raise RuntimeError("the gradient of this loss can be taken once: it is written over the log-probabilities")
        (targets,) = ctx.saved_tensors
        gradient, ctx.log_probs = ctx.log_probs.exp_(), None
        if ctx.smoothing:
            gradient.sub_(ctx.smoothing / gradient.shape[1])
        at_target = torch.full_like(targets, ctx.smoothing - 1, dtype=gradient.dtype).unsqueeze(1)
        gradient.scatter_add_(1, targets.unsqueeze(1), at_target)
        return gradient.mul_(gradients[0]), None, None


def smoothed_cross_entropy(logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
    """The summed label-smoothed cross-entropy and the plain negative log-likelihood; see `SmoothedCrossEntropy`."""
    loss, plain = SmoothedCrossEntropy.apply(logits, targets, smoothing)  # type: ignore[no-untyped-call]
    return loss, plain


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    label_smoothing: float = 0.0,
    scheduled_sampling: float = 0.0,
    guided: float = 0.0,
) -> Loss:
    """Runs the model on a batch, teacher-forced unless `scheduled_sampling` > 0; padding never reaches the softmax.

    `guided` is the weight of the guided-alignment loss, where the batch has links.
    """
    decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, scheduled_sampling)
    logits = model.logits(decoded.features[batch.target_mask]).float()
    targets = batch.target_out[batch.target_mask]
    total, plain = smoothed_cross_entropy(logits, targets, label_smoothing)
    for term in decoded.terms.values():
        total = total + (term * batch.target_mask).sum()
    if guided and batch.links.numel() and decoded.weights is not None:
        total = total + guided * guided_alignment(decoded.weights, batch.links).sum()
    return Loss(total, plain, targets.shape[0])
