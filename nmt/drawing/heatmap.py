"""Attention weights -> a picture: target as rows, source as columns, one head or the mean of all.

Stands after the translator, beside the metrics. Every picture says which head and which shift it shows, and
that a weight is not an explanation (Jain and Wallace 2019). Figures are made without pyplot, so that nothing
global is touched.
"""

import io
import unicodedata
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage
from matplotlib.text import Text

from nmt.alignment.weights import Head, Weights, piece_weights, word_weights
from nmt.alignment.words import source_units, target_units
from nmt.drawing import fonts
from nmt.drawing.layout import shorten, wrap
from nmt.errors import UserError
from nmt.files import replace_atomically
from nmt.translation.types import Translation

Level = Literal["word", "subword"]

WARNING = "A weight is where the decoder looked, not an explanation of why."

_DPI = 130
_MOST_PIXELS = 12_000  # a side; beyond it the picture is made coarser
_ANNOTATED = 12  # values are written into matrices of at most this many rows and columns
_LONGEST_LABEL = 26  # columns of text
_EDGE = 0.18  # inches around everything
_PAD = 0.07  # inches between a label and the matrix
_BAR_GAP = 0.22  # inches between the matrix and the key of its colours
_GREY = "#5a5a5a"
_LINE = "#b4b8be"
# matplotlib's Blues, whose lightness falls evenly, made to start at white.
WHITE_TO_BLUE = LinearSegmentedColormap.from_list(
    "white_to_blue", ["white", *(to_hex(colormaps["Blues"](part)) for part in (0.2, 0.4, 0.6, 0.8, 1.0))]
)


class NotebookFigure(Figure):
    """A figure that notebooks show although it is not pyplot's."""

    def _repr_png_(self) -> bytes:
        data = io.BytesIO()
        self.savefig(data, format="png", dpi=self.dpi)
        return data.getvalue()


class _Grid(NamedTuple):
    """What is drawn: weights [R, C] and what its rows and columns stand for."""

    weights: Weights
    rows: list[str]
    columns: list[str]
    remarks: list[str]


def _grid(translation: Translation, level: Level, head: Head, shift: int) -> _Grid:
    if level == "subword":
        weights = piece_weights(translation, head, shift)
        return _Grid(weights, translation.pieces[: len(weights)], translation.source_pieces, [])
    if level != "word":
        raise UserError(f"level={level}: pictures are drawn at level=word or level=subword.")
    weights = word_weights(translation, head, shift)
    source, target = source_units(translation), target_units(translation)
    remarks = ["A word's weight: summed over its source pieces, averaged over its target pieces."]
    sides = [name for name, side in (("source", source), ("target", target)) if not side.are_words]
    if sides:
        remarks.append(f"The {' and the '.join(sides)} has no spaces between words: subword pieces instead.")
    left_out = 1 - weights.sum(axis=1)
    if left_out.size and left_out.max() > 0.05:
        remarks.append("What a row lacks to 1 fell on the end of the sentence.")
    return _Grid(weights, target.labels, source.labels, remarks)


def _what(translation: Translation, level: Level, head: Head, shift: int) -> str:
    heads = 1 if translation.weights is None else len(translation.weights)
    if heads == 1:
        shown = "one head"
    else:
        shown = f"mean of {heads} heads" if head == "mean" else f"head {head} (of heads 0 to {heads - 1})"
    unit = "word" if level == "word" else "piece"
    where = f"the {unit} it predicts" if shift == 0 else f"the {unit} before, its input"
    return f"{level} level · {shown} · each row at {where} (shift {shift})"


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
    """Draws the attention of one translation.

    Colours run from white (0) to dark blue (1) in every picture, so that pictures can be compared; small
    matrices have the values written in (hundredths, from 0.05 on). The picture grows with the sentence.

    Args:
        translation: what the translator returned.
        level: "word" sums and averages the weights of subword pieces (see `word_weights`), "subword" shows
            them as the decoder used them, end of sentence included.
        head: number of a head, from 0, or "mean".
        shift: 0 draws row t at the piece predicted from it, 1 at the piece before (see `piece_weights`).
        reference: what a person translated; written below the matrix.
        title: one line above it.

    Returns:
        A figure that belongs to no window and to no pyplot state; `pixels` and `draw` make an image of it.

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
    """Draws the attention of one translation into a PNG file, whole or not at all; arguments as `figure`.

    Returns:
        What to tell the user: letters that no installed font can draw, with the package that would.

    Raises:
        UserError: as `figure`, or the file cannot be written.
    """
    picture, notes = _figure(translation, level, head, shift, reference, title)
    save(picture, path)
    return notes


def save(picture: Figure, path: Path) -> None:
    """Writes a figure as PNG, whole or not at all (UserError if it cannot)."""
    with replace_atomically(path) as temporary:
        picture.savefig(temporary, format="png", dpi=picture.dpi)


def pixels(picture: Figure) -> npt.NDArray[np.uint8]:
    """Returns the picture as [height, width, 3] bytes, as TensorBoard's `add_image` takes it (HWC)."""
    canvas = FigureCanvasAgg(picture)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[:, :, :3]  # type: ignore[no-untyped-call]


def _figure(
    translation: Translation, level: Level, head: Head, shift: int, reference: str | None, title: str
) -> tuple[NotebookFigure, list[str]]:
    weights, rows, columns, remarks = _grid(translation, level, head, shift)
    if not weights.size:  # an empty line stays empty
        weights = np.zeros((len(rows) or 1, len(columns) or 1), dtype=np.float32)
    rows, columns = rows or ["(nothing)"], columns or ["(nothing)"]
    if _right_to_left(translation.source):
        remarks.append("Source words run from the left in the order in which they are read.")

    # One choice of fonts for every text of the picture.
    texts = [fonts.clean(text) for text in (title, reference or "", *rows, *columns)]
    families, missing = fonts.families_for("".join(fonts.shape(text) for text in texts))
    title, reference, *labels = (fonts.without(text, missing) for text in texts)
    labels = [fonts.shape(shorten(label, _LONGEST_LABEL)) for label in labels]
    note = fonts.missing_note(missing)

    captions = [_Caption(" ".join([WARNING, *remarks]), 8.0, _GREY)]
    if reference:
        captions.insert(0, _Caption(f"Reference: {reference}", 9.0, "black"))
    if note:
        captions.append(_Caption(note, 8.0, "#a03000"))
    header = [_Caption(title, 12.5, "black"), _Caption(_what(translation, level, head, shift), 9.0, _GREY)]

    picture = NotebookFigure(dpi=_DPI, facecolor="white")
    axes = picture.add_axes((0, 0, 1, 1))
    cell, points = _scale(max(weights.shape))
    image = axes.imshow(weights, cmap=WHITE_TO_BLUE, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    _draw_cells(axes, weights)
    font = fonts.properties(families, points)
    margins = _draw_labels(picture, axes, labels[: len(rows)], labels[len(rows) :], font, cell)

    # The page from the outside in, in inches.
    matrix = _Size(cell * weights.shape[1], cell * weights.shape[0])
    bar = _Size(0.13, max(min(matrix.height, 1.5), 0.42))
    right = max(_BAR_GAP + bar.width + 0.62, margins.right)
    needed = _EDGE + margins.left + matrix.width + right + _EDGE
    width = max(needed, 6.4)
    left = _EDGE + margins.left + (width - needed) / 2
    header, captions = _wrapped(header, width - 2 * _EDGE), _wrapped(captions, width - 2 * _EDGE)
    below = _EDGE + _height(captions) + 0.16
    bottom = below + max(matrix.height, bar.height)
    height = bottom + margins.top + 0.12 + _height(header) + _EDGE

    picture.set_size_inches(width, height)
    _place(picture, axes, left, bottom - matrix.height, matrix)
    _write(picture, header, height - _EDGE + 0.05, families)
    _write(picture, captions, below - 0.1, families)
    bar_axes = picture.add_axes((0, 0, 1, 1))
    _draw_bar(picture, image, bar_axes)
    _place(picture, bar_axes, left + matrix.width + _BAR_GAP, bottom - bar.height, bar)
    picture.dpi = min(_DPI, _MOST_PIXELS / max(width, height))
    return picture, [note] if note else []


class _Size(NamedTuple):
    """Inches."""

    width: float
    height: float


class _Margins(NamedTuple):
    """Inches that the labels need around the matrix."""

    left: float
    top: float
    right: float


class _Caption(NamedTuple):
    text: str
    points: float
    colour: str


def _scale(longest: int) -> tuple[float, float]:
    """Inches of a cell and points of a label, for a matrix of so many rows or columns."""
    if longest <= _ANNOTATED:
        return 0.42, 10.5
    return (0.31, 10.0) if longest <= 40 else (0.25, 8.5)


def _draw_labels(
    picture: Figure,
    axes: Axes,
    rows: Sequence[str],
    columns: Sequence[str],
    font: FontProperties,
    cell: float,
) -> _Margins:
    """Writes the target to the left and the source above, upright where it fits and slanting otherwise."""
    renderer = FigureCanvasAgg(picture).get_renderer()  # type: ignore[no-untyped-call]

    def write(x: float, y: float, text: str, font: FontProperties = font) -> Text:
        # parse_math: a dollar sign in a sentence is a dollar sign.
        return axes.text(x, y, text, fontproperties=font, parse_math=False, clip_on=False)

    def size(texts: Sequence[Text]) -> _Size:
        boxes = [text.get_window_extent(renderer) for text in texts]
        return _Size(max(box.width for box in boxes) / _DPI, max(box.height for box in boxes) / _DPI)

    # Row r and column c are centred at (c, r), a cell is 1 by 1, and labels stand _PAD inches outside.
    outside = -0.5 - _PAD / cell
    row_texts = [write(outside, row, label) for row, label in enumerate(rows)]
    column_texts = [write(column, outside, label) for column, label in enumerate(columns)]
    for text in row_texts:
        text.set(ha="right", va="center_baseline")
    upright = size(column_texts).width <= 0.95 * cell
    for text in column_texts:
        if upright:
            text.set(ha="center", va="bottom")
        else:
            text.set(ha="left", va="baseline", rotation=45, rotation_mode="anchor")
    corner = write(outside, outside, "source →\ntarget ↓", fonts.properties([fonts.BASE], 8.0))
    corner.set(ha="right", va="bottom", color=_GREY, linespacing=1.3)
    left, top = size([*row_texts, corner]).width, size([*column_texts, corner]).height
    right = 0.0 if upright else size(column_texts).width - cell / 2
    return _Margins(left + _PAD, top + _PAD, right)


def _draw_cells(axes: Axes, weights: Weights) -> None:
    """Thin lines between the cells, and in small matrices the values. The labels stand for ticks."""
    axes.set_xticks(np.arange(weights.shape[1] + 1) - 0.5)
    axes.set_yticks(np.arange(weights.shape[0] + 1) - 0.5)
    axes.grid(visible=True, color="#dcdfe4", linewidth=0.5, linestyle="-", alpha=1.0)
    axes.tick_params(length=0, labelleft=False, labelbottom=False)
    for spine in axes.spines.values():
        spine.set(color=_LINE, linewidth=0.6)
    if max(weights.shape) <= _ANNOTATED:
        font = fonts.properties([fonts.BASE], 7.5)
        for (row, column), value in np.ndenumerate(weights):
            if value >= 0.05:
                colour = "white" if value > 0.55 else "#20364f"
                shown = f"{value:.2f}".removeprefix("0")
                axes.text(column, row, shown, ha="center", va="center", color=colour, fontproperties=font)


def _draw_bar(picture: Figure, image: AxesImage, axes: Axes) -> None:
    """The key of the colours."""
    font = fonts.properties([fonts.BASE], 8.0)
    bar = picture.colorbar(image, cax=axes, ticks=[0, 0.5, 1])
    bar.outline.set(color=_LINE, linewidth=0.6)
    axes.tick_params(length=2, color=_GREY)
    axes.set_yticklabels(["0", "0.5", "1"], color=_GREY, fontproperties=font)
    axes.set_ylabel("weight", color=_GREY, fontproperties=font)


def _place(picture: Figure, axes: Axes, left: float, bottom: float, size: _Size) -> None:
    """Puts axes at a place on the page, in inches from its lower left corner."""
    width, height = picture.get_size_inches()
    axes.set_position((left / width, bottom / height, size.width / width, size.height / height))


def _wrapped(captions: Sequence[_Caption], width: float) -> list[_Caption]:
    """The captions line by line, for a page of so many inches (a letter is 0.56 of its height wide)."""
    return [
        caption._replace(text=fonts.shape(line))
        for caption in captions
        for line in wrap(caption.text, int(width * 72 / caption.points / 0.56))
    ]


def _leading(caption: _Caption) -> float:
    return caption.points * 1.45 / 72


def _height(lines: Sequence[_Caption]) -> float:
    return sum(_leading(line) for line in lines)


def _write(picture: Figure, lines: Sequence[_Caption], top: float, families: Sequence[str]) -> None:
    """Writes lines below one another, from `top` inches above the lower edge of the page."""
    width, height = picture.get_size_inches()
    for line in lines:
        top -= _leading(line)
        picture.text(
            _EDGE / width,
            top / height,
            line.text,
            color=line.colour,
            va="baseline",
            fontproperties=fonts.properties(families, line.points),
            parse_math=False,
        )
