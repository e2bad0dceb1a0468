"""The variance of the difference between two variants, over sentences and over seeds.

A score is a function of summed statistics, so a sentence has no score of its own. Its jackknife pseudo-value is used
instead (Efron and Tibshirani 1993, section 11.5): N times the score of all sentences, minus N - 1 times the score
without this sentence. The pseudo-values x_ri of K runs and N sentences form a table with two crossed random factors
and their interaction. The variance of its mean has three parts:

    sentences     s_i^2 / N          s_i: deviation of the means over runs; includes interaction / K
    runs          s_r^2 / K          s_r: deviation of the means over sentences; includes interaction / N
    interaction   s_ri^2 / (N K)     counted in both parts above, so it is subtracted once

Two variants share the sentences, so their sentences' part is the variance of the paired differences, which includes the
interaction of both variants. To this part, the runs' part without its interaction is added. A few runs estimate the
runs' part poorly, so it is pooled over the variants of one program.
"""

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import special, stats  # type: ignore[import-untyped]
from scipy.optimize import brentq  # type: ignore[import-untyped]

Statistics = npt.NDArray[np.float64]
Scorer = Callable[[Statistics], npt.NDArray[np.float64]]

#: Significance level of Cochran's test for collapsed variants.
LARGER = 0.05
#: Chosen by simulation (docs/statistics.md): with 0, 7 % of the pairs without a difference were called different.
MARGIN = 0.1
_LEAST = 1e-100  # smaller p-values are raised to this value


@functools.lru_cache(maxsize=1024)
def _t(level: float, freedom: float) -> float:
    """The two-sided critical value of Student's t: |T| exceeds it with probability `level`."""
    return float(-special.stdtrit(freedom, level / 2))


class Variance(NamedTuple):
    """A variance and its degrees of freedom; 0 degrees if it is unknown."""

    variance: float
    freedom: float

    def bound(self, level: float) -> float:
        """The squared critical value, at `level`, for a difference with this variance; 0 if the variance is unknown."""
        return self.variance * _t(level, self.freedom) ** 2 if self.freedom and self.variance else 0.0


UNKNOWN = Variance(0.0, 0.0)


class PairNoise(NamedTuple):
    """The noise of a difference: a sentences' part and a runs' part with different degrees of freedom.

    Each part is multiplied by the critical value of its own Student's t (Cochran and Cox 1950). With few runs, a single
    t with Satterthwaite's degrees of freedom (1946) makes too many errors: if the runs happen to be alike, only the
    sentences' part remains, which has many degrees of freedom.

    Runs with the same seed may share interaction. Shared interaction cancels in the sentences' part but not in the
    runs' part, so subtracting all interaction can give too low a bound. Subtracting only the unshared interaction
    never gives too low a bound, but with many variants one that is much too high. In this case a single t, whose
    degrees of freedom take the runs' part as at least its interaction, gives a bound that is slightly too low, so
    `MARGIN` of the distance between these two bounds is added.

    Attributes:
        sentences: the sentences' part; unknown for one sentence.
        runs: the runs' part; unknown if the variance over runs of either variant is unknown.
        both: the interaction, which is included in both parts.
        shared: the share of the interaction that the runs of both variants have in common, from 0 to 1.
    """

    sentences: Variance
    runs: Variance
    both: Variance = UNKNOWN
    shared: float = 0.0

    @property
    def error(self) -> float:
        """The standard error of the difference."""
        return math.sqrt(self.sentences.variance + max(0.0, self.runs.variance - self.both.variance))

    def reach(self, level: float) -> float:
        """The absolute difference that chance alone exceeds with probability `level`; NaN if the noise is unknown."""
        if not (self.sentences.freedom or self.runs.freedom):
            return math.nan
        bound = self._sum(level, self.both.variance)
        if self.shared and self.both.variance:
            unshared, single = self._sum(level, (1 - self.shared) * self.both.variance), self._satterthwaite(level)
            bound = max(bound, min(unshared, single + MARGIN * (unshared - single)))
        return math.sqrt(bound)

    def _sum(self, level: float, less: float) -> float:
        """The sum of both squared bounds, minus the bound of the interaction `less` by the smaller of the two t."""
        interaction = Variance(less, max(self.sentences.freedom, self.runs.freedom)).bound(level)
        return self.sentences.bound(level) + max(0.0, self.runs.bound(level) - interaction)

    def _satterthwaite(self, level: float) -> float:
        """The squared bound by a single t with Satterthwaite's degrees of freedom."""
        parts = self.sentences, Variance(max(self.runs.variance, self.both.variance), self.runs.freedom), self.both
        spread = sum(part.variance**2 / part.freedom for part in parts if part.freedom)
        return Variance(self.error**2, max(1.0, self.error**4 / spread)).bound(level)

    def p(self, difference: float) -> float:
        """The two-sided p-value of a difference; 1 if the noise is unknown, 0 for a difference without noise."""
        size = abs(difference)
        if not size or math.isnan(self.reach(0.5)):
            return 1.0
        if self.reach(_LEAST) <= size:
            return _LEAST if self.error else 0.0
        return math.exp(brentq(lambda log: self.reach(math.exp(log)) - size, math.log(_LEAST), 0.0))

    def interval(self, difference: float, level: float = 0.05) -> tuple[float, float]:
        """The confidence interval of a difference; both ends are NaN if the noise is unknown."""
        reach = self.reach(level)
        return difference - reach, difference + reach

    def detectable(self, level: float, power: float) -> float:
        """The true difference that a two-sided test at `level` finds with this power (Bloom 1995); 0 if unknown."""
        difference = self.reach(level) + self.reach(2 * (1 - power))
        return 0.0 if math.isnan(difference) else difference


def pseudo_values(counts: Statistics, scorer: Scorer) -> Statistics:
    """The jackknife pseudo-values [K, N] of statistics [K, N, S]; their mean over sentences is nearly the score [K]."""
    sentences = counts.shape[1]
    total = counts.sum(1, keepdims=True)
    values: Statistics = sentences * scorer(total) - (sentences - 1) * scorer(total - counts)
    return values


def by_sentences(first: Statistics, second: Statistics) -> Variance:
    """The sentences' part of the variance, from pseudo-values [K, N] of two variants on the same sentences."""
    sentences = first.shape[1]
    if sentences < 2:
        return UNKNOWN
    return Variance(float((second.mean(0) - first.mean(0)).var(ddof=1)) / sentences, sentences - 1)


def interaction(values: Statistics) -> Variance:
    """The mean square of the interaction in the pseudo-values [K, N] of a variant; unknown for one run."""
    runs, sentences = values.shape
    if runs < 2 or sentences < 2:
        return UNKNOWN
    freedom = (runs - 1) * (sentences - 1)
    return Variance(float((_rest(values) ** 2).sum()) / freedom, freedom)


def _rest(values: Statistics) -> Statistics:
    """The residuals [K, N] after the run and sentence effects are removed."""
    rest: Statistics = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return rest


class Sample(NamedTuple):
    """A variant's pseudo-values [K, N] and the seeds of its K runs, each once."""

    values: Statistics
    seeds: Sequence[int]


def shared_interaction(first: Sample, second: Sample) -> float:
    """The share of the interaction that two variants have in common, from 0 to 1.

    It is the correlation of the residuals over the common seeds, times the share of common seeds. With a single
    common seed, the correlation is unknown and taken as 1.
    """
    both = [seed for seed in first.seeds if seed in second.seeds]
    correlation = float(bool(both))
    if len(both) > 1:
        one, other = (_rest(each.values[[each.seeds.index(seed) for seed in both]]) for each in (first, second))
        scale = math.sqrt(float((one**2).sum() * (other**2).sum()))
        correlation = min(1.0, max(0.0, float((one * other).sum()) / scale)) if scale else 0.0
    return correlation * 2 * len(both) / (len(first.seeds) + len(second.seeds))


class Deviations:
    """The variance of the runs of each variant.

    The variance is pooled over the variants of one program. Collapsed variants are excluded: Cochran's test (1941,
    Annals of Eugenics 11) removes the variant with the largest variance until no variance is too large for the others.
    A collapsed variant has its own variance (Welch 1947). A variant with one run has the variance pooled over all
    variants of its program, or an unknown variance if none of them has two runs. A copy has the runs of another
    variant with another search: it uses the pooled variance and does not contribute to the pool.
    """

    def __init__(
        self, groups: Sequence[Sequence[float]], programs: Sequence[str] = (), copies: Collection[int] = ()
    ) -> None:
        """Pool the variances of the scores of each variant (`groups`); without `programs`, all share one program."""
        self._programs, self._copies = programs or [""] * len(groups), copies
        self._counts = [len(scores) for scores in groups]
        self._squares = [float(np.var(scores)) * len(scores) for scores in groups]
        self.alike: list[int] = []
        for program in dict.fromkeys(self._programs):
            alike = sorted(self._several(program), key=lambda at: self._of([at]))
            while len(alike) > 1 and self._larger(alike[-1], alike[:-1]) < LARGER / len(alike):
                alike.pop()
            self.alike += sorted(alike)

    def _several(self, program: str) -> list[int]:
        """The variants of a program with at least two runs, without copies."""
        counts = enumerate(self._counts)
        return [at for at, n in counts if n > 1 and self._programs[at] == program and at not in self._copies]

    def pool(self, at: int) -> list[int]:
        """The variants over which the variance of variant `at` is pooled."""
        same = self._several(self._programs[at])
        if self._counts[at] < 2:
            return same
        alike = at in self.alike or at in self._copies
        return [other for other in same if other in self.alike] if alike else [at]

    def of_mean(self, at: int) -> Variance:
        """The variance of the mean of a variant's runs."""
        part = self._of(self.pool(at))
        return Variance(part.variance / self._counts[at], part.freedom)

    def of_difference(self, first: int, second: int) -> Variance:
        """The variance of the difference of two variants' means; unknown if either variance is unknown.

        If the variants have different pools, the degrees of freedom are Welch's.
        """
        parts = [self.of_mean(first), self.of_mean(second)]
        if not all(part.freedom for part in parts):
            return UNKNOWN
        total = parts[0].variance + parts[1].variance
        if self.pool(first) == self.pool(second):
            return Variance(total, parts[0].freedom)
        spread = sum(part.variance**2 / part.freedom for part in parts)
        return Variance(total, total**2 / spread if spread else min(part.freedom for part in parts))

    def _of(self, pool: Sequence[int]) -> Variance:
        freedom = sum(self._counts[at] - 1 for at in pool)
        return Variance(sum(self._squares[at] for at in pool) / freedom, freedom) if freedom > 0 else UNKNOWN

    def _larger(self, at: int, others: Sequence[int]) -> float:
        """The p-value of a one-sided F test that a variant has a larger variance than the pool of the others."""
        part, pooled = self._of([at]), self._of(others)
        if not pooled.variance:
            return float(not part.variance)
        return float(stats.f.sf(part.variance / pooled.variance, part.freedom, pooled.freedom))


def noise_of(
    first: int, second: int, samples: Sequence[Sample], interactions: Sequence[Variance], runs: Deviations
) -> PairNoise:
    """The noise of the difference of two variants, from the pseudo-values and interactions of all variants."""
    sides = [samples[first], samples[second]]
    sentences, over_runs = by_sentences(sides[0].values, sides[1].values), runs.of_difference(first, second)
    if not over_runs.freedom:
        return PairNoise(sentences, UNKNOWN)
    pools = [runs.pool(at) for at in (first, second)]
    parts = []
    for pool in pools:
        weights = [len(samples[other].seeds) - 1 for other in pool]
        parts.append(float(np.average([interactions[other].variance for other in pool], weights=weights)))
    counts = [len(side.seeds) for side in sides]
    both = (parts[0] / counts[0] + parts[1] / counts[1]) / sides[0].values.shape[1]
    freedom = sum(interactions[other].freedom for other in {*pools[0], *pools[1]})
    return PairNoise(sentences, over_runs, Variance(both, freedom), shared_interaction(*sides))
