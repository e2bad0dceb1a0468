"""Medians, spreads and lines through points."""

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


class Line(NamedTuple):
    """y = intercept + slope x by least squares; `r2` is the share of the variance that it explains."""

    intercept: float
    slope: float
    r2: float


def line(xs: Sequence[float], ys: Sequence[float]) -> Line:
    """The least-squares line through at least two points of different x."""
    slope, intercept = statistics.linear_regression(xs, ys)
    mean = statistics.fmean(ys)
    left = sum((y - intercept - slope * x) ** 2 for x, y in zip(xs, ys, strict=True))
    whole = sum((y - mean) ** 2 for y in ys)
    return Line(intercept, slope, 1.0 - left / whole if whole else 1.0)
