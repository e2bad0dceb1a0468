"""The REST interface: how it refuses what is wrong, too much, or asked by another page."""

import json
import re

import pytest
from starlette.testclient import TestClient

from nmt.serve.guard import Guard
from tests.serve.conftest import Json, post

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
    (413, "answers", {"text": ["zwei " * 30] * 500, "include": ["stages", "alternatives"]}, "include"),
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
    problem = post(both, f"/v1/{route}", 413, model="1", **body)
    assert problem["field"] == field
    assert problem["limit"]
    assert problem["cure"]


def test_other_ways_to_be_wrong(both: TestClient) -> None:
    assert both.post("/v1/translate", content="{", headers={"content-type": "application/json"}).status_code == 400
    half = both.post(
        "/v1/translate", content=rb'{"text": ["zwei", "\ud800"]}', headers={"content-type": "application/json"}
    )
    assert (half.status_code, half.json()["field"]) == (422, "text.1")
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
    guarded = Guard(both.app.app, ["https://nmt.example.org/"], 100_000, both.app.observe)
    with TestClient(guarded, base_url="http://127.0.0.1:8765") as to:
        path = "/v1/translate" if method == "POST" else "/"
        answer = to.request(method, path, headers=headers, json={"text": "zwei"} if method == "POST" else None)
    assert answer.status_code == status
    name = re.fullmatch(r"https?://([a-z0-9.]+)(:\d+)?", headers.get("origin", ""))
    if status == 403 and name is not None and "sec-fetch-site" not in headers:
        assert f"hosts=[{name[1]}]" in answer.json()["cure"]


@pytest.mark.parametrize("path", ["/v1/translate", "/v1/whatif", "/translate"])
def test_a_body_of_many_levels_is_no_json(both: TestClient, path: str) -> None:
    deep = b'{"text": ' + b"[" * 40_000 + b"]" * 40_000 + b"}"
    answer = both.post(path, content=deep, headers={"content-type": "application/json"})
    assert answer.status_code in (400, 422)
    assert answer.headers["content-type"] == "application/problem+json"
    assert both.get("/health").status_code == 200
