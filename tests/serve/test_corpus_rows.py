"""The sentences of an evaluation, as the server gives them."""

import json
import math
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from nmt.serve.corpus_rows import divergence
from tests.serve.conftest import client, pool_of
from tests.small import call


@pytest.fixture(scope="module")
def evaluated(trained: Path, transformer: Path, tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """Copies of two runs with evaluations."""
    folder = tmp_path_factory.mktemp("evaluated")
    runs = [Path(shutil.copytree(run, folder / name)) for run, name in ((trained, "one"), (transformer, "two"))]
    for run in runs:
        assert call("evaluate", f"run={run}", "pictures=0", "threads=1") == 0
    return runs


@pytest.fixture(scope="module")
def api(evaluated: list[Path]) -> Iterator[TestClient]:
    with client(pool_of(*evaluated)) as opened:
        yield opened


def test_rows_have_the_texts_and_measures_of_the_evaluation(api: TestClient, evaluated: list[Path]) -> None:
    found = api.get("/v1/corpus").json()
    assert (found["split"], found["splits"]) == ("test", ["test"])
    folder = evaluated[0] / "evaluation" / "test"
    measured = json.loads((folder / "sentences.json").read_text("utf-8"))
    assert [row["line"] for row in found["rows"]] == list(range(1, len(measured) + 1))
    for key, file in (("source", "source.txt"), ("translation", "hypotheses.txt"), ("reference", "reference.txt")):
        assert [row[key] for row in found["rows"]] == (folder / file).read_text("utf-8").splitlines()
    for row, known in zip(found["rows"], measured, strict=True):
        assert {key: row[key] for key in known} == known
        assert {"chrf", "entropy", "coverage", "repetition", "unattended", "log_prob"} <= known.keys()


def test_two_runs_are_compared_sentence_by_sentence(api: TestClient) -> None:
    found = api.get("/v1/corpus", params={"model": "0", "with": "1"}).json()
    swapped = api.get("/v1/corpus", params={"model": "1", "with": "0", "split": "test"}).json()
    assert found["compared"]
    assert any(row["disagreement"] for row in found["rows"])
    for row, other in zip(found["rows"], swapped["rows"], strict=True):
        assert row["other"] == other["translation"]
        assert row["gain"] == pytest.approx(-other["gain"])
        assert row["disagreement"] == pytest.approx(other["disagreement"])
        if row["other"] == row["translation"]:
            assert row["difference"] == pytest.approx(0)


def test_a_run_without_an_evaluation_and_with_a_damaged_one(trained: Path, text: Path, tmp_path: Path) -> None:
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    shutil.rmtree(run / "evaluation", ignore_errors=True)
    with client(pool_of(run)) as opened:
        answer = opened.get("/v1/corpus")
        assert answer.status_code == 404
        assert "nmt.evaluate" in answer.json()["cure"]
        (model,) = opened.get("/v1/models").json()["models"]
        assert model["splits"] == []
        assert model["bleu"] is None
        assert {*model["examples"]} <= {*(text / "valid.de").read_text("utf-8").splitlines()}
        assert model["trained_on"]["pairs"] > 0
        assert model["validation"]["bleu"] > 50
        assert model["validation"]["step"] in (100, 200)
    assert call("evaluate", f"run={run}", "pictures=0", "threads=1") == 0
    folder = run / "evaluation" / "test"
    with client(pool_of(run)) as opened:
        found = opened.get("/v1/corpus").json()
        for params, field in (({"split": "../../etc"}, "split"), ({"model": "x"}, "model"), ({"with": "x"}, "with")):
            refused = opened.get("/v1/corpus", params=params)
            assert refused.status_code == 404
            assert refused.json()["field"] == field
        (folder / "sentences.json").unlink()
        missing = opened.get("/v1/corpus")
        assert missing.status_code == 503
        assert "Evaluate the run again" in missing.json()["detail"]
        (folder / "sentences.json").write_text("[1]", "utf-8")
        damaged = opened.get("/v1/corpus")
        assert damaged.status_code == 503
        assert "sentences.json is damaged" in damaged.json()["detail"]
        for value in ("NaN", "1e999", r'"\ud800"'):
            rows = ", ".join([f'{{"chrf": {value}}}'] * len(found["rows"]))
            (folder / "sentences.json").write_text(f"[{rows}]", "utf-8")
            damaged = opened.get("/v1/corpus")
            assert damaged.status_code == 503
            assert "nmt.evaluate" in damaged.json()["cure"]
            assert damaged.headers["content-type"] == "application/problem+json"


def test_divergence_by_hand() -> None:
    """Rows are normalised; (1, 0) and (1/2, 1/2) have the mean (3/4, 1/4)."""
    assert divergence([[300, 300]], [[5, 5]]) == pytest.approx(0)
    assert divergence([[9, 0]], [[0, 1]]) == pytest.approx(math.log(2))
    half = (math.log(4 / 3) + 0.5 * math.log(2 / 3) + 0.5 * math.log(2)) / 2
    assert divergence([[1, 0], [9, 0]], [[1, 1], [0, 1]]) == pytest.approx((half + math.log(2)) / 2)
