"""The agreement of a run's attention weights and gradients with the erasure of source words; see `study.output`."""

import statistics
from itertools import combinations
from pathlib import Path

import numpy as np

import nmt
from nmt.data.lines import read_lines
from nmt.inspection.explanation import Matrix, rank_correlation

SENTENCES = 200


def agreement(run: Path, source: Path, target: Path) -> dict[str, float]:
    """The mean agreements over the first SENTENCES sentences of a test set, with forced references."""
    translator = nmt.load(run, "device=cpu")
    values: dict[str, list[float]] = {}
    for sentence, reference in list(zip(read_lines(source), read_lines(target), strict=True))[:SENTENCES]:
        matrices = {name: np.array(each) for name, each in translator.explain(sentence, reference).measures.items()}
        for name, value in (*_correlations(matrices).items(), *_tops(matrices).items()):
            values.setdefault(name, []).append(value)
    return {"sentences": SENTENCES, **{name: round(statistics.fmean(of), 4) for name, of in values.items()}}


def _correlations(matrices: dict[str, Matrix]) -> dict[str, float]:
    """Rank correlations of each pair of measures, by absolute value and with signs, averaged over target words."""
    values: dict[str, float] = {}
    for (one, first), (other, second) in combinations(matrices.items(), 2):
        for kind, (a, b) in {"": (abs(first), abs(second)), "signed ": (first, second)}.items():
            known = [value for value in map(rank_correlation, a, b) if value is not None]
            if known:
                values[f"{kind}{one}/{other}"] = statistics.fmean(known)
    return values


def _tops(matrices: dict[str, Matrix]) -> dict[str, float]:
    """The shares of target words for which attention or gradient has the same top source word as erasure."""
    tops = {name: abs(matrix).argmax(1) for name, matrix in matrices.items()}
    shares = {f"top {name}": float((tops[name] == tops["erasure"]).mean()) for name in ("attention", "gradient")}
    return {**shares, "top chance": 1 / matrices["erasure"].shape[1]}
