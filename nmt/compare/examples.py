"""Examples and a scatter plot of single sentences by chrF, averaged over seeds."""

import random
from collections.abc import Hashable, Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nmt.compare.significance import chrf_of
from nmt.compare.variants import Variant
from nmt.viewer.blocks import Linked, Scatter, Table

#: Maximum number of points in a plot, and of texts on the page that they link to (about 1 MB).
_MOST_POINTS, MOST_TEXTS = 1000, 8000

Scores = npt.NDArray[np.float64]


def scores_of(variant: Variant, split: str) -> Scores:
    """The chrF of each of N sentences [N], averaged over a variant's runs."""
    means: Scores = np.stack([chrf_of(run.splits[split].counts["chrf"]) for run in variant.runs]).mean(0)
    return means


def examples(
    first: Scores, second: Scores, texts: Sequence[Hashable], disagreements: Sequence[int]
) -> dict[str, Sequence[int]]:
    """Line numbers, from 1, of examples by kind: gains and losses of the second variant, disagreements, random lines.

    Each kind has at most as many lines as there are disagreements. Only the first of several equal texts is used.
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
    """A table with a row for each example, in the order of the kinds, with the scores of both variants."""
    rows: list[list[str]] = []
    for kind, line in ((kind, line) for kind, of_kind in lines.items() for line in of_kind):
        one, other = (of_variant[line - 1] for of_variant in scores)
        figures = f"{one:.0f}", f"{other:.0f}", f"{other - one:+.0f}"
        rows.append([kind, Linked(str(line), [line]), *figures, sources[line - 1]])
    return Table(["kind", "line", *(f"chrF, {label}" for label in labels), "difference", "source"], rows, text=True)


def scatter(scores: Sequence[Scores], labels: Sequence[str], axes: tuple[int, int]) -> Scatter:
    """A scatter plot with a point for each sentence; a large test set is sampled at even distances.

    `axes` are the indices of the variants on the x and y axes.
    """
    count = len(scores[0])
    most = min(_MOST_POINTS, MOST_TEXTS // (len(scores) + 2))
    rows = np.unique(np.linspace(0, count - 1, min(most, count)).round().astype(int))
    return Scatter("chrF", list(labels), (rows + 1).tolist(), [each[rows].tolist() for each in scores], axes)
