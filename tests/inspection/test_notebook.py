"""What a notebook shows of a sentence: the viewer in a frame, and figures whose numbers are those of the document."""

import html
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.patches import Rectangle

from nmt.api import RunTranslator
from nmt.errors import UserError
from nmt.notebook import WhatIf
from tests.inspection.small import SENTENCE, translator

pytestmark = pytest.mark.long

FAMILIES = [
    ("decoder=luong", "attention/score=general"),
    ("decoder=luong", "attention/score=general", "attention/window=local_p"),
    ("decoder=bahdanau", "attention.heads=2", "attention.project=true"),
    ("encoder=transformer", "decoder=transformer"),
    ("encoder=conv", "decoder=conv"),
]


def opened(overrides: tuple[str, ...], **settings: int) -> RunTranslator:
    return RunTranslator(translator(overrides, **settings))


def _heights(axes: Axes) -> list[float]:
    return [bar.get_height() for bar in axes.patches if isinstance(bar, Rectangle)]


def documents_in(markup: str) -> list[Any]:
    """The documents that a page of the viewer carries."""
    [found] = re.findall(r'<script type="application/json"[^>]*>(.*?)</script>', markup, re.DOTALL)
    [sentence] = json.loads(found)["sentences"]
    return [each["translation"] for each in sentence["translations"]]


@pytest.mark.parametrize("overrides", FAMILIES, ids="_".join)
def test_the_bars_of_a_step_are_its_stages(overrides: tuple[str, ...]) -> None:
    inspection = opened(overrides).inspect(SENTENCE)
    stages = inspection.document["hypotheses"][0]["stages"]
    for layer, own in enumerate(stages):
        heads, steps, slots = own["shape"]
        for head in range(heads):
            figure = inspection.stages(steps - 1, layer, head)
            bars = {axes.get_title(loc="left"): _heights(axes) for axes in figure.axes}
            weights = np.reshape(own["weights"], own["shape"])[head, -1]
            assert bars["weight"] == pytest.approx(weights.tolist())
            softmax = np.reshape(own["softmax"], own["shape"])[head, -1]
            assert bars["softmax over the slots in sight"] == pytest.approx(softmax.tolist())
            assert f"energy, {own['score']}" in bars
            assert ("factor of the window" in bars) == (own["factor"] is not None)
            assert [label.get_text() for label in figure.axes[-1].get_xticklabels()][-1] == "</s>"
            assert len(figure.axes[-1].get_xticklabels()) == slots
    for words in ({"step": steps}, {"step": 0, "layer": len(stages)}, {"step": 0, "head": heads}, {"step": -1}):
        with pytest.raises(UserError, match=f"{list(words)[-1]}=-?[0-9]+ does not exist"):
            inspection.stages(**words)


def test_the_probabilities_are_those_of_the_document() -> None:
    inspection = opened(FAMILIES[0]).inspect(SENTENCE)
    (axes,) = inspection.probabilities().axes
    pieces = inspection.document["hypotheses"][0]["pieces"]
    assert _heights(axes) == pytest.approx([np.exp(p["log_prob"]) for p in pieces])
    rivals = [next(o for o in piece["alternatives"] if o["text"] != piece["text"]) for piece in pieces]
    marks = [np.asarray(line.get_ydata()).item() for line in axes.lines]
    assert marks == pytest.approx([np.exp(rival["log_prob"]) for rival in rivals])


def test_the_tree_has_every_node_and_darkens_what_was_returned() -> None:
    document = opened(FAMILIES[0], beam=3, nbest=2).inspect(SENTENCE)
    (axes,) = document.beam().axes
    nodes = document.document["beam"]["nodes"]
    assert len(axes.texts) == len(nodes)
    assert len(axes.lines) == len(nodes) - 1
    by_id = {node["id"]: node for node in nodes}
    kept = set()
    for node in nodes:
        while node["hypothesis"] is not None and node is not None:
            kept.add(node["id"])
            if node["parent"] is None:
                break
            node = {**by_id[node["parent"]], "hypothesis": 0}
    assert sum(text.get_color() == "black" for text in axes.texts) == len(kept) > 2


def test_measures_are_shares_of_each_row() -> None:
    explanation = opened(FAMILIES[0]).explain(SENTENCE)
    figure = explanation.figure()
    assert [axes.get_xlabel() for axes in figure.axes] == ["attention", "|gradient times input|", "erasure"]
    for axes, (name, values) in zip(figure.axes, explanation.measures.items(), strict=True):
        shown = np.asarray(axes.images[0].get_array())
        assert values is not None
        sizes = np.abs(values)
        assert shown == pytest.approx(sizes / sizes.sum(1, keepdims=True)), name
    assert set(explanation.correlation) == {
        ("attention", "gradient"),
        ("attention", "erasure"),
        ("gradient", "erasure"),
    }
    assert explanation._repr_png_().startswith(b"\x89PNG")


def test_a_pinned_step_looks_where_it_was_told() -> None:
    changed = opened(FAMILIES[0]).what_if(SENTENCE, pins={0: [1]}, sweep=0)
    assert changed.variant is not None
    weights = changed.variant["hypotheses"][0]["weights"]["cross"]
    row = np.reshape(weights["data"], weights["shape"])[0, 0]
    assert row.tolist() == pytest.approx([float(slot == 1) for slot in range(len(row))])
    assert changed.sweep is not None
    assert len(changed.sweep) == len(row)
    assert changed.texts == tuple(
        each["hypotheses"][0]["text"] for each in documents_in(_inside(changed._repr_html_()))
    )
    assert opened(FAMILIES[0]).what_if(SENTENCE, sweep=0).texts[1] is None


@pytest.mark.parametrize("overrides", FAMILIES, ids="_".join)
def test_the_figure_of_a_change_has_the_words_and_the_numbers_of_each_step(overrides: tuple[str, ...]) -> None:
    changed = opened(overrides).what_if(SENTENCE, text="rot vier")
    assert changed.variant is not None
    words, change, divergence = changed.figure().axes
    rows = [round(text.get_position()[1]) for text in words.texts]
    for row, document in enumerate((changed.baseline, changed.variant)):
        assert rows.count(row) == len(document["hypotheses"][0]["words"])
    red = sum(text.get_color() != "black" for text in words.texts)
    ranges = [part[side] for part in changed.words if part["kind"] != "same" for side in ("baseline", "variant")]
    assert red == sum(end - begin for begin, end in ranges)
    assert _heights(change) == pytest.approx([step["variant"] - step["baseline"] for step in changed.steps])
    assert _heights(divergence) == pytest.approx([step["kl"] for step in changed.steps])
    assert len(change.get_xticklabels()) == len(changed.baseline["hypotheses"][0]["pieces"])
    assert changed.figure()._repr_png_().startswith(b"\x89PNG")


def test_changes_that_a_figure_must_be_able_to_draw() -> None:
    """Worked by hand: a word inserted, a word from right to left, a log-probability that is minus infinity."""

    def side(text: str, direction: str = "ltr") -> dict[str, Any]:
        pieces = [{"text": word} for word in [*text.split(), "</s>"]]
        return {
            "text": text,
            "direction": direction,
            "words": [{"text": word} for word in text.split()],
            "pieces": pieces,
        }

    words = [{"kind": "same", "baseline": [0, 1], "variant": [0, 1]},
             {"kind": "inserted", "baseline": [1, 1], "variant": [1, 3]}]  # fmt: skip
    steps = [{"step": 0, "baseline": -1.0, "variant": -3.5, "kl": 0.25},
             {"step": 1, "baseline": -2.0, "variant": None, "kl": None}]  # fmt: skip
    for direction in ("ltr", "rtl"):
        documents = [{"hypotheses": [side("a", direction)]}, {"hypotheses": [side("a b c", direction)]}]
        result = WhatIf({"baseline": documents[0], "variant": documents[1], "sweep": None,
                         "differences": {"words": words, "steps": steps}})  # fmt: skip
        first, change, divergence = result.figure().axes
        places = {(text.get_text(), *map(round, text.get_position())): text.get_color() for text in first.texts}
        assert [place for place, colour in places.items() if colour == "black"] == [("a", 0, 0), ("a", 0, 1)]
        assert {place for place, colour in places.items() if colour != "black"} == {("b", 1, 1), ("c", 2, 1)}
        assert (first.get_xlim()[0] < first.get_xlim()[1]) == (direction == "ltr")
        assert _heights(change) == [-2.5, 0.0]
        assert np.flatnonzero(~np.isnan(np.asarray(change.lines[0].get_ydata(), dtype=float))).tolist() == [1]
        assert _heights(divergence) == [0.25, 0.0]


def test_the_figure_of_a_sweep_has_a_bar_for_each_source_piece() -> None:
    swept = opened(FAMILIES[0]).what_if(SENTENCE, sweep=1)
    assert swept.sweep is not None
    (axes,) = swept.sweep_figure().axes
    assert _heights(axes) == pytest.approx([np.exp(bar["log_prob"]) for bar in swept.sweep])
    assert np.asarray(axes.lines[0].get_ydata()) == pytest.approx([np.exp(bar["best_log_prob"]) for bar in swept.sweep])
    named = [label.get_text() for label in axes.get_xticklabels()]
    assert named == [f"{bar['text']}\n{bar['best']}" for bar in swept.sweep]
    with pytest.raises(UserError, match="Nothing was changed"):
        swept.figure()
    with pytest.raises(UserError, match="There is no sweep"):
        opened(FAMILIES[0]).what_if(SENTENCE, prefix="two").sweep_figure()


def _inside(markup: str) -> str:
    [source] = re.findall(r'srcdoc="([^"]*)"', markup)
    return html.unescape(source)


@pytest.mark.parametrize("overrides", [*FAMILIES, ("decoder=none",)], ids="_".join)
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
        (document,) = documents_in(_inside(markup))
        assert document["source"]["text"] == sentence
        assert "<img" not in re.sub(r"(?s)<script.*?</script>", "", _inside(markup))
    inspection.save(tmp_path / "page.html")
    saved = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert documents_in(saved) == documents_in(_inside(inspection._repr_html_()))
    assert "default-src 'none'" in saved


def test_what_has_nothing_to_draw_says_so() -> None:
    without = opened(("decoder=none",)).inspect(SENTENCE)
    with pytest.raises(UserError, match="no attention"):
        without.stages(0)
    empty = opened(FAMILIES[0]).inspect("")
    with pytest.raises(UserError, match="no probabilities"):
        empty.probabilities()
    with pytest.raises(UserError, match="no beam"):
        empty.beam()
    assert opened(FAMILIES[0]).translate([""])[0]._repr_html_() is None
