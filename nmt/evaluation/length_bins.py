"""Translations, references, source lengths -> BLEU by length: figure 2 of Bahdanau, Cho and Bengio 2015.

Does quality hold for long sentences? BLEU of a bin is corpus BLEU of its sentences; chrF where BLEU cannot judge.
"""

from collections.abc import Sequence
from typing import NamedTuple

from nmt.evaluation.metrics import TITLES, Metric, corpus_score
from nmt.text.scripts import lengths


class Bin(NamedTuple):
    """The corpus score, 0 to 100, of the sentences whose source has `shortest` to `longest` words."""

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
    """The score of the translations in bins of source length.

    Args:
        sources: source sentences; empty ones belong to no bin.
        hypotheses: their translations.
        references: their references.
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
    """The shortest and longest length of each bin with its rows, from short to long.

    A bin has 5 words (1-5, 6-10, ...), or 10 if a sentence has more than 60. Empty sentences belong to no bin.
    """
    width = 10 if max(counts, default=0) > 60 else 5
    rows: dict[int, list[int]] = {}
    for row, length in enumerate(counts):
        if length:
            rows.setdefault((length - 1) // width, []).append(row)
    return [(number * width + 1, (number + 1) * width, members) for number, members in sorted(rows.items())]


def joined(bins: Sequence[tuple[int, int, list[int]]], fewest: int) -> list[tuple[int, int, list[int]]]:
    """The bins of `binned`, neighbours joined until each has enough sentences, from the longest to the shortest.

    Bins of a fixed width are the same for every test set, and the long sentences stay apart from the many short ones.
    Quantiles do neither.
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
