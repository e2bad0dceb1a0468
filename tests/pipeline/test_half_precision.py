"""Translating in bfloat16: measured at the end of training, used for text alone, only where it loses nothing."""

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.command.composing import compose
from nmt.compute import CPU, Compute
from nmt.pipeline import training
from nmt.pipeline.half_precision import for_text, measured
from nmt.pipeline.opening import TranslatorRequest
from nmt.pipeline.requests import read
from nmt.pipeline.translating import Translating
from nmt.runs import Run
from tests.pipeline.small import call, pairs, words

NATIVE = not Compute(torch.device("cpu"), torch.bfloat16).emulates


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor with instructions for bfloat16, or one that says so."""
    monkeypatch.setattr(Compute, "emulates", False)


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of a trained run."""
    return Run(Path(shutil.copytree(trained, tmp_path / "run")))


def noted(run: Run, float32: Any, bf16: Any, step: int | None = None) -> None:
    """Note a measurement, by default of the best weights."""
    run.note(
        bfloat16={
            "step": run.best_step() if step is None else step,
            "valid_bleu": {"float32": float32, "bf16": bf16},
        }
    )


def precision(run: Run, *line: str) -> torch.dtype | None:
    """The type of products of a translation."""
    line = (*([] if any(word.startswith("run=") for word in line) else [f"run={run.folder}"]), "device=cpu", *line)
    request = read(Translating, compose("translate", line), line)
    return (for_text(request.translator) if request.only_text else request.translator).compute.dtype


def test_both_are_measured_with_the_search_of_the_run(run: Run, native: None) -> None:
    rows = pairs(340)[300:320]
    line = measured(run, CPU, [row[0] for row in rows], [row[1] for row in rows], "en")
    found = run.facts()["bfloat16"]
    assert found["step"] == run.best_step()
    assert found["sentences"] == 20
    float32, bf16 = found["valid_bleu"].values()
    assert min(float32, bf16) > 50
    assert line is not None
    assert ("use bfloat16" in line) == (bf16 >= float32) == (precision(run) is torch.bfloat16)


@pytest.mark.parametrize("words", [[], ["format=text"], ["search=greedy"]], ids=" ".join)
def test_text_alone_is_in_bfloat16_where_that_loses_nothing(run: Run, native: None, words: list[str]) -> None:
    assert precision(run, *words) is None
    noted(run, 30.0, 30.0)
    assert precision(run, *words) is torch.bfloat16
    noted(run, 30.0, 29.99)
    assert precision(run, *words) is None


@pytest.mark.parametrize(
    "words",
    [
        ["precision=float32"],
        ["scores=true"],
        ["format=jsonl"],
        ["format=tsv"],
        ["alignments=links"],
        ["show=links"],
        ["heatmaps=pictures"],
        ["checkpoint=last"],
    ],
    ids=" ".join,
)
def test_numbers_of_the_model_and_what_was_not_measured_are_in_float32(
    run: Run, native: None, words: list[str]
) -> None:
    noted(run, 30.0, 31.0)
    assert precision(run) is torch.bfloat16
    assert precision(run, *words) is None


def test_an_ensemble_was_not_measured(run: Run, native: None) -> None:
    noted(run, 30.0, 31.0)
    assert precision(run) is torch.bfloat16
    assert precision(run, f"run=[{run.folder},{run.folder}]") is None


def test_a_measurement_of_earlier_weights_does_not_count(run: Run, native: None) -> None:
    noted(run, 30.0, 31.0, step=1)
    assert precision(run) is None


def test_translating_needs_no_history(run: Run, native: None) -> None:
    noted(run, 30.0, 31.0)
    (run.folder / "history.jsonl").write_text("{", "utf-8")
    assert precision(run) is None


@pytest.mark.parametrize("values", [("30", "31"), (None, 31.0), ([], {})])
def test_a_measurement_that_is_none_does_not_count(run: Run, native: None, values: tuple[Any, Any]) -> None:
    noted(run, *values)
    assert precision(run) is None
    run.note(bfloat16=values[0])
    assert precision(run) is None


def test_without_instructions_for_it_nothing_is_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(run, 30.0, 31.0)
    monkeypatch.setattr(Compute, "emulates", True)
    assert precision(run) is None
    assert measured(run, CPU, ["eins"], ["one"], "en") is None


@pytest.mark.parametrize(
    ("minutes", "search", "told"), [(0.0, "beam", True), (1000.0, "beam", False), (0.0, "sampling", False)]
)
def test_training_ends_with_the_measurement_if_it_took_long_enough_and_nothing_is_drawn(
    minutes: float,
    search: str,
    told: bool,
    text: Path,
    tmp_path: Path,
    native: None,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(training, "MINUTES", minutes)
    assert call("train", *words(text, tmp_path, "name=short", "trainer.steps=2", f"search={search}")) == 0
    shown = capsys.readouterr().err
    assert ("Translations of text alone use " in shown) == told == ("bfloat16" in Run(tmp_path / "short").facts())


@pytest.mark.skipif(not NATIVE, reason="this processor has no instructions for bfloat16")
def test_the_command_translates_in_the_chosen_precision(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[torch.dtype | None] = []
    opened: Callable[..., Any] = TranslatorRequest.open

    def watched(request: Any, *args: Any) -> Any:
        translator = opened(request, *args)
        seen.append(translator.compute.dtype)
        return translator

    monkeypatch.setattr(TranslatorRequest, "open", watched)
    (tmp_path / "in").write_text("eins und zwei\n", "utf-8")
    for bleu in (30.0, 29.0):
        noted(run, 30.0, bleu)
        assert call("translate", f"run={run.folder}", f"input={tmp_path / 'in'}", f"output={tmp_path / 'out'}") == 0
        assert (tmp_path / "out").read_text("utf-8") == "one and two\n"
    assert seen == [torch.bfloat16, None]
