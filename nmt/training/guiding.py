"""The guided-alignment loss: attention weights are drawn to given word links."""

import torch
from torch import Tensor

#: Where a window hides a linked position its weight is zero: the loss stays finite, and has no gradient there.
#: It is far below any weight that a softmax gives: attention that is wrong with certainty has most to learn.
LEAST = 1e-30


def guided_alignment(weights: Tensor, links: Tensor) -> Tensor:
    """Cross-entropy of attention weights with links, -sum_j G_tj log a_tj, for each target token.

    Chen et al. 2016 (with cross-entropy as the distance); Garg et al. 2019. Row t of the weights is the one from which
    y_t is predicted (shift 0). Several heads share the task: a is their mean.

    Args:
        weights: [B, H, T, S].
        links: [B, T, S], G: rows that sum to one, or are zero for a token without links.

    Returns:
        [B, T].
    """
    mean = weights.float().mean(1)
    return -(links * torch.log(mean.clamp_min(LEAST))).sum(2)
