"""The attention study's script: its tables from a comparison's figures, and what it would train."""

import json
import shutil
import sys
import tarfile
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import attention_study
from archives import extract
from studying import answers, costs, quoting, rows, work
from studying import page as study

from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.compare.verdict import p_text
from nmt.runs import settings
from tests.compare.runs import result

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


def rate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "deviation": None, "values": [mean]}


def test_error_rates_are_ordered_by_the_first_way_to_read_links() -> None:
    ways = ("attention, shift 0", "attention, shift 1", "saliency")
    rates = {
        "dot": (30.0, 12.34, 5.0),
        "additive": (20.0, None, 4.0),
        "general": (9.96, 50.0, 30.0),
        "none": (None, None, 3.0),
    }
    variants: list[dict[str, Any]] = [
        {"label": label, "aer": {way: rate(mean) for way, mean in zip(ways, row, strict=True) if mean is not None}}
        for label, row in rates.items()
    ]
    variants[0]["aer"]["attention"] = rate(1.0)  # one of the columns again
    without = {"diagonal": 42.61, "oracle, one link per word": 11.6}
    gold = {"gold": "built-in", "without_model": without, "variants": variants}
    rows = study.exact_links({"alignments": [gold]}).splitlines()
    assert [line for line in rows if line.startswith("|")] == [
        "| row | built-in: attention, shift 0 | built-in: attention, shift 1 | built-in: saliency |",
        "|---|---:|---:|---:|",
        "| general | 10.0 | 50.0 | 30.0 |",
        "| additive | 20.0 | - | 4.0 |",
        "| dot | 30.0 | 12.3 | 5.0 |",
        "| none | - | - | 3.0 |",
        "| (diagonal) | 42.6 | 42.6 | 42.6 |",
        "| (oracle, one link per word) | 11.6 | 11.6 | 11.6 |",
    ]


def test_the_literature_stands_beside_our_rows_and_their_tests() -> None:
    qualities = {"luong-dot": 0.5, "luong-dot-projected": 0.9, "luong-general": 0.8, "luong-local_p-2": 0.79}
    made = {
        name: [result(f"{name}-{seed}", seed, {}, part, split=study.SPLIT) for seed in (1, 2)]
        for name, part in qualities.items()
    }
    lines = study.published(made).splitlines()
    cells = {line.split(" | ")[2]: line.split(" | ") for line in lines if line.count(" | ") == 4}
    assert cells["`luong-general`"][4] == "highest |"
    noise = answers.RowNoise(made, study.SPLIT)
    (p,) = (3 * noise.between("luong-general", name).p for name in ("luong-local_p-2",))  # three rows are three pairs
    assert cells["`luong-local_p-2`"][4] == f"{p_text(min(1.0, p))} |"
    assert cells["`luong-dot`"][4] == "< 0.001 |"
    assert cells["`luong-location`"][3:] == ["-", "- |"]  # none was trained
    means = [run.splits[study.SPLIT].scores["bleu"].value for run in made["luong-dot-projected"]]
    assert f"| dot of projections, 256 | 22.33 ± 0.28 | `luong-dot-projected` | {sum(means) / 2:.2f} |" in lines


def test_the_published_rows_are_rows_of_the_study() -> None:
    published = {row for *_, some in study.LUONG for row in some} | {row for *_, row in study.BRITZ if row}
    assert published <= {row.name for row in rows.ROWS}


def test_the_first_line_says_how_far_the_study_is() -> None:
    some = [result(f"none-{seed}", seed, {}, 0.5) for seed in (1, 2)]
    assert f"1 model **after four epochs**, before convergence (2 of {3 * len(rows.ROWS)} runs so far)" in (
        study.first_line(some)
    )
    every = [result(f"{row.name}-{seed}", seed, {}, 0.5) for row in rows.ROWS for seed in (1, 2, 3)]
    assert f"{len(rows.ROWS)} models **after four epochs**, before convergence (each with 3 seeds)." in (
        study.first_line(every)
    )


def test_costs_are_measured_for_every_row_in_turn(tmp_path: Path) -> None:
    some = [row for row in rows.ROWS if row.name in ("none", "luong-general", "transformer")]
    assert costs.measure(some, 2, tmp_path / "costs.json") == 0
    measured = costs.read(tmp_path / "costs.json")
    assert list(measured) == [row.name for row in some]
    for name, times in measured.items():
        assert {work: len(rounds) for work, rounds in times.items()} == {"training": 2, "translating": 2}, name
        assert min(min(rounds) for rounds in times.values()) > 0
    assert costs.read(tmp_path / "nothing.json") == {}


@pytest.mark.parametrize("words", [[], ["nonsense"], ["train"], ["report", "more=1"]])
def test_a_word_that_it_does_not_know_gets_the_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert attention_study.main(words) == 1
    assert "attention_study.py train multi30k=DIR" in capsys.readouterr().err


@pytest.mark.parametrize("corpus", ["multi30k", "builtin"])
def test_all_variants_can_be_built_and_differ(corpus: str) -> None:
    variants = rows.ROWS if corpus == "multi30k" else rows.ONCE
    configs = [compose("train", [*rows.SIZES, f"data={corpus}", *row.overrides, "seed=1"]) for row in variants]
    for config in configs:
        build.assemble(config, 50, 50, True)
    identities = {str(settings(config)) for config in configs}
    assert len(identities) == len({row.name for row in variants}) == len(variants)


def test_models_are_tuned_with_settings_that_exist() -> None:
    assert len(rows.CONVERGED) == 8
    for row in rows.CONVERGED:
        for words in rows.GRID:
            config = compose("train", [*rows.SIZES, *rows.TEXT, *rows.DE_EN, *rows.TUNING, *row.overrides, *words])
            assert f"optimizer.lr={config.optimizer.lr}" == words[0]


def test_the_best_of_a_row_is_that_of_its_records(tmp_path: Path) -> None:
    study = work.Study(tmp_path, tmp_path, [], [1, 2], [], lambda _: [])
    for seed, values in ((1, (9.0, 5.0, 6.0)), (2, (8.0, 7.0))):
        folder = tmp_path / "record" / f"row-{seed}"
        folder.mkdir(parents=True)
        figures = dict.fromkeys(("best", "epoch", "minutes", "valid_loss", "valid_bleu"), 0.0)
        lines = [json.dumps({**figures, "step": at, "valid_perplexity": value}) for at, value in enumerate(values)]
        (folder / "history.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        work.pack(folder.parent, work.archive(study, folder.name))
        shutil.rmtree(folder.parent)
    assert work.perplexity(study, rows.Row("row", ())) == 6.0


def test_a_run_that_is_recorded_is_not_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """A study of one row and two seeds, one of them recorded: the other is trained, scored and recorded."""
    monkeypatch.chdir(tmp_path)
    small = ["model.embedding_size=8", "encoder.size=8", "decoder.size=16", "decoder.readout.size=8"]
    small += ["trainer.steps=2", "data=builtin", "data.train_pairs=100", "tokenizer.vocabulary_size=400"]
    small += ["data.valid_pairs=10", "data.test_pairs=20", f"cache={tmp_path}/cache"]
    row = rows.Row("luong", ("decoder=luong", "attention.size=8"))
    measure = attention_study.builtin([]).measure
    made = work.Study(tmp_path / "runs", tmp_path / "records", [row], [1, 2], small, measure)
    work.archive(made, "luong-1").parent.mkdir()
    work.archive(made, "luong-1").write_bytes(b"")
    assert work.work(made, jobs=1) == 0
    assert "1 of 2 runs are recorded, 1 are left." in capfd.readouterr().err
    assert [path.name for path in made.runs.iterdir() if path.is_dir()] == ["luong-2"]
    work.unpack([work.archive(made, "luong-2")], tmp_path / "unpacked")
    record = tmp_path / "unpacked" / "luong-2"
    assert (record / "evaluation" / "test" / "counts.npz").exists()
    assert not list(record.rglob("*.safetensors"))
    assert len(list((record / "alignments").glob("*.json"))) == 2
    assert work.work(made, jobs=1) == 0
    assert "2 of 2 runs are recorded, 0 are left." in capfd.readouterr().err


def test_records_are_packed_alike(tmp_path: Path) -> None:
    (tmp_path / "records" / "run-1").mkdir(parents=True)
    (tmp_path / "records" / "run-1" / "scores.json").write_text('{"bleu": 1}')
    archives = [tmp_path / "first.tar.xz", tmp_path / "second.tar.xz"]
    for archive in archives:
        assert work.pack(tmp_path / "records", archive) == 0
        (tmp_path / "records" / "run-1" / "scores.json").touch()
    assert archives[0].read_bytes() == archives[1].read_bytes()
    with tarfile.open(archives[0]) as file:
        extract(file, tmp_path / "unpacked")
    assert (tmp_path / "unpacked" / "run-1" / "scores.json").read_text() == '{"bleu": 1}'


@pytest.mark.parametrize(("name", "kind"), [("../outside", tarfile.REGTYPE), ("link", tarfile.SYMTYPE)])
def test_an_archive_writes_nothing_outside_its_folder(name: str, kind: bytes, tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        member = tarfile.TarInfo(name)
        member.type, member.linkname = kind, str(tmp_path)
        file.addfile(member)
    (tmp_path / "inside").mkdir()
    with tarfile.open(tmp_path / "a.tar") as file, pytest.raises(tarfile.TarError, match="not a file inside"):
        extract(file, tmp_path / "inside")
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["a.tar", "inside"]


def test_the_notes_about_failed_trainings_are_true_of_their_records() -> None:
    runs = study.results_of(sorted((ROOT / study.RECORDS).glob("coverage-loss-*.tar.xz")))
    assert len(runs) == 3
    for run in runs:
        first, *others = (entry["valid_bleu"] for entry in run.history)
        assert max(others) < first + 1
    runs = study.results_of(sorted((ROOT / study.RECORDS).glob("hard-self-critical-*.tar.xz")))
    assert len(runs) == 3
    for run in runs:
        assert run.splits[study.SPLIT].measured["attention_entropy"] < 0.15
        (links,) = (each for each in run.aligned.values() if each.gold == study.SILVER)
        assert links.rates[links.attention or ""] > links.without_model["diagonal"]


@pytest.mark.slow
def test_the_page_is_what_the_committed_records_give(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / study.FOLDER, tmp_path / study.FOLDER, ignore=shutil.ignore_patterns("pictures"))
    for page in quoting.QUOTED:
        shutil.copy(ROOT / page, tmp_path / page)
    monkeypatch.chdir(tmp_path)
    assert attention_study.main(["report"]) == 0
    for page in (study.PAGE, *quoting.QUOTED):
        assert (tmp_path / page).read_text("utf-8") == (ROOT / page).read_text("utf-8"), page
    pictures = [{path.name for path in (root / study.FOLDER / "pictures").iterdir()} for root in (tmp_path, ROOT)]
    assert pictures[0] == pictures[1]
