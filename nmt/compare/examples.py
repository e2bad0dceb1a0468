"""Single sentences by their chrF, the mean over seeds: examples, and two variants against each other."""

import random
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nmt.compare.significance import chrf_of
from nmt.compare.variants import Variant
from nmt.viewer.blocks import Linked, Scatter, Table

#: Points of a plot, and texts of the page that they lead to; about 1 MB.
_MOST_POINTS, MOST_TEXTS = 1000, 8000

Scores = npt.NDArray[np.float64]


def scores_of(variant: Variant, split: str) -> Scores:
    """The chrF of each sentence [N]."""
    means: Scores = np.stack([chrf_of(run.splits[split].counts["chrf"]) for run in variant.runs]).mean(0)
    return means


def examples(
    first: Scores, second: Scores, texts: Sequence[Hashable], disagreements: Sequence[int]
) -> dict[str, Sequence[int]]:
    """Lines, from 1, of each kind: where the second of two variants gains and loses most, disagreements, random ones.

    Of each kind at most as many as there are disagreements, of equal texts only the first. A gain is never negative, a
    loss never positive.
    """
    most = len(disagreements)
    distinct = sorted({text: row for row, text in reversed([*enumerate(texts)])}.values())
    difference = second - first
    falling = sorted(distinct, key=lambda row: -difference[row])
    drawn = random.Random(1).sample(distinct, min(most, len(distinct)))
    return {
        "largest gain": [row + 1 for row in falling if difference[row] > 0][:most],
        "largest loss": [row + 1 for row in reversed(falling) if difference[row] < 0][:most],
        "largest disagreement": disagreements,
        "random": sorted(row + 1 for row in drawn),
    }


def examples_table(
    lines: Mapping[str, Sequence[int]], scores: tuple[Scores, Scores], labels: tuple[str, str], sources: Sequence[str]
) -> Table:
    """A row for each example, by its kind, with the scores of both variants."""
    rows: list[list[str]] = []
    for kind, line in ((kind, line) for kind, of_kind in lines.items() for line in of_kind):
        one, other = (of_variant[line - 1] for of_variant in scores)
        figures = f"{one:.0f}", f"{other:.0f}", f"{other - one:+.0f}"
        rows.append([kind, Linked(str(line), [line]), *figures, sources[line - 1]])
    return Table(["kind", "line", *(f"chrF, {label}" for label in labels), "difference", "source"], rows, text=True)


def scatter(scores: Sequence[Scores], labels: Sequence[str], axes: tuple[int, int]) -> Scatter:
    """A point for each sentence; of a large test set, as many as the page can hold, at even distances.

    `axes` are the variants across and up.
    """
    count = len(scores[0])
    most = min(_MOST_POINTS, MOST_TEXTS // (len(scores) + 2))
    rows = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
    return Scatter("chrF", list(labels), (rows + 1).tolist(), [each[rows].tolist() for each in scores], axes)
