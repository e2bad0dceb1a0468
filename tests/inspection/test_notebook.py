"""What a notebook shows of a sentence: the viewer in a frame, and the measures of an explanation."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from nmt.api import RunTranslator
from tests.inspection.small import SENTENCE, translator

pytestmark = pytest.mark.long

ATTENTIVE = ("decoder=luong", "attention/score=general")
FAMILIES = [
    ATTENTIVE,
    ("encoder=transformer", "decoder=transformer"),
    ("encoder=conv", "decoder=conv"),
    ("decoder=none",),
]


def opened(overrides: tuple[str, ...]) -> RunTranslator:
    return RunTranslator(translator(overrides))


def documents_in(markup: str) -> list[Any]:
    """The documents that a page of the viewer carries."""
    [found] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', markup, re.DOTALL)
    [sentence] = json.loads(found)["sentences"]
    return [each["translation"] for each in sentence["translations"]]


def inside(markup: str) -> str:
    [source] = re.findall(r'srcdoc="([^"]*)"', markup)
    return html.unescape(source)


def test_a_pinned_step_looks_where_it_was_told() -> None:
    changed = opened(ATTENTIVE).what_if(SENTENCE, pins={0: [1]}, sweep=0)
    assert changed.variant is not None
    weights = changed.variant["hypotheses"][0]["weights"]["cross"]
    row = np.reshape(weights["data"], weights["shape"])[0, 0]
    assert row.tolist() == pytest.approx([float(slot == 1) for slot in range(len(row))])
    assert changed.sweep is not None
    assert len(changed.sweep) == len(row)
    assert changed.texts == tuple(each["hypotheses"][0]["text"] for each in documents_in(inside(changed._repr_html_())))
    assert opened(ATTENTIVE).what_if(SENTENCE, sweep=0).texts[1] is None


@pytest.mark.parametrize("overrides", FAMILIES, ids="_".join)
def test_a_notebook_shows_the_viewer_and_nothing_of_the_text_runs(overrides: tuple[str, ...], tmp_path: Path) -> None:
    sentence = 'eins </script><img src=x onerror="alert(1)"> zwei'
    own = opened(overrides)
    inspection = own.inspect(sentence)
    for value in (inspection, own.translate([sentence])[0]):
        markup = value._repr_html_()
        assert markup is not None
        outside = re.sub(r'srcdoc="[^"]*"', "", markup)
        assert "<img" not in outside
        assert 'sandbox="allow-scripts' in outside
        (document,) = documents_in(inside(markup))
        assert document["source"]["text"] == sentence
        assert "<img" not in re.sub(r"(?s)<script.*?</script>", "", inside(markup))
    inspection.save(tmp_path / "page.html")
    saved = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert documents_in(saved) == documents_in(inside(inspection._repr_html_()))
    assert "default-src 'none'" in saved
    assert own.translate([""])[0]._repr_html_() is None


@pytest.mark.parametrize("overrides", [ATTENTIVE, ("decoder=none",)], ids="_".join)
def test_an_explanation_is_a_table_for_each_measure(overrides: tuple[str, ...]) -> None:
    explanation = opened(overrides).explain("eins <b> drei")
    measures = {name: matrix for name, matrix in explanation.measures.items() if matrix is not None}
    tables = re.findall(r"<p>(\w+)</p>(<table.*?</table>)", explanation._repr_html_(), re.DOTALL)
    assert [name for name, _ in tables] == list(measures)
    for (_, table), matrix in zip(tables, measures.values(), strict=True):
        cells = [float(cell) for cell in re.findall(r"<td>(.*?)</td>", table)]
        assert cells == pytest.approx([value for row in matrix for value in row], abs=0.0051)
        assert "&lt;b&gt;" in table
    assert len(explanation.correlation) == len(measures) * (len(measures) - 1) / 2
    assert explanation.caution in html.unescape(explanation._repr_html_())
