"""Heatmaps of attention weights, with target rows and source columns: one head, a mean, or many heads side by side.

Every heatmap states its head, its shift, and that a weight is not an explanation (Jain and Wallace 2019).
"""

import io
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.figure import Figure

from nmt.alignment.units import source_units, target_units
from nmt.alignment.word_weights import Head, Weights, head_name, names_of_heads, piece_weights, word_weights
from nmt.drawing import fonts
from nmt.drawing.layout import shorten
from nmt.drawing.matrix import matrix, note
from nmt.drawing.page import Caption, lay_out
from nmt.drawing.panels import draw_panels
from nmt.drawing.style import DPI, GREY, LINE, ruler, save
from nmt.system.errors import UserError
from nmt.translation.named_heads import AUTO, Heads
from nmt.translation.types import Translation

Level = Literal["word", "subword"]

WARNING = "A weight shows where the {} looked, not why."
#: The title, and the corner label of columns and rows, for each kind of attention.
TITLES = {"cross": "Attention", "encoder": "Self-attention of the encoder", "decoder": "Self-attention of the decoder"}
_CORNERS = {"cross": "source →\ntarget ↓", "encoder": "key →\nquery ↓", "decoder": "input →\ntarget ↓"}

_ANNOTATED = 12  # values are written into matrices of at most this many rows and columns
_LONGEST_LABEL = 26  # maximum width of a label in columns of text
_PAD = 5.0  # points between a label and the matrix


class NotebookFigure(Figure):
    """A figure that notebooks display without pyplot.

    Attributes:
        notes: notes for the user on scripts without an installed font and the package to install.
    """

    notes: Sequence[str] = ()

    def save(self, path: Path) -> Sequence[str]:
        """Write a .png, .svg or .pdf file atomically, and return `notes` (UserError if it cannot be written)."""
        save(self, path)
        return self.notes

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=self.dpi)
        return data.getvalue()


class _Grid(NamedTuple):
    """Weights [R, C] with the labels of rows and columns."""

    weights: Weights
    rows: list[str]
    columns: list[str]
    remarks: list[str]


def _grid(translation: Translation, level: Level, head: Head, shift: int) -> _Grid:
    if level == "subword":
        weights = piece_weights(translation, head, shift)
        return _Grid(weights, translation.pieces[: len(weights)], translation.source_pieces, [])
    if level != "word":
        raise UserError(f"level={level}: must be word or subword.")
    weights = word_weights(translation, head, shift)
    source, target = source_units(translation), target_units(translation)
    pieces = ("source", "target") if translation.attends == "cross" else ("column's", "row's")
    remarks = ["A word's weight: summed over the {} pieces, averaged over the {} pieces.".format(*pieces)]
    names = {"encoder": ("source", "source"), "decoder": ("target", "target")}.get(
        translation.attends, ("source", "target")
    )
    sides = dict.fromkeys(name for name, side in zip(names, (source, target), strict=True) if not side.are_words)
    if sides:
        remarks.append(f"The {' and the '.join(sides)} has no spaces between words: shown as subword pieces.")
    left_out = 1 - weights.sum(axis=1)
    if left_out.size and left_out.max() > 0.05:
        end = "beginning" if translation.attends == "decoder" else "end"
        remarks.append(f"If a row sums to less than 1, the rest is on the {end} of the sentence.")
    return _Grid(weights, target.labels, source.labels, remarks)


def _what(translation: Translation, level: Level, head: str, shift: int) -> str:
    names = Heads(names_of_heads(translation))
    count = len(names.side_by_side(head))
    heads = f"{count} heads, layer.head" if count > 1 else names.describe(head)
    if heads.startswith("head "):
        heads += f" (of heads {names.names[0]} to {names.names[-1]})"
    unit = "word" if level == "word" else "piece"
    where = f"the {unit} that it predicts" if shift == 0 else f"the previous {unit}, its input"
    row = f"each row at {where} (shift {shift})" if translation.attends != "encoder" else f"each row at its {unit}"
    return f"{level} level · {heads} · {row}"


def _panels(
    translation: Translation, level: Level, head: Head, shift: int
) -> tuple[dict[str, Weights], list[str], list[str], list[str]]:
    """The matrices by head name, the labels of their rows and columns, and remarks for the captions."""
    heads = Heads(names_of_heads(translation))
    names: Sequence[Head] = heads.side_by_side(head_name(head)) or [head]  # `_grid` rejects unknown heads
    grids = {str(name): _grid(translation, level, name, shift) for name in names}
    weights, rows, columns, _ = next(iter(grids.values()))
    remarks = list(dict.fromkeys(remark for grid in grids.values() for remark in grid.remarks))
    if fonts.right_to_left(translation.source):
        remarks.append("Source words are in reading order, from left to right.")
    if any((grid.weights == 0).any() for grid in grids.values()):
        remarks.append("A grey cell has a weight of exactly 0.")
    panels = {name: grid.weights for name, grid in grids.items()}
    if not weights.size:  # an empty line
        panels = {"": np.zeros((len(rows) or 1, len(columns) or 1), dtype=np.float32)}
    return panels, rows or ["(nothing)"], columns or ["(nothing)"], remarks


def figure(
    translation: Translation,
    *,
    level: Level = "word",
    head: Head = AUTO,
    shift: int = 0,
    reference: str | None = None,
    title: str | None = None,
) -> NotebookFigure:
    """Draw the attention of one translation.

    Colours range from white to dark blue (1) in every picture, so that pictures can be compared. A weight of exactly 0
    is grey. Small matrices show values of 0.05 or more. The size of the picture grows with the sentence.

    Args:
        translation: the result of the translator.
        level: "word" sums and averages the weights of subword pieces (see `word_weights`). "subword" shows the weights
            of pieces as the decoder used them, with the end of sentence.
        head: a selection of heads (`nmt.translation.named_heads`); "all" draws all heads side by side, "2.all" all
            heads of layer 2.
        shift: 0 labels row t with the piece that it predicts, 1 with the previous piece (see `piece_weights`).
        reference: a reference translation, shown below the matrix.
        title: one line above the matrix; None uses the name of the attention.

    Returns:
        A figure without a window or pyplot state; `pixels` and `save` convert it to an image.

    Raises:
        UserError: the model has no attention, or no such head, shift or level.
    """
    panels, rows, columns, remarks = _panels(translation, level, head, shift)
    title = TITLES[translation.attends] if title is None else title
    texts = [fonts.clean(text) for text in (title, reference or "", *rows, *columns)]
    families, missing = fonts.families_for("".join(fonts.shape(text) for text in texts))
    title, reference, *labels = (fonts.without(text, missing) for text in texts)
    labels = [fonts.shape(shorten(label, _LONGEST_LABEL)) for label in labels]
    boxes = fonts.missing_note(missing)

    warning = WARNING.format("encoder" if translation.attends == "encoder" else "decoder")
    captions = [Caption(" ".join([warning, *remarks]), 8.0, GREY)]
    if reference:
        captions.insert(0, Caption(f"Reference: {reference}", 9.0, "black"))
    if boxes:
        captions.append(Caption(boxes, 8.0, "#a03000"))
    header = [Caption(title, 12.5, "black"), Caption(_what(translation, level, str(head), shift), 9.0, GREY)]

    sides, corner = (labels[: len(rows)], labels[len(rows) :]), _CORNERS[translation.attends]
    picture = NotebookFigure(dpi=DPI, facecolor="white")
    picture.notes = [boxes] if boxes else []
    if len(panels) > 1:
        captions.append(Caption("White is nearly 0, dark blue is 1.", 8.0, GREY))
        draw_panels(picture, panels, *sides, families, corner)
    else:
        (only,) = panels.values()
        _draw_matrix(picture, only, *sides, families, corner)
    lay_out(picture, header, captions, families)
    return picture


def _draw_matrix(
    picture: Figure, weights: Weights, rows: Sequence[str], columns: Sequence[str], families: Sequence[str], corner: str
) -> None:
    """Draw a matrix with labels and colour bar, and with values if it is small; set the page to the matrix's size."""
    longest = max(weights.shape)
    cell, points = (0.42, 10.5) if longest <= _ANNOTATED else (0.31, 10.0) if longest <= 40 else (0.25, 8.5)
    font, (height, width) = fonts.properties(families, points), (cell * cells for cells in weights.shape)
    picture.set_size_inches(width, height)
    axes = picture.add_axes((0, 0, 1, 1))
    upright = max(map(ruler(font), columns)) <= 0.95 * cell
    image = matrix(axes, weights, rows, columns, font, slant=0 if upright else 45)
    axes.tick_params(which="major", pad=_PAD)
    note(axes, corner, (-_PAD, _PAD), "right", GREY, 8.0)
    if longest <= _ANNOTATED:
        small = fonts.properties([fonts.BASE], 7.5)
        for (row, column), value in np.ndenumerate(weights):
            if value >= 0.05:
                colour = "white" if value > 0.55 else "#20364f"
                number = f"{value:.2f}".removeprefix("0")
                axes.text(column, row, number, ha="center", va="center", color=colour, fontproperties=small)
    key = max(min(height, 1.5), 0.42)
    bar_axes = axes.inset_axes((1 + 0.22 / width, 1 - key / height, 0.13 / width, key / height))
    small = fonts.properties([fonts.BASE], 8.0)
    picture.colorbar(image, cax=bar_axes).outline.set(color=LINE, linewidth=0.6)
    bar_axes.tick_params(length=2, color=GREY)
    bar_axes.set_yticks([0, 0.5, 1], ["0", "0.5", "1"], color=GREY, fontproperties=small)
    bar_axes.set_ylabel("weight", color=GREY, fontproperties=small)
