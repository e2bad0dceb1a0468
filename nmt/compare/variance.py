"""The noise of a difference between two variants: other sentences and other seeds would give another one.

A score is a function of summed statistics, so a sentence has no score of its own. Its jackknife pseudo-value takes that
place (Efron and Tibshirani 1993, section 11.5): N times the score of all sentences less N - 1 times that of all others.
The pseudo-values x_ri of K runs and N sentences are a table of two random factors and their interaction. The variance
of its mean has three parts:

    sentences     s_i^2 / N          s_i: deviation of the means over runs; includes interaction / K
    runs          s_r^2 / K          s_r: deviation of the means over sentences; includes interaction / N
    interaction   s_ri^2 / (N K)     counted in both parts above, so it is subtracted once

Two variants have the same sentences, so the sentences' part is that of the differences, with the interaction of these
two variants. What is added is the deviation of whole runs: the runs' part less the interaction in it. Few runs know
little of it, so it is pooled over the variants of one program.
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

#: The level of the test that finds collapsed variants.
LARGER = 0.05
#: Chosen by the simulation in docs/statistics.md: without it, 7 % of pairs without a difference were called different.
MARGIN = 0.1
_LEAST = 1e-100  # p values below are this one


@functools.lru_cache(maxsize=1024)
def _t(level: float, freedom: float) -> float:
    """The bound that |T| of Student's t exceeds with this probability."""
    return float(-special.stdtrit(freedom, level / 2))


class Variance(NamedTuple):
    """A variance and its degrees of freedom; 0 degrees if it is unknown."""

    variance: float
    freedom: float

    def bound(self, level: float) -> float:
        """The square of the bound that a difference of only this variance exceeds with the probability `level`."""
        return self.variance * _t(level, self.freedom) ** 2 if self.freedom and self.variance else 0.0


UNKNOWN = Variance(0.0, 0.0)


class PairNoise(NamedTuple):
    """The noise of a difference, whose parts have different degrees of freedom.

    Each part counts with the bound of its own Student's t (Cochran and Cox 1950). Where few runs must tell how much
    whole runs deviate, one t with Satterthwaite's degrees of freedom (1946) errs too often: runs that happen to be
    alike seem to leave the noise of sentences alone, which many sentences know well.

    Runs of one seed may share interaction. It cancels in the part of sentences, but not in that of runs, so that its
    subtraction can leave too little. To subtract only what is not shared is never too low, and with many variants much
    too high. One t, whose degrees of freedom take the part of runs to be at least the interaction in it, is a little
    too low then, so `MARGIN` of the distance is added.

    Attributes:
        sentences: the part of sentences; unknown for one sentence.
        runs: the part of runs; unknown without an estimate.
        both: the interaction that both parts have.
        shared: the share of it that the runs of both variants have in common, from 0 to 1.
    """

    sentences: Variance
    runs: Variance
    both: Variance = UNKNOWN
    shared: float = 0.0

    @property
    def error(self) -> float:
        """The standard error."""
        return math.sqrt(self.sentences.variance + max(0.0, self.runs.variance - self.both.variance))

    def reach(self, level: float) -> float:
        """The difference that is exceeded with this probability if there is none; not a number if unknown."""
        if not (self.sentences.freedom or self.runs.freedom):
            return math.nan
        bound = self._sum(level, self.both.variance)
        if self.shared and self.both.variance:
            unshared, single = self._sum(level, (1 - self.shared) * self.both.variance), self._satterthwaite(level)
            bound = max(bound, min(unshared, single + MARGIN * (unshared - single)))
        return math.sqrt(bound)

    def _sum(self, level: float, less: float) -> float:
        """The sum of the squared bounds, less some interaction, by the smaller of the two t."""
        interaction = Variance(less, max(self.sentences.freedom, self.runs.freedom)).bound(level)
        return self.sentences.bound(level) + max(0.0, self.runs.bound(level) - interaction)

    def _satterthwaite(self, level: float) -> float:
        """The squared bound of one t."""
        parts = self.sentences, Variance(max(self.runs.variance, self.both.variance), self.runs.freedom), self.both
        spread = sum(part.variance**2 / part.freedom for part in parts if part.freedom)
        return Variance(self.error**2, max(1.0, self.error**4 / spread)).bound(level)

    def p(self, difference: float) -> float:
        """The level at which this difference is reached; a difference without any noise is certain."""
        size = abs(difference)
        if not size or math.isnan(self.reach(0.5)):
            return 1.0
        if self.reach(_LEAST) <= size:
            return _LEAST if self.error else 0.0
        return math.exp(brentq(lambda log: self.reach(math.exp(log)) - size, math.log(_LEAST), 0.0))

    def interval(self, difference: float, level: float = 0.05) -> tuple[float, float]:
        """The confidence interval of a difference; not a number at both ends if the noise is unknown."""
        reach = self.reach(level)
        return difference - reach, difference + reach

    def detectable(self, level: float, power: float) -> float:
        """The true difference that a two-sided test at `level` finds with this power (Bloom 1995); 0 if unknown."""
        difference = self.reach(level) + self.reach(2 * (1 - power))
        return 0.0 if math.isnan(difference) else difference


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
    freedom = (runs - 1) * (sentences - 1)
    return Variance(float((_rest(values) ** 2).sum()) / freedom, freedom)


def _rest(values: Statistics) -> Statistics:
    """What neither run nor sentence explains."""
    rest: Statistics = values - values.mean(0) - values.mean(1, keepdims=True) + values.mean()
    return rest


class Sample(NamedTuple):
    """A variant's pseudo-values [K, N] and the seeds of its K runs, each once."""

    values: Statistics
    seeds: Sequence[int]


def shared_interaction(first: Sample, second: Sample) -> float:
    """The share of their interaction that two variants have in common, from 0 to 1.

    It is the correlation in the seeds that both have, times the share of these. One seed alone does not tell: then all
    of it may be common.
    """
    both = [seed for seed in first.seeds if seed in second.seeds]
    correlation = float(bool(both))
    if len(both) > 1:
        one, other = (_rest(each.values[[each.seeds.index(seed) for seed in both]]) for each in (first, second))
        scale = math.sqrt(float((one**2).sum() * (other**2).sum()))
        correlation = min(1.0, max(0.0, float((one * other).sum()) / scale)) if scale else 0.0
    return correlation * 2 * len(both) / (len(first.seeds) + len(second.seeds))


class Deviations:
    """How much the runs of each variant deviate.

    The variance is pooled over the variants of one program, without collapsed ones: those of which Cochran's test
    finds the largest variance too large for the others (1941, Annals of Eugenics 11; repeated until it finds none).
    These have their own (Welch 1947). A variant with one run has the variance pooled over all variants of its program;
    where none of these has two runs, it is unknown. A copy has the runs of another variant, with another search: it
    takes the pooled variance and does not count in it.
    """

    def __init__(
        self, groups: Sequence[Sequence[float]], programs: Sequence[str] = (), copies: Collection[int] = ()
    ) -> None:
        """Take the scores of the runs of all variants, the program of each (by default the same), and the copies."""
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
        """The variants of a program that have at least two runs of their own."""
        counts = enumerate(self._counts)
        return [at for at, n in counts if n > 1 and self._programs[at] == program and at not in self._copies]

    def pool(self, at: int) -> list[int]:
        """The variants over which the variance of this one is pooled."""
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
        """The variance of the difference of two variants' means; unknown if that of one is.

        Degrees of freedom of two pools are Welch's.
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
        """p of a one-sided F test that the runs have a larger variance than the others, pooled."""
        part, pooled = self._of([at]), self._of(others)
        if not pooled.variance:
            return float(not part.variance)
        return float(stats.f.sf(part.variance / pooled.variance, part.freedom, pooled.freedom))


def noise_of(
    first: int, second: int, samples: Sequence[Sample], interactions: Sequence[Variance], runs: Deviations
) -> PairNoise:
    """The noise of the difference of two variants, from the pseudo-values of all and their interactions."""
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
