"""Whatever a client sends, the answer is never 500. An exception of the application fails these tests."""

import json
import string
from typing import Any
from urllib.parse import quote

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, given, settings
from pydantic import BaseModel
from starlette.testclient import TestClient

from nmt.serve import schemas as bodies

ROUTES: dict[str, type[BaseModel]] = {
    "v1/translate": bodies.TranslateBody,
    "v1/translate/stream": bodies.TranslateBody,
    "v1/score": bodies.ScoreBody,
    "v1/whatif": bodies.WhatIfBody,
    "v1/explain": bodies.ExplainBody,
    "translate": bodies.LibreBody,
    "detect": bodies.LibreBody,
}
ENDS = (
    "",
    "/",
    "health",
    "docs",
    "v1/models",
    "v1/corpus",
    "languages",
    "viewer/page.js",
)
TEXTS = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ("", " ", "zwei drei", "two", "zwei\ndrei", "\ud800", "\x00", "\u200b", "z" * 300, "zwei " * 260, "0", "1")
    ),
)
SCALARS = st.one_of(
    *(st.none(), st.booleans(), TEXTS, st.floats(), st.integers(-3, 12)),
    st.sampled_from((10**400, -(10**400), 1000, 2**63)),
)
KINDS: tuple[type[BaseModel], ...] = (*ROUTES.values(), bodies.SearchBody, bodies.EditsBody, bodies.PinBody)
FIELDS = sorted({name for body in KINDS for name in body.model_fields})
WORDS = (
    "alignment",
    "weights",
    "self_weights",
    "alternatives",
    "stages",
    "beam",
    "doubt",
    "attention",
    "erasure",
    "gradient",
)
JSON: st.SearchStrategy[Any] = st.recursive(
    SCALARS,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(st.sampled_from(WORDS), max_size=4),
        st.dictionaries(st.one_of(st.sampled_from(FIELDS), TEXTS), inner, max_size=4),
        st.lists(st.fixed_dictionaries({"step": st.integers(-1, 40), "source": st.lists(st.integers(-1, 9))})),
    ),
    max_leaves=8,
)  # fmt: skip
ANY = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.function_scoped_fixture],
    derandomize=True,
)


def answered(to: TestClient, method: str, path: str, **request: Any) -> None:
    """Send a request; an answer of an application that refuses is a problem document."""
    answer = to.request(method, path, **request)
    assert answer.status_code < 500, answer.text
    if answer.status_code >= 400 and method != "HEAD":
        assert answer.headers["content-type"] == "application/problem+json"
        assert {"detail", "status", "error", "cure"} <= {*answer.json()}
    elif answer.content and answer.headers["content-type"] == "application/json":
        json.loads(answer.text, parse_constant=pytest.fail)


@pytest.mark.parametrize("path", ROUTES)
def test_any_value_of_a_body(both: TestClient, path: str) -> None:
    """Values of any kind in fields that are known, beside text that can be translated."""
    known = {"text": "zwei drei", "target": "two three", "q": "zwei", "source": "auto"}
    body = ROUTES[path]
    usual = {name: value for name, value in known.items() if name in body.model_fields}

    @ANY
    @given(st.dictionaries(st.sampled_from(sorted(body.model_fields)), JSON, max_size=3), st.booleans())
    def check(fields: dict[str, Any], whole: bool) -> None:
        content = json.dumps({**(usual if whole else {}), **fields})
        answered(both, "POST", path, content=content, headers={"content-type": "application/json"})

    check()


#: Pieces of forms and of JSON.
PIECES = (
    b"--b", b"--b--", b"\r\n", b"\n\n", b'Content-Disposition: form-data; name="q"', b"; filename=x", b"q=", b"&",
    b"source=de", b"target=en", b"zwei", b'{"q": ', b'"zwei"', b"}", b"[", b'"\\ud800"', b"\xff", b"\x00", b"%ff",
    b"format=html", b"&#" + b"9" * 5000 + b";", b", ",
)  # fmt: skip
TYPES = (
    *("application/json", "application/json; charset=utf-16", "application/x-www-form-urlencoded", "text/plain", "a"),
    *("multipart/form-data; boundary=b", "multipart/form-data", "multipart/form-data; boundary*=utf-8''%ff", "", ";"),
)


@ANY
@given(
    path=st.sampled_from([*ROUTES, *ENDS, "translate?q=zwei&source=de&target=en"]),
    method=st.sampled_from(("GET", "POST", "PUT", "OPTIONS", "HEAD", "TRACE")),
    body=st.one_of(
        st.binary(max_size=60),
        JSON.map(lambda value: json.dumps(value).encode()),
        st.lists(st.sampled_from(PIECES), max_size=12).map(b"".join),
    ),
    kind=st.sampled_from(TYPES),
)
def test_any_bytes_of_any_type(both: TestClient, path: str, method: str, body: bytes, kind: str) -> None:
    answered(both, method, path, content=body, headers={"content-type": kind})


PARTS = (*ROUTES, *ENDS, "..", "%2e%2e", "%00", "%ff", "%ed%a0%80", "a" * 300)
QUERIES = (*("model=9", "split=a&with=1", "model=%ed%a0%80", "model=0&split=test"), *("model=0&with=1", "split=%00"))
PRINTABLE = st.text(string.printable, max_size=12)


@ANY
@given(
    path=st.lists(st.one_of(st.sampled_from(PARTS), PRINTABLE.map(quote))).map("/".join),
    query=st.one_of(st.sampled_from(QUERIES), PRINTABLE.map(quote)),
)
def test_any_address(both: TestClient, path: str, query: str) -> None:
    answered(both, "GET", f"http://127.0.0.1:8765/{path}?{query}")


NAMES = (
    *("host", "origin", "sec-fetch-site", "sec-fetch-mode", "content-length", "content-type", "accept", "cookie"),
    *("x-forwarded-for", "x-forwarded-prefix", "expect", "transfer-encoding", "range", "if-range"),
)
VALUES = (
    *("http://[", "http://[::1", "null", "[", "::1", "[::1]:x", "9" * 400, "-1", "bytes=0-99999999999", "bytes=9-1"),
    *("multipart/form-data", "http://localhost:99999", "https://", "//", "\u00ff"),
)


@ANY
@given(
    name=st.sampled_from(NAMES),
    value=st.one_of(st.sampled_from(VALUES), st.text(string.printable.strip(), max_size=30)),
    path=st.sampled_from(("/", "/health", "/v1/translate", "/viewer/page.js")),
)
def test_any_header(both: TestClient, name: str, value: str, path: str) -> None:
    method = "POST" if path.startswith("/v1/") else "GET"
    answer = both.request(method, path, headers=[(name.encode(), value.encode("latin-1"))], content=b'{"text": "zwei"}')
    assert answer.status_code < 500, answer.text
