"""Medians, spreads and curves through points."""

import statistics
from collections.abc import Sequence
from typing import NamedTuple

from benchmarking import flops
from benchmarking.settings import Json, Sizes, Wiring


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


def trained(answer: Json, rate: float, sizes: Sizes, wiring: Wiring | None) -> dict[str, float]:
    """The figures of a round of training, from what its case answered and the rate of matrix multiplies beside it.

    Without a wiring there is no count of operations.
    """
    figures = {
        "tokens_per_second": answer["tokens"] / answer["seconds"],
        "sentences_per_batch": answer["sentences"] / answer["batches"],
        "source_padding": answer["padding"][0],
        "target_padding": answer["padding"][1],
    }
    if wiring is not None:
        needed = flops.total(sizes, wiring, map(tuple, answer["lengths"])) / answer["tokens"]
        figures["flops_per_token"] = needed
        figures["flops_per_second"] = needed * figures["tokens_per_second"]
        figures["multiply_rate"] = rate
        figures["limit_tokens_per_second"] = rate / needed
        figures["fraction_of_limit"] = figures["flops_per_second"] / rate
    return figures


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
