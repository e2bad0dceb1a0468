"""The REST interface: what it answers, and how it refuses."""

import asyncio
import itertools
import json
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from starlette.testclient import TestClient

import nmt
from nmt.serving.asking import Caps, enqueue
from nmt.serving.bodies import TranslateBody
from nmt.serving.guard import Guard
from tests.pipeline.small import pairs
from tests.serving.conftest import asker, client

Json = dict[str, Any]
PAIRS = pairs(20)


def post(to: TestClient, path: str, expected: int = 200, /, **body: Any) -> Json:
    answer = to.post(path, json=body)
    assert answer.status_code == expected, answer.text
    found: Json = answer.json()
    if expected >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert found["status"] == expected
        assert found["detail"]
    return found


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


@pytest.mark.parametrize("model", ["0", "1"])
def test_details_are_there_if_asked_for(both: TestClient, model: str) -> None:
    include = ["alignment", "weights", "self_weights", "alternatives", "stages", "beam"]
    answer = post(both, "/v1/translate", model=model, text="zwei drei", include=include)
    (document,) = answer["translations"]
    (hypothesis,) = document["hypotheses"]
    assert hypothesis["text"] == "two three"
    assert hypothesis["stages"]
    assert hypothesis["weights"]["cross"]["shape"][1:] == [len(hypothesis["pieces"]), len(document["source"]["pieces"])]
    assert (hypothesis["weights"]["encoder"] is not None) == (model == "1")
    assert all(piece["alternatives"] for piece in hypothesis["pieces"])
    assert [node["hypothesis"] for node in document["beam"]["nodes"] if node["hypothesis"] is not None] == [0]
    plain = post(both, "/v1/translate", model=model, text="zwei drei", include=[])
    assert plain["translations"][0]["hypotheses"][0]["alignment"] is None


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


def test_models_health_metrics_and_descriptions(both: TestClient) -> None:
    post(both, "/v1/translate", text="geheimnis")
    first, second = both.get("/v1/models").json()["models"]
    assert (first["id"], second["id"]) == ("0", "1")
    assert first["fingerprint"] != second["fingerprint"]
    assert first["encoder_heads"] == []
    assert second["self_heads"]
    assert both.get("/health").json() == {"status": "ok", "queue": {"rows": 0, "pieces": 0}, "models": ["0", "1"]}
    figures = both.get("/metrics").text
    assert 'nmt_requests_total{route="/v1/translate",status="200"}' in figures
    assert "geheimnis" not in figures
    assert "testclient" not in figures
    schema = both.get("/openapi.json").json()
    assert {"/v1/translate", "/v1/score", "/v1/whatif", "/v1/explain", "/translate", "/languages"} <= {*schema["paths"]}


@pytest.mark.parametrize("path", ["/", "/docs"])
def test_pages_load_nothing_from_elsewhere(both: TestClient, path: str) -> None:
    answer = both.get(path)
    assert answer.status_code == 200
    assert "http://" not in answer.text.replace("http://www.w3.org/", "")
    assert "https://" not in answer.text
    policy = answer.headers["content-security-policy"]
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


REFUSED = [
    (422, "text", {"text": 5}, "text"),
    (422, "nonsense", {"text": "a", "nonsense": 1}, "nonsense"),
    (422, "nbest", {"text": "a", "search": {"nbest": 9, "beam_size": 3}}, "search.nbest"),
    (422, "cap", {"text": "a", "search": {"beam_size": 1000}}, "search.beam_size"),
    (422, "include", {"text": "a", "include": ["everything"]}, "include.0"),
    (422, "pins", {"text": "a", "pins": [{"step": 0, "source": []}]}, "pins.0.source"),
    (422, "twice", {"text": "a", "pins": [{"step": 0, "source": [0]}, {"step": 0, "source": [1]}]}, "pins"),
    (422, "prefixes", {"text": ["a", "b"], "prefix": ["a"]}, "prefix"),
    (422, "line break", {"text": "a\nb"}, "text"),
    (404, "model", {"text": "a", "model": "other"}, "model"),
    (413, "pieces", {"text": "zwei " * 1200}, "text"),
    (413, "prefix", {"text": "zwei", "prefix": "two " * 300}, "prefix"),
    (413, "characters", {"text": "z" * 100_001}, None),
    (413, "texts", {"text": ["a"] * 10_001}, "text"),
    (413, "slow", {"text": ["a"] * 101, "include": ["stages"]}, "text"),
    (413, "answer", {"text": "zwei " * 200, "include": ["stages"], "search": {"nbest": 50}}, "include"),
    (422, "piece", {"text": "zwei", "pins": [{"step": 0, "source": [99]}]}, "pins"),
    (422, "step", {"text": "zwei", "pins": [{"step": 999, "source": [0]}]}, "pins"),
]


@pytest.mark.parametrize(("status", "body", "field"), [(each[0], each[2], each[3]) for each in REFUSED])
def test_bad_requests_are_told_the_field_and_the_rule(
    both: TestClient, status: int, body: Json, field: str | None
) -> None:
    problem = post(both, "/v1/translate", status, **body)
    assert problem.get("field") == field
    assert problem["cure"]
    if status == 413 or field in ("search.beam_size", "pins.0.source"):
        assert problem["limit"]
    assert "zwei zwei" not in json.dumps(problem)


TOO_LONG = [
    ("explain", {"text": "zwei " * 260}, "text"),
    ("explain", {"text": "zwei", "target": "two " * 260}, "target"),
    ("whatif", {"text": "zwei " * 260}, "text"),
    ("whatif", {"text": "zwei", "edits": {"text": "zwei " * 260}}, "edits.text"),
    ("score", {"text": "zwei " * 600, "target": "two " * 600}, "text"),
    ("score", {"text": "zwei " * 450, "target": "two " * 450, "include": ["stages"]}, "include"),
]


@pytest.mark.parametrize(("route", "body", "field"), TOO_LONG)
def test_work_has_a_bound_before_it_starts(both: TestClient, route: str, body: Json, field: str) -> None:
    before = both.get("/metrics").text
    problem = post(both, f"/v1/{route}", 413, model="1", **body)
    assert problem["field"] == field
    assert problem["limit"]
    assert problem["cure"]
    rows = 'nmt_rows_total{model="1"}'
    assert [line for line in before.split("\n") if rows in line] == [
        line for line in both.get("/metrics").text.split("\n") if rows in line
    ]


def test_other_ways_to_be_wrong(both: TestClient) -> None:
    assert both.post("/v1/translate", content="{", headers={"content-type": "application/json"}).status_code == 400
    half = both.post(
        "/v1/translate", content=rb'{"text": ["zwei", "\ud800"]}', headers={"content-type": "application/json"}
    )
    assert (half.status_code, half.json()["field"]) == (422, "text")
    assert both.get("/v1/translate").status_code == 405
    assert both.get("/nowhere").json()["status"] == 404
    assert both.get("/viewer/..%2F__init__.py").status_code == 404
    assert "blank" in post(both, "/v1/score", 422, text="zwei", target=" ")["detail"]
    assert "Give 0 to" in post(both, "/v1/whatif", 422, text="zwei", sweep=99)["detail"]
    pins = [{"step": 0, "source": [99]}]
    found = post(both, "/v1/whatif", 422, text="zwei", edits={"pins": pins})
    assert "not there" in found["detail"]
    assert found["field"] == "pins"
    assert found["cure"].startswith("Give 0 to")
    chunks = (b" " * 50_000 for _ in range(4))
    assert both.post("/v1/translate", content=chunks).status_code == 413


def test_foreign_hosts_are_refused(both: TestClient) -> None:
    for host, status in (
        ("evil.example", 421),
        ("localhost:1", 200),
        ("[::1]:8765", 200),
        ("192.168.1.7", 200),
        ("", 200),
    ):
        assert both.get("/health", headers={"host": host}).status_code == status
    assert "access-control-allow-origin" not in both.get("/health").headers


VISIT = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "document"}
PAGES: list[tuple[int, str, dict[str, str]]] = [
    *((403, "POST", {"origin": each}) for each in ("http://evil.example", "null", "file://", "http://[", "http://")),
    *((403, "POST", {"origin": each}) for each in ("http://127.0.0.1:8766", "http://localhost:8765")),
    *((200, "POST", {"origin": each}) for each in ("http://127.0.0.1:8765", "https://127.0.0.1:8765", "")),
    *((200, "POST", {"origin": each}) for each in ("https://nmt.example.org", "http://NMT.example.org.:8443")),
    *((200, "POST", {"origin": each, "sec-fetch-site": "cross-site"}) for each in ("moz-extension://a",)),
    *((403, "POST", {"sec-fetch-site": each, **more}) for each in ("cross-site", "same-site") for more in ({}, VISIT)),
    *((200, "POST", {"sec-fetch-site": each}) for each in ("same-origin", "none")),
    (403, "POST", {"origin": "http://127.0.0.1:8765", "sec-fetch-site": "cross-site"}),
    (200, "GET", VISIT),
    *((403, "GET", {**VISIT, **other}) for other in ({"sec-fetch-mode": "no-cors"}, {"sec-fetch-dest": "iframe"})),
    (200, "POST", {}),
]  # fmt: skip


@pytest.mark.parametrize(("status", "method", "headers"), PAGES, ids=str)
def test_only_own_pages_and_programs_may_ask(
    both: TestClient, status: int, method: str, headers: dict[str, str]
) -> None:
    """Pages of a name in hosts= are own ones, whatever port and scheme a proxy has. Extensions are programs."""
    assert isinstance(both.app, Guard)
    guarded = Guard(both.app.app, ["https://nmt.example.org/"], 100_000, lambda *_: None)
    with TestClient(guarded, base_url="http://127.0.0.1:8765") as to:
        path = "/v1/translate" if method == "POST" else "/"
        answer = to.request(method, path, headers=headers, json={"text": "zwei"} if method == "POST" else None)
    assert answer.status_code == status
    name = re.fullmatch(r"https?://([a-z0-9.]+)(:\d+)?", headers.get("origin", ""))
    if status == 403 and name is not None and "sec-fetch-site" not in headers:
        assert f"hosts=[{name[1]}]" in answer.json()["cure"]


def test_a_failure_is_a_problem_document(trained: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = asker(trained)

    def failing(*_: object, **__: object) -> None:
        raise RuntimeError("zwei drei")

    monkeypatch.setattr(made, "translations", failing)
    with TestClient(client(made).app, base_url="http://127.0.0.1:8765", raise_server_exceptions=False) as opened:
        found = post(opened, "/v1/translate", 500, text="zwei drei")
    assert found["cure"]
    assert "zwei" not in str(found)


def test_requests_with_other_penalties_share_a_batch(trained: Path) -> None:
    """Each is searched with its own; scores differ by them, and documents name them."""
    made = asker(trained)
    wanted = [{"length_penalty": 0.0}, {"length_penalty": 2.0}, {"coverage_penalty": 0.5, "nbest": 2}]
    rows = []
    for search in wanted:
        body = TranslateBody.model_validate({"text": "zwei drei vier", "search": {"beam_size": 4, **search}})
        _, (row,), _ = made.translations(body)
        rows.append(row)
        enqueue(made.first, [row])
    made.first.worker.start()
    assert made.first.worker.stop(600)
    assert made.first.worker.counts.batches == 1
    assert made.first.worker.counts.retries == 0
    for row, search in zip(rows, wanted, strict=True):
        document = row.result.result()[1]
        settings = [f"search.{name}={value}" for name, value in {"beam_size": 4, **search}.items()]
        (expected,) = nmt.load(trained, "device=cpu", *settings).nbest(["zwei drei vier"])
        hypotheses = document["hypotheses"]
        assert [each["text"] for each in hypotheses] == [each.text for each in expected]
        assert [each["score"] for each in hypotheses] == pytest.approx([each.score for each in expected], abs=1e-3)
        assert {name: document["search"][name] for name in search} == search
    scores = [row.result.result()[1]["hypotheses"][0]["score"] for row in rows]
    assert len(set(scores)) == 3


@pytest.mark.parametrize("beam_size", [1, 4])
def test_requests_with_other_pins_share_a_batch(trained: Path, beam_size: int) -> None:
    """Each looks where its own pins say, as alone; a row with a recorded beam has its pins in a batch of its own."""
    made = asker(trained)
    wanted: list[dict[int, list[int]]] = [{0: [1]}, {}, {0: [0], 2: [1, 2]}, {0: [2]}]
    rows = []
    for pins in wanted:
        asked = {"search": {"beam_size": beam_size}, "pins": [{"step": at, "source": pins[at]} for at in pins]}
        include = ["weights", *(["beam"] if pins == {0: [2]} else [])]
        body = TranslateBody.model_validate({"text": "zwei drei vier", "include": include, **asked})
        _, (row,), _ = made.translations(body)
        rows.append(row)
        enqueue(made.first, [row])
    made.first.worker.start()
    assert made.first.worker.stop(600)
    assert made.first.worker.counts.batches == 2
    assert made.first.worker.counts.retries == 0
    for row, pins in zip(rows, wanted, strict=True):
        slots = [pins.get(step) for step in range(max(pins, default=-1) + 1)] or None
        search = ("search=greedy",) if beam_size == 1 else ("search=beam", f"search.beam_size={beam_size}")
        given = [] if slots is None else [f"slots={json.dumps(slots).replace(' ', '')}"]
        (expected,) = nmt.load(trained, "device=cpu", *search, *given).translate(["zwei drei vier"])
        best = row.result.result()[1]["hypotheses"][0]
        assert best["text"] == expected.text
        assert best["score"] == pytest.approx(expected.score, abs=1e-3)
        cross = best["weights"]["cross"]
        weights = np.reshape(cross["data"], cross["shape"])
        assert expected.weights is not None
        np.testing.assert_allclose(weights, expected.weights, atol=1e-3)
        for step, pieces in pins.items():
            np.testing.assert_allclose(weights[:, step, pieces].sum(-1), 1, atol=1e-3)
    assert len({row.result.result()[1]["hypotheses"][0]["score"] for row in rows}) == 4


def test_a_bad_prefix_spoils_no_neighbour(trained: Path) -> None:
    """Rows of two requests in one batch, of which one has a prefix that the model cannot write."""
    made = asker(trained)
    requests = [made.translations(TranslateBody(text="zwei", prefix=prefix))[1] for prefix in ("", "a\nb", "tw")]
    for rows in requests:
        enqueue(made.first, rows)
    made.first.worker.start()
    assert made.first.worker.stop(600)
    (good,), (bad,), (also,) = requests
    assert good.result.result()[1]["hypotheses"][0]["text"] == "two"
    assert also.result.result()[1]["hypotheses"][0]["text"].startswith("tw")
    assert "cannot begin" in str(bad.result.exception())
    assert made.first.worker.counts.batches == 1
    assert made.first.worker.counts.retries == 3


def test_a_full_queue_says_when_to_come_back(trained: Path) -> None:
    made = asker(trained, caps=Caps(seconds=60))
    with client(made) as to:  # nobody serves, so that the first request waits
        model = made.first
        _, rows, _ = made.translations(TranslateBody(text=["eins zwei", "drei"]))
        model.worker.queue.most_pieces = sum(row.pieces for row in rows) + 1
        enqueue(model, rows)
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
    made = asker(trained, caps=Caps(seconds=0.05))
    with client(made) as to:
        answer = to.post("/v1/translate", json={"text": "eins"})
        assert answer.status_code == 504
        assert answer.json()["limit"] == 0.05
    assert made.first.worker.queue.take(0) == []


def test_a_client_that_leaves_is_dropped_from_the_queue(trained: Path) -> None:
    made = asker(trained)
    app = client(made).app
    body = json.dumps({"text": ["eins"] * 5}).encode()
    scope = {
        "type": "http",
        "method": "POST",
        "path": "/v1/translate",
        "raw_path": b"/v1/translate",
        "query_string": b"",
        "headers": [(b"host", b"localhost"), (b"content-type", b"application/json")],
        "http_version": "1.1",
        "scheme": "http",
        "root_path": "",
    }
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


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/whatif", "/translate"])
def test_a_body_of_many_levels_is_no_json(both: TestClient, path: str) -> None:
    deep = b'{"text": ' + b"[" * 40_000 + b"]" * 40_000 + b"}"
    answer = both.post(path, content=deep, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert both.get("/health").status_code == 200
