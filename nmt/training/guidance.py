"""The guided-alignment loss: trains attention weights towards word links."""

from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.system.errors import SettingError
from nmt.translation.named_heads import Heads

#: Minimum weight in the logarithm. If a window hides a linked position, its weight is zero: the loss stays finite,
#: without a gradient. The minimum is far below any weight of a softmax, which keeps its gradient.
LEAST = 1e-30


def guided_heads(heads: Sequence[str], selection: str | None) -> list[int]:
    """The positions in `heads`, a decoder's heads, of the heads whose mean weights are trained.

    `selection` None selects one head of the penultimate layer (Garg et al. 2019, section 4.2), or all heads if the
    decoder has one layer of attention.

    Raises:
        SettingError: the selection does not exist.
    """
    known = Heads(heads)
    positions = known.select(selection or known.guided)
    if not positions:
        raise SettingError("guided_head", selection, f"does not exist. Give {known.alternatives}.", "trainer")
    return positions


def guided_alignment(weights: Tensor, links: Tensor, heads: Sequence[int] | None = None) -> Tensor:
    """Cross-entropy of attention weights with links, -sum_j G_tj log a_tj, for each target token.

    Chen et al. 2016 (with cross-entropy as the distance); Garg et al. 2019. Row t of the weights predicts y_t, shift 0.

    Args:
        weights: [B, H, T, S].
        links: [B, T, S], G: rows that sum to one, or are zero for a token without links.
        heads: the positions of the heads whose mean weights are a; None for all heads.

    Returns:
        [B, T].
    """
    # A list as index would be copied to the GPU, which makes the host wait.
    head_weights = weights if heads is None else torch.stack([weights[:, head] for head in heads], 1)
    mean = head_weights.float().mean(1)
    return -(links * torch.log(mean.clamp_min(LEAST))).sum(2)
