"""How far the weights and gradients of a run agree with the erasure of source words, as `study.output` names it."""

import statistics
from itertools import combinations
from pathlib import Path

import numpy as np

import nmt
from nmt.data.lines import read_lines
from nmt.inspection.explanation import Matrix, rank_correlation

SENTENCES = 200


def agreement(run: Path, source: Path, target: Path) -> dict[str, float]:
    """The means over the first sentences of a test set, forced to their references."""
    translator = nmt.load(run, "device=cpu")
    values: dict[str, list[float]] = {}
    for sentence, reference in list(zip(read_lines(source), read_lines(target), strict=True))[:SENTENCES]:
        matrices = {name: np.array(each) for name, each in translator.explain(sentence, reference).measures.items()}
        for name, value in (*_correlations(matrices).items(), *_tops(matrices).items()):
            values.setdefault(name, []).append(value)
    return {"sentences": SENTENCES, **{name: round(statistics.fmean(of), 4) for name, of in values.items()}}


def _correlations(matrices: dict[str, Matrix]) -> dict[str, float]:
    """Of each pair of measures, the mean over the target words that have one; by size and with signs."""
    values: dict[str, float] = {}
    for (one, first), (other, second) in combinations(matrices.items(), 2):
        for kind, (a, b) in {"": (abs(first), abs(second)), "signed ": (first, second)}.items():
            known = [value for value in map(rank_correlation, a, b) if value is not None]
            if known:
                values[f"{kind}{one}/{other}"] = statistics.fmean(known)
    return values


def _tops(matrices: dict[str, Matrix]) -> dict[str, float]:
    """The share of target words whose largest source word is that by erasure."""
    tops = {name: abs(matrix).argmax(1) for name, matrix in matrices.items()}
    shares = {f"top {name}": float((tops[name] == tops["erasure"]).mean()) for name in ("attention", "gradient")}
    return {**shares, "top chance": 1 / matrices["erasure"].shape[1]}
