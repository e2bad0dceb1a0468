"""A comparison on a split -> the words of its texts, and figures by bucket: what all analyses of text share."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from nmt.compare.intervals import Bootstrap, Estimate
from nmt.compare.results import Scored
from nmt.compare.variance import Statistics
from nmt.compare.variants import Variant
from nmt.evaluation.words import split_words, without_spaces
from nmt.viewer.blocks import Table

Words = list[str]


class Texts(NamedTuple):
    """The words of a split.

    Attributes:
        labels: of the variants.
        runs: of each variant, in the order of its seeds.
        sources: of each sentence.
        references: of each sentence.
        hypotheses: of each variant, run and sentence.
        characters: whether the words of sources and of references are characters.
        bootstrap: over the sentences.
    """

    labels: list[str]
    runs: list[list[Scored]]
    sources: list[Words]
    references: list[Words]
    hypotheses: list[list[list[Words]]]
    characters: tuple[bool, bool]
    bootstrap: Bootstrap


def texts_of(variants: Sequence[Variant], split: str) -> Texts | None:
    """The texts of a split; None if a record was made without them."""
    runs = [[run.splits[split] for run in variant.runs] for variant in variants]
    first = next((run for of_variant in runs for run in of_variant if run.sources is not None), None)
    if first is None or first.sources is None or first.references is None:
        return None
    characters = without_spaces(first.sources), without_spaces(first.references)

    def words(lines: Sequence[str], side: int) -> list[Words]:
        return [split_words(line, characters[side]) for line in lines]

    return Texts(
        [variant.label for variant in variants],
        runs,
        words(first.sources, 0),
        words(first.references, 1),
        [[words(run.hypotheses, 1) for run in of_variant] for of_variant in runs],
        characters,
        Bootstrap(len(first.sources)),
    )


class Buckets(NamedTuple):
    """A score by bucket.

    Attributes:
        title: what the buckets are made by.
        names: of the buckets.
        counts: of what is in each, such as words of the references; empty if they say nothing.
        unit: of the counts.
        rows: for each variant the score in each bucket; None where there is nothing to score.
    """

    title: str
    names: Sequence[str]
    counts: Sequence[int]
    unit: str
    rows: list[list[Estimate | None]]


def by_bucket(
    texts: Texts,
    names: Sequence[str],
    counts: Callable[[int, int], Statistics],
    score: Callable[[Statistics], Statistics],
    title: str,
    unit: str = "",
    sizes: Sequence[int] = (),
) -> Buckets:
    """A score of every variant in every bucket, with bootstrap intervals.

    Args:
        texts: of the split.
        names: of the B buckets.
        counts: of a variant and its run, [N, B, S].
        score: of sums [..., S]; see `Bootstrap.estimate`.
        title: see `Buckets`.
        unit: see `Buckets`.
        sizes: the `Buckets.counts`.
    """
    rows = []
    for variant, runs in enumerate(texts.hypotheses):
        every = np.stack([counts(variant, run) for run in range(len(runs))])
        rows.append([texts.bootstrap.estimate(every[:, :, bucket], score) for bucket in range(len(names))])
    return Buckets(title, names, sizes, unit, rows)


def table_of(labels: Sequence[str], order: Sequence[int], buckets: Buckets, digits: int = 1) -> Table:
    """A row for each variant, a column for each bucket that has something in it, and a row of their counts."""
    there = [at for at in range(len(buckets.names)) if any(row[at] is not None for row in buckets.rows)]
    rows = [[labels[at], *(estimate_text(buckets.rows[at][bucket], digits) for bucket in there)] for at in order]
    if buckets.counts:
        rows.append([buckets.unit, *(f"{buckets.counts[bucket]:,}" for bucket in there)])
    return Table([buckets.title, *(buckets.names[bucket] for bucket in there)], rows)


def estimate_text(estimate: Estimate | None, digits: int = 1) -> str:
    """A figure with its interval in brackets; a dash for none."""
    if estimate is None:
        return "-"
    return f"{estimate.value:.{digits}f} ({estimate.low:.{digits}f} to {estimate.high:.{digits}f})"
