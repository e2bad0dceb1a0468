"""The pictures of a comparison."""

import pytest

from nmt.compare import plots
from nmt.compare.variants import Comparison
from nmt.drawing.style import png

pytestmark = pytest.mark.long


def test_variants_of_any_name_are_in_ticks(found: Comparison) -> None:
    names = ["_a", "$b$", "x" * 300, "数据 {%}"]
    named = [own._replace(label=names[at]) for at, own in enumerate(found.variants[: len(names)])]
    renamed = found._replace(variants=[*named, *found.variants[len(names) :]])
    picture = plots.scores(renamed, renamed.splits[0])
    ticks = [label.get_text() for label in picture.axes[0].get_yticklabels()]
    assert {"_a", "$b$"} <= set(ticks)
    assert len(ticks) == len(renamed.variants)
    png(picture)  # without a warning of a missing letter or of a layout without room
