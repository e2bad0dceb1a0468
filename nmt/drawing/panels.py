"""Heads side by side: a small matrix for each head, and a row for each layer, the lowest layer on top."""

from collections.abc import Mapping, Sequence
from itertools import groupby

from matplotlib.figure import Figure

from nmt.alignment.word_weights import Weights
from nmt.drawing import fonts
from nmt.drawing.matrix import matrix, note
from nmt.drawing.style import GREY, ruler

_GAP = 0.14  # inches between panels
_COLUMNS = 8  # maximum number of panels in a row; a layer with more heads continues in the next row


def rows_of_panels(names: Sequence[str]) -> list[list[str]]:
    """The names of heads by row: a row for each layer; a long layer is split into rows of about equal length."""
    rows = []
    for _, layer in groupby(names, key=lambda name: name.rpartition(".")[0]):
        heads = list(layer)
        count = -(-len(heads) // _COLUMNS)
        length = -(-len(heads) // count)
        rows += [heads[first : first + length] for first in range(0, len(heads), length)]
    return rows


def draw_panels(
    picture: Figure,
    panels: Mapping[str, Weights],
    rows: Sequence[str],
    columns: Sequence[str],
    families: Sequence[str],
    corner: str,
) -> None:
    """Draw the matrices of heads and set the page to their size; labels are at the left and above the first row.

    Labels are prepared by `fonts.shape`; `corner` describes the rows and the columns.
    """
    longest = max(len(rows), len(columns))
    cell, points = (0.185, 8.0) if longest <= 12 else (0.145, 7.0) if longest <= 24 else (0.11, 5.5)
    font = fonts.properties(families, points)
    grid = rows_of_panels(list(panels))
    width, height = cell * len(columns), cell * len(rows)
    caption = 1.7 * 8.0 / 72  # height of the name above a matrix, in inches
    labels = max(map(ruler(font), columns)) + 0.06  # vertical labels above the names of the first row
    across = max(map(len, grid)) * (width + _GAP) - _GAP
    along = len(grid) * (height + caption + _GAP) - _GAP - caption
    picture.set_size_inches(across, along)
    for down, names in enumerate(grid):
        top = down * (height + caption + _GAP)
        for right, name in enumerate(names):
            axes = picture.add_axes(
                (right * (width + _GAP) / across, 1 - (top + height) / along, width / across, height / along)
            )
            first = not down
            matrix(axes, panels[name], rows if not right else (), columns if first else (), font, slant=90)
            axes.tick_params(which="major", pad=3.0)
            note(axes, name, (0, 72 * (0.05 + (labels if first else 0.0))), "left", "black", 8.0)
            if first and not right:
                note(axes, corner, (-3.0, 3.0), "right", GREY, 7.0)
