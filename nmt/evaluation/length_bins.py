"""Scores by source length, as in figure 2 of Bahdanau, Cho and Bengio 2015.

The score of a bin is the corpus BLEU of its sentences, or chrF for texts that BLEU cannot judge.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.evaluation.metrics import TITLES, Metric, corpus_score
from nmt.text.scripts import lengths


class Bin(NamedTuple):
    """The corpus score, from 0 to 100, of the sentences with a source length from `shortest` to `longest`."""

    shortest: int
    longest: int
    sentences: int
    score: float


class ByLength(NamedTuple):
    """The scores of all bins.

    Attributes:
        metric: "bleu" or "chrf".
        unit: "words" or "characters".
        bins: from short to long, without empty bins.
    """

    metric: Metric
    unit: str
    bins: list[Bin]

    @property
    def title(self) -> str:
        """The title of the table."""
        return f"{TITLES[self.metric]} by source length"

    @property
    def header(self) -> list[str]:
        """The header of the table."""
        return [f"source {self.unit}", "sentences", TITLES[self.metric]]


def score_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    metric: Metric = "bleu",
    others: Sequence[Sequence[str]] = (),
) -> ByLength:
    """Score the translations in bins of source length.

    Args:
        sources: source sentences; empty sentences are in no bin.
        hypotheses: the translations.
        references: the references.
        target_language: selects BLEU's tokenizer.
        metric: "bleu" or "chrf".
        others: further references of the same lines.
    """
    counts, unit, _ = lengths(sources)
    bins = []
    for shortest, longest, rows in binned(counts):
        texts, first, *more = ([lines[row] for row in rows] for lines in (hypotheses, references, *others))
        score = corpus_score(metric, texts, first, target_language, more)
        bins.append(Bin(shortest, longest, len(rows), score.value))
    return ByLength(metric, unit, bins)


def binned(counts: Sequence[int]) -> list[tuple[int, int, list[int]]]:
    """The bins of lengths as (shortest length, longest length, rows), from short to long.

    A bin spans 5 lengths (1-5, 6-10, ...), or 10 if a sentence is longer than 60. Empty sentences are in no bin.
    """
    width = 10 if max(counts, default=0) > 60 else 5
    rows: dict[int, list[int]] = {}
    for row, length in enumerate(counts):
        if length:
            rows.setdefault((length - 1) // width, []).append(row)
    return [(number * width + 1, (number + 1) * width, members) for number, members in sorted(rows.items())]


def joined(bins: Sequence[tuple[int, int, list[int]]], fewest: int) -> list[tuple[int, int, list[int]]]:
    """Join neighbouring bins of `binned`, starting from the longest, until each has at least `fewest` sentences.

    Unlike quantiles, bins of a fixed width are the same for every test set and separate long from short sentences.
    """
    groups: list[tuple[int, int, list[int]]] = []
    for shortest, longest, rows in reversed(bins):
        if groups and len(groups[-1][2]) < fewest:
            groups[-1] = shortest, groups[-1][1], [*rows, *groups[-1][2]]
        else:
            groups.append((shortest, longest, list(rows)))
    if len(groups) > 1 and len(groups[-1][2]) < fewest:  # the shortest sentences have no shorter neighbours
        shortest, _, rows = groups.pop()
        groups[-1] = shortest, groups[-1][1], [*rows, *groups[-1][2]]
    return groups[::-1]
