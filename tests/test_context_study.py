"""The script that measures context: its runs compose, a small one goes through, and the table says what was found."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import context_study as study

from nmt import build
from nmt.command.composing import compose
from nmt.errors import UserError


@pytest.mark.parametrize("name", study.MODELS)
def test_models_compose(name: str) -> None:
    train, _ = study.commands(study.Job(name, 2, 1), Path("x"), [])
    model = build.assemble(compose("train", train[1:]), 20, 20, joint=True)
    assert model.context_sentences == 2


def test_a_run_goes_through_and_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).resolve().parents[1]))
    small = ["data.train_documents=26", "data.valid_documents=2", "data.test_documents=13", "trainer.steps=1"]
    small += ["tokenizer.vocabulary_size=320"]
    job = study.Job("concat", 1, 1)
    assert study.work(job, tmp_path, small) == ""
    result = study.result_of(job, tmp_path)
    before = result.stat().st_mtime_ns
    assert study.work(job, tmp_path, ["no.such=setting"]) == ""
    assert result.stat().st_mtime_ns == before
    assert "failed, see" in study.work(job._replace(seed=2), tmp_path, ["no.such=setting"])


def test_the_table_has_means_and_extremes() -> None:
    def figures(one: float, two: float) -> dict[str, dict[str, float]]:
        both = {"sentences": 10, "chance": 0.25}
        return {"1": {**both, "accuracy": one}, "2": {**both, "accuracy": two}, "all": {**both, "accuracy": 0}}

    results = {study.Job("concat", 1, 1): figures(1, 0.2), study.Job("concat", 1, 2): figures(0.9, 0.3)}
    assert study.table(results).splitlines() == [
        "| model | context | seeds | distance 1 (chance 25.0) | distance 2 (chance 25.0) |",
        "| --- | --- | --- | --- | --- |",
        "| concat | 1 | 2 | 95.0 (90.0 to 100.0) | 25.0 (20.0 to 30.0) |",
    ]


def test_mistakes() -> None:
    for word, message in (("jobs=0", "jobs=0: must be a whole number"), ("seeds=1,x", "seeds=1,x: must be whole")):
        with pytest.raises(UserError, match=message):
            study.main([word])
