"""Word-level attention weights, and links from them.

The input is `Translation.weights`; no model is needed. Links are pairs of positions (source, target), both counted
from 0; `nmt.links` reads and writes them.
"""

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from nmt.alignment.units import Units, source_units, target_units
from nmt.links import Link
from nmt.system.errors import UserError
from nmt.translation.named_heads import AUTO, Heads
from nmt.translation.types import Translation

Weights = npt.NDArray[np.float32]
#: The name or number of a head, or a selection of several heads (`nmt.translation.named_heads`).
Head = int | str
#: A source word is unattended if its total weight from all target words is less than this.
UNATTENDED = 0.2


def piece_weights(translation: Translation, head: Head = AUTO, shift: int = 0) -> Weights:
    """The weights of a head, or the mean of several, over subword pieces with the end of sentence.

    Args:
        translation: the result of the translator.
        head: name of a head, such as 0 or "2.1" (layer and head); "2.mean" for the mean of a layer's heads, "mean" for
            the mean of all heads. "auto" is the mean of the penultimate layer, or of all heads if there is one layer.
        shift: 0 assigns row t to the piece that it predicts; 1 assigns it to the previous piece, the decoder's
            input at that step (Luong et al. 2015, footnote 14). With 1, the first row, whose input is the
            beginning of the sentence, is dropped, and the last piece has no row.

    Returns:
        [T, S] for shift 0, [T - 1, S] for shift 1 (T = 0 stays 0). Rows sum to one, or to less if a window
        scales the weights (local-p).

    Raises:
        UserError: the model has no attention, or the head or the shift does not exist.
    """
    if translation.attends == "encoder":
        shift = 0  # the encoder's rows are words, not predictions
    if shift not in (0, 1):
        raise UserError(f"shift={shift}: a row belongs to the predicted piece (0) or to the one before it (1).")
    if translation.weights is None:
        if translation.text.strip():
            raise UserError(
                "There are no attention weights, so nothing can be drawn or aligned: the model has decoder=none, or "
                "the line is too long for weights. Train with attention, or give shorter lines."
            )
        return np.zeros((0, len(translation.source_pieces)), dtype=np.float32)  # of an empty line
    heads = Heads(names_of_heads(translation))
    positions = heads.select(head_name(head))
    if not positions:
        raise UserError(f"head={head} does not exist. Give {heads.alternatives}.")
    if len(positions) == 1:
        return translation.weights[positions[0], shift:]
    weights: Weights = translation.weights[positions].mean(axis=0, dtype=np.float32)
    return weights[shift:]


def head_name(head: Head) -> str:
    """The name of a head or a selection of heads (UserError for a float)."""
    if isinstance(head, float):  # 2.10 would be 2.1
        raise UserError(f'head={head}: give the name of a head as text: "{head}".')
    return str(head)


def names_of_heads(translation: Translation) -> Sequence[str]:
    """The names of a translation's heads."""
    count = 0 if translation.weights is None else len(translation.weights)
    return translation.heads if len(translation.heads) == count else [str(head) for head in range(count)]


def word_weights(
    translation: Translation, head: Head = AUTO, shift: int = 0, units: tuple[Units, Units] | None = None
) -> Weights:
    """The weights of a head over words: summed over a word's source pieces, averaged over its target pieces.

    Weight on the end of the sentence is dropped, so a row sums to at most one. Rows are not rescaled, because a low
    sum is informative.

    Args:
        translation: the result of the translator.
        head: see `piece_weights`.
        shift: 0 or 1, in pieces; see `piece_weights`.
        units: units of the source and of the target, if they are not the whitespace-separated words.

    Returns:
        [Tw, Sw] with the units of the target and of the source; the row of a word is zero if none of its pieces
        has weights.

    Raises:
        UserError: the model has no attention, or the head or the shift does not exist.
    """
    source, target = units or (source_units(translation), target_units(translation))
    pieces = piece_weights(translation, head, shift)
    targets = target.members[: len(pieces)]
    counts = targets.sum(axis=0)[:, None]
    summed = targets.T @ pieces @ source.members
    averaged: Weights = np.divide(summed, counts, out=np.zeros_like(summed), where=counts > 0)
    return averaged


def saliency_weights(translation: Translation, units: tuple[Units, Units] | None = None) -> Weights:
    """The saliency of source words for target words, [Tw, Sw]; rows sum to one, or to zero without positive values.

    The saliency of a source piece is the inner product of its embedding and the gradient of log p(target piece), a
    signed number (Ding et al. 2019; see `nmt.translation.forced_passes.saliency`). It is linear, so values of pieces
    add up to words on both sides. Negative values, of source words that lower the probability, are set to zero; then
    each row is divided by its sum.
    """
    signed = word_weights(translation, units=units)  # one head
    helping = np.maximum(signed, 0)
    totals = helping.sum(axis=1, keepdims=True)
    shares: Weights = np.divide(helping, totals, out=np.zeros_like(helping), where=totals > 0)
    return shares


def best_links(weights: Weights, threshold: float | None = None) -> list[Link]:
    """The links from word-level weights.

    Args:
        weights: [Tw, Sw] weights.
        threshold: link every pair with at least this weight; None links each target word to the source word with the
            largest weight (the first one in a tie).

    Returns:
        (source, target) positions from 0, in the order of the target; a target word without weights has no link.
    """
    if threshold is not None:
        return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]
    return [(int(row.argmax()), target) for target, row in enumerate(weights) if row.any()]


def links(
    translation: Translation, head: Head = AUTO, shift: int = 0, units: tuple[Units, Units] | None = None
) -> list[Link]:
    """Link every target word to the source word with the largest weight; see `word_weights` and `best_links`."""
    return best_links(word_weights(translation, head, shift, units))


#: The word to which a row of the weights is assigned, for each shift.
SHIFTS = {0: "the word it predicts", 1: "the word before"}
