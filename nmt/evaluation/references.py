"""Measures of references under forced decoding: perplexity, entropy of the weights, attention maps, word likelihood.

All models decode the same sentence pairs, so models are compared independently of their search. In this file, `lines`
are the line numbers, from 1, of the forced references in their split; for `head` and `shift` see
`nmt.alignment.word_weights`.
"""

import json
import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import count, takewhile
from pathlib import Path
from typing import Any, TypedDict

import numpy as np

from nmt.alignment.units import source_units, spelled, target_units
from nmt.alignment.word_weights import Head, Weights, links, names_of_heads, word_weights
from nmt.evaluation.word_counts import split_words
from nmt.links import format_links
from nmt.translation.named_heads import AUTO
from nmt.translation.types import Translation

FORCED_FILE = "references.json"  # the rows of `forced_rows`
#: Preferred number of words in an attention map: enough to be interesting, few enough for maps side by side.
_FEWEST, _MOST = 5, 12


class AttentionMap(TypedDict):
    """Word-level weights of one sentence pair, for JSON.

    `line` counts from 1; `weights` has a row for each target word, in thousandths; only exact zeros are 0.
    """

    line: int
    source: list[str]
    target: list[str]
    weights: list[list[int]]


def reference_file(number: int) -> str:
    """The file name of a split's `number`-th references, from 1."""
    return "reference.txt" if number == 1 else f"reference-{number}.txt"


def further_references(folder: Path) -> list[Path]:
    """The files of the second and further references that exist in the folder of a split."""
    return list(takewhile(Path.exists, (folder / reference_file(number) for number in count(2))))


def perplexity(forced: Iterable[Translation]) -> float:
    """The perplexity: exp of the mean negative log-probability of target pieces, with ends of sentences."""
    pieces, log_prob = 0, 0.0
    for translation in forced:
        pieces, log_prob = pieces + len(translation.pieces), log_prob + translation.log_prob
    return math.exp(min(-log_prob / max(pieces, 1), 50.0))


def entropy(forced: Iterable[Translation]) -> float | None:
    """The mean entropy, in nats, of the weights over source pieces; the mean is over target pieces and heads.

    It is 0 for one-hot weights and log S for uniform weights over S pieces. Weights that do not sum to one (local-p)
    are normalised. None if the decoder has no attention.
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


def by_head(
    forced: Sequence[Translation], measure: Callable[[Iterable[Translation]], float | None]
) -> dict[str, float] | None:
    """A measure (`entropy` or `hidden_share`) by head name; None if the decoder has fewer than two heads."""
    heads = next((names_of_heads(translation) for translation in forced if translation.weights is not None), ())
    if len(heads) < 2:
        return None
    measured = {}
    for at, head in enumerate(heads):
        of_head = (
            translation._replace(weights=translation.weights[at : at + 1])
            for translation in forced
            if translation.weights is not None
        )
        measured[head] = measure(of_head) or 0.0
    return measured


def hidden_share(forced: Iterable[Translation]) -> float | None:
    """The share of weights that are exactly 0, over all heads and target pieces.

    Zeros come from windows, sparsemax and entmax. With a global window and softmax, the share is 0 except for weights
    below the smallest float32 (e^-103). None if the decoder has no attention.
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
    """Attention maps of at most `most` sentence pairs of suitable length, selected by the text only."""

    def beyond(translation: Translation) -> int:
        """The number of words by which a pair is too short or too long."""
        lengths = [len(text.split()) for text in (translation.source, translation.text)]
        return sum(max(_FEWEST - length, 0, length - _MOST) for length in lengths)

    rows = [row for row, translation in enumerate(forced) if translation.weights is not None]
    rows = sorted(sorted(rows, key=lambda row: beyond(forced[row]))[:most])
    return [
        AttentionMap(
            line=lines[row],
            source=source_units(forced[row]).labels,
            target=target_units(forced[row]).labels,
            weights=_thousandths(word_weights(forced[row], head)),
        )
        for row in rows
    ]


def _thousandths(weights: Weights) -> list[list[int]]:
    """The weights in thousandths, rounded so that only exact zeros are 0."""
    rounded: list[list[int]] = np.where(weights > 0, np.maximum(np.rint(1000 * weights), 1), 0).astype(int).tolist()
    return rounded


def forced_rows(
    forced: Iterable[Translation],
    lines: Sequence[int],
    characters: tuple[bool, bool],
    head: Head = AUTO,
    shift: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield the rows of `references.json`, one for each reference, without its text.

    `characters`: whether words are single characters, for (sources, references) (`nmt.evaluation.word_counts`).

    Returns:
        `line`; `log_probs`, the natural log-probability of each word, where a piece that spans several words is shared
        among them; `links`, word links between source and reference in Pharaoh format, None without attention; and for
        each step with the end of sentence, `best`, the probability of the most probable piece in thousandths, and
        `right`, a string with "1" if the reference has this piece, else "0".
    """
    for line, translation in zip(lines, forced, strict=True):
        target = spelled(translation.text, translation.spans, split_words(translation.text, characters[1]))
        log_probs, best = np.array(translation.log_probs), np.array(translation.best_log_probs)
        linked = None
        if translation.weights is not None:
            words = split_words(translation.source, characters[0])
            source = spelled(translation.source, translation.source_spans, words)
            linked = format_links(links(translation, head, shift, (source, target)))
        yield {
            "line": line,
            "log_probs": [round(float(value), 3) for value in log_probs @ target.members],
            "links": linked,
            "best": [round(1000 * math.exp(value)) for value in best],
            "right": "".join("01"[value] for value in (log_probs >= best).astype(int)),
        }


def json_rows(rows: Iterable[Any]) -> Iterator[str]:
    """Yield the parts of a JSON array, a line for each row."""
    before = "["
    for row in rows:
        yield f"{before}\n{json.dumps(row, ensure_ascii=False)}"
        before = ","
    yield "[]\n" if before == "[" else "\n]\n"
