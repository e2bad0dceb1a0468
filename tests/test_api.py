"""`import nmt` as a program or a notebook uses it, and the page that documents it."""

import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from matplotlib.figure import Figure

import nmt
from nmt.system.errors import UserError
from tests.small import ROOT, pairs, translation_of

PAGE = ROOT / "docs" / "python.md"
PNG = b"\x89PNG"


@pytest.fixture(scope="module")
def translator(trained: Path) -> nmt.RunTranslator:
    return nmt.load(trained, "device=cpu", "threads=1")


def test_a_list_of_sentences_becomes_a_list_of_translations(translator: nmt.RunTranslator) -> None:
    sentences = [sentence for sentence, _ in pairs(30)]
    translations = translator.translate([*sentences, ""])
    assert [translation.text for translation in translations] == [*map(translation_of, sentences), ""]
    for translation in translations[:-1]:
        assert translation.log_prob < 0
        assert translation.weights is not None
        assert translation.weights.shape == (1, len(translation.pieces), len(translation.source_pieces))
        np.testing.assert_allclose(translation.weights.sum(-1), 1, atol=1e-3)
        assert translation.source in sentences
    assert translations[-1].weights is None


def test_a_heatmap_is_a_figure_that_a_notebook_shows(translator: nmt.RunTranslator, tmp_path: Path) -> None:
    [translation, nothing] = translator.translate(["eins zwei drei", ""])
    figure = translation.heatmap()
    assert isinstance(figure, Figure)
    axes = figure.axes[0]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["eins", "zwei", "drei"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["one", "two", "three"]
    assert figure._repr_png_().startswith(PNG)
    picture = translation._repr_png_()
    assert picture is not None
    assert picture.startswith(PNG)
    assert nothing._repr_png_() is None
    figure.savefig(tmp_path / "a.png")
    assert (tmp_path / "a.png").read_bytes().startswith(PNG)
    with pytest.raises(UserError, match=r"head=1 does not exist\. Give mean or 0"):
        translation.heatmap(head=1)
    assert translation.heatmap(shift=1, level="subword").axes
    links = translation.links()
    assert [target for _, target in links] == [0, 1, 2]


def test_settings_are_those_of_the_command(trained: Path, unattentive: Path) -> None:
    with pytest.warns(UserWarning, match="line 2 has .* pieces, more than max_source_length=2"):
        nmt.load(trained, "max_source_length=2", "device=cpu").translate(["", "eins zwei drei"])
    translator = nmt.load(str(trained), "search.beam_size=4", "search.nbest=3", "device=cpu")
    [ranked] = translator.nbest(["eins zwei"])
    assert len({translation.text for translation in ranked}) == len(ranked) == 3
    assert ranked[0].score >= ranked[1].score >= ranked[2].score
    assert translator.translate(["eins zwei"])[0].text == ranked[0].text
    [translation] = nmt.load(unattentive, "search=greedy").translate(["eins"])
    assert translation.weights is None
    assert translation._repr_png_() is None
    [translation] = nmt.load([trained, trained], "device=cpu").translate(["rot und blau"])
    assert translation.text == "red and blue"
    [pinned] = nmt.load(trained, "slots=[0,0,0,0,0,0,0,0,0,0]", "device=cpu").translate(["rot und blau"])
    assert {source for source, _ in pinned.links()} == {0}
    for settings, message in (
        (["serch=greedy"], "Did you mean 'search'"),
        (["search.beam_size=0"], "search.beam_size"),
        (["output=x"], "output=x: only python -m nmt.translate has this setting"),
    ):
        with pytest.raises(UserError, match=re.escape(message)):
            nmt.load(trained, *settings)
    with pytest.raises(UserError, match=r"There is no run .*nmubers\. Did you mean 'numbers'"):
        nmt.load(trained.parent / "nmubers")
    with pytest.raises(
        TypeError, match=r"sentences: a str, not a list\. Give a list of sentences, such as \[sentence\]"
    ):
        translator.translate("eins zwei")


def test_the_words_before_a_restricted_step_stay(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As by the command, unless `keep_words=false`; in translations, in documents, and without the tags."""
    sentences = ["eins zwei drei", *(sentence for sentence, _ in pairs(30))]
    free = nmt.load(trained, "device=cpu").translate(sentences)
    kept, loose = (
        nmt.load(trained, "slots=[null,null,0]", f"keep_words={keeps}", "device=cpu") for keeps in ("true", "false")
    )
    translations = kept.translate(sentences)
    assert [each.pieces[:2] for each in translations] == [each.pieces[:2] for each in free]
    texts = [each.text for each in translations]
    assert [each["hypotheses"][0]["text"] for each in kept.documents(sentences)] == texts
    tagged = ["<i></i>eins <b>zwei</b> drei", *(f"<b>{sentence}</b>" for sentence in sentences[1:])]
    assert [each.text for each in kept.translate(tagged, tags="html")] == texts
    monkeypatch.setattr("nmt.api.keep_words", lambda *_: [])
    assert len(loose.translate(sentences)) == len(loose.documents(sentences)) == len(sentences), "nothing is kept"
    with pytest.raises(UserError, match="keep_words=3: "):
        nmt.load(trained, "keep_words=3")


def test_tags_come_back_in_a_field_of_their_own(translator: nmt.RunTranslator) -> None:
    [translation, plain] = translator.translate(["eins <b>zwei</b> drei", "rot"], tags="html")
    assert (translation.source, translation.text) == ("eins zwei drei", "one two three")
    assert translation.tagged == "one <b>two</b> three"
    assert translation.heatmap().axes
    assert plain.text == plain.tagged == "red"
    with pytest.raises(UserError, match="tags=html and prefixes cannot be combined"):
        translator.translate(["eins"], ["o"], tags="html")
    with pytest.raises(UserError, match='tags=xml: must be "none" or "html"'):
        translator.translate(["eins"], tags="xml")  # type: ignore[arg-type]


@pytest.mark.long
def test_the_page_runs_as_it_is_written(here: Path, trained: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "checkpoints").mkdir()
    (here / "checkpoints" / "demo").symlink_to(trained)
    blocks = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    assert len(blocks) > 5
    names: dict[str, object] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for block in blocks:
            exec(block, names)
    assert (here / "attention.png").read_bytes().startswith(PNG)
    assert "There is no run checkpoints/dmeo. Did you mean 'demo'?" in capsys.readouterr().out


def test_documents_are_the_translations(trained: Path) -> None:
    translator = nmt.load(trained, "search.nbest=2")
    (document,) = translator.documents(["zwei drei"], include=["alternatives", "beam"])
    ((best, second),) = translator.nbest(["zwei drei"])
    assert [each["text"] for each in document["hypotheses"]] == [best.text, second.text]
    assert document["search"]["nbest"] == 2
    assert document["hypotheses"][0]["alignment"] is None
    with pytest.raises(UserError, match="include=beams does not exist"):
        translator.documents(["zwei"], include=["beams"])


def test_every_method_names_what_is_not_one_line_of_text(trained: Path) -> None:
    translator = nmt.load(trained, "device=cpu")
    calls: dict[str, Callable[[Any], object]] = {
        "sentences[1]": lambda odd: translator.translate(["eins", odd]),
        "prefixes[0]": lambda odd: translator.translate(["eins"], prefixes=[odd]),
        "contexts[0][0]": lambda odd: translator.nbest(["eins"], contexts=[[odd]]),
        "documents[1][0]": lambda odd: translator.translate_documents([["eins"], [odd]]),
        "lines[0]": lambda odd: translator.follow().translate([odd]),
        "sentences[0]": lambda odd: translator.documents([odd]),
        "sentence": translator.inspect,
        "translation": lambda odd: translator.explain("eins", odd),
        "text": lambda odd: translator.what_if("eins", text=odd),
        "prefix": lambda odd: translator.what_if("eins", prefix=odd),
    }
    for place, call_with in calls.items():
        with pytest.raises(TypeError, match=rf"^{re.escape(place)}: a float, not text\.$"):
            call_with(1.5)
        with pytest.raises(UserError, match=rf"^{re.escape(place)}: has a line break\."):
            call_with("eins\nzwei")
    for name, given in (("memory", {"eins": 1.5}), ("glossary", {"eins": ["one", 1.5]}), ("glossary", {"eins": 1.5})):
        with pytest.raises(TypeError, match=rf"^{name}\['eins'\]: a float, not text\.$"):
            translator.translate(["eins"], **{name: given})  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="memory: a list, neither a file nor a mapping"):
        translator.translate(["eins"], memory=[("eins", "one")])  # type: ignore[arg-type]
    with pytest.raises(UserError, match=r'head=1\.1: give the name of a head as text: "1\.1"'):
        translator.explain("eins", head=1.1)  # type: ignore[arg-type]
    assert [each.text for each in translator.translate(iter(["eins", "\u200b\u2800"]))] == ["one", ""]
