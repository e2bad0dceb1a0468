"""`nmt.align` of a run with context: each pair is forced with the sentences before it in its document."""

import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt
from nmt.alignment.word_weights import word_weights
from nmt.runs.run import Run
from tests.colours import documents, words
from tests.small import Capture, call, copied, write_lines

pytestmark = pytest.mark.long

Row = dict[str, Any]


def matrices(run: Path, sides: tuple[list[str], list[str]], folder: Path, *more: str) -> list[Row]:
    """The rows of `matrix=` for sentences and their translations."""
    files = [f"{key}={write_lines(folder / key, side)}" for key, side in zip(("source", "target"), sides, strict=True)]
    line = [f"run={run}", *files, f"matrix={folder / 'matrix'}", "shift=0", "device=cpu", "threads=1", *more]
    assert call("align", *line) == 0
    return [json.loads(line) for line in (folder / "matrix").read_text(encoding="utf-8").splitlines()]


def test_pairs_are_forced_with_the_sentence_before(seeing: Path, tmp_path: Path) -> None:
    """The weights are those of the Python interface, and the model looks at the colour of the sentence before."""
    found = matrices(seeing, documents(6, seed=9), tmp_path)
    translator = nmt.load(seeing, "device=cpu", "search=greedy")
    blind = matrices(seeing, documents(6, seed=9), tmp_path, "documents=none")
    left = []
    for row in range(0, 18, 3):
        first, second = documents(6, seed=9)[0][row : row + 2]
        (translation,) = translator.translate([second], contexts=[[first]])
        assert translation.text.split() == found[row + 1]["target"]
        np.testing.assert_allclose(found[row + 1]["weights"], word_weights(translation), atol=1e-4)
        np.testing.assert_allclose(found[row]["weights"], blind[row]["weights"], atol=1e-4)
        left.append(sum(blind[row + 1]["weights"][0]) - sum(found[row + 1]["weights"][0]))
        assert found[row + 2]["weights"] == []
    assert np.mean(left) > 0.2, "the colour comes from the sentence before"


def test_documents_are_aligned_alone_as_together(seeing: Path, tmp_path: Path) -> None:
    sides = documents(8, seed=5)
    whole = matrices(seeing, sides, tmp_path)
    order = random.Random(2).sample(range(8), 8)
    shuffled = tuple([line for at in order for line in side[3 * at : 3 * at + 3]] for side in sides)
    other = matrices(seeing, (shuffled[0], shuffled[1]), tmp_path, "batch_sentences=3")
    for place, at in enumerate(order):
        for row in (0, 1):
            expected = np.array(whole[3 * at + row]["weights"])
            np.testing.assert_allclose(other[3 * place + row]["weights"], expected, atol=1e-4)
    one = matrices(seeing, (["rot eins", "", "es eins"], ["red eins", "", "red again eins"]), tmp_path, "documents=one")
    near = matrices(seeing, (["rot eins", "es eins"], ["red eins", "red again eins"]), tmp_path)
    np.testing.assert_allclose(one[2]["weights"], near[1]["weights"], atol=1e-4)


def test_saliency_sees_the_sentence_before(seeing: Path, tmp_path: Path) -> None:
    sides = documents(12, seed=9)  # the rows of a single pair can be 0 or 1 with and without context
    with_context = matrices(seeing, sides, tmp_path, "method=saliency")
    alone = matrices(seeing, sides, tmp_path, "method=saliency", "documents=none")
    changes = []
    for row in range(0, 36, 3):
        np.testing.assert_allclose(with_context[row]["weights"], alone[row]["weights"], atol=1e-4)
        changes.append(np.abs(np.subtract(with_context[row + 1]["weights"], alone[row + 1]["weights"])).max())
    assert max(changes) > 0.01


def test_the_runs_own_documents_are_followed(seeing: Path, coloured: Path, tmp_path: Path, capfd: Capture) -> None:
    line = [f"run={seeing}", "device=cpu", "threads=1", "shift=0"]
    files = [f"source={coloured / 'test.de'}", f"target={coloured / 'test.en'}"]
    for name, more in (("own", []), ("files", files), ("none", [*files, "context_sentences=0"])):
        assert call("align", *line, *more, f"matrix={tmp_path / name}") == 0
    own, given, blind = ((tmp_path / name).read_text(encoding="utf-8") for name in ("own", "files", "none"))
    assert own == given != blind
    assert capfd.readouterr().err == ""
    assert call("align", *line, *files, "context_sentences=2") == 1
    assert "context_sentences=2: this run was trained with context.sentences=1." in capfd.readouterr().err


def test_one_document_is_said_once(seeing: Path, tmp_path: Path, capfd: Capture) -> None:
    sides = (["rot eins", "es eins"], ["red eins", "red again eins"])
    note = "No empty line among 2 lines: all are taken for one document."
    matrices(seeing, sides, tmp_path)
    assert capfd.readouterr().err.count(note) == 1
    matrices(seeing, sides, tmp_path, "documents=one")
    matrices(seeing, sides, tmp_path, "context_sentences=0")
    assert note not in capfd.readouterr().err


def test_the_backward_run_sees_the_sentence_before_on_its_side(seeing: Path, coloured: Path, tmp_path: Path) -> None:
    more = ("data.documents=blank", "context.sentences=1", "trainer.steps=2", "tokenizer=word")
    turned = ("data.source=en", "data.target=de", "tokenizer.vocabulary_size=60", "name=back")
    assert call("train", *words(coloured, tmp_path, *more, *turned)) == 0
    sides = (["rot eins", "es eins"], ["red eins", "red again eins"])
    found = matrices(seeing, sides, tmp_path, f"reverse={tmp_path / 'back'}", "documents=one")
    alone = matrices(tmp_path / "back", (sides[1], sides[0]), tmp_path, "documents=one")
    assert [row["reverse"] for row in found] == [row["weights"] for row in alone]
    assert (np.sum(found[1]["reverse"], 1) < 1).all()


def test_measurements_with_other_context_have_other_names(seeing: Path, tmp_path: Path) -> None:
    run = copied(seeing, tmp_path)
    sides = (["rot eins", "es eins"], ["red eins", "red again eins"])
    files = [
        f"{key}={write_lines(tmp_path / key, side)}" for key, side in zip(("source", "target"), sides, strict=True)
    ]
    line = [f"run={run}", *files, f"gold={write_lines(tmp_path / 'gold', ['0-0 1-1', '0-1 1-2'])}", "device=cpu"]
    for more in ([], ["documents=none"], ["context_sentences=0"], []):
        assert call("align", *line, *more) == 0
    names = [json.loads(path.read_text(encoding="utf-8"))["gold"] for path in Run(run).alignments.iterdir()]
    assert sorted(names) == ["gold", "gold, context_sentences=0", "gold, documents=none"]


def test_the_report_shows_what_was_seen(seeing: Path, tmp_path: Path) -> None:
    """Of lines with a picture, and of the others."""
    run = copied(seeing, tmp_path)
    line = [f"run={run}", "pictures=2", "device=cpu", "threads=1", f"output={tmp_path / 'scores'}"]
    assert call("evaluate", *line) == 0
    report = (tmp_path / "scores" / "test" / "report.html").read_text(encoding="utf-8")
    data = json.loads(
        report.partition('<script type="application/json"')[2].partition(">")[2].partition("</script>")[0]
    )
    shown = {each["line"]: each["translations"][0]["translation"] for each in data["sentences"]}
    for number in (2, 5):
        hypothesis, (before,) = shown[number]["hypotheses"][0], shown[number]["context"]
        assert before["text"].split()[1] == shown[number]["source"]["text"].split()[1]
        assert hypothesis["text"].split()[1] == "again"
        shape = hypothesis["weights"]["context"]["shape"]
        assert shape[1:] == [len(hypothesis["pieces"]), len(before["pieces"])]
    assert shown[1]["context"] is None
