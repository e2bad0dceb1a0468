"""Common style of all pictures: colours, axes, legends, and conversion to images.

Figures are made without pyplot, so that no global state changes. Their background is always white.
"""

import functools
import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps, rc_context
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from PIL import Image

from nmt.drawing import fonts
from nmt.drawing.layout import shorten
from nmt.system.errors import UserError
from nmt.system.files import replace_atomically

DPI = 130
GREY, LINE, GRID = "#5a5a5a", "#b4b8be", "#dcdfe4"
_PALETTE = [to_hex(colormaps["tab10"](index)) for index in range(10)]
_STYLES = ("-", "--", ":", "-.")
_MARKERS = "os^vDPX<>*hp"
#: Height of a legend row in inches.
LEGEND_ROW = 0.19
#: Maximum width of a name in columns of text; a longer name would leave no room for the picture.
LONGEST_NAME = 40


def figure(width: float, height: float) -> Figure:
    """An empty figure of this size in inches, with automatic layout."""
    layout = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)
    return Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)


def ruler(font: FontProperties) -> Callable[[str], float]:
    """A function that estimates the width of a text in inches, as the sum of the widths of its letters."""
    renderer = FigureCanvasAgg(Figure(dpi=DPI)).get_renderer()  # type: ignore[no-untyped-call]

    @functools.cache
    def width_of(letter: str) -> float:
        return float(renderer.get_text_width_height_descent(letter, font, False)[0]) / DPI

    return lambda text: sum(map(width_of, text))


def style(axes: Axes, title: str = "", x: str = "", y: str = "") -> None:
    """Label the axes and style them with a grid and without a frame; the title may be in any script."""
    (text,), families = fonts.drawable([title])
    axes.set_title(text, fontproperties=fonts.properties(families, 10.5), loc="left", parse_math=False)
    axes.set_xlabel(x, fontproperties=fonts.properties([fonts.BASE], 9))
    axes.set_ylabel(y, fontproperties=fonts.properties([fonts.BASE], 9))
    axes.grid(visible=True, color=GRID, linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    for label in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        label.set_fontproperties(fonts.properties([fonts.BASE], 8.5))


def line(index: int) -> dict[str, Any]:
    """Colour, dashes and marker of line `index`, for `Axes.plot`; no two of 60 lines look alike."""
    dashes, marker = _STYLES[index // 10 % len(_STYLES)], _MARKERS[index % len(_MARKERS)]
    return {"color": _PALETTE[index % 10], "linestyle": dashes, "marker": marker}


def legend(picture: Figure, lines: Mapping[str, Line2D]) -> None:
    """Add a legend with the names of lines at the right of the figure; names may be any text."""
    names, families = fonts.drawable(shorten(name, LONGEST_NAME) for name in lines)
    font = fonts.properties(families, 8.5)
    # matplotlib omits labels that begin with an underscore, so the names are set afterwards.
    beside = picture.legend([*lines.values()], ["-"] * len(lines), loc="outside right center", frameon=False, prop=font)
    for text, name in zip(beside.get_texts(), names, strict=True):
        text.set_text(name)
        text.set_parse_math(False)


def save(picture: Figure, path: Path) -> None:
    """Write a figure atomically as PNG, SVG or PDF, by the path's suffix (UserError if it cannot be written)."""
    kind = path.suffix[1:].lower() or "png"
    if kind not in ("png", "svg", "pdf"):
        raise UserError(f"{path}: pictures are .png, .svg or .pdf.")
    with replace_atomically(path) as temporary:
        _save_as(picture, temporary, kind)


def pdf(picture: Figure) -> bytes:
    """The picture as PDF."""
    buffer = io.BytesIO()
    _save_as(picture, buffer, "pdf")
    return buffer.getvalue()


def _save_as(picture: Figure, place: Path | IO[bytes], kind: str) -> None:
    """Write a picture reproducibly: equal pictures have equal bytes. Printers reject PDF files with Type 3 fonts."""
    undated = {"svg": {"Date": None}, "pdf": {"CreationDate": None}}.get(kind)
    with rc_context({"svg.hashsalt": "nmt", "pdf.fonttype": 42}):
        picture.savefig(place, format=kind, dpi=picture.dpi, metadata=undated)


def pixels(picture: Figure) -> npt.NDArray[np.uint8]:
    """The picture as bytes [height, width, 3], the HWC format of TensorBoard's `add_image`."""
    canvas = FigureCanvasAgg(picture)
    canvas.draw()  # type: ignore[no-untyped-call]
    return np.array(canvas.buffer_rgba(), dtype=np.uint8)[:, :, :3]  # type: ignore[no-untyped-call]


def png(picture: Figure) -> bytes:
    """The picture as PNG bytes in 256 colours, which is a third of the size in full colour."""
    buffer = io.BytesIO()
    Image.fromarray(pixels(picture)).quantize(256, dither=Image.Dither.NONE).save(buffer, "PNG", optimize=True)
    return buffer.getvalue()
