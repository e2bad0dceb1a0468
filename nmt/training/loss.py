"""The loss: label-smoothed cross-entropy over real target tokens, and the terms of the attention mechanism."""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.attention import LOG_PROB
from nmt.data.batch import Batch
from nmt.kernels.cross_entropy import smoothed_cross_entropy
from nmt.model import Seq2Seq
from nmt.training.guiding import guided_alignment


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch: the loss, the plain negative log-likelihood, the number."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


def score_function(log_prob: Tensor, rewards: Tensor, mask: Tensor, baseline: float, carried: bool) -> Tensor:
    """The score-function term of the loss (Xu et al. 2015, eq. 12 and 13): its value is zero, its gradient is not.

    The gradient of -sum_t log p(y_t) treats the samples as constants. With this term added, its expectation over the
    samples is the gradient of the expected loss, for any baseline.

    Args:
        log_prob: [B, T] log-probability of each step's sample.
        rewards: log p(y_t), 0 at padding. A sample's advantage is its reward minus the baseline.
        mask: true where the target is real.
        baseline: the expected log p(y_t).
        carried: whether a sample also influences later steps, so that its reward includes theirs.
    """
    advantages = (rewards - baseline) * mask
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
    """The loss of a batch, with teacher forcing unless `scheduled_sampling` > 0; padding never reaches the softmax.

    `baseline` is the expected log p(y_t), for mechanisms that sample. Their reward is the log-likelihood without label
    smoothing. `guided` is the weight of the guided-alignment loss, if the batch has links.
    """
    mask = batch.target_mask
    decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, scheduled_sampling)
    targets = batch.target_out[mask]
    total, plain = smoothed_cross_entropy(model.target_logits(decoded, mask), targets, label_smoothing, model.fast)
    for name, term in decoded.terms.items():
        if name == LOG_PROB:
            rewards = torch.zeros_like(term).masked_scatter(mask, -plain.to(term.dtype))
            total = total + score_function(term, rewards, mask, baseline, model.decoder.carries_contexts)
        else:
            total = total + (term * mask).sum()
    if guided and batch.links.numel() and decoded.weights is not None:
        total = total + guided * guided_alignment(decoded.weights, batch.links).sum()
    return Loss(total, plain.sum(), targets.shape[0])
