"""The standard error of a difference between two variants: other sentences and other seeds would give another one.

A score is a function of summed statistics, so a sentence has no score of its own. Its jackknife pseudo-value takes that
place (Efron and Tibshirani 1993, section 11.5): N times the score of all sentences less N - 1 times that of all others.
The pseudo-values x_ri of K runs and N sentences are a table of two random factors and their interaction. The variance
of its mean has three parts:

    sentences     s_i^2 / N          s_i: deviation of the means over runs; includes interaction / K
    runs          s_r^2 / K          s_r: deviation of the means over sentences; includes interaction / N
    interaction   s_ri^2 / (N K)     counted in both parts above, so it is subtracted once

Two variants have the same sentences, so the sentences' part is that of the differences; the others are sums. Degrees of
freedom are Satterthwaite's (1946).
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import stats  # type: ignore[import-untyped]
from scipy.optimize import brentq  # type: ignore[import-untyped]

Statistics = npt.NDArray[np.float64]
Scorer = Callable[[Statistics], npt.NDArray[np.float64]]

#: Tests below this level say that the deviation of a variant is larger than that of others.
LARGER = 0.05


class Part(NamedTuple):
    """A variance and its degrees of freedom; 0 degrees if it is unknown."""

    variance: float
    freedom: float


UNKNOWN = Part(0.0, 0.0)


def pseudo_values(counts: Statistics, scorer: Scorer) -> Statistics:
    """The jackknife's values [K, N] of statistics [K, N, S]; their mean over sentences is nearly the score [K]."""
    sentences = counts.shape[1]
    total = counts.sum(1, keepdims=True)
    values: Statistics = sentences * scorer(total) - (sentences - 1) * scorer(total - counts)
    return values


def by_sentences(first: Statistics, second: Statistics) -> Part:
    """The sentences' part for pseudo-values [K, N] of two variants on the same sentences."""
    sentences = first.shape[1]
    if sentences < 2:
        return UNKNOWN
    return Part(float((second.mean(0) - first.mean(0)).var(ddof=1)) / sentences, sentences - 1)


def interaction(variants: Sequence[Statistics]) -> Part:
    """The mean square of the interaction, pooled over the pseudo-values [K, N] of variants with two runs or more."""
    squares = freedom = 0.0
    for values in variants:
        runs, sentences = values.shape
        if runs < 2 or sentences < 2:
            continue
        rest = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
        squares += float((rest**2).sum())
        freedom += (runs - 1) * (sentences - 1)
    return Part(squares / freedom, freedom) if freedom else UNKNOWN


def by_runs(first: Sequence[float], second: Sequence[float], groups: Sequence[Sequence[float]]) -> Part:
    """The runs' part for the scores of the runs of two variants; `groups` are the scores of all variants.

    The deviation is pooled over the variants, without those of which Cochran's test finds the largest deviation too
    large for the others (1941, Annals of Eugenics 11; repeated until it finds none). A variant whose deviation is
    larger than that of the others in the pool, by a one-sided F test, has its own (Welch 1947). A variant with one run
    has the deviation pooled over all variants.
    """
    parts = [_of_run(scores, groups) for scores in (first, second)]
    counts = [len(scores) for scores in (first, second)]
    if parts[0] == parts[1]:
        return Part(parts[0].variance * sum(1 / count for count in counts), parts[0].freedom)
    return _sum([Part(part.variance / count, part.freedom) for part, count in zip(parts, counts, strict=True)])


def of_mean(scores: Sequence[float], groups: Sequence[Sequence[float]]) -> Part:
    """The variance of the mean of a variant's runs, as in `by_runs`."""
    part = _of_run(scores, groups)
    return Part(part.variance / len(scores), part.freedom)


def has_own_deviation(scores: Sequence[float], groups: Sequence[Sequence[float]]) -> bool:
    """Whether the variance of a variant's runs is an outlier, which is not pooled."""
    return len(scores) > 1 and _stands_out(scores, _without_outliers(groups))


def pooled_deviation(groups: Sequence[Sequence[float]]) -> float:
    """The standard deviation that is pooled over the variants, as in `by_runs`."""
    return math.sqrt(_pooled(_without_outliers(groups)).variance)


def _of_run(scores: Sequence[float], groups: Sequence[Sequence[float]]) -> Part:
    if len(scores) < 2:
        return _pooled(groups)
    alike = _without_outliers(groups)
    return _pooled([scores]) if _stands_out(scores, alike) else _pooled(alike)


def _without_outliers(groups: Sequence[Sequence[float]]) -> list[Sequence[float]]:
    """The groups with two values or more, without those that have too large a variance by Cochran's test."""
    alike = sorted((group for group in groups if len(group) > 1), key=lambda group: float(np.var(group, ddof=1)))
    while len(alike) > 1 and _larger(alike[-1], alike[:-1]) < LARGER / len(alike):
        alike.pop()
    return alike


def _stands_out(scores: Sequence[float], alike: Sequence[Sequence[float]]) -> bool:
    others = list(alike)
    if scores in others:
        others.remove(scores)
    return _larger(scores, others) < LARGER


def _larger(scores: Sequence[float], others: Sequence[Sequence[float]]) -> float:
    """p of a one-sided F test that the scores have a larger variance than the others, pooled."""
    part, pooled = _pooled([scores]), _pooled(others)
    if not pooled.freedom:
        return 1.0
    if not pooled.variance:
        return float(not part.variance)
    return float(stats.f.sf(part.variance / pooled.variance, part.freedom, pooled.freedom))


def _pooled(groups: Sequence[Sequence[float]]) -> Part:
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < 1:
        return UNKNOWN
    return Part(sum(float(np.var(group)) * len(group) for group in groups) / freedom, freedom)


def _sum(parts: Sequence[Part], less: Part = UNKNOWN) -> Part:
    """The sum of variances less a variance that both contain, with Satterthwaite's degrees of freedom."""
    known = [part for part in parts if part.freedom]
    total = max([sum(part.variance for part in known) - less.variance, *(part.variance for part in known)], default=0.0)
    if not total:
        return Part(0.0, min((part.freedom for part in known), default=0.0))
    spread = sum(part.variance**2 / part.freedom for part in (*known, less) if part.freedom)
    return Part(total, total**2 / spread)


class Error(NamedTuple):
    """The standard error of a difference, and its degrees of freedom; 0 degrees if it is unknown."""

    size: float
    freedom: float

    @classmethod
    def of(cls, part: Part) -> "Error":
        """The error of one part."""
        return cls(math.sqrt(part.variance), part.freedom)

    def p(self, difference: float) -> float:
        """P(|T| >= |difference / error|) of Student's t; a difference without any error is certain."""
        if not self.freedom:
            return 1.0
        return float(2 * stats.t.sf(abs(difference) / self.size, self.freedom)) if self.size else float(difference == 0)

    def detectable(self, level: float, power: float) -> float:
        """The true difference that a two-sided test at `level` finds with this power, by the noncentral t."""
        if not self.freedom or not self.size:
            return 0.0
        bound = stats.t.isf(level / 2, self.freedom)
        high = 2 * bound
        while stats.nct.sf(bound, self.freedom, high) < power:
            high *= 2
        return float(self.size * brentq(lambda shift: stats.nct.sf(bound, self.freedom, shift) - power, 0.0, high))


def error_of(sentences: Part, runs: Part, shared: Part, counts: tuple[int, int], lines: int) -> Error:
    """The error from both parts.

    Args:
        sentences: of `by_sentences`.
        runs: of `by_runs`; unknown if no variant has two runs.
        shared: the mean square of the interaction.
        counts: runs of each variant.
        lines: sentences.
    """
    if not runs.freedom:
        return Error.of(sentences)
    scale = (1 / counts[0] + 1 / counts[1]) / max(lines, 1)
    return Error.of(_sum([sentences, runs], Part(shared.variance * scale, shared.freedom)))
