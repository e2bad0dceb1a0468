"""95 % intervals over sentences for given runs: the bootstrap and Wilson's interval.

Unlike the tests in `significance`, these intervals do not cover other seeds.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.compare.variance import Statistics

RESAMPLES = 1000
_GROUPS = 1000  # a larger test set is resampled in groups of sentences, which is faster


class Estimate(NamedTuple):
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


class Bootstrap:
    """Bootstrap over the sentences of a test set (Efron 1979), with the same resamples for every figure."""

    def __init__(self, sentences: int) -> None:
        generator = np.random.default_rng(1)
        groups = min(sentences, _GROUPS)
        self._group = generator.permutation(sentences) % max(groups, 1)
        self._draws = generator.multinomial(groups, [1 / groups] * groups, RESAMPLES) if groups else np.zeros((0, 0))

    def estimate(self, counts: Statistics, score: Callable[[Statistics], Statistics]) -> Estimate | None:
        """The mean of a score over runs with its 95 % percentile interval; None if there is nothing to score.

        Args:
            counts: [runs, sentences, S] statistics.
            score: sums [..., S] -> scores [...]; NaN if there is nothing to score.
        """
        value = float(score(counts.sum(1)).mean())
        if not math.isfinite(value):
            return None
        grouped = np.zeros((len(self._draws[0]), counts.shape[0], counts.shape[2]))
        np.add.at(grouped, self._group, counts.swapaxes(0, 1))
        resampled = score(np.tensordot(self._draws, grouped, 1)).mean(1)
        low, high = np.percentile(resampled[np.isfinite(resampled)], (2.5, 97.5))
        return Estimate(value, float(low), float(high))


def share_of(counts: Statistics) -> Statistics:
    """Counts [..., 2] of a part and of the whole -> the share in per cent."""
    return _ratio(100 * counts[..., 0], counts[..., 1])


def mean_of(counts: Statistics) -> Statistics:
    """A sum and its number of terms [..., 2] -> the mean."""
    return _ratio(counts[..., 0], counts[..., 1])


def f1_of(counts: Statistics) -> Statistics:
    """Counts [..., 3] of matches, of words in translations and of words in references -> F1 in per cent."""
    return _ratio(200 * counts[..., 0], counts[..., 1] + counts[..., 2])


def correlation_of(counts: Statistics) -> Statistics:
    """Sums [..., 6] of 1, x, y, x^2, y^2 and xy -> Pearson's correlation; NaN if x or y does not vary."""
    number, x, y, xx, yy, xy = np.moveaxis(counts, -1, 0)
    spreads = np.sqrt(np.maximum(number * xx - x * x, 0) * np.maximum(number * yy - y * y, 0))
    # By rounding, a constant can have a small positive spread.
    return _ratio(number * xy - x * y, np.where(spreads > 1e-9 * number * np.sqrt(xx * yy), spreads, 0))


def _ratio(above: Statistics, below: Statistics) -> Statistics:
    ratio: npt.NDArray[np.float64] = np.divide(above, below, out=np.full_like(below, np.nan), where=below > 0)
    return ratio


def share_estimate(count: float, trials: int) -> Estimate:
    """A share in per cent with Wilson's interval (1927), which also holds for rare events.

    Args:
        count: number of successes, or its mean over runs; the interval uses the nearest integer.
        trials: number of trials, at least 1.
    """
    from scipy.stats import binomtest  # type: ignore[import-untyped]  # loads slowly

    low, high = binomtest(round(count), trials).proportion_ci(method="wilson")
    return Estimate(100 * count / trials, 100 * low, 100 * high)


def estimate_text(estimate: Estimate | None, digits: int = 1) -> str:
    """A figure with its interval in brackets; a dash for None."""
    if estimate is None:
        return "-"
    return f"{estimate.value:.{digits}f} ({estimate.low:.{digits}f} to {estimate.high:.{digits}f})"
