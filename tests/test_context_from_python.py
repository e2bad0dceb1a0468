"""The Python interface of a run with context: documents, what-if and explanations with the sentences before."""

import random
import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import nmt
from nmt.alignment.word_weights import word_weights
from nmt.system.errors import UserError
from tests.colours import documents
from tests.small import ROOT

LINES, EXPECTED = documents(8, seed=5)


pytestmark = pytest.mark.long


@pytest.fixture(scope="module")
def translator(seeing: Path) -> nmt.RunTranslator:
    return nmt.load(seeing, "device=cpu", "threads=1")


def test_documents_are_followed(translator: nmt.RunTranslator) -> None:
    blank = translator.translate(LINES, documents="blank")
    assert [each.text for each in blank] == EXPECTED
    inside = [LINES[at : at + 2] for at in range(0, len(LINES), 3)]
    order = random.Random(3).sample(range(8), 8)
    shuffled = translator.translate_documents([inside[at] for at in order])
    for place, at in enumerate(order):
        assert [each.text for each in shuffled[place]] == EXPECTED[3 * at : 3 * at + 2]
        assert [[side.text for side in each.context] for each in shuffled[place]] == [[], LINES[3 * at : 3 * at + 1]]
    one = translator.translate(["rot eins", "", "es eins"], documents="one")
    assert [each.text for each in one] == ["red eins", "", "red again eins"]
    assert translator.translate_documents([[], ["", "rot eins"], []])[1][1].text == "red eins"
    (ranked,) = translator.nbest(["es eins"], contexts=[["blau eins"]])
    assert ranked[0].text == "blue again eins"
    (ranked,) = translator.nbest(["es eins"], contexts=[["blau eins", " "]])
    assert ranked[0].text == "blue again eins", "an empty line is no context"


def test_a_text_is_followed_line_by_line(translator: nmt.RunTranslator) -> None:
    text = translator.follow()
    assert [text.translate([line])[0].text for line in LINES] == EXPECTED
    other = translator.follow("one")
    texts = [each.text for part in (["rot eins", ""], ["es eins"]) for each in other.translate(part)]
    assert texts == ["red eins", "", "red again eins"]
    with pytest.raises(UserError, match="2 prefixes"):
        other.translate(["blau eins"], prefixes=["a", "b"])
    assert other.translate(["es eins"])[0].text == "red again eins", "what failed is no context"
    fresh = translator.follow().translate(["es eins"])[0]
    assert not fresh.context, "each text has its own context"


def test_sentences_that_are_translated_alone_are_said(translator: nmt.RunTranslator, trained: Path) -> None:
    with pytest.warns(UserWarning, match="sees the 1 sentences before each one, but these 2 are translated alone"):
        alone = translator.translate(["rot eins", "es eins"])
    assert not alone[1].context
    assert translator.translate(["rot eins", "es eins"], documents="none")[0].text == "red eins"
    translator.translate(["rot eins", ""])
    plain = nmt.load(trained, "device=cpu", "threads=1")
    assert plain.follow().translate(["zwei"])[0].text == "two"
    for call in (
        lambda: plain.translate(["zwei"], contexts=[["drei"]]),
        lambda: plain.inspect("zwei", ["drei"]),
        lambda: plain.explain("zwei", context=["drei"]),
        lambda: plain.what_if("zwei", changed_context=["drei"]),
    ):
        with pytest.raises(UserError, match="This run sees single sentences"):
            call()


def test_arguments_that_do_not_fit(translator: nmt.RunTranslator) -> None:
    with pytest.raises(UserError, match="documents=files: must be one of blank, one, none"):
        translator.translate(["es eins"], documents="files")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="documents=lines: must be one of"):
        translator.follow("lines")  # type: ignore[arg-type]
    with pytest.raises(UserError, match="contexts and documents=one cannot be combined"):
        translator.translate(["es eins"], contexts=[["rot eins"]], documents="one")
    with pytest.raises(UserError, match="There are 2 contexts for 1 sentences"):
        translator.documents(["es eins"], contexts=[[], []])
    with pytest.raises(TypeError, match=r"contexts\[0\]: a str, not a list"):
        translator.inspect("es eins", "rot eins")
    with pytest.raises(TypeError, match=r"documents\[0\]: a str, not a list"):
        translator.translate_documents(["es eins"])
    with pytest.raises(TypeError, match="lines: a str, not a list"):
        translator.follow().translate("es eins")


def test_what_if_something_else_had_been_said_before(translator: nmt.RunTranslator) -> None:
    changed = translator.what_if("es eins", context=["rot eins"], changed_context=["blau eins"])
    assert changed.texts == ("red again eins", "blue again eins")
    assert changed.words[0] == {"kind": "changed", "baseline": [0, 1], "variant": [0, 1]}
    (plain,) = translator.translate(["es eins"], contexts=[["rot eins"]])
    assert sum(step["baseline"] for step in changed.steps) == pytest.approx(plain.log_prob, abs=2e-4)
    (forced,) = translator._translator.force(["es eins"], [plain.text], [["blau eins"]])
    assert sum(step["variant"] for step in changed.steps) == pytest.approx(forced.log_prob, abs=2e-3)
    assert max(float(step["kl"]) for step in changed.steps) > 1
    same = translator.what_if("es eins", text="es zwei", context=["rot eins"])
    assert same.variant is not None
    assert [side["text"] for side in same.variant["context"]] == ["rot eins"], "only the text is another"


def test_a_step_is_pinned_to_the_sentence_before(translator: nmt.RunTranslator) -> None:
    changed = translator.what_if("es eins", context=["grün eins"], changed_context=["gelb eins"])
    step = max(range(len(changed.steps)), key=lambda at: float(changed.steps[at]["kl"]))
    answer = translator.what_if("es eins", context=["grün eins"], sweep=step)
    assert answer.sweep is not None
    own = len(answer.baseline["source"]["pieces"])
    before = answer.baseline["context"][0]["pieces"]
    assert [bar["text"] for bar in answer.sweep[own:]] == [piece["text"] for piece in before]
    assert [bar["sentence"] for bar in answer.sweep] == [None] * own + [0] * len(before)
    best = max(answer.sweep, key=lambda bar: float(bar["log_prob"]))
    assert best["sentence"] == 0, "the colour is read in the sentence before"
    there = translator.what_if("es eins", context=["grün eins"], pins={step: [own + 1]})
    assert answer.sweep[own + 1]["log_prob"] == pytest.approx(there.steps[step]["variant"], abs=2e-4)
    kept = translator.what_if("es eins", context=["rot eins"], changed_context=["blau eins"], pins={6: [0]})
    assert kept.variant is not None
    before, after = (side["hypotheses"][0]["pieces"] for side in (kept.baseline, kept.variant))
    assert [piece["text"] for piece in after[:6]] == [piece["text"] for piece in before[:6]], "those of the baseline"
    pinned = translator.what_if("es eins", context=["grün eins"], pins={0: [own + 1]})
    assert pinned.variant is not None
    weights = pinned.variant["hypotheses"][0]["weights"]
    cross, context = (np.reshape(weights[use]["data"], weights[use]["shape"]) for use in ("cross", "context"))
    assert context[0, 0, 1] == 1
    assert cross[0, 0].sum() == 0


def test_a_sweep_of_several_words_writes_as_many_pieces(translator: nmt.RunTranslator) -> None:
    pieces = translator.what_if("es eins", context=["rot eins"]).baseline["hypotheses"][0]["pieces"]
    rows = translator.what_if("es eins", context=["rot eins"], sweep=[*range(len(pieces) - 1)]).sweep
    assert rows is not None
    assert "red again eins" in [row["best"] for row in rows if row["same"]]
    assert all(row["best"] != "red again eins" for row in rows if not row["same"])


def test_an_explanation_says_what_the_sentence_before_is_worth(translator: nmt.RunTranslator) -> None:
    explanation = translator.explain("es eins", context=["grün eins"])
    assert explanation.words == {"source": ["es", "eins"], "target": ["green", "again", "eins"]}
    (translation,) = translator.translate(["es eins"], contexts=[["grün eins"]])
    np.testing.assert_allclose(np.array(explanation.measures["attention"]), word_weights(translation), atol=1e-4)
    assert explanation.context is not None
    assert explanation.context["sentences"] == ["grün eins"]
    erasure = np.array(explanation.context["erasure"])
    assert erasure.shape == (3, 1)
    assert erasure[0, 0] > 1 > abs(erasure[2, 0]), "the colour is lost without it, the number is not"
    whole, alone = (
        translator._translator.force(["es eins"], [translation.text], [context])[0].log_prob
        for context in (["grün eins"], [])
    )
    # The end of the sentence is no word.
    assert erasure.sum() == pytest.approx(whole - alone, abs=0.5)
    wrong = translator.explain("es eins", "blue again eins", context=["grün eins"])
    assert wrong.context is not None
    assert wrong.context["erasure"][0][0] < erasure[0, 0] - 1, "the sentence before is not of this colour"
    assert translator.explain("es eins").context is None


def test_the_examples_of_the_page_run(seeing: Path, here: Path) -> None:
    """All ways to give the sentences before are one way."""
    (here / "checkpoints").mkdir()
    (here / "checkpoints" / "book").symlink_to(seeing)
    page = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")
    examples = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    names: dict[str, Any] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for example in examples:
            exec(example, names)
    by_line, by_document = names["translations"], names["documents"]
    flat = [[each.text for each in document] for document in by_document]
    assert flat == [[each.text for each in by_line[:2]], [each.text for each in by_line[3:]]]
    assert [side.text for side in by_line[1].context] == ["12 feet"]
    assert names["translation"].text == by_line[1].text


def test_the_lines_of_a_text_of_libretranslate_are_a_document(seeing: Path) -> None:
    """Each text is one of its own."""
    serve = pytest.importorskip("tests.serve.conftest", reason="nmt.serve is not there")

    made = serve.pool_of(seeing)
    made.first.worker.start()
    with serve.client(made) as server:
        texts = ["blau eins\nes eins", "es eins", "gelb zwei\n\nes eins\n", "gelb zwei\r\nes zwei"]
        answer = server.post("/translate", json={"q": texts, "source": "de", "target": "en"}).json()["translatedText"]
        alone = server.post("/translate", json={"q": texts[1], "source": "de", "target": "en"}).json()["translatedText"]
    assert made.first.worker.stop(600)
    assert answer[0] == "blue eins\nblue again eins"
    assert answer[1] == alone
    assert answer[2] == f"yellow zwei\n\n{alone}\n"
    assert answer[3] == "yellow zwei\r\nyellow again zwei"
