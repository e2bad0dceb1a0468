"""Medians and spreads."""

import statistics
from collections.abc import Sequence

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


def trained(answer: Json) -> dict[str, float]:
    """The figures of a round of training, from the answer of its case."""
    return {
        "tokens_per_second": answer["tokens"] / answer["seconds"],
        "sentences_per_batch": answer["sentences"] / answer["batches"],
        "source_padding": answer["padding"][0],
        "target_padding": answer["padding"][1],
    }


def beside(ours: Sequence[float], theirs: Sequence[float], unit: str) -> Json:
    """A peer's rounds beside ours: medians, spreads, and how many times as fast we are."""
    pairs = list(zip(ours, theirs, strict=False))
    return {
        **summary([{unit: rate} for rate in theirs]),
        **({"ratio": summary([{"ours_over_theirs": rate / their} for rate, their in pairs])} if pairs else {}),
    }
