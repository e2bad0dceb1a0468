"""Medians, spreads and curves through points."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarking.settings import Json


def spread(values: Sequence[float]) -> list[float]:
    """[smallest, largest]."""
    return [min(values), max(values)]


def summary(rounds: Sequence[dict[str, float]]) -> Json:
    """The median of each key over the rounds, and under "spread" its smallest and largest."""
    keys = list(rounds[0])
    medians: Json = {key: statistics.median(entry[key] for entry in rounds) for key in keys}
    medians["spread"] = {key: spread([entry[key] for entry in rounds]) for key in keys}
    medians["rounds"] = len(rounds)
    return medians


def beside(ours: Sequence[float], theirs: Sequence[float], unit: str) -> Json:
    """A peer's rounds beside ours: medians, spreads, and how many times as fast we are."""
    pairs = list(zip(ours, theirs, strict=False))
    return {
        **summary([{unit: rate} for rate in theirs]),
        **({"ratio": summary([{"ours_over_theirs": rate / their} for rate, their in pairs])} if pairs else {}),
    }


class Fit(NamedTuple):
    """y = a + b x + c x^2 ... by least squares; `r2` is the share of the variance that it explains."""

    coefficients: list[float]
    r2: float

    def at(self, x: float) -> float:
        """The y that belongs to `x`."""
        return sum(coefficient * x**power for power, coefficient in enumerate(self.coefficients))


def fit(xs: Sequence[float], ys: Sequence[float], degree: int = 1) -> Fit:
    """The least-squares polynomial through more points of different x than its degree."""
    import numpy as np  # here, since the leading process does without it while it measures

    result = Fit([float(factor) for factor in np.polynomial.Polynomial.fit(xs, ys, degree).convert().coef], 1.0)
    mean = statistics.fmean(ys)
    left = sum((y - result.at(x)) ** 2 for x, y in zip(xs, ys, strict=True))
    whole = sum((y - mean) ** 2 for y in ys)
    return result._replace(r2=1.0 - left / whole) if whole else result
