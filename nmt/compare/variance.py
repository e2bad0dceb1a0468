"""The standard error of a difference between two variants: other sentences and other seeds would give another one.

A score is a function of summed statistics, so a sentence has no score of its own. Its jackknife pseudo-value takes that
place (Efron and Tibshirani 1993, section 11.5): N times the score of all sentences less N - 1 times that of all others.
The pseudo-values x_ri of K runs and N sentences are a table of two random factors and their interaction. The variance
of its mean has three parts:

    sentences     s_i^2 / N          s_i: deviation of the means over runs; includes interaction / K
    runs          s_r^2 / K          s_r: deviation of the means over sentences; includes interaction / N
    interaction   s_ri^2 / (N K)     counted in both parts above, so it is subtracted once

Two variants have the same sentences, so the sentences' part is that of the differences, with the interaction of these
two variants. What is added is the deviation of whole runs: the runs' part less the interaction in it. Few runs know
little of it, so it is pooled over the variants. Degrees of freedom are Satterthwaite's (1946), at least one: where
variants are more alike than their runs, as those of one seed can be, less would make any interval endless.
"""

import math
import warnings
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]
from scipy.optimize import brentq  # type: ignore[import-untyped]

Statistics = npt.NDArray[np.float64]
Scorer = Callable[[Statistics], npt.NDArray[np.float64]]

#: The level of the test that finds collapsed variants.
LARGER = 0.05


class Variance(NamedTuple):
    """A variance and its degrees of freedom; 0 degrees if it is unknown."""

    variance: float
    freedom: float

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(self.variance)

    def p(self, difference: float) -> float:
        """P(|T| >= |difference / error|) of Student's t; a difference without any error is certain."""
        if not self.freedom:
            return 1.0
        if not self.variance:
            return float(difference == 0)
        return float(2 * stats.t.sf(abs(difference) / self.error, self.freedom))

    def interval(self, difference: float, level: float = 0.05) -> tuple[float, float]:
        """The confidence interval of a difference; not a number at both ends if the error is unknown."""
        reach = float(stats.t.isf(level / 2, self.freedom)) * self.error if self.freedom else math.nan
        return difference - reach, difference + reach

    def detectable(self, level: float, power: float) -> float:
        """The true difference that a two-sided test at `level` finds with this power, by the noncentral t."""
        if not self.freedom or not self.variance:
            return 0.0
        bound = stats.t.isf(level / 2, self.freedom)

        def found(shift: float) -> float:
            with warnings.catch_warnings(action="ignore", category=RuntimeWarning):  # its tails may not converge
                return float(stats.nct.sf(bound, self.freedom, shift))

        high = 2 * bound
        while found(high) < power and math.isfinite(high):
            high *= 2
        if not (math.isfinite(found(high)) and math.isfinite(high)):
            return math.inf  # of a handful of sentences
        return float(self.error * brentq(lambda shift: found(shift) - power, 0.0, high))


UNKNOWN = Variance(0.0, 0.0)


def pseudo_values(counts: Statistics, scorer: Scorer) -> Statistics:
    """The jackknife's values [K, N] of statistics [K, N, S]; their mean over sentences is nearly the score [K]."""
    sentences = counts.shape[1]
    total = counts.sum(1, keepdims=True)
    values: Statistics = sentences * scorer(total) - (sentences - 1) * scorer(total - counts)
    return values


def by_sentences(first: Statistics, second: Statistics) -> Variance:
    """The sentences' part for pseudo-values [K, N] of two variants on the same sentences."""
    sentences = first.shape[1]
    if sentences < 2:
        return UNKNOWN
    return Variance(float((second.mean(0) - first.mean(0)).var(ddof=1)) / sentences, sentences - 1)


def interaction(values: Statistics) -> Variance:
    """The mean square of the interaction in the pseudo-values [K, N] of a variant; unknown for one run."""
    runs, sentences = values.shape
    if runs < 2 or sentences < 2:
        return UNKNOWN
    rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    freedom = (runs - 1) * (sentences - 1)
    return Variance(float((rest**2).sum()) / freedom, freedom)


class Deviations:
    """How much the runs of each variant deviate.

    The variance is pooled over the variants, without collapsed ones: those of which Cochran's test finds the largest
    variance too large for the others (1941, Annals of Eugenics 11; repeated until it finds none). These have their own
    (Welch 1947). A variant with one run has the variance pooled over all variants.
    """

    def __init__(self, groups: Sequence[Sequence[float]]) -> None:
        """Take the scores of the runs of all variants."""
        self._counts = [len(scores) for scores in groups]
        self._squares = [float(np.var(scores)) * len(scores) for scores in groups]
        alike = sorted((at for at, count in enumerate(self._counts) if count > 1), key=lambda at: self._of([at]))
        while len(alike) > 1 and self._larger(alike[-1], alike[:-1]) < LARGER / len(alike):
            alike.pop()
        self.alike = sorted(alike)

    def pool(self, at: int) -> list[int]:
        """The variants over which the variance of this one is pooled."""
        if self._counts[at] < 2:
            return [other for other, count in enumerate(self._counts) if count > 1]
        return self.alike if at in self.alike else [at]

    def of_mean(self, at: int) -> Variance:
        """The variance of the mean of a variant's runs."""
        part = self._of(self.pool(at))
        return Variance(part.variance / self._counts[at], part.freedom)

    def of_difference(self, first: int, second: int) -> Variance:
        """The variance of the difference of two variants' means."""
        parts = [self.of_mean(first), self.of_mean(second)]
        if self.pool(first) == self.pool(second):
            return Variance(parts[0].variance + parts[1].variance, parts[0].freedom)
        return _sum(parts)

    def _of(self, pool: Sequence[int]) -> Variance:
        freedom = sum(self._counts[at] - 1 for at in pool)
        return Variance(sum(self._squares[at] for at in pool) / freedom, freedom) if freedom > 0 else UNKNOWN

    def _larger(self, at: int, others: Sequence[int]) -> float:
        """p of a one-sided F test that the runs have a larger variance than the others, pooled."""
        part, pooled = self._of([at]), self._of(others)
        if not pooled.variance:
            return float(not part.variance)
        return float(stats.f.sf(part.variance / pooled.variance, part.freedom, pooled.freedom))


def _sum(parts: Sequence[Variance], less: Variance = UNKNOWN) -> Variance:
    """The sum of variances less a smaller one that they contain, with Satterthwaite's degrees of freedom."""
    known = [part for part in parts if part.freedom]
    total = sum(part.variance for part in known) - less.variance
    if not total:
        return Variance(0.0, min((part.freedom for part in known), default=0.0))
    spread = sum(part.variance**2 / part.freedom for part in (*known, less) if part.freedom)
    return Variance(total, max(1.0, total**2 / spread))


def error_of(
    first: int, second: int, values: Sequence[Statistics], interactions: Sequence[Variance], runs: Deviations
) -> Variance:
    """The variance of the difference of two variants, from the pseudo-values [K, N] of all and their interactions."""
    sentences, over_runs = by_sentences(values[first], values[second]), runs.of_difference(first, second)
    if not over_runs.freedom:
        return sentences
    both = freedom = 0.0
    for at in (first, second):
        pool = runs.pool(at)
        weights = [len(values[other]) - 1 for other in pool]
        both += np.average([interactions[other].variance for other in pool], weights=weights) / values[at].size
        freedom += sum(interactions[other].freedom for other in pool)
    if sentences.freedom and over_runs.variance <= both:
        return sentences  # runs deviate by nothing but their interaction with sentences
    return _sum([sentences, over_runs], Variance(both, freedom))
