"""The loss: cross-entropy with label smoothing over real target tokens, and the terms that a mechanism adds."""

from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.attention import LOG_PROB
from nmt.data.batch import Batch
from nmt.model import Seq2Seq
from nmt.training.guiding import guided_alignment


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch: what is minimised, the plain negative log-likelihood, the count."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


class SmoothedCrossEntropy(torch.autograd.Function):
    """Label-smoothed cross-entropy (Szegedy et al. 2016, section 7) of logits [N, V] with targets [N].

    With q = (1 - eps) at the target plus eps / V everywhere, the loss is -sum_v q_v log p_v and its gradient p - q.
    Returns the summed loss and the plain negative log-likelihood of each row. Computing both from one log-softmax, and
    the gradient in closed form and in place, spares several passes over [N, V], the largest tensor of a step.
    """

    @staticmethod
    def forward(ctx: Any, logits: Tensor, targets: Tensor, smoothing: float) -> tuple[Tensor, Tensor]:
        """See the class."""
        log_probs = torch.log_softmax(logits, 1)
        plain = -log_probs.gather(1, targets.unsqueeze(1)).squeeze(1)
        loss = plain.sum() if smoothing == 0 else (1 - smoothing) * plain.sum() - smoothing * log_probs.mean(1).sum()
        ctx.save_for_backward(targets)
        ctx.log_probs, ctx.smoothing = log_probs, smoothing
        ctx.mark_non_differentiable(plain)
        return loss, plain

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
    """The summed label-smoothed cross-entropy and each row's plain negative log-likelihood: `SmoothedCrossEntropy`."""
    loss, plain = SmoothedCrossEntropy.apply(logits, targets, smoothing)  # type: ignore[no-untyped-call]
    return loss, plain


def score_function(log_prob: Tensor, gains: Tensor, mask: Tensor, baseline: float, carried: bool) -> Tensor:
    """What to add to the loss for draws of log-probability `log_prob` [B, T]: zero, with a gradient.

    Added to that of -sum_t log p(y_t), which holds the draws as they are, its gradient is, in the mean over the draws,
    that of the mean of -sum_t log p(y_t), whatever the baseline. Xu et al. 2015, eq. 12 and 13.

    Args:
        log_prob: of each step's draw.
        gains: log p(y_t), 0 where padded.
        mask: true where the target is real.
        baseline: of log p(y_t).
        carried: a draw also has a say in later steps, and so earns what they gain.
    """
    advantages = (gains - baseline) * mask
    if carried:
        advantages = advantages.flip(1).cumsum(1).flip(1)
    return -(advantages.detach() * mask * (log_prob - log_prob.detach())).sum()


def batch_loss(
    model: Seq2Seq,
    batch: Batch,
    label_smoothing: float = 0.0,
    scheduled_sampling: float = 0.0,
    baseline: float = 0.0,
    guided: float = 0.0,
) -> Loss:
    """Runs the model on a batch, teacher-forced unless `scheduled_sampling` > 0; padding never reaches the softmax.

    `baseline` is what log p(y_t) is expected to be, for mechanisms that draw; they are judged by the plain
    log-likelihood whatever the label smoothing. `guided` is the weight of the guided-alignment loss, where the batch
    has links.
    """
    mask = batch.target_mask
    decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, scheduled_sampling)
    targets = batch.target_out[mask]
    total, plain = smoothed_cross_entropy(model.target_logits(decoded, mask), targets, label_smoothing)
    for name, term in decoded.terms.items():
        if name == LOG_PROB:
            gains = torch.zeros_like(term).masked_scatter(mask, -plain.to(term.dtype))
            total = total + score_function(term, gains, mask, baseline, model.decoder.carries_contexts)
        else:
            total = total + (term * mask).sum()
    if guided and batch.links.numel() and decoded.weights is not None:
        total = total + guided * guided_alignment(decoded.weights, batch.links).sum()
    return Loss(total, plain.sum(), targets.shape[0])
