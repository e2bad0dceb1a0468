"""Attention weights -> a heatmap: target as rows, source as columns, one head or the mean of all.

Every heatmap names its head and its shift, and says that a weight is not an explanation (Jain and Wallace 2019).
"""

import io
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties

from nmt.alignment.weights import Head, Weights, names_of_heads, piece_weights, word_weights
from nmt.alignment.words import source_units, target_units
from nmt.drawing import fonts
from nmt.drawing.layout import shorten, wrap
from nmt.drawing.matrix import matrix
from nmt.drawing.style import DPI, GREY, LINE, ruler, save
from nmt.errors import UserError
from nmt.translation.types import Translation

Level = Literal["word", "subword"]

WARNING = "A weight shows where the decoder looked, not why."

_MOST_PIXELS = 12_000  # per side; larger pictures have a lower resolution
_ANNOTATED = 12  # values are written into matrices of at most this many rows and columns
_LONGEST_LABEL = 26  # columns of text
_EDGE = 0.18  # inches around everything
_PAD = 5.0  # points between a label and the matrix


class NotebookFigure(Figure):
    """A figure that notebooks display although it does not belong to pyplot."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=self.dpi)
        return data.getvalue()


class _Grid(NamedTuple):
    """Weights [R, C] with labels of their rows and columns."""

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
    remarks = ["A word's weight: summed over its source pieces, averaged over its target pieces."]
    sides = [name for name, side in (("source", source), ("target", target)) if not side.are_words]
    if sides:
        remarks.append(f"The {' and the '.join(sides)} has no spaces between words: shown as subword pieces.")
    left_out = 1 - weights.sum(axis=1)
    if left_out.size and left_out.max() > 0.05:
        remarks.append("The weight that a row lacks to 1 is on the end of sentence.")
    return _Grid(weights, target.labels, source.labels, remarks)


def _what(translation: Translation, level: Level, head: Head, shift: int) -> str:
    heads = names_of_heads(translation)
    if len(heads) <= 1:
        heads_drawn = "one head"
    elif head == "mean":
        heads_drawn = f"mean of {len(heads)} heads"
    else:
        heads_drawn = f"head {head} (of heads {heads[0]} to {heads[-1]})"
    unit = "word" if level == "word" else "piece"
    where = f"the {unit} that it predicts" if shift == 0 else f"the previous {unit}, its input"
    return f"{level} level · {heads_drawn} · each row at {where} (shift {shift})"


def _right_to_left(text: str) -> bool:
    return any(unicodedata.bidirectional(char) in ("R", "AL") for char in text)


def figure(
    translation: Translation,
    *,
    level: Level = "word",
    head: Head = "mean",
    shift: int = 0,
    reference: str | None = None,
    title: str = "Attention",
) -> NotebookFigure:
    """Draw the attention of one translation.

    Colours run from white (0) to dark blue (1) in every picture, so that pictures can be compared. Small matrices show
    the values from 0.05 on. The size of the picture grows with the sentence.

    Args:
        translation: the result of the translator.
        level: "word" sums and averages the weights of subword pieces (see `word_weights`). "subword" shows them as
            the decoder used them, with the end of sentence.
        head: name of a head, or "mean".
        shift: 0 draws row t at the piece that it predicts, 1 at the previous piece (see `piece_weights`).
        reference: a reference translation, written below the matrix.
        title: one line above the matrix.

    Returns:
        A figure without a window or pyplot state; `pixels` and `draw` convert it to an image.

    Raises:
        UserError: the model has no attention, or no such head, shift or level.
    """
    return _figure(translation, level, head, shift, reference, title)[0]


def draw(
    translation: Translation,
    path: Path,
    *,
    level: Level = "word",
    head: Head = "mean",
    shift: int = 0,
    reference: str | None = None,
    title: str = "Attention",
) -> list[str]:
    """Draw the attention of one translation into a PNG file, atomically; arguments as `figure`.

    Returns:
        Notes for the user: scripts that no installed font has, and the package to install.

    Raises:
        UserError: as `figure`, or the file cannot be written.
    """
    picture, notes = _figure(translation, level, head, shift, reference, title)
    save(picture, path)
    return notes


def _figure(
    translation: Translation, level: Level, head: Head, shift: int, reference: str | None, title: str
) -> tuple[NotebookFigure, list[str]]:
    weights, rows, columns, remarks = _grid(translation, level, head, shift)
    if not weights.size:  # an empty line
        weights = np.zeros((len(rows) or 1, len(columns) or 1), dtype=np.float32)
    rows, columns = rows or ["(nothing)"], columns or ["(nothing)"]
    if _right_to_left(translation.source):
        remarks.append("Source words are in reading order, from left to right.")

    # One list of fonts for all text of the picture.
    texts = [fonts.clean(text) for text in (title, reference or "", *rows, *columns)]
    families, missing = fonts.families_for("".join(fonts.shape(text) for text in texts))
    title, reference, *labels = (fonts.without(text, missing) for text in texts)
    labels = [fonts.shape(shorten(label, _LONGEST_LABEL)) for label in labels]
    note = fonts.missing_note(missing)

    captions = [_Caption(" ".join([WARNING, *remarks]), 8.0, GREY)]
    if reference:
        captions.insert(0, _Caption(f"Reference: {reference}", 9.0, "black"))
    if note:
        captions.append(_Caption(note, 8.0, "#a03000"))
    header = [_Caption(title, 12.5, "black"), _Caption(_what(translation, level, head, shift), 9.0, GREY)]

    picture = NotebookFigure(dpi=DPI, facecolor="white")
    cell, points = _scale(max(weights.shape))
    _draw_matrix(picture, weights, labels[: len(rows)], labels[len(rows) :], fonts.properties(families, points), cell)
    _lay_out(picture, header, captions, families)
    return picture, [note] if note else []


class _Caption(NamedTuple):
    text: str
    points: float
    colour: str

    @property
    def leading(self) -> float:
        """Inches from a line to the next."""
        return self.points * 1.45 / 72


def _scale(longest: int) -> tuple[float, float]:
    """Inches of a cell and points of a label, for a matrix of so many rows or columns."""
    if longest <= _ANNOTATED:
        return 0.42, 10.5
    return (0.31, 10.0) if longest <= 40 else (0.25, 8.5)


def _draw_matrix(
    picture: Figure, weights: Weights, rows: Sequence[str], columns: Sequence[str], font: FontProperties, cell: float
) -> None:
    """Draw the matrix on a page of its size, with labels and colour bar, and with values if it is small."""
    height, width = (cell * cells for cells in weights.shape)
    picture.set_size_inches(width, height)
    axes = picture.add_axes((0, 0, 1, 1))
    upright = max(map(ruler(font), columns)) <= 0.95 * cell
    image = matrix(axes, weights, rows, columns, font, slant=0 if upright else 45)
    axes.tick_params(which="major", pad=_PAD)
    axes.annotate(
        "source →\ntarget ↓",
        (0, 1),
        xytext=(-_PAD, _PAD),
        xycoords="axes fraction",
        textcoords="offset points",
        ha="right",
        va="bottom",
        color=GREY,
        linespacing=1.3,
        fontproperties=fonts.properties([fonts.BASE], 8.0),
    )
    if max(weights.shape) <= _ANNOTATED:
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


def _lay_out(
    picture: Figure, header: Sequence[_Caption], captions: Sequence[_Caption], families: Sequence[str]
) -> None:
    """Enlarge the page so that matrix, labels, header and captions fit."""
    (axes,) = picture.axes
    matrix_width, matrix_height = picture.get_size_inches()
    renderer = FigureCanvasAgg(Figure(dpi=picture.dpi)).get_renderer()  # type: ignore[no-untyped-call]
    box = picture.get_tightbbox(renderer)  # inches, from the lower left corner of the matrix
    width = max(box.width, 6.4 - 2 * _EDGE) + 2 * _EDGE
    header, captions = (
        [
            caption._replace(text=fonts.shape(line))
            for caption in texts
            for line in wrap(caption.text, width - 2 * _EDGE, ruler(fonts.properties(families, caption.points)))
        ]
        for texts in (header, captions)
    )
    below = _EDGE + sum(line.leading for line in captions) + 0.16
    height = below + box.height + 0.12 + sum(line.leading for line in header) + _EDGE
    picture.set_size_inches(width, height)
    left, bottom = (width - box.width) / 2 - box.x0, below - box.y0
    axes.set_position((left / width, bottom / height, matrix_width / width, matrix_height / height))
    for lines, top in ((header, height - _EDGE + 0.05), (captions, below - 0.1)):
        for line in lines:
            top -= line.leading
            font = fonts.properties(families, line.points)
            picture.text(
                _EDGE / width, top / height, line.text, color=line.colour, fontproperties=font, parse_math=False
            )
    picture.dpi = min(DPI, _MOST_PIXELS / max(width, height))
