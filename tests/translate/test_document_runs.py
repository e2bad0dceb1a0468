"""Documents through training, translating and evaluating: a word that only the sentence before explains."""

import functools
import json
import re
from pathlib import Path
from unittest.mock import ANY

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nmt
from nmt.data.document_lines import Follower
from nmt.runs.run import Run
from tests.colours import COLOURS, documents, words
from tests.small import Capture, call, write_lines

pytestmark = pytest.mark.long


def translated(seeing: Path, lines: list[str], folder: Path, *more: str) -> list[str]:
    source = write_lines(folder / "input.txt", lines)
    output = folder / "output.txt"
    line = [f"run={seeing}", f"input={source}", f"output={output}", "device=cpu", "threads=1"]
    assert call("translate", *line, *more) == 0
    return output.read_text(encoding="utf-8").split("\n")[:-1]


def test_the_sentence_before_is_seen(seeing: Path, tmp_path: Path) -> None:
    source, target = documents(30, seed=9)
    assert translated(seeing, source, tmp_path) == target
    blind = translated(seeing, source, tmp_path, "context_sentences=0")
    assert sum(a == b for a, b in zip(blind[1::3], target[1::3], strict=True)) < 20
    assert blind[::3] == target[::3]
    assert Run(seeing).facts()["text"]


def test_a_resumed_translation_sees_the_sentence_before(
    seeing: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Interrupted between the two sentences of a document."""
    monkeypatch.setattr("nmt.translate.work.CHUNK", 4)
    source, _ = documents(4, seed=9)
    whole = translated(seeing, source, tmp_path)
    lines = (tmp_path / "input.txt").read_bytes().split(b"\n")
    (tmp_path / "broken.txt").write_bytes(b"\n".join([*lines[:6], b"\xff", *lines[7:]]))
    line = [f"input={tmp_path / 'broken.txt'}", f"output={tmp_path / 'output.txt'}", "device=cpu", "threads=1"]
    assert call("translate", f"run={seeing}", *line) == 1
    assert len((tmp_path / "output.txt.part").read_text(encoding="utf-8").splitlines()) == 4
    assert translated(seeing, source, tmp_path, "resume=true") == whole


@pytest.fixture(scope="module")
def in_batches(seeing: Path) -> dict[int, nmt.RunTranslator]:
    """The run with batches of several sizes."""
    return {size: nmt.load(seeing, "device=cpu", f"batch_sentences={size}") for size in (1, 3, 64)}


@functools.cache
def alone(translator: nmt.RunTranslator, sentence: str, *context: str) -> nmt.TranslatedSentence:
    (translation,) = translator.translate([sentence], contexts=[context])
    return translation


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(["", " ", "rot eins", "es zwei", "blau drei", "es eins"]), max_size=14), st.data())
def test_each_layout_is_translated_as_its_sentences_one_by_one(
    in_batches: dict[int, nmt.RunTranslator], lines: list[str], data: st.DataObject
) -> None:
    """Whatever the batches, and the parts in which the lines arrive."""
    translator = in_batches[data.draw(st.sampled_from([3, 64]))]
    follower, translations, rest = Follower(1, "blank"), list[nmt.TranslatedSentence](), lines
    while rest:
        count = data.draw(st.integers(1, len(rest)))
        translations += translator.translate(rest[:count], contexts=follower.take(rest[:count]))
        rest = rest[count:]
    assert len(translations) == len(lines)
    for row, (line, translation) in enumerate(zip(lines, translations, strict=True)):
        before = lines[row - 1 : row] if row and line.strip() and lines[row - 1].strip() else []
        expected = alone(in_batches[1], line, *before)
        assert [sentence.text for sentence in translation.context] == before
        assert translation.text == expected.text
        assert translation.log_prob == pytest.approx(expected.log_prob, abs=1e-4)


def test_a_file_without_documents_is_said_once(seeing: Path, tmp_path: Path, capsys: Capture) -> None:
    translated(seeing, ["rot eins", "es eins", "es zwei"], tmp_path)
    assert capsys.readouterr().err.count("No empty line among 3 lines: all are taken for one document.") == 1
    for lines, more in (
        (["rot eins"], ()),
        (["rot eins", "es eins"], ("documents=none",)),
        (["rot eins", "", "es"], ()),
    ):
        translated(seeing, lines, tmp_path, *more)
        assert "No empty line" not in capsys.readouterr().err


def test_pictures_across_sentences(seeing: Path, tmp_path: Path, capsys: Capture) -> None:
    pictures = tmp_path / "pictures"
    translated(seeing, ["rot eins", "es eins"], tmp_path, f"heatmaps={pictures}", "view=context")
    assert [path.name for path in pictures.iterdir()] == ["00002.png"], "the first line has no context"
    translator = nmt.load(seeing, "device=cpu")
    (translation,) = translator.translate(["es eins"], contexts=[["rot eins"]])
    view = translator.look(translation).context
    assert view is not None
    assert view.weights is not None
    assert (view.source, view.text) == ("rot eins es eins", "red again eins")
    assert view.weights.shape[2] == len(view.source_pieces)
    np.testing.assert_allclose(view.weights.sum(2), 1, rtol=1e-5)
    assert translator.look(translator.translate(["rot eins"])[0]).context is None
    more = ("context_sentences=0", "heatmaps=x", "view=context")
    source = write_lines(tmp_path / "input.txt", ["rot eins"])
    assert call("translate", f"run={seeing}", f"input={source}", "device=cpu", *more) == 1
    assert "view=context shows the sentences before the source, but this run sees none" in capsys.readouterr().err


def test_scores_follow_documents(seeing: Path, coloured: Path, tmp_path: Path, capsys: Capture) -> None:
    plain = ["device=cpu", "threads=1", "pictures=0"]
    assert call("evaluate", f"run={seeing}", f"output={tmp_path / 'own'}", *plain) == 0
    hypotheses = (tmp_path / "own" / "test" / "hypotheses.txt").read_text(encoding="utf-8")
    assert hypotheses == (coloured / "test.en").read_text(encoding="utf-8")
    files = (f"source={coloured / 'test.de'}", f"reference={coloured / 'test.en'}")
    assert call("evaluate", f"run={seeing}", f"output={tmp_path / 'given'}", *files, *plain) == 0
    (given,) = (tmp_path / "given").glob("*/hypotheses.txt")
    assert given.read_text(encoding="utf-8") == hypotheses
    note = "No empty line among 2 lines: all are taken for one document."
    assert note not in capsys.readouterr().err
    for language, lines in (("de", ["rot eins", "es eins"]), ("en", ["red eins", "red again eins"])):
        write_lines(tmp_path / f"one.{language}", lines)
    files = (f"source={tmp_path / 'one.de'}", f"reference={tmp_path / 'one.en'}")
    assert call("evaluate", f"run={seeing}", f"output={tmp_path / 'one'}", *files, *plain) == 0
    assert capsys.readouterr().err.count(note) == 1
    (one,) = (tmp_path / "one").glob("*/hypotheses.txt")
    assert one.read_text(encoding="utf-8") == "red eins\nred again eins\n"


def test_more_context_than_trained(seeing: Path, tmp_path: Path, capsys: Capture) -> None:
    source = write_lines(tmp_path / "input.txt", ["rot eins"])
    assert call("translate", f"run={seeing}", f"input={source}", "context_sentences=2", "device=cpu") == 1
    message = "context_sentences=2: this run was trained with context.sentences=1."
    assert message in capsys.readouterr().err
    files = (f"source={source}", f"reference={source}")
    write_lines(tmp_path / "contrasts", ["1\t1\tblue eins"])
    for verb, more in (
        ("evaluate", ("pictures=0", f"output={tmp_path / 'x'}")),
        ("contrast", (f"contrasts={tmp_path / 'contrasts'}",)),
    ):
        assert call(verb, f"run={seeing}", *files, *more, "context_sentences=2", "device=cpu") == 1
        assert message in capsys.readouterr().err
    translator = nmt.load(seeing, "device=cpu")
    one, two = translator.translate(["es eins"] * 2, contexts=[["rot eins"], ["blau zwei", "rot eins"]])
    assert (one.text, one.context) == (two.text, two.context)
    assert one.log_prob == pytest.approx(two.log_prob, abs=1e-4)


def test_context_without_documents(coloured: Path, tmp_path: Path, capsys: Capture) -> None:
    assert call("train", *words(coloured, tmp_path, "name=blind", "context.sentences=1", "trainer.steps=1")) == 1
    assert "context.sentences=1 needs documents, but train of text-de-en is" in capsys.readouterr().err
    assert not (tmp_path / "blind").exists()


class TestContrast:
    """Of two translations of one sentence, the document tells which is right."""

    def files(self, folder: Path) -> list[str]:
        source, target = documents(24, seed=5)
        items = []
        for row in range(1, len(source), 3):
            colour = target[row].split()[0]
            wrong = [target[row].replace(colour, other) for other in COLOURS.values() if other != colour]
            items.append("\t".join([str(row + 1), "1", *wrong]))
        lines = {"source": source, "reference": target, "contrasts": items}
        return [f"{key}={write_lines(folder / key, value)}" for key, value in lines.items()]

    def test_a_model_with_context_is_right(self, seeing: Path, tmp_path: Path, capsys: Capture) -> None:
        line = [f"run={seeing}", *self.files(tmp_path), "device=cpu", "threads=1", f"output={tmp_path / 'out.json'}"]
        assert call("contrast", *line) == 0
        assert re.search(r"^1 +24 +100\.0 % +25\.0 %$", capsys.readouterr().out, re.MULTILINE)
        figures = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert figures["by_distance"] == {"1": {"sentences": 24, "accuracy": 1.0, "chance": 0.25}}
        assert call("contrast", *line, "context_sentences=0") == 0
        blind = json.loads((tmp_path / "out.json").read_text(encoding="utf-8"))
        assert blind["by_distance"]["1"]["accuracy"] < 0.6
        # Fields of a spreadsheet that are empty are no translations.
        wide = [f"{row}\t\t" for row in (tmp_path / "contrasts").read_text(encoding="utf-8").splitlines()]
        write_lines(tmp_path / "contrasts", wide)
        assert call("contrast", *line, "documents=none") == 0
        assert json.loads((tmp_path / "out.json").read_text(encoding="utf-8")) == {**blind, "text": ANY}

    def test_mistakes(self, seeing: Path, tmp_path: Path, capsys: Capture) -> None:
        assert call("contrast", f"run={seeing}", "device=cpu") == 1
        assert "has no contrasts for test. Give files (source= reference= contrasts=)" in capsys.readouterr().err
        files = self.files(tmp_path)
        for text, message in (
            ("2\tblue\n", "line 1: must have a line number, a distance and wrong translations"),
            ("3\t1\tblue\n", "line 1: line 3 of source-"),
            ("999\t1\tblue\n", "line 1: line 999 of source-"),
            ("\n", "is empty. Give wrong translations."),
            (f"2\t1\tblue\t{documents(24, seed=5)[1][1]}\n", "line 1: a wrong translation is the reference"),
            ("1\t1\t \t\n", "line 1: must have a line number"),
            (f"{'1' * 5000}\t1\tblue\n", "line 1: must have a line number"),
        ):
            (tmp_path / "contrasts").write_text(text, encoding="utf-8")
            assert call("contrast", f"run={seeing}", *files, "device=cpu") == 1
            assert message in capsys.readouterr().err
