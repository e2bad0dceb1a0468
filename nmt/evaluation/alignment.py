"""Attention weights -> word-level weights -> discrete links, and their agreement with gold links.

Stands after the translator: it reads `Translation.weights` and reaches no further back. Links are pairs of
positions (source, target), both counted from 0; `nmt.links` reads and writes them.
"""

import math
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.errors import UserError
from nmt.evaluation.words import Units, source_units, target_units
from nmt.links import GoldLinks, Link
from nmt.translation.types import Translation

Weights = npt.NDArray[np.float32]
Head = int | Literal["mean"]


def piece_weights(translation: Translation, head: Head = "mean", shift: int = 0) -> Weights:
    """The weights of one head over subword pieces, end of sentence included.

    Args:
        translation: what the translator returned.
        head: number of a head, from 0, or "mean" for the mean of all heads.
        shift: 0 leaves row t at the piece that was predicted from it; 1 moves it to the piece before, which
            was the decoder's input at that step (Luong et al. 2015, footnote 14). The first row, whose input
            was the beginning of the sentence, then falls away, and the last piece has none.

    Returns:
        [T, S] for shift 0, [T - 1, S] for shift 1 (T = 0 stays 0). Rows sum to one, or less under a
        factor such as local-p's.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    if shift not in (0, 1):
        raise UserError(f"shift={shift}: a row belongs to the predicted piece (0) or to the one before it (1).")
    if translation.weights is None:
        if any(word >= 0 for word in translation.words):
            raise UserError(
                "decoder=none has no attention weights: nothing to draw and no alignments. Train with "
                "decoder=bahdanau or decoder=luong to see what the model looks at."
            )
        return np.zeros((0, len(translation.source_pieces)), dtype=np.float32)  # of an empty line
    heads = len(translation.weights)
    if head == "mean":
        weights: Weights = translation.weights.mean(axis=0, dtype=np.float32)
    elif 0 <= head < heads:
        weights = translation.weights[head]
    else:
        raise UserError(f"head={head}: the model has heads 0 to {heads - 1}; or ask for head=mean.")
    return weights[shift:]


def word_weights(
    translation: Translation, head: Head = "mean", shift: int = 0, units: tuple[Units, Units] | None = None
) -> Weights:
    """The weights of one head over words.

    The sum over the source pieces of a word, the mean over its target pieces.
    What fell on the end of the sentence belongs to no word and is dropped, so that a row sums to one at
    most; it is not rescaled, for a faint row is news.

    Args:
        translation: what the translator returned.
        head: number of a head, from 0, or "mean".
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
    signed number (Ding et al. 2019; see `nmt.translation.forcing.saliency`). It is linear, so that a word's is the sum
    over its pieces on both sides. A negative one says that the source word speaks against the target word: it counts
    as zero, and a row is divided by its sum.

    Args:
        translation: what `nmt.translation.translator.Translator.saliency` returned.
        units: see `word_weights`.
    """
    signed = word_weights(translation, head=0, units=units)
    helping = np.maximum(signed, 0)
    totals = helping.sum(axis=1, keepdims=True)
    shares: Weights = np.divide(helping, totals, out=np.zeros_like(helping), where=totals > 0)
    return shares


def best_links(weights: Weights, threshold: float | None = None) -> list[Link]:
    """Reads links off word-level weights [Tw, Sw].

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
    translation: Translation, head: Head = "mean", shift: int = 0, units: tuple[Units, Units] | None = None
) -> list[Link]:
    """Links every target word to the source word with the most weight; see `word_weights` and `best_links`."""
    return best_links(word_weights(translation, head, shift, units))


SYMMETRIZATIONS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")


def symmetrize(forward: Collection[Link], backward: Collection[Link], how: str) -> set[Link]:
    """Joins the links of two directions (Och and Ney 2003; Koehn, Och and Marcu 2003; Koehn et al. 2005, IWSLT).

    `grow-diag` begins with the intersection and adds links of the union that touch a link, straight or diagonally,
    as long as one of their words has no link yet. `-final` then adds links of either direction, the forward one
    first, of which one word has no link yet; `-final-and` only those of which neither word has.

    Args:
        forward: (source, target) links of the one direction.
        backward: links of the other, as (source, target) too.
        how: one of `SYMMETRIZATIONS`.

    Raises:
        UserError: `how` is not known.
    """
    if how not in SYMMETRIZATIONS:
        raise UserError(f"symmetrize={how} is not known. Give symmetrize= one of {', '.join(SYMMETRIZATIONS)}.")
    one, other = set(forward), set(backward)
    union = one | other
    if how == "union":
        return union
    joined = one & other
    if how == "intersection":
        return joined
    sources, targets = {link[0] for link in joined}, {link[1] for link in joined}

    def add(link: Link) -> None:
        joined.add(link)
        sources.add(link[0])
        targets.add(link[1])

    # Target by target, source by source, as the authors' pseudo-code goes; a link that is added is visited in its turn.
    order = sorted(union, key=lambda link: (link[1], link[0]))
    grown = -1
    while grown != len(joined):
        grown = len(joined)
        for source, target in order:
            if (source, target) not in joined:
                continue
            for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                link = (source + right, target + down)
                if link in union and (link[0] not in sources or link[1] not in targets):
                    add(link)
    for found in (one, other) if how != "grow-diag" else ():
        for link in sorted(found, key=lambda link: (link[1], link[0])):
            free = (link[0] not in sources, link[1] not in targets)
            if all(free) if how == "grow-diag-final-and" else any(free):
                add(link)
    return joined


class AlignmentScore(NamedTuple):
    """Agreement of predicted links with gold links, over a whole corpus (Och and Ney 2003, section 5).

    Attributes:
        aer: alignment error rate, 0 to 1, less is better.
        precision: share of the predicted links that are at least possible.
        recall: share of the sure links that were predicted.
    """

    aer: float
    precision: float
    recall: float


def alignment_error_rate(
    predicted: Sequence[Iterable[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]],
) -> AlignmentScore:
    """Alignment error rate, AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), counts summed over the corpus.

    Args:
        predicted: A, the links of each sentence pair.
        sure: S, the sure gold links of each.
        possible: P, the possible gold links of each; the sure ones are taken as possible too.

    Returns:
        Error rate, precision and recall. Precision is 1 where nothing was predicted, recall NaN where nothing
        is sure.

    Raises:
        UserError: the three have different lengths, or hold no link at all.
    """
    if not len(predicted) == len(sure) == len(possible):
        raise UserError(
            f"There are links for {len(predicted)} sentence pairs, but gold for {len(sure)} (sure) and "
            f"{len(possible)} (possible): every line of the one needs a line of the other."
        )
    total = in_sure = in_possible = sures = 0
    for links_, sure_, possible_ in zip(predicted, sure, possible, strict=True):
        found = set(links_)
        total += len(found)
        sures += len(sure_)
        in_sure += len(found & sure_)
        in_possible += len(found & (possible_ | sure_))
    if total + sures == 0:
        raise UserError("Neither the predicted nor the gold links hold a link: there is no error rate.")
    return AlignmentScore(
        aer=1 - (in_sure + in_possible) / (total + sures),
        precision=in_possible / total if total else 1.0,
        recall=in_sure / sures if sures else math.nan,
    )


def against_gold(predicted: Sequence[Iterable[Link]], gold: Sequence[GoldLinks]) -> AlignmentScore:
    """`alignment_error_rate` of links against gold links."""
    return alignment_error_rate(predicted, [own.sure for own in gold], [own.possible for own in gold])


#: What a row of the weights is given to, for each shift.
SHIFTS = {0: "the word it predicts", 1: "the word before"}


def as_row(score: AlignmentScore) -> tuple[str, str, str]:
    """Error rate, precision and recall in per cent, as they are printed; "-" for a recall of nothing."""
    recall = "-" if math.isnan(score.recall) else f"{100 * score.recall:.1f} %"
    return f"{100 * score.aer:.1f} %", f"{100 * score.precision:.1f} %", recall
