"""Models that are served within this process."""

import contextlib
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from starlette.testclient import TestClient

from nmt.build.requests import read
from nmt.config.composition import compose
from nmt.serve.app import application
from nmt.serve.pool import Caps, ModelPool
from nmt.serve.server import Serving, served

Json = dict[str, Any]


def post(to: TestClient, path: str, expected: int = 200, /, **body: Any) -> Json:
    answer = to.post(path, json=body)
    assert answer.status_code == expected, answer.text
    found: Json = answer.json()
    if expected >= 400:
        assert answer.headers["content-type"] == "application/problem+json"
        assert found["status"] == expected
        assert found["detail"]
    return found


def pool_of(*runs: Path, caps: Caps | None = None, words: tuple[str, ...] = ()) -> ModelPool:
    """The models of these runs, whose workers do not run yet."""
    config = compose("serve", [*words, "device=cpu", "threads=1"])
    config.run = [str(run) for run in runs]
    request = read(Serving, config)
    models = [served(request, opened.files, str(number)) for number, opened in enumerate(request.translator.runs)]
    return ModelPool(models, caps or Caps())


def client(made: ModelPool, **settings: Any) -> TestClient:
    """A client of the application for these models."""
    usual = {"host": "127.0.0.1", "hosts": ["127.0.0.1"], "max_bytes": 100_000, "page": "full", "corrections": True}
    request: Any = SimpleNamespace(**{**usual, "split_sentences": True, **settings})
    return TestClient(application(made, request), base_url="http://127.0.0.1:8765")


@contextlib.contextmanager
def served_by(made: ModelPool, **settings: Any) -> Iterator[TestClient]:
    """A client of models whose workers run."""
    for model in made.models.values():
        model.worker.start()
    with client(made, **settings) as opened:
        yield opened
    for model in made.models.values():
        assert model.worker.stop(600)


@pytest.fixture(scope="module")
def both(trained: Path, transformer: Path) -> Iterator[TestClient]:
    """A client of a recurrent model "0" and a Transformer "1"."""
    with served_by(pool_of(trained, transformer)) as opened:
        yield opened
