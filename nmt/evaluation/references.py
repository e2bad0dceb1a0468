"""References under forced decoding -> perplexity, entropy of the weights, and a few attention maps.

The sentence pairs are the same for every model, so that models can be compared.
"""

import math
from collections.abc import Iterable, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import TypedDict

import numpy as np

from nmt.alignment.units import source_units, target_units
from nmt.alignment.word_weights import Head, names_of_heads, word_weights
from nmt.translation.heads import AUTO
from nmt.translation.types import Translation

#: Preferred number of words: long enough to be interesting, short enough to fit side by side.
_FEWEST, _MOST = 5, 12


class AttentionMap(TypedDict):
    """Word-level weights of one sentence pair, as JSON.

    `line` counts from 1; `weights` has a row for each target word, in thousandths.
    """

    line: int
    source: list[str]
    target: list[str]
    weights: list[list[int]]


def reference_file(number: int) -> str:
    """The file of the references with this number, from 1, in the folder of a split."""
    return "reference.txt" if number == 1 else f"reference-{number}.txt"


def further_references(folder: Path) -> list[Path]:
    """The files of the second and further references in the folder of a split."""
    return list(takewhile(Path.exists, (folder / reference_file(number) for number in count(2))))


def perplexity(forced: Iterable[Translation]) -> float:
    """exp of the mean negative log-probability of a target piece, ends of sentences included."""
    pieces, log_prob = 0, 0.0
    for translation in forced:
        pieces, log_prob = pieces + len(translation.pieces), log_prob + translation.log_prob
    return math.exp(min(-log_prob / max(pieces, 1), 50.0))


def entropy(forced: Iterable[Translation]) -> float | None:
    """Mean entropy in nats of the weights over source pieces, of one distribution per target piece and head.

    0 for one-hot weights, log S for uniform weights over S pieces. Weights that do not sum to one (local-p) are
    normalised. None if the decoder has no attention.
    """
    total, rows = 0.0, 0
    for translation in forced:
        if translation.weights is None:
            continue
        sums = translation.weights.sum(-1, dtype=np.float64)
        seen = sums > 0
        shares = translation.weights[seen] / sums[seen][:, None]
        total -= float((shares * np.log(shares, out=np.zeros_like(shares), where=shares > 0)).sum())
        rows += int(seen.sum())
    return total / rows if rows else None


def entropy_by_head(forced: Sequence[Translation]) -> dict[str, float] | None:
    """The `entropy` of each head, by its name; None if the decoder has fewer than two."""
    heads = next((names_of_heads(translation) for translation in forced if translation.weights is not None), ())
    if len(heads) < 2:
        return None
    by_head = {}
    for at, head in enumerate(heads):
        of_head = (
            translation._replace(weights=translation.weights[at : at + 1])
            for translation in forced
            if translation.weights is not None
        )
        by_head[head] = entropy(of_head) or 0.0
    return by_head


def hidden_share(forced: Iterable[Translation]) -> float | None:
    """The share of slots with zero weight, over all heads and rows: what windows hide.

    0 for a global window, except for weights below the smallest float32 (e^-103). None if the decoder has no attention.
    """
    slots = hidden = 0
    for translation in forced:
        if translation.weights is not None:
            slots += translation.weights.size
            hidden += int(np.count_nonzero(translation.weights == 0))
    return hidden / slots if slots else None


def attention_maps(
    forced: Sequence[Translation], lines: Sequence[int], most: int, head: Head = AUTO
) -> list[AttentionMap]:
    """The weights of at most `most` sentence pairs of suitable length. The selection depends on the text only.

    Args:
        forced: references under forced decoding.
        lines: their line numbers in the split, from 1.
        most: maximum number of pairs.
        head: a selection of heads (`nmt.translation.heads`).
    """

    def beyond(translation: Translation) -> int:
        """The number of words that a pair has too few or too many."""
        lengths = [len(text.split()) for text in (translation.source, translation.text)]
        return sum(max(_FEWEST - length, 0, length - _MOST) for length in lengths)

    rows = [row for row, translation in enumerate(forced) if translation.weights is not None]
    rows = sorted(sorted(rows, key=lambda row: beyond(forced[row]))[:most])
    return [
        AttentionMap(
            line=lines[row],
            source=source_units(forced[row]).labels,
            target=target_units(forced[row]).labels,
            weights=np.rint(1000 * word_weights(forced[row], head)).astype(int).tolist(),
        )
        for row in rows
    ]
