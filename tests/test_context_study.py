"""The script that measures context: its runs compose, a small one goes through, and the table says what was found."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import context_study as study

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.errors import UserError

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("name", study.MODELS)
def test_models_compose(name: str) -> None:
    train, _ = study.commands(study.Job(name, 2, 1), study.Study(Path("x"), Path("y")))
    model = build.assemble(compose("train", train[1:]), 20, 20, joint=True)
    assert model.context_sentences == 2


def test_a_run_is_recorded_and_not_trained_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    small = ["data.train_documents=26", "data.valid_documents=2", "data.test_documents=13", "trainer.steps=1"]
    small += ["tokenizer.vocabulary_size=320"]
    job, own = study.Job("concat", 1, 1), study.Study(tmp_path / "runs", tmp_path / "records", small)
    assert study.work(job, own) == ""
    record = study.read_record(own.record_of(job))
    assert (record["model"], record["sentences"], record["seed"], record["step"]) == (*job, 1)
    assert record["settings"] == small
    assert record["by_distance"].keys() == {"1", "2", "3", "all"}
    assert str(tmp_path) not in own.record_of(job).read_text(encoding="utf-8")
    before = own.record_of(job).stat().st_mtime_ns
    assert study.work_all([job], own, 1) == []
    assert own.record_of(job).stat().st_mtime_ns == before
    with pytest.raises(
        UserError, match=r"concat-1-seed1\.json: recorded with other settings\. Give the same KEY=VALUE"
    ):
        study.work_all([job], own._replace(further=["trainer.steps=2"]), 1)
    (error,) = study.work_all([job._replace(seed=2)], own._replace(further=["no.such=setting"]), 1)
    assert "concat-1-seed2: nmt.train failed, see" in error


def record(model: str, sentences: int, seed: int, *accuracies: float) -> dict[str, Any]:
    figures = {str(at): {"sentences": 10, "chance": 0.25, "accuracy": value} for at, value in enumerate(accuracies, 1)}
    figures["all"] = {"sentences": 20, "chance": 0.25, "accuracy": 0}
    job = {"model": model, "sentences": sentences, "seed": seed}
    return {**job, "settings": [], "step": 100 * seed, "text": "f00", "by_distance": figures}


def write(folder: Path, *records: dict[str, Any]) -> Path:
    folder.mkdir(exist_ok=True)
    for number, one in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(one), encoding="utf-8")
    return folder


def test_the_page_has_means_and_extremes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    runs = [
        ("segments", 1, 1, 1, 0.5),
        ("concat", 1, 2, 0.9, 0.3),
        ("concat", 1, 1, 1, 0.2),
        ("concat", 0, 1, 0.25, 0.25),
    ]
    records = write(tmp_path / "records", *(record(*run) for run in runs))
    page = tmp_path / "page.md"
    page.write_text(f"Before.\n\n{study.BEGIN}old\n{study.END}\nAfter.\n", encoding="utf-8")
    for _ in range(2):
        assert study.main([f"page={page}", f"records={records}"]) == 0
        before, _, rest = page.read_text(encoding="utf-8").partition(study.BEGIN)
        middle, _, after = rest.partition(study.END)
        assert (before, after) == ("Before.\n\n", "\nAfter.\n")
        assert middle.splitlines() == [
            "",
            "| model | context | seeds | distance 1 | distance 2 |",
            "| --- | --- | --- | --- | --- |",
            "| chance |  |  | 25.0 | 25.0 |",
            "| concat | 0 | 1 | 25.0 (25.0 to 25.0) | 25.0 (25.0 to 25.0) |",
            "| concat | 1 | 2 | 95.0 (90.0 to 100.0) | 25.0 (20.0 to 30.0) |",
            "| segments | 1 | 1 | 100.0 (100.0 to 100.0) | 50.0 (50.0 to 50.0) |",
            "",
            "Accuracy in percent: the mean over seeds, in brackets the lowest and the highest. 4 runs of 100 to 200 "
            "updates.",
            "",
        ]
    assert capsys.readouterr().out == ""


def test_the_page_of_the_documents_shows_the_records() -> None:
    page = (ROOT / "docs" / "documents.md").read_text(encoding="utf-8")
    shown = page.partition(study.BEGIN)[2].partition(study.END)[0]
    assert shown == f"\n{study.section(study.read_records(study.RECORDS))}\n", (
        "python scripts/context_study.py page=docs/documents.md"
    )


def test_the_runs_that_are_asked_for() -> None:
    names = [job.name for job in study.jobs_of([1, 2], [0, 2])]
    assert len(names) == len(set(names)) == 16
    assert names[:4] == [
        "concat-0-seed1",
        "concat-2-seed1",
        "hierarchical-2-seed1",
        "hierarchical-over_attention-2-seed1",
    ]
    assert names[8] == "concat-0-seed2", "one seed after the other"
    assert [job.name for job in study.jobs_of([3], [2], ["segments"])] == ["segments-2-seed3"]
    assert len(study.jobs_of([1, 2, 3])) == 60


def test_mistakes(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("Nothing.\n", encoding="utf-8")
    good = record("concat", 1, 1, 0.5)
    damaged = write(tmp_path / "damaged", {"model": "concat"})
    mixed = write(tmp_path / "mixed", good, {**good, "settings": ["trainer.epochs=1"]})
    for words, message in (
        (["jobs=0"], "jobs=0: must be a whole number"),
        (["seeds=1,x"], "seeds=1,x: must be whole"),
        (["sentences="], "sentences=: must be whole"),
        (["models=concat,segment"], "models=segment does not exist. Give some of: concat, hierarchical,"),
        ([f"page={tmp_path / 'no.md'}"], "no.md cannot be read"),
        ([f"page={page}"], "page.md: has no place for the table"),
        ([f"page={ROOT / 'docs' / 'documents.md'}", f"records={damaged}"], "damaged/0.json is damaged"),
        ([f"page={ROOT / 'docs' / 'documents.md'}", f"records={mixed}"], "has records of several settings"),
    ):
        with pytest.raises(UserError) as caught:
            study.main(words)
        assert message in str(caught.value)
