"""The pictures of a comparison."""

import struct

import numpy as np
import pytest
from matplotlib.figure import Figure

from nmt.compare import plots
from nmt.compare.variants import Comparison
from nmt.drawing.style import png
from nmt.evaluation.references import AttentionMap
from tests.catalogue import thinned
from tests.compare.runs import study

pytestmark = pytest.mark.long


@pytest.mark.parametrize("pieces", thinned([14, 5, 2], 3))
def test_titles_of_many_panels_neither_overlap_nor_leave_the_picture(pieces: int) -> None:
    source = ["▁Straßen"] * (pieces - 2) + ["a", "."]
    look = AttentionMap(
        line=1, source=source, target=["▁street"] * pieces, weights=[[1000] + [0] * (pieces - 1)] * pieces
    )
    panels = [(name, look) for name, _ in study() if name != "no attention"]
    panels.append(("a-label-without-any-blank-in-it", look))
    picture = plots.side_by_side(panels)
    png(picture)  # lays it out
    page = picture.bbox
    shown = [axes for axes in picture.axes if axes.get_visible()]
    assert len(shown) == len(panels)
    assert len({round(axes.get_position().y0, 3) for axes in shown}) == -(-len(panels) // 4), "rows of four"
    boxes = [axes.title.get_window_extent() for axes in shown]
    for at, box in enumerate(boxes):
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])


def test_pictures_of_any_text_are_drawn(found: Comparison) -> None:
    look = AttentionMap(
        line=1, source=["数据", "שלום", "$a"], target=["a" * 40, "_{x}"], weights=[[1000, 0, 0], [0, 500, 500]]
    )
    panels = [(f"variant ${number}", look) for number in range(5)]
    data = png(plots.side_by_side(panels))
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > height, "four panels in a row"
    lone = found._replace(
        variants=[own._replace(runs=[run._replace(history=[]) for run in own.runs]) for own in found.variants]
    )
    assert plots.curves(lone) is None
    some = found._replace(variants=[found.variants[0], *lone.variants[1:]])
    assert plots.curves(some) is not None


def curves(found: Comparison, *, by_time: bool = True) -> Figure:
    picture = plots.curves(found, by_time=by_time)
    assert picture is not None
    return picture


def test_curves_are_drawn_against_time_and_updates(found: Comparison) -> None:
    picture = curves(found)
    assert [axes.get_xlabel() for axes in picture.axes] == 2 * ["minutes of training", "updates"]
    history = found.variants[0].runs[0].history
    for axes, x, y in zip(picture.axes, 2 * ("minutes", "step"), ("bleu", "bleu") + 2 * ("perplexity",),
                          strict=True):  # fmt: skip
        points: list[list[float]] = np.array(axes.lines[0].get_xydata()).tolist()
        assert [place for place, _ in points] == [entry[x] for entry in history]
        last = [run.history[-1][f"valid_{y}"] for run in found.variants[0].runs]
        assert min(last) <= points[-1][1] <= max(last)
    without_times = curves(found, by_time=False)
    assert [axes.get_xlabel() for axes in without_times.axes] == 2 * ["updates"]
    assert [axes.get_yscale() for axes in without_times.axes] == ["linear", "log"]


def test_seeds_that_share_no_stretch_have_no_curve_and_one_validation_is_seen(found: Comparison) -> None:
    variant = found.variants[0]
    later = [
        run._replace(history=[{**entry, "minutes": entry["minutes"] + 1000 * at} for entry in run.history])
        for at, run in enumerate(variant.runs)
    ]
    picture = curves(found._replace(variants=[variant._replace(runs=later)]))
    by_time, by_update = (picture.axes[at].lines[0] for at in (0, 1))
    assert (np.size(by_time.get_xdata()), np.size(by_update.get_xdata()) > 0) == (0, True)
    first = [run._replace(history=run.history[:1]) for run in variant.runs]
    alone = curves(found._replace(variants=[variant._replace(runs=first), *found.variants[1:]])).axes[0].lines[0]
    assert alone.get_marker() not in ("", "None")
    assert alone.get_markevery() == (0, 1)


def test_sixteen_curves_can_be_told_apart(found: Comparison) -> None:
    many = [found.variants[0]._replace(label=f"variant {number}") for number in range(16)]
    lines = curves(found._replace(variants=many)).axes[0].lines
    assert len({(line.get_color(), line.get_linestyle()) for line in lines}) == 16
    assert len({(line.get_color(), line.get_marker()) for line in lines}) == 16, "dashes are hard to see when short"


def test_variants_of_any_name_are_in_legends_ticks_and_titles(found: Comparison) -> None:
    names = ["_a", "$b$", "x" * 300, "数据 {%}"]
    named = [own._replace(label=names[at]) for at, own in enumerate(found.variants[: len(names)])]
    renamed = found._replace(variants=[*named, *found.variants[len(names) :]])
    course, scores = curves(renamed), plots.scores(renamed, renamed.splits[0])
    legend = [text.get_text() for text in course.legends[0].get_texts()]
    ticks = [label.get_text() for label in scores.axes[0].get_yticklabels()]
    for written in (legend, ticks):
        assert {"_a", "$b$"} <= set(written)
        assert len(written) == len(renamed.variants)
    for picture in (course, scores):
        png(picture)  # without a warning of a missing letter or of a layout without room
