"""Runs that are hardly trained are said to be so; the rule is that of docs/serving.md."""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.runs.maturity import FEW_UPDATES, hardly_trained
from nmt.runs.run import Run
from tests.small import Capture, call, copied, write_lines


def with_history(trained: Path, folder: Path, *entries: dict[str, Any]) -> Run:
    run = Run(copied(trained, folder))
    run.keep_history(list(entries))
    return run


def validated(step: int, **more: float) -> dict[str, Any]:
    usual = dict.fromkeys(("epoch", "minutes", "valid_loss", "valid_perplexity", "best"), 1.0)
    return {"step": step, **usual, **more}


@pytest.mark.parametrize(
    ("entries", "note"),
    [
        ([], ""),
        ([validated(5000, valid_bleu=20.0)], ""),
        ([validated(FEW_UPDATES, valid_bleu=1.0)], ""),
        ([validated(FEW_UPDATES - 1, valid_bleu=30.0)], "had 99 updates and validation BLEU 30.00: "),
        ([validated(5000, valid_bleu=0.3)], "had 5,000 updates and validation BLEU 0.30: "),
        ([validated(5000, valid_chrf=14.9, valid_bleu=0.0)], "had 5,000 updates and validation chrF 14.90: "),
        ([validated(5000, valid_chrf=60.0, valid_bleu=0.0)], ""),
        ([validated(1, valid_bleu=2.0)], "had 1 update and validation BLEU 2.00: "),
        ([validated(5000, valid_bleu=20.0), {**validated(6000, valid_bleu=0.1), "best": 0.0}], ""),
    ],
)
def test_the_rule(trained: Path, tmp_path: Path, entries: list[dict[str, Any]], note: str) -> None:
    found = hardly_trained(with_history(trained, tmp_path, *entries))
    assert found == (f"This model {note}its translations and its attention say little." if note else "")


def test_a_run_that_went_on_from_another_may_have_few_updates(trained: Path, tmp_path: Path) -> None:
    run = with_history(trained, tmp_path, validated(9, valid_bleu=30.0))
    path = run.folder / "config.yaml"
    path.write_text(path.read_text("utf-8").replace("start: null", "start: checkpoints/first"), "utf-8")
    assert "checkpoints/first" in path.read_text("utf-8")
    assert hardly_trained(run) == ""


def test_a_damaged_history_stops_nobody(trained: Path, tmp_path: Path) -> None:
    run = with_history(trained, tmp_path, validated(9, valid_bleu=30.0))
    (run.folder / "history.jsonl").write_text('{"step": "nine"}\n', encoding="utf-8")
    assert hardly_trained(run) == ""


def test_the_terminal_says_so_once(trained: Path, tmp_path: Path, capfd: Capture) -> None:
    run = with_history(trained, tmp_path, validated(20, valid_bleu=0.02))
    text = write_lines(tmp_path / "text", ["eins zwei", "drei"])
    for name in ("out.txt", "out.html"):
        if name == "out.html":
            text = write_lines(tmp_path / "text.html", ["<p>eins</p><p>drei</p>"])
        capfd.readouterr()
        assert call("translate", f"run={run.folder}", f"input={text}", f"output={tmp_path / name}", "device=cpu") == 0
        error = capfd.readouterr().err
        assert error.count("This model had 20 updates and validation BLEU 0.02: its translations") == 1, error
    assert json.loads((run.folder / "run.json").read_text("utf-8"))
