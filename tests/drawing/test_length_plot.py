"""The figure of BLEU by source length."""

import numpy as np

from nmt.drawing.fonts import drawable
from nmt.drawing.layout import shorten
from nmt.drawing.length_plot import by_length
from nmt.drawing.style import LONGEST_NAME, pixels

BINS = [(1, 5, 31), (6, 10, 7)]


def test_the_figure_says_how_many_and_by_which_metric() -> None:
    picture = by_length(BINS, {"a": [20.0, 40.25]}, "words", "50 % of $x$ 中", "BLEU")
    pixels(picture)
    (axes,) = picture.axes
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1-5\nn=31", "6-10\nn=7"]
    assert axes.get_xlabel() == "source words, n sentences; hollow: fewer than 30 sentences"
    assert axes.get_ylabel() == "BLEU"
    assert [point.get_markerfacecolor() == "white" for point in axes.lines[1:]] == [False, True]


NAMES = [
    "_a",
    "__",
    "$x$",
    "50 %",
    "{x}",
    "<b>",
    "a|b",
    "\\alpha",
    "\x1b[1m",
    "שלום",
    "数据",
    "🙂",
    "x" * 300,
    "${a}",
    " ",
]


def test_any_name_is_in_the_legend() -> None:
    """matplotlib leaves out labels that begin with an underscore, and sets what is between dollars as a formula."""
    picture = by_length(BINS, {name: [20.0, 40.0] for name in NAMES}, "words", "$_both_$ {x} %", "BLEU")
    pixels(picture)
    (legend,) = picture.legends
    shown, _ = drawable(shorten(name, LONGEST_NAME) for name in NAMES)
    assert [text.get_text() for text in legend.get_texts()] == shown
    assert shown[:8] == NAMES[:8]
    assert shown[8] == "·[1m"
    assert not any(text.get_parse_math() for text in legend.get_texts())
    (axes,) = picture.axes
    assert axes.get_title(loc="left") == "$_both_$ {x} %"
    assert axes.get_window_extent().width > 300, "a long name leaves room"


def test_the_legend_of_many_models_fits() -> None:
    picture = by_length(BINS, {f"model {number}": [20.0, 40.0] for number in range(40)}, "words", "both", "BLEU")
    pixels(picture)
    (legend,) = picture.legends
    box = legend.get_window_extent()
    assert picture.bbox.y0 <= box.y0 < box.y1 <= picture.bbox.y1
    (axes,) = picture.axes
    assert (
        len({(line.get_color(), line.get_linestyle()) for line in axes.lines if line.get_linestyle() != "None"}) == 40
    )
    assert len({(line.get_color(), line.get_marker()) for line in axes.lines}) == 40


def test_a_bin_without_a_value_has_no_point() -> None:
    picture = by_length(BINS, {"a": [20.0, None], "b": [10.0, None]}, "words", "thin", "BLEU")
    pixels(picture)
    (axes,) = picture.axes
    assert np.isnan(np.asarray(axes.lines[0].get_ydata(), dtype=float)).tolist() == [False, True]
    assert axes.get_ylim()[1] < 30
