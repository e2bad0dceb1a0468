"""The REST interface: what it answers."""

import asyncio
import functools
import itertools
import json
import math
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import nmt
from nmt.runs.run import Run
from nmt.serve.pool import Caps
from nmt.serve.schemas import TranslateBody
from tests.serve.conftest import Json, client, pool_of, post, served_by
from tests.small import copied, pairs

PAIRS = pairs(20)


def texts(answer: Json) -> list[str]:
    return [each["hypotheses"][0]["text"] for each in answer["translations"]]


@pytest.mark.parametrize("model", ["0", "1"])
def test_translations_are_those_of_the_command_in_the_same_order(both: TestClient, model: str, trained: Path) -> None:
    answer = post(both, "/v1/translate", model=model, text=[source for source, _ in PAIRS])
    assert texts(answer) == [target for _, target in PAIRS]
    assert answer["model"]["id"] == model
    assert answer["timing"]["batch_size"] >= 1
    for each, (source, _) in zip(answer["translations"], PAIRS):
        assert each["source"]["text"] == source
        assert each["model"] == answer["model"]
        assert each["hypotheses"][0]["alignment"]["links"]


def test_settings_are_each_requests_own(both: TestClient, trained: Path) -> None:
    answer = post(
        both, "/v1/translate", text=["zwei drei", "eins"], prefix=["", "tw"], search={"nbest": 3, "beam_size": 4}
    )
    settings = {"choice": "beam", "beam_size": 4, "length_penalty": 1.0, "coverage_penalty": 0.0, "nbest": 3}
    assert answer["search"] == settings
    assert [len(each["hypotheses"]) for each in answer["translations"]] == [3, 3]
    assert answer["translations"][1]["hypotheses"][0]["text"].startswith("tw")
    expected = nmt.load(trained, "search.nbest=3", "search.beam_size=4", "device=cpu").nbest(["zwei drei"])[0]
    assert [each["text"] for each in answer["translations"][0]["hypotheses"]] == [each.text for each in expected]
    short = post(both, "/v1/translate", text="zwei drei vier", search={"max_length": 2})
    (short,) = short["translations"][0]["hypotheses"]
    assert len(short["pieces"]) == 2
    assert not short["complete"]
    assert all(each["complete"] for each in answer["translations"][0]["hypotheses"])


def test_words_that_training_never_had_are_named(both: TestClient) -> None:
    one, two = post(both, "/v1/translate", text=["zwei Katzen", "zwei drei"])["translations"]
    assert (one["unseen"], two["unseen"]) == ([[5, 11]], [])
    assert both.get("/v1/models").json()["models"][0]["name"] == "bahdanau additive gru"


def test_several_sentences_in_a_line_are_told(both: TestClient) -> None:
    texts = ["zwei drei", "zwei drei. Eins zwei. Drei."]
    one, two = post(both, "/v1/translate", text=texts)["translations"]
    assert one["unlike"] is None
    assert two["unlike"] == "The text has several sentences. The translation may lack some: translate one at a time."


def test_a_part_of_a_weight_is_pinned_and_a_word_is_swept(both: TestClient) -> None:
    pins = [{"step": 0, "source": [1], "weight": 0.5}]
    pinned = post(both, "/v1/translate", text="zwei drei", pins=pins, include=["weights"])
    cross = pinned["translations"][0]["hypotheses"][0]["weights"]["cross"]
    assert cross["data"][1] == pytest.approx(0.5, abs=1e-5)
    assert sum(cross["data"][: cross["shape"][2]]) == pytest.approx(1, abs=1e-5)
    swept = post(both, "/v1/whatif", text="zwei drei", sweep=[0])["sweep"]
    assert [row["text"] for row in swept] == ["zwei", "drei", "</s>"]
    wrong: list[Any] = ["1", True, [], [-1], 0.5, {}]
    for sweep in wrong:
        refused = post(both, "/v1/whatif", 422, text="zwei drei", sweep=sweep)
        assert refused["field"].startswith("sweep")
        assert "constrained" not in refused["detail"]
    for weight in (-0.1, 1.1, "half", None, True):
        assert post(both, "/v1/translate", 422, text="a", pins=[{"step": 0, "source": [1], "weight": weight}])["field"]
    assert "follow one another" in post(both, "/v1/whatif", 422, text="zwei drei", sweep=[0, 2])["detail"]


def test_pins_scores_what_if_and_explanations(both: TestClient) -> None:
    pinned = post(both, "/v1/translate", text="zwei drei", pins=[{"step": 0, "source": [1]}], include=["weights"])
    cross = pinned["translations"][0]["hypotheses"][0]["weights"]["cross"]
    assert cross["data"][1] == 1.0
    good, bad = (
        post(both, "/v1/score", text="zwei drei", target=target)["translations"][0]["hypotheses"][0]
        for target in ("two three", "nine zero")
    )
    assert good["log_prob"] > bad["log_prob"] + 3
    assert all(piece["forced"] and piece["log_prob"] is not None for piece in good["pieces"])
    answer = post(both, "/v1/whatif", text="zwei drei", edits={"text": "zwei vier"}, sweep=0)
    assert answer["variant"]["hypotheses"][0]["text"] == "two four"
    assert answer["differences"]["words"][-1] == {"kind": "changed", "baseline": [1, 2], "variant": [1, 2]}
    assert len(answer["sweep"]) == len(answer["baseline"]["source"]["pieces"])
    explained = post(both, "/v1/explain", text="zwei drei")
    assert explained["words"] == {"source": ["zwei", "drei"], "target": ["two", "three"]}
    assert explained["word"] is None
    for word in (1, "three"):
        alone = post(both, "/v1/explain", text="zwei drei", word=word)
        assert alone["word"] == {"number": 1, "text": "three"}
        assert alone["words"] == {"source": ["zwei", "drei"], "target": ["three"]}
        assert alone["methods"] == {name: rows[1:] for name, rows in explained["methods"].items()}
    twice = post(both, "/v1/explain", 422, text="zwei zwei", target="two two", word="two")
    assert "Give a number: 0, 1." in twice["detail"]
    for word in (2, -1, "four"):
        assert "no such word" in post(both, "/v1/explain", 422, text="zwei drei", word=word)["detail"]
    assert post(both, "/v1/explain", 422, text="zwei", word=[])["field"] == "word"
    erasure = explained["methods"]["erasure"]
    assert erasure[0][0] > erasure[0][1]
    assert erasure[1][1] > erasure[1][0]


@pytest.mark.parametrize("model", ["0", "1"])
def test_the_words_before_a_pin_are_kept_unless_the_search_is_to_be_free(both: TestClient, model: str) -> None:
    ask = functools.partial(post, both, "/v1/whatif", model=model, text="zwei drei vier rot haus")
    pins = [{"step": 4, "source": [0]}]
    answer = ask(edits={"pins": pins})
    pieces = [[piece["text"] for piece in answer[side]["hypotheses"][0]["pieces"]] for side in ("baseline", "variant")]
    assert answer["kept"] == 4
    assert pieces[0][:4] == pieces[1][:4]
    assert ask(edits={"pins": pins, "keep_words": False})["kept"] == 0
    assert ask(edits={"pins": pins, "prefix": "one"})["variant"]["hypotheses"][0]["text"].startswith("one")
    beyond = [{"step": len(pieces[0]), "source": [0]}]
    refused = post(both, "/v1/whatif", 422, model=model, text="zwei drei vier rot haus", edits={"pins": beyond})
    assert "or keep_words=false" in refused["detail"]
    for wrong in (1, "no", None):
        assert post(both, "/v1/whatif", 422, text="zwei", edits={"keep_words": wrong})["field"] == "edits.keep_words"


def test_a_head_and_a_temperature_can_be_asked_for(both: TestClient) -> None:
    explained = post(both, "/v1/explain", model="1", text="zwei drei", head="1.1", methods=["attention"])
    assert explained["head"] == "1.1"
    mean = post(both, "/v1/explain", model="1", text="zwei drei", head="mean", methods=["attention"])
    assert mean["methods"] != explained["methods"] or len(both.get("/v1/models").json()["models"][1]["heads"]) == 1
    assert "does not exist" in post(both, "/v1/explain", 422, model="1", text="zwei drei", head="9.9")["detail"]
    assert post(both, "/v1/explain", 422, text="zwei drei", shift=2)["field"] == "shift"
    cold = post(both, "/v1/whatif", text="zwei drei", temperature={"step": 0, "value": 0.5})["temperature"]
    assert (cold["step"], cold["temperature"]) == (0, 0.5)
    assert len(cold["pieces"]) >= 5
    assert sum(math.exp(piece["before"]) for piece in cold["pieces"] if piece["before"] is not None) <= 1 + 1e-5
    for value in (0, -1, 1000, "warm", True, None):
        wrong = {"step": 0, "value": value}
        assert post(both, "/v1/whatif", 422, text="zwei", temperature=wrong)["field"].startswith("temperature")
    late = post(both, "/v1/whatif", 422, text="zwei drei", temperature={"step": 99, "value": 1})
    assert "no step 99" in late["detail"]


def test_a_hardly_trained_model_says_so(trained: Path, tmp_path: Path) -> None:
    run = Run(copied(trained, tmp_path))
    run.keep_history([{**run.history()[-1], "step": 20, "best": 1.0}])
    with served_by(pool_of(run.folder)) as opened:
        (model,) = opened.get("/v1/models").json()["models"]
        assert model["hardly_trained"].startswith("This model had 20 updates")
        assert post(opened, "/v1/translate", text="zwei")["model"]["note"] == model["hardly_trained"]


def test_the_stream_has_every_translation_once(both: TestClient) -> None:
    answer = both.post("/v1/translate/stream", json={"text": [source for source, _ in PAIRS], "include": []})
    assert answer.headers["content-type"].startswith("text/event-stream")
    events = [block.split("\n") for block in answer.text.strip().split("\n\n")]
    found = {}
    for name, data in events[:-1]:
        assert name == "event: translation"
        value = json.loads(data.removeprefix("data: "))
        found[value["index"]] = value["translation"]["hypotheses"][0]["text"]
    assert [found[at] for at in range(len(PAIRS))] == [target for _, target in PAIRS]
    assert events[-1] == ["event: done", 'data: {"count": 20}']


@pytest.mark.parametrize("model", ["0", "1"])
@pytest.mark.parametrize(
    "search", [{"beam_size": 1}, {"beam_size": 4}, {"beam_size": 4, "coverage_penalty": 0.3}], ids=str
)
def test_the_stream_of_a_line_has_its_beginning(both: TestClient, model: str, search: dict[str, float]) -> None:
    """The model is sure of its words, so no beginning is taken back."""
    text = "zwei drei vier rot haus"
    answer = both.post("/v1/translate/stream", json={"text": text, "search": search, "model": model, "include": []})
    events = [event.split("\n")[:2] for event in answer.text.strip().split("\n\n")]
    names = [name.removeprefix("event: ") for name, _ in events]
    data = [json.loads(line.removeprefix("data: ")) for _, line in events]
    assert names[-2:] == ["translation", "done"]
    assert set(names[:-2]) <= {"beginning"}
    whole = post(both, "/v1/translate", text=text, search=search, model=model)["translations"][0]["hypotheses"][0]
    assert data[-2]["translation"]["hypotheses"][0]["text"] == whole["text"]
    texts = [each["text"] for each in data[:-2]]
    assert all(whole["text"].startswith(each) for each in texts)
    assert all(len(one) < len(two) for one, two in itertools.pairwise(texts))
    if "coverage_penalty" not in search:
        assert len(texts) >= (4 if search["beam_size"] == 1 else 1)


def test_models_health_and_descriptions(both: TestClient) -> None:
    first, second = both.get("/v1/models").json()["models"]
    assert (first["id"], second["id"]) == ("0", "1")
    assert first["fingerprint"] != second["fingerprint"]
    assert first["encoder_heads"] == []
    assert second["self_heads"]
    assert both.get("/health").json() == {"status": "ok", "queue": {"rows": 0, "pieces": 0}, "models": ["0", "1"]}
    schema = both.get("/openapi.json").json()
    assert {"/v1/translate", "/v1/score", "/v1/whatif", "/v1/explain", "/translate", "/languages"} <= {*schema["paths"]}
    assert "HTTPValidationError" not in json.dumps(schema)
    for path, methods in schema["paths"].items():
        for method, route in methods.items():
            assert (method == "post") == ("requestBody" in route), path
            assert "application/problem+json" in route["responses"]["default"]["content"], path
    assert [*schema["paths"]["/v1/translate/stream"]["post"]["responses"]["200"]["content"]] == ["text/event-stream"]
    assert "LibreBody" in both.get("/docs").text


def test_figures_for_prometheus_tell_nothing_of_texts(both: TestClient) -> None:
    post(both, "/v1/translate", text="geheimnis zwei")
    figures = both.get("/metrics").text
    assert 'nmt_requests_total{route="/v1/translate",status="200"}' in figures
    assert 'nmt_rows_total{model="0"}' in figures
    assert "geheimnis" not in figures
    assert "testclient" not in figures


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_elsewhere(both: TestClient, path: str) -> None:
    answer = both.get(path)
    assert answer.status_code == 200
    assert "http://" not in answer.text.replace("http://www.w3.org/", "")
    assert "https://" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_a_failure_is_a_problem_document(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = pool_of(trained)

    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("zwei drei")

    monkeypatch.setattr(made, "translations", failing)
    with TestClient(client(made).app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as opened:
        found = post(opened, "/v1/translate", 500, text="zwei drei")
    assert found["cure"]
    assert "zwei" not in str(found)


def test_a_full_queue_says_when_to_come_back(trained: Path) -> None:
    made = pool_of(trained, caps=Caps(seconds=60))
    with client(made) as to:  # nobody serves, so that the first request waits
        model = made.first
        _, rows, _ = made.translations(TranslateBody(text=["eins zwei", "drei"]))
        model.worker.queue.most_pieces = sum(row.pieces for row in rows) + 1
        model.worker.queue.put(rows)
        full = to.post("/v1/translate", json={"text": "vier fünf sechs sieben"})
        assert full.status_code == 503
        assert int(full.headers["retry-after"]) >= 1
        assert full.json()["cure"]
        assert to.post("/v1/translate", json={"text": ["eins zwei drei"] * 9}).status_code == 413
        assert to.get("/health").status_code == 503  # its worker does not run
        model.worker.start()
        assert model.worker.stop(600)
        assert [row.result.result()[1]["hypotheses"][0]["text"] for row in rows] == ["one two", "three"]
        closed = to.post("/v1/translate", json={"text": "eins"})
        assert closed.status_code == 503
        assert "shutting down" in closed.json()["detail"]


def test_a_deadline_is_kept_and_frees_the_queue(trained: Path) -> None:
    made = pool_of(trained, caps=Caps(seconds=0.05))
    with client(made) as to:
        answer = to.post("/v1/translate", json={"text": "eins"})
        assert answer.status_code == 504
        assert answer.json()["limit"] == 0.05
    assert made.first.worker.queue.take(0) == []


def test_a_client_that_leaves_is_dropped_from_the_queue(trained: Path) -> None:
    made = pool_of(trained)
    app = client(made).app
    body = json.dumps({"text": ["eins"] * 5}).encode()
    scope = {"type": "http", "method": "POST", "path": "/v1/translate", "raw_path": b"/v1/translate"}
    headers = [(b"host", b"localhost"), (b"content-type", b"application/json")]
    scope |= {"headers": headers, "query_string": b"", "http_version": "1.1"}
    queue = made.first.worker.queue

    async def leave() -> None:
        messages = iter([{"type": "http.request", "body": body, "more_body": False}])

        async def receive() -> Json:
            for message in messages:
                return message
            while not len(queue):
                await asyncio.sleep(0.01)
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            pass

        await app(scope, receive, send)

    asyncio.run(asyncio.wait_for(leave(), 600))
    assert len(queue) == 5
    assert queue.take(0) == []
    assert queue.pieces == 0


def test_a_glossary_is_a_field_of_each_request(both: TestClient) -> None:
    terms: Json = {"glossary": {"zwei": ["nine", "eight"]}, "keep": ["placeholders"]}
    found = texts(post(both, "/v1/translate", text=["zwei drei {0}", "eins"], search={"beam_size": 4}, **terms))
    assert "nine" in found[0] or "eight" in found[0]
    assert "{0}" in found[0]
    assert found[1] == texts(post(both, "/v1/translate", text="eins", search={"beam_size": 4}))[0]
    libre = both.post("/translate", json={"q": "zwei drei", "source": "auto", "target": "", **terms})
    assert "nine" in libre.json()["translatedText"] or "eight" in libre.json()["translatedText"]
    refused = both.post("/v1/translate", json={"text": "zwei", "search": {"beam_size": 1}, **terms})
    assert (refused.status_code, refused.json()["field"]) == (422, "search.beam_size")
    refused = both.post("/v1/translate", json={"text": "zwei", "glossary": {"zwei": " "}})
    assert (refused.status_code, refused.json()["field"]) == (422, "glossary")
