"""Shortlists, bfloat16 and int8: measured when training ends, used for text alone where they lose nothing."""

import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
import torch

from nmt.build import approximations
from nmt.build.approximations import for_text, measured
from nmt.build.open import TranslatorRequest
from nmt.build.requests import read
from nmt.config.composition import compose
from nmt.runs.run import Run
from nmt.system.compute import CPU, Compute, has_int8
from nmt.system.errors import UserError
from nmt.text.lexicon import Lexicon
from nmt.text.tokenizer import load_tokenizer
from nmt.train import session as training
from nmt.translate.request import Translating
from tests.small import call, pairs, words

NATIVE = not Compute(torch.device("cpu"), torch.bfloat16).emulates


@pytest.fixture
def native(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor with instructions for bfloat16, or one that says so, and without int8."""
    monkeypatch.setattr(Compute, "emulates", False)
    monkeypatch.setattr(approximations, "has_int8", lambda: False)


@pytest.fixture
def every(monkeypatch: pytest.MonkeyPatch) -> None:
    """A processor with instructions for both, or one that says so."""
    monkeypatch.setattr(Compute, "emulates", False)
    monkeypatch.setattr(approximations, "has_int8", lambda: True)


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of a trained run, without the measurement that a slow machine makes."""
    copied = Run(Path(shutil.copytree(trained, tmp_path / "run")))
    facts = {key: value for key, value in copied.facts().items() if key != "precision"}
    (copied.folder / "run.json").write_text(json.dumps(facts), "utf-8")
    return copied


def noted(
    run: Run, float32: Any, bf16: Any, others: Mapping[str, float] | None = None, *, step: int | None = None
) -> None:
    """Note a measurement, by default of the best weights."""
    run.note(
        precision={
            "step": run.best_step() if step is None else step,
            "valid_bleu": {"float32": float32, "bf16": bf16, **(others or {})},
        }
    )


def request_for(run: Run, *line: str) -> TranslatorRequest:
    """How a translation searches."""
    line = (*([] if any(word.startswith("run=") for word in line) else [f"run={run.folder}"]), "device=cpu", *line)
    request = read(Translating, compose("translate", line), line)
    return for_text(request.translator) if request.only_text else request.translator


def chosen(run: Run, *line: str) -> Compute:
    """What a translation computes in."""
    return request_for(run, *line).compute


def precision(run: Run, *line: str) -> torch.dtype | None:
    """The type of products of a translation."""
    return chosen(run, *line).dtype


@pytest.mark.skipif(not has_int8(), reason="this processor does not multiply int8")
def test_each_precision_is_measured_with_the_search_of_the_run(run: Run, every: None) -> None:
    rows = pairs(340)[300:320]
    line, _ = measured(run, CPU, [row[0] for row in rows], [row[1] for row in rows], "en")
    found = run.facts()["precision"]
    assert found["step"] == run.best_step()
    assert found["sentences"] == 20
    values = found["valid_bleu"]
    assert [*values] == ["float32", "int8+bf16", "bf16", "int8"]
    assert min(values.values()) > 50
    best = next((name for name in [*values][1:] if values[name] > values["float32"] - 0.05), "float32")
    assert line.startswith(f"Translating without attention weights will use {best}: ")
    compute = chosen(run)
    assert (compute.dtype is torch.bfloat16) == ("bf16" in best)
    assert compute.int8 == ("int8" in best)


@pytest.mark.skipif(not has_int8(), reason="this processor does not multiply int8")
def test_shortlists_are_measured_where_the_vocabulary_is_large(
    run: Run, every: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(approximations, "PIECES", 10)
    rows = pairs(340)[300:310]
    measured(run, CPU, [row[0] for row in rows], [row[1] for row in rows], "en")
    values = run.facts()["precision"]["valid_bleu"]
    assert [*values] == ["float32", *(f"bf16+shortlist={count}" for count in (50, 100)), "int8+bf16", "bf16", "int8"]
    # A lexicon that knows nothing loses everything.
    lexicon = safetensors.numpy.load_file(run.lexicon)
    vocabularies = load_tokenizer(run.folder / "tokenizer").fingerprint
    Lexicon(np.full_like(lexicon["translations"], -1), lexicon["common"][:0]).save(run.lexicon, vocabularies)
    line, _ = measured(run, CPU, [row[0] for row in rows], [row[1] for row in rows], "en")
    values = run.facts()["precision"]["valid_bleu"]
    assert values["bf16+shortlist=50"] < values["float32"]
    assert "shortlist" not in line.partition(":")[0]


HALF, EXACT = torch.bfloat16, (None, False, None)
SHORT, LONG = "bf16+shortlist=50", "bf16+shortlist=100"
#: Settings with which more than text is wanted, or another precision than the automatic one.
NUMBERS = (
    *("precision=float32", "scores=true", "format=jsonl", "format=tsv", "alignments=links", "show=links"),
    *("heatmaps=pictures", "checkpoint=last"),
)


@pytest.mark.parametrize(
    ("scores", "words", "expected"),
    [
        ({}, [], EXACT),
        ({"bf16": 29.96}, [], (HALF, False, 0)),
        ({"bf16": 29.94}, [], EXACT),
        ({"bf16": 30.0}, ["format=text"], (HALF, False, 0)),
        ({"bf16": 30.0}, ["search=greedy"], (HALF, False, 0)),
        ({"bf16": 30.0}, ["tags=html"], (HALF, False, 0)),
        *(({"bf16": 31.0, SHORT: 31.0}, [word], EXACT) for word in NUMBERS),
        ({SHORT: 30.0, LONG: 31.0}, [], (HALF, False, 50)),
        ({SHORT: 29.9, LONG: 30.0}, [], (HALF, False, 100)),
        ({SHORT: 29.9, LONG: 29.9}, [], EXACT),
        ({SHORT: 30.0}, ["shortlist=0"], (None, False, 0)),
        ({SHORT: 30.0}, ["shortlist=7"], (None, False, 7)),
        ({SHORT: 30.0}, ["search=sampling"], EXACT),
        ({SHORT: 30.0}, ["search.beam_size=2"], EXACT),
        ({"int8+bf16": 30.0, "bf16": 31.0, "int8": 31.0}, [], (HALF, True, 0)),
        ({"int8+bf16": 29.0, "bf16": 30.0, "int8": 31.0}, [], (HALF, False, 0)),
        ({"int8+bf16": 29.0, "bf16": 29.0, "int8": 30.0}, [], (None, True, 0)),
        ({"int8+bf16": 29.0, "bf16": 29.0, "int8": 29.0}, [], EXACT),
    ],
)
def test_the_fastest_search_that_loses_nothing_is_used_for_text_alone(
    run: Run, every: None, scores: dict[str, float], words: list[str], expected: tuple[Any, bool, int | None]
) -> None:
    noted(run, 30.0, 29.0, scores)
    request = request_for(run, *words)
    assert (request.compute.dtype, request.compute.int8, request.shortlist) == expected


def test_a_run_whose_lexicon_is_gone_translates_without_a_shortlist(run: Run, native: None) -> None:
    noted(run, 30.0, 30.0, {"bf16+shortlist=50": 30.0})
    run.lexicon.unlink()
    assert request_for(run).shortlist == 0
    assert chosen(run).dtype is torch.bfloat16


def test_a_processor_without_bfloat16_may_use_int8(run: Run, every: None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Compute, "emulates", True)
    noted(run, 30.0, 31.0, {"int8+bf16": 31.0})  # measured on another processor
    assert not chosen(run).int8
    noted(run, 30.0, 31.0, {"int8": 30.0})
    assert (chosen(run).dtype, chosen(run).int8) == (None, True)


def test_only_the_present_weights_of_one_run_were_measured(run: Run, native: None) -> None:
    noted(run, 30.0, 31.0)
    assert precision(run) is torch.bfloat16
    assert precision(run, f"run=[{run.folder},{run.folder}]") is None
    noted(run, 30.0, 31.0, step=1)
    assert precision(run) is None
    noted(run, 30.0, 31.0)
    (run.folder / "history.jsonl").write_text("{", "utf-8")
    assert precision(run) is None, "translating needs no history"


@pytest.mark.parametrize("values", [("30", "31"), (None, 31.0), ([], {})])
def test_a_measurement_that_is_none_does_not_count(run: Run, native: None, values: tuple[Any, Any]) -> None:
    facts = run.facts()
    for value in ({"step": None, "valid_bleu": {"float32": values[0], "bf16": values[1]}}, values[0] or 5):
        (run.folder / "run.json").write_text(json.dumps({**facts, "precision": value}), "utf-8")
        with pytest.raises(UserError, match=r"run\.json is damaged: precision[a-z0-9_.]* must be"):
            precision(run)


def test_without_instructions_for_them_nothing_is_measured(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    noted(run, 30.0, 31.0)
    monkeypatch.setattr(Compute, "emulates", True)
    monkeypatch.setattr(approximations, "has_int8", lambda: False)
    assert precision(run) is None
    assert len(measured(run, CPU, ["eins"], ["one"], "en")) == 1, "only of doubts"


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
    assert (
        ("Translating without attention weights will use " in shown)
        == told
        == ("precision" in Run(tmp_path / "short").facts())
    )


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
