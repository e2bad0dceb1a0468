"""Texts made by hand for the tests of the analyses."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from nmt.compare.estimates import Bootstrap
from nmt.compare.results import ForcedReference, RunOnSplit, WordFacts, counted
from nmt.compare.scorers import Texts
from nmt.evaluation import metrics


def scored(
    sources: Sequence[str],
    references: Sequence[str],
    hypotheses: Sequence[str],
    *,
    measures: Sequence[Mapping[str, Any]] = (),
    forced: Sequence[ForcedReference] = (),
    words: Mapping[str, Mapping[str, WordFacts]] | None = None,
) -> RunOnSplit:
    """A run with these translations."""
    found = metrics.score(hypotheses, references, "en")
    scores = {"bleu": found.bleu, "chrf": found.chrf, "ter": found.ter}
    counts = counted(hypotheses, references, "en", scores)
    lengths = [len(line.split()) for line in sources]
    return RunOnSplit(
        list(sources), list(references), list(hypotheses), lengths, "words", scores, counts, {}, [],
        measures=measures, forced=forced, words=words or {}, source_language="en",
    )  # fmt: skip


def texts(runs: Sequence[Sequence[RunOnSplit]]) -> Texts:
    """The texts of variants a, b and so on, with these runs."""
    first = runs[0][0]
    assert first.sources is not None
    assert first.references is not None
    return Texts(
        list("abcdef"[: len(runs)]),
        [list(of_variant) for of_variant in runs],
        [line.split() for line in first.sources],
        [line.split() for line in first.references],
        [[[line.split() for line in run.hypotheses] for run in of_variant] for of_variant in runs],
        (False, False),
        Bootstrap(len(first.sources)),
    )


def values(rows: Sequence[Sequence[Any]]) -> list[list[float | None]]:
    """The figures of estimates without their intervals."""
    return [[None if each is None else float(np.round(each.value, 6)) for each in row] for row in rows]
