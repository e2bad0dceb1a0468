"""A matrix of weights with target rows and source columns, from white to dark blue, with exact zeros in grey."""

from collections.abc import Sequence
from typing import Literal

import numpy as np
import numpy.typing as npt
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import LinearSegmentedColormap, to_hex
from matplotlib.font_manager import FontProperties
from matplotlib.image import AxesImage

from nmt.drawing import fonts
from nmt.drawing.style import GRID, LINE

#: Colour of weights of exactly 0, which come from windows and sparse normalisers.
ZERO = "#e4e6ea"
# matplotlib's Blues, whose lightness decreases evenly, but starting at white.
WHITE_TO_BLUE = LinearSegmentedColormap.from_list(
    "white_to_blue", ["white", *(to_hex(colormaps["Blues"](part)) for part in (0.2, 0.4, 0.6, 0.8, 1.0))]
).with_extremes(bad=ZERO)


def matrix(
    axes: Axes,
    weights: npt.NDArray[np.floating],
    rows: Sequence[str],
    columns: Sequence[str],
    font: FontProperties,
    slant: float,
) -> AxesImage:
    """Draw weights [R, C] from 0 to 1 as square cells; weights of exactly 0 have the colour `ZERO`.

    Row labels are at the left and column labels above, both prepared by `fonts.shape`; () for no labels. `slant` is the
    angle of the column labels in degrees; 0 and 90 centre them over their columns.
    """
    image = axes.imshow(np.ma.masked_equal(weights, 0), cmap=WHITE_TO_BLUE, vmin=0, vmax=1, interpolation="nearest")
    axes.xaxis.tick_top()
    upright = {"ha": "center"} if not slant else {"ha": "left", "rotation": slant, "rotation_mode": "anchor"}
    if slant == 90:
        upright["va"] = "center"
    # parse_math=False: a dollar sign in a sentence does not begin a formula.
    axes.set_xticks(range(len(columns)), columns, fontproperties=font, parse_math=False, **upright)
    axes.set_yticks(range(len(rows)), rows, fontproperties=font, parse_math=False)
    down, across = (np.arange(count + 1) - 0.5 for count in weights.shape)
    edges = [[(x, down[0]), (x, down[-1])] for x in across] + [[(across[0], y), (across[-1], y)] for y in down]
    # One line collection, because a grid on minor ticks would take most of the drawing time.
    axes.add_collection(LineCollection(edges, colors=GRID, linewidths=0.5), autolim=False)
    axes.grid(visible=False)
    axes.tick_params(length=0)
    for spine in axes.spines.values():
        spine.set(color=LINE, linewidth=0.6)
    return image


def note(
    axes: Axes, text: str, offset: tuple[float, float], side: Literal["left", "right"], colour: str, points: float
) -> None:
    """Write text beside the upper left corner of a matrix, `offset` points away."""
    font, at, unit = fonts.properties([fonts.BASE], points), "axes fraction", "offset points"
    look = axes.annotate(text, (0, 1), offset, at, unit, ha=side, va="bottom", color=colour, fontproperties=font)
    look.set_linespacing(1.3)
