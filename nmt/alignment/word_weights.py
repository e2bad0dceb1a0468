"""Attention weights -> word-level weights -> discrete links.

Stands after the translator: it reads `Translation.weights` and reaches no further back. Links are pairs of
positions (source, target), both counted from 0; `nmt.links` reads and writes them.
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
#: The name of a head, which may be a number, or a selection of several (`nmt.translation.named_heads`).
Head = int | str
#: A source word that has received less attention than this from all target words together is unattended.
UNATTENDED = 0.2


def piece_weights(translation: Translation, head: Head = AUTO, shift: int = 0) -> Weights:
    """The weights of one head over subword pieces, end of sentence included.

    Args:
        translation: what the translator returned.
        head: name of a head, such as 0 or "2.1" (layer and head); "2.mean" for the mean of a layer's heads, "mean" for
            that of all heads. "auto" is the mean of the penultimate layer, or of all heads if there is one layer.
        shift: 0 leaves row t at the piece that was predicted from it; 1 moves it to the piece before, which
            was the decoder's input at that step (Luong et al. 2015, footnote 14). The first row, whose input
            was the beginning of the sentence, then falls away, and the last piece has none.

    Returns:
        [T, S] for shift 0, [T - 1, S] for shift 1 (T = 0 stays 0). Rows sum to one, or less under a
        factor such as local-p's.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    if translation.attends == "encoder":
        shift = 0  # its rows are the words themselves
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
    """The name of a selection of heads (UserError for a number with a point)."""
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
    """The weights of one head over words.

    The sum over the source pieces of a word, the mean over its target pieces.
    What fell on the end of the sentence belongs to no word and is dropped, so that a row sums to one at
    most; it is not rescaled, for a faint row is news.

    Args:
        translation: what the translator returned.
        head: see `piece_weights`.
        shift: 0 or 1, in pieces; see `piece_weights`.
        units: of the source and of the target, where the words are not those that the text itself shows.

    Returns:
        [Tw, Sw] with the units of the target and of the source; the row of a word of which no piece has
        weights is zero.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    source, target = units or (source_units(translation), target_units(translation))
    pieces = piece_weights(translation, head, shift)
    # Pieces [T, S] -> words by two products.
    targets = target.members[: len(pieces)]
    counts = targets.sum(axis=0)[:, None]
    summed = targets.T @ pieces @ source.members
    averaged: Weights = np.divide(summed, counts, out=np.zeros_like(summed), where=counts > 0)
    return averaged


def saliency_weights(translation: Translation, units: tuple[Units, Units] | None = None) -> Weights:
    """The saliency of source words for target words, [Tw, Sw]; a row sums to one, or to zero where nothing helps.

    A source piece's saliency is the inner product of its embedding and the gradient of log p(piece of the target), a
    signed number (Ding et al. 2019; see `nmt.translation.forced_passes.saliency`). It is linear, so that a word's is
    the sum over its pieces on both sides. A negative one says that the source word speaks against the target word: it
    counts as zero, and a row is divided by its sum.
    """
    signed = word_weights(translation, units=units)  # one head
    helping = np.maximum(signed, 0)
    totals = helping.sum(axis=1, keepdims=True)
    shares: Weights = np.divide(helping, totals, out=np.zeros_like(helping), where=totals > 0)
    return shares


def best_links(weights: Weights, threshold: float | None = None) -> list[Link]:
    """Read links off word-level weights [Tw, Sw].

    Args:
        weights: of source words for target words.
        threshold: links every pair whose weight is at least this; None links each target word to the source word with
            the most weight (the first of equals).

    Returns:
        (source, target) positions from 0, in the order of the target; a word without weights has no link.
    """
    if threshold is not None:
        return [(int(source), int(target)) for target, source in np.argwhere(weights >= threshold)]
    return [(int(row.argmax()), target) for target, row in enumerate(weights) if row.any()]


def links(
    translation: Translation, head: Head = AUTO, shift: int = 0, units: tuple[Units, Units] | None = None
) -> list[Link]:
    """Link every target word to the source word with the most weight; see `word_weights` and `best_links`."""
    return best_links(word_weights(translation, head, shift, units))


#: What a row of the weights is given to, for each shift.
SHIFTS = {0: "the word it predicts", 1: "the word before"}
