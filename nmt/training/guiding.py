"""The guided-alignment loss: trains attention weights towards word links."""

import torch
from torch import Tensor

#: Minimum weight in the logarithm. If a window hides a linked position, its weight is zero: the loss stays finite,
#: without a gradient. The minimum is far below any weight of a softmax, which keeps its gradient.
LEAST = 1e-30


def guided_alignment(weights: Tensor, links: Tensor) -> Tensor:
    """Cross-entropy of attention weights with links, -sum_j G_tj log a_tj, for each target token.

    Chen et al. 2016 (with cross-entropy as the distance); Garg et al. 2019. Row t of the weights predicts
    y_t (shift 0). With several heads, a is their mean.

    Args:
        weights: [B, H, T, S].
        links: [B, T, S], G: rows that sum to one, or are zero for a token without links.

    Returns:
        [B, T].
    """
    mean = weights.float().mean(1)
    return -(links * torch.log(mean.clamp_min(LEAST))).sum(2)
