"""How sure a figure of the report is: bootstrap and Wilson intervals at 95 %.

Both ask what other sentences would give, with these runs as they are. The tests of significance, which also ask what
other seeds would give, are in `significance`.
"""

import math
from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.compare.variance import Statistics

RESAMPLES = 1000
_GROUPS = 1000  # a larger test set is resampled in so many groups of sentences, which takes less time
_Z = 1.959963984540054  # the 97.5th percentile of the normal distribution


class Estimate(NamedTuple):
    """A figure and the ends of its interval."""

    value: float
    low: float
    high: float


class Bootstrap:
    """Resampled sums over the sentences of a test set, the same sentences for every figure (Efron 1979)."""

    def __init__(self, sentences: int) -> None:
        generator = np.random.default_rng(1)
        groups = min(sentences, _GROUPS)
        self._group = generator.permutation(sentences) % max(groups, 1)
        self._draws = generator.multinomial(groups, [1 / groups] * groups, RESAMPLES) if groups else np.zeros((0, 0))

    def estimate(self, counts: Statistics, score: Callable[[Statistics], Statistics]) -> Estimate | None:
        """A score of summed counts, the mean over runs; its interval is from the 2.5th to the 97.5th percentile.

        Args:
            counts: [runs, sentences, S] of each sentence.
            score: of sums [..., S] the scores [...]; not a number where there is nothing to score.

        Returns:
            None where there is nothing to score.
        """
        value = float(score(counts.sum(1)).mean())
        if not math.isfinite(value):
            return None
        grouped = np.zeros((len(self._draws[0]), counts.shape[0], counts.shape[2]))
        np.add.at(grouped, self._group, counts.swapaxes(0, 1))
        resampled = score(np.tensordot(self._draws, grouped, 1)).mean(1)
        known = resampled[np.isfinite(resampled)]
        low, high = np.percentile(known, (2.5, 97.5))
        return Estimate(value, float(low), float(high))


def share_of(counts: Statistics) -> Statistics:
    """Counts [..., 2], some and all of them -> the share in per cent."""
    return _ratio(100 * counts[..., 0], counts[..., 1])


def mean_of(counts: Statistics) -> Statistics:
    """Counts [..., 2], a sum and its number of terms -> the mean."""
    return _ratio(counts[..., 0], counts[..., 1])


def f1_of(counts: Statistics) -> Statistics:
    """Counts [..., 3] of matches, of words in translations and of words in references -> F1 in per cent."""
    return _ratio(200 * counts[..., 0], counts[..., 1] + counts[..., 2])


def correlation_of(counts: Statistics) -> Statistics:
    """Sums [..., 6] of 1, x, y, x^2, y^2 and xy -> Pearson's correlation; not a number where x or y does not vary."""
    number, x, y, xx, yy, xy = np.moveaxis(counts, -1, 0)
    spreads = np.sqrt(np.maximum(number * xx - x * x, 0) * np.maximum(number * yy - y * y, 0))
    # What rounding leaves of a constant is no spread.
    return _ratio(number * xy - x * y, np.where(spreads > 1e-9 * number * np.sqrt(xx * yy), spreads, 0))


def _ratio(above: Statistics, below: Statistics) -> Statistics:
    ratio: npt.NDArray[np.float64] = np.divide(above, below, out=np.full_like(below, np.nan), where=below > 0)
    return ratio


def wilson(count: float, trials: int) -> Estimate:
    """A share in per cent with the interval of Wilson (1927), which is right for rare events too.

    Args:
        count: how many; a mean over runs need not be whole.
        trials: of how many, at least 1.
    """
    share, correction = count / trials, _Z * _Z / trials
    centre = (share + correction / 2) / (1 + correction)
    half = _Z / (1 + correction) * math.sqrt(share * (1 - share) / trials + correction / (4 * trials))
    return Estimate(100 * share, 100 * max(0.0, centre - half), 100 * min(1.0, centre + half))
