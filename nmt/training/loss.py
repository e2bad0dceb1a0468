"""The loss: cross-entropy with label smoothing over real target tokens, and the terms that a mechanism adds."""

from typing import NamedTuple

import torch
from torch import Tensor

from nmt.attention import LOG_PROB
from nmt.data.batch import Batch
from nmt.kernels.cross_entropy import smoothed_cross_entropy
from nmt.model import Seq2Seq
from nmt.training.guiding import guided_alignment


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch: what is minimised, the plain negative log-likelihood, the count."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


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
    """Run the model on a batch, teacher-forced unless `scheduled_sampling` > 0; padding never reaches the softmax.

    `baseline` is what log p(y_t) is expected to be, for mechanisms that draw; they are judged by the plain
    log-likelihood whatever the label smoothing. `guided` is the weight of the guided-alignment loss, where the batch
    has links.
    """
    mask = batch.target_mask
    decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, scheduled_sampling)
    targets = batch.target_out[mask]
    total, plain = smoothed_cross_entropy(model.target_logits(decoded, mask), targets, label_smoothing, model.fast)
    for name, term in decoded.terms.items():
        if name == LOG_PROB:
            gains = torch.zeros_like(term).masked_scatter(mask, -plain.to(term.dtype))
            total = total + score_function(term, gains, mask, baseline, model.decoder.carries_contexts)
        else:
            total = total + (term * mask).sum()
    if guided and batch.links.numel() and decoded.weights is not None:
        total = total + guided * guided_alignment(decoded.weights, batch.links).sum()
    return Loss(total, plain.sum(), targets.shape[0])
