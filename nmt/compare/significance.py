"""Two variants, several seeds, one test set -> is the difference more than noise?

Other sentences and other seeds would have given another difference. One test has both errors: Student's t of the
difference, with the standard error of `variance`, corrected by Holm (1979) for the number of variants. Where no variant
has two seeds, the error is that of sentences alone, and no difference is called real.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.compare.variance import (
    Error,
    Scorer,
    Statistics,
    by_runs,
    by_sentences,
    error_of,
    interaction,
    pseudo_values,
)

POWER = 0.8


def bleu_of(statistics: Statistics) -> npt.NDArray[np.float64]:
    """Corpus BLEU (exponential smoothing, sacreBLEU's default) of summed statistics.

    Args:
        statistics: [..., 2 + 2N] hypothesis length, reference length, N matches, N totals (sacreBLEU's order).

    Returns:
        [...] scores from 0 to 100.
    """
    orders = (statistics.shape[-1] - 2) // 2
    length, reference = statistics[..., 0], statistics[..., 1]
    matches, totals = statistics[..., 2 : 2 + orders], statistics[..., 2 + orders :]
    # The k-th order without a match counts as 1 / 2^k matches; an order that is too long for the text ends it with 0.
    matched = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    possible = (totals > 0).all(-1) & (matches > 0).any(-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # where it is not possible
        precision = np.exp(np.log(matched / totals).mean(-1))
        brevity = np.exp(np.minimum(0, 1 - reference / length))
        return np.where(possible, 100 * brevity * precision, 0.0)


def chrf_of(statistics: Statistics) -> npt.NDArray[np.float64]:
    """chrF2 (Popovic 2015) of summed statistics, over the orders that both texts have.

    Args:
        statistics: [..., 3N] for each order the n-grams of the hypothesis, of the reference, and of both.

    Returns:
        [...] scores from 0 to 100.
    """
    hypothesis, reference, both = (statistics[..., part::3] for part in range(3))
    there = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(there.sum(-1), 1)
    precision = np.divide(both, hypothesis, out=np.zeros_like(both), where=there).sum(-1) / orders
    recall = np.divide(both, reference, out=np.zeros_like(both), where=there).sum(-1) / orders
    bottom = 4 * precision + recall
    scores: Statistics = np.divide(500 * precision * recall, bottom, out=np.zeros_like(bottom), where=bottom > 0)
    return scores


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: the family-wise error of calling those below alpha real is at most alpha."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


class Runs(NamedTuple):
    """A variant's runs.

    Attributes:
        counts: [K, N, S] sufficient statistics: seeds, sentences, statistics of the metric.
        seeds: the K numbers, each once.
    """

    counts: Statistics
    seeds: list[int]


class Contrast(NamedTuple):
    """The test of a variant against the baseline.

    Attributes:
        difference: the variant's mean over its seeds less the baseline's.
        error: its standard error, over sentences and seeds.
        p: of the t with both errors, corrected for the number of tests.
        detectable: the smallest true difference that would have been found with probability 0.8.
        significant: whether p is below the level.
        real: whether the difference is significant, and some variant has two seeds.
    """

    difference: float
    error: float
    p: float
    detectable: float
    significant: bool
    real: bool


class DifferenceTest(NamedTuple):
    """The difference between two variants, the second less the first.

    Attributes:
        difference: of the means over seeds.
        error: its standard error, over sentences and seeds.
        p: of the t with both errors, not corrected.
        knows_seeds: whether some variant has two seeds.
    """

    difference: float
    error: Error
    p: float
    knows_seeds: bool


class Noise:
    """The noise of several variants on one test set: of their sentences and of their seeds."""

    def __init__(self, variants: Sequence[Runs], scorer: Scorer) -> None:
        """Take the scores of the runs of variants with as many sentences; the numbers of seeds may differ."""
        self._variants = variants
        self._scores = [scorer(runs.counts.sum(1)).tolist() for runs in variants]
        self._values = [pseudo_values(runs.counts, scorer) for runs in variants]
        self._shared = interaction(self._values)

    def between(self, first: int, second: int) -> DifferenceTest:
        """The test of one variant against another."""
        difference = float(np.mean(self._scores[second]) - np.mean(self._scores[first]))
        over_runs = by_runs(self._scores[first], self._scores[second], self._scores)
        over_sentences = by_sentences(self._values[first], self._values[second])
        sizes = len(self._variants[first].seeds), len(self._variants[second].seeds)
        lines = self._variants[first].counts.shape[1]
        error = error_of(over_sentences, over_runs, self._shared, sizes, lines)
        return DifferenceTest(difference, error, error.p(difference), over_runs.freedom > 0)


def corrected(tests: Sequence[DifferenceTest], p_values: Sequence[float], level: float, alpha: float) -> list[Contrast]:
    """The contrasts of tests.

    Args:
        tests: without correction.
        p_values: of the same tests, corrected.
        level: of a single test, for the detectable difference.
        alpha: the level of all.
    """
    return [
        Contrast(
            *(test.difference, test.error.size, p, test.error.detectable(level, POWER)),
            significant=p < alpha,
            real=p < alpha and test.knows_seeds,
        )
        for test, p in zip(tests, p_values, strict=True)
    ]


def contrast_with(
    baseline: Runs, others: Sequence[Runs], scorer: Scorer, *, alpha: float = 0.05, picked: bool = False
) -> list[Contrast]:
    """Test every other variant against the baseline, corrected by Holm for their number.

    A baseline that was picked by its score is above others by luck too: any pair of variants could have been tested, so
    that Bonferroni's correction is for all pairs.

    Args:
        baseline: its runs.
        others: the runs of each other variant, with as many sentences; the numbers of seeds may differ.
        scorer: of the metric.
        alpha: the level.
        picked: whether the baseline was picked by its score.
    """
    pairs = len(others) * (len(others) + 1) // 2
    level = alpha / max(pairs if picked else len(others), 1)
    noise = Noise([baseline, *others], scorer)
    rows = [noise.between(0, at) for at in range(1, len(others) + 1)]
    adjusted = [min(1.0, pairs * row.p) for row in rows] if picked else holm([row.p for row in rows])
    return corrected(rows, adjusted, level, alpha)


def p_by_seeds(first: Sequence[float], second: Sequence[float], groups: Sequence[Sequence[float]]) -> float | None:
    """The p of Student's t for the scores of two variants' runs; None if no variant has two.

    `groups` are the scores of all variants (see `by_runs`).
    """
    part = by_runs(first, second, groups)
    return Error.of(part).p(float(np.mean(first) - np.mean(second))) if part.freedom else None
