"""The loss: cross-entropy with label smoothing over real target tokens, and the terms that a mechanism adds."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.data.batches import Batch
from nmt.model import Seq2Seq


class Loss(NamedTuple):
    """Sums over the real target tokens of a batch: what is minimised, the plain negative log-likelihood, the count."""

    total: Tensor
    negative_log_likelihood: Tensor
    tokens: int


def batch_loss(model: Seq2Seq, batch: Batch, label_smoothing: float = 0.0, scheduled_sampling: float = 0.0) -> Loss:
    """Runs the model on a batch, teacher-forced unless `scheduled_sampling` > 0.

    Label smoothing after Szegedy et al. 2016, section 7: the target's share is 1 - eps, eps is spread over the
    vocabulary. Padding never reaches the softmax.
    """
    decoded = model(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, scheduled_sampling)
    logits = model.logits(decoded.features[batch.target_mask]).float()
    targets = batch.target_out[batch.target_mask]
    smoothed = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=label_smoothing)
    total = smoothed + sum((term * batch.target_mask).sum() for term in decoded.terms.values())
    with torch.no_grad():
        plain = smoothed
        if label_smoothing:
            plain = nn.functional.cross_entropy(logits.detach(), targets, reduction="sum")
    return Loss(total, plain.detach(), targets.shape[0])
