"""Texts that BLEU cannot judge, tokenised text, and several references: from training to comparison."""

import json
import re
import shutil
from pathlib import Path

import pytest

from nmt.build.approximations import for_text, measured
from nmt.build.open import TranslatorRequest
from nmt.build.requests import SearchRequest
from nmt.runs.run import Run
from nmt.system.compute import CPU, Compute
from tests.small import Capture, call, pairs, words, write_lines


def files_of(here: Path, rows: list[tuple[str, str]]) -> tuple[Path, Path]:
    return write_lines(here / "a.de", [row[0] for row in rows]), write_lines(here / "a.en", [row[1] for row in rows])


def evaluated(run: Path, source: Path, references: str, here: Path) -> Path:
    """The folder of the scores of two files."""
    line = [f"run={run}", f"source={source}", f"reference={references}", f"output={here / 'scores'}", "pictures=1"]
    assert call("evaluate", *line) == 0
    (folder,) = (here / "scores").iterdir()
    return folder


@pytest.mark.long
def test_several_references_are_scored_shown_and_compared(run: Path, here: Path, capfd: Capture) -> None:
    rows = [row for row in pairs(340)[300:] if len(row[0].split()) > 3]
    source, first = files_of(here, rows)
    second = write_lines(here / "b.en", [f"truly {target}" for _, target in rows])
    folder = evaluated(run, source, f"[{first},{second}]", here)
    alone = evaluated(run, source, str(second), here / "alone")
    known, other = (json.loads((each / "scores.json").read_text("utf-8")) for each in (folder, alone))
    assert known["references"] == 2
    assert all("nrefs:2|" in known[metric]["signature"] for metric in ("bleu", "chrf", "ter", "tokenised_bleu"))
    assert known["exact_matches"] > other["exact_matches"] == 0
    assert known["chrf"]["value"] > other["chrf"]["value"]
    assert (folder / "reference-2.txt").read_text("utf-8") == second.read_text("utf-8")
    assert f"{rows[0][1]} | truly {rows[0][1]}" in (folder / "report.html").read_text("utf-8")
    capfd.readouterr()
    line = [f"source={source}", f"reference=[{first},{second}]", f"output={here / 'comparison'}", "pictures=0"]
    assert call("compare", f"runs={run}", *line) == 0
    assert "scores take 2 references of each line" in capfd.readouterr().out


def test_references_that_do_not_fit_are_named(trained: Path, here: Path, capfd: Capture) -> None:
    source, first = files_of(here, pairs(5))
    short = write_lines(here / "short.en", ["a"])
    for references, message in ((f"[{first},{short}]", f"{short} has 1 line"), ("[]", "reference=[] is empty")):
        assert call("evaluate", f"run={trained}", f"source={source}", f"reference={references}") == 1
        assert message in capfd.readouterr().err


def test_tokenised_text_gets_one_note_of_ours(trained: Path, here: Path, capfd: Capture) -> None:
    rows = [(f"{source} .", f"{target} .") for source, target in pairs(120)]
    source, reference = files_of(here, rows)
    evaluated(trained, source, str(reference), here)
    out, err = capfd.readouterr()
    assert (out + err).count("looks tokenised") == 1
    assert f"{reference} looks tokenised: 100 % of its lines end in ' .'" in out
    assert "force" not in out + err


@pytest.mark.long
def test_a_word_list_is_trained_and_translated_by_chrf(here: Path, text: Path, capfd: Capture) -> None:
    rows = [row for row in pairs(340) if len(row[0].split()) < 3]
    for name, part in (("valid", rows[:12]), ("test", rows[12:20])):
        for language, side in (("de", 0), ("en", 1)):
            write_lines(here / f"{name}.{language}", [row[side] for row in part])
    changed = [f"data.valid={here / 'valid'}", f"data.test={here / 'test'}"]
    line = words(text, here, "name=a", "trainer.steps=90", "trainer.validate_every=30", *changed)
    assert call("train", *line) == 0
    err = capfd.readouterr().err
    run = Run(here / "a")
    history = run.history()
    assert err.count("which BLEU cannot judge") == 1
    assert "The validation set: 100 % of the references have fewer than 4 tokens" in err
    assert re.search(r"Best: validation chrF \d+\.\d\d, exact matches \d+\.\d %, perplexity", err)
    assert "BLEU 0.00" not in err
    assert run.facts()["judged_by"] == "chrf"
    best = max(history, key=lambda entry: (entry["valid_chrf"], -entry["valid_loss"]))
    assert run.best_step() == best["step"]
    assert call("evaluate", f"run={here / 'a'}", "pictures=1") == 0
    out = capfd.readouterr().out
    assert out.splitlines()[0].split()[2:4] == ["chrF", "BLEU"]
    assert "test: 100 % of the references have fewer than 4 tokens" in out
    assert json.loads((here / "a/evaluation/test/scores.json").read_text("utf-8"))["judged_by"] == "chrf"
    assert call("compare", f"runs={here / 'a'}", f"output={here / 'comparison'}") == 0
    out = capfd.readouterr().out
    assert "There is one variant" in out
    assert "with chrF" in out


def test_the_arithmetic_is_chosen_by_chrf_where_bleu_is_blind(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Compute, "emulates", False)
    rows = [row for row in pairs(340)[300:] if len(row[0].split()) < 3][:6]
    run = Run(Path(shutil.copytree(trained, here / "run")))
    line, _ = measured(run, CPU, [row[0] for row in rows], [row[1] for row in rows], "en")
    assert "validation chrF" in line
    noted = run.facts()["precision"]
    assert noted["valid_chrf"]["float32"] > 0
    assert "valid_bleu" not in noted
    worse = {name: value if name == "float32" else value - 1 for name, value in noted["valid_chrf"].items()}
    run.note(precision={**noted, "valid_chrf": worse})
    request = TranslatorRequest(
        str(run.folder), "best", SearchRequest("", {}, ()), CPU, 8, None, None, 10, 250, "split"
    )
    assert for_text(request) == request
