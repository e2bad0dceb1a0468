"""The REST interface with the sentences before a text, for models that see them."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from starlette.testclient import TestClient

import nmt
from tests.serve.conftest import pool_of, post, served_by
from tests.small import SMALL, call


@pytest.fixture(scope="module")
def with_context(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[TestClient, Path]]:
    """A client of untrained models that see two sentences before the source: as slots (0), or merged into it (1)."""
    folder, runs = tmp_path_factory.mktemp("context"), list[Path]()
    for context in ("concat", "hierarchical"):
        line = [*SMALL, "data=documents", f"context={context}", "context.sentences=2", f"name={context}"]
        line += [f"checkpoints={folder}", f"cache={folder / 'cache'}", "trainer.steps=1", "data.train_documents=26"]
        assert call("train", *line, "data.valid_documents=2", "data.test_documents=2") == 0
        runs.append(folder / context)
    with served_by(pool_of(*runs)) as opened:
        yield opened, runs[0]


def test_sentences_before_a_text_are_seen(with_context: tuple[TestClient, Path]) -> None:
    server, run = with_context
    lines = ["12 feet", "9′", "", "3m"]
    expected = nmt.load(run, "device=cpu").translate(lines, contexts=[["1 metre"], ["1 metre", "12 feet"], [], []])
    blank = post(server, "/v1/translate", text=lines, context=["1 metre"], documents="blank")["translations"]
    for document, translation in zip(blank, expected, strict=True):
        assert document["hypotheses"][0]["log_prob"] == pytest.approx(translation.log_prob, abs=1e-4)
        before = [sentence.text for sentence in translation.context]
        assert [side["text"] for side in document["context"] or []] == before
    one = post(server, "/v1/translate", text=lines, documents="one")["translations"]
    assert [side["text"] for side in one[3]["context"]] == ["12 feet", "9′"]
    alone = post(server, "/v1/translate", text=lines)["translations"]
    assert [document["context"] for document in alone] == [None] * 4
    assert alone[1]["hypotheses"][0]["log_prob"] != blank[1]["hypotheses"][0]["log_prob"]
    (scored,) = post(server, "/v1/score", text="9′", context=["1 metre", "12 feet"], target="9 Fuß")["translations"]
    translator = nmt.load(run, "device=cpu")._translator
    (forced,) = translator.force(["9′"], ["9 Fuß"], [["1 metre", "12 feet"]])
    (hypothesis,) = scored["hypotheses"]
    assert hypothesis["log_prob"] == pytest.approx(forced.log_prob, abs=1e-4)
    assert sum(piece["log_prob"] for piece in hypothesis["pieces"]) == pytest.approx(forced.log_prob, abs=1e-3)


@pytest.mark.parametrize("model", ["0", "1"])
def test_what_if_and_explanations_with_the_sentences_before(with_context: tuple[TestClient, Path], model: str) -> None:
    """As slots of the decoder they can be looked at, as part of the source's slots they cannot."""
    server, run = with_context
    translator = nmt.load(run.parent / ("concat", "hierarchical")[int(model)], "device=cpu")
    asked = {"model": model, "text": "9′", "context": ["12 feet", "1m"]}
    edits = {"context": ["3 hours"]}
    answer = post(server, "/v1/whatif", **asked, edits=edits, sweep=0)
    expected = translator.what_if("9′", context=asked["context"], changed_context=edits["context"], sweep=0)
    assert [side["text"] for side in answer["baseline"]["context"]] == asked["context"]
    assert [side["text"] for side in answer["variant"]["context"]] == edits["context"]
    for ours, theirs in zip(answer["differences"]["steps"], expected.steps, strict=True):
        assert ours["variant"] == pytest.approx(theirs["variant"], abs=1e-3)
    assert any(step["kl"] > 1e-6 for step in answer["differences"]["steps"])
    own = len(answer["baseline"]["source"]["pieces"])
    before = [at for at, side in enumerate(answer["baseline"]["context"]) for _ in side["pieces"]]
    assert [bar["sentence"] for bar in answer["sweep"]] == [None] * own + (before if model == "0" else [])
    last = own + (len(before) if model == "0" else 0)
    pins = {"pins": [{"step": 0, "source": [last]}]}
    assert f"Give 0 to {last - 1}." in post(server, "/v1/whatif", 422, **asked, edits=pins)["detail"]
    explained = post(server, "/v1/explain", **asked, target="9 Fuß")
    assert explained["context"]["sentences"] == asked["context"]
    assert np.array(explained["context"]["erasure"]).shape == (2, 2)
    assert post(server, "/v1/explain", model=model, text="9′", target="9 Fuß")["context"] is None
    only = post(server, "/v1/explain", **asked, target="9 Fuß", methods=["attention"])
    assert only["context"] is None, "only erasure is about sentences"


def test_a_sentence_of_the_evaluation_has_the_sentences_before(with_context: tuple[TestClient, Path]) -> None:
    server, run = with_context
    assert call("evaluate", f"run={run}", "pictures=0", "device=cpu", "threads=1") == 0
    rows = server.get("/v1/corpus").json()["rows"]
    assert "context" not in rows[0]
    sources = [row["source"] for row in rows]
    seen = [(at, row["context"]) for at, row in enumerate(rows) if "context" in row]
    assert any(len(context) == 2 for _, context in seen)
    assert all(context == [text for text in sources[:at] if text][-len(context) :] for at, context in seen)
    at, context = seen[-1]
    (made,) = nmt.load(run, "device=cpu").translate([sources[at]], contexts=[context])
    assert rows[at]["log_prob"] == pytest.approx(made.log_prob / len(made.pieces), abs=1e-3)
    assert rows[at]["translation"] == made.text


def test_context_that_does_not_fit(with_context: tuple[TestClient, Path], both: TestClient) -> None:
    server, _ = with_context
    for body, field, detail in (
        ({"text": ["a", "b"], "context": ["c"]}, "context", "there are 2 texts."),
        ({"text": "a", "context": ["b\nc"]}, "context", "has a line break."),
        ({"text": "a", "documents": "files"}, "documents", "Input should be 'none', 'one' or 'blank'."),
    ):
        problem = post(server, "/v1/translate", 422, **body)
        assert (problem["field"], problem["detail"]) == (field, f"{field}: {detail}")
    assert post(server, "/v1/translate", 413, text="a", context=["9 " * 1200])["field"] == "context"
    for field, value in (("context", ["a"]), ("documents", "one")):
        problem = post(both, "/v1/translate", 422, text="a", **{field: value})
        assert problem["detail"] == f"{field}: this model sees single sentences."
    for path, field, more in (
        ("/v1/whatif", "context", {"context": ["a"]}),
        ("/v1/whatif", "edits.context", {"edits": {"context": ["a"]}}),
        ("/v1/explain", "context", {"context": ["a"]}),
    ):
        assert post(both, path, 422, text="a", **more)["detail"] == f"{field}: this model sees single sentences."
    problem = post(server, "/v1/whatif", 422, text="a", edits={"context": ["b\nc"]})
    assert problem["detail"] == "edits.context: has a line break."
    counts = [model["context_sentences"] for model in server.get("/v1/models").json()["models"]]
    assert counts == [2, 2]
    assert both.get("/v1/models").json()["models"][0]["context_sentences"] == 0
