"""The pictures of a comparison."""

import struct

import pytest

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


def test_pictures_of_any_text_are_drawn() -> None:
    look = AttentionMap(
        line=1, source=["数据", "שלום", "$a"], target=["a" * 40, "_{x}"], weights=[[1000, 0, 0], [0, 500, 500]]
    )
    panels = [(f"variant ${number}", look) for number in range(5)]
    data = png(plots.side_by_side(panels))
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > height, "four panels in a row"


def test_variants_of_any_name_are_in_ticks(found: Comparison) -> None:
    names = ["_a", "$b$", "x" * 300, "数据 {%}"]
    named = [own._replace(label=names[at]) for at, own in enumerate(found.variants[: len(names)])]
    renamed = found._replace(variants=[*named, *found.variants[len(names) :]])
    picture = plots.scores(renamed, renamed.splits[0])
    ticks = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert {"_a", "$b$"} <= set(ticks)
    assert len(ticks) == len(renamed.variants)
    png(picture)  # without a warning of a missing letter or of a layout without room
