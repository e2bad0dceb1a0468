"""Translations of other programs beside those of runs: `systems=` of `nmt.compare`."""

import json
import re
from pathlib import Path
from typing import Any

import pytest

from tests.small import QUICK, Capture, call, write_lines

pytestmark = pytest.mark.long


@pytest.fixture
def files(swept: Path, here: Path) -> list[str]:
    """Files as another program leaves them: the translations of a run, those of the other seed, the text."""
    results = [swept / f"bahdanau-{seed}" / "evaluation" / "test" for seed in (1, 2)]
    hypotheses = [(folder / "hypotheses.txt").read_text(encoding="utf-8").splitlines() for folder in results]
    write_lines(here / "m1.txt", hypotheses[0])
    write_lines(here / "m2.txt", hypotheses[1])
    write_lines(here / "short.txt", hypotheses[0][1:])
    for name in ("source", "reference"):
        write_lines(here / f"{name}.txt", (results[0] / f"{name}.txt").read_text(encoding="utf-8").splitlines())
    return hypotheses[0]


def compared(*line: str) -> Any:
    assert call("compare", *line, "output=report", *QUICK) == 0
    return json.loads(Path("report", "report.json").read_text(encoding="utf-8"))


@pytest.mark.usefixtures("files")
def test_equal_translations_have_equal_scores_and_no_difference(swept: Path, capfd: Capture) -> None:
    report = compared(f"runs=[{swept}/bahdanau-1,{swept}/bahdanau-2]", "systems={marian: [m1.txt,m2.txt]}")
    _, theirs = report["variants"]
    assert theirs["label"] == "marian"
    (split,) = report["splits"]
    bleu = [row["figures"]["bleu"] for row in split["variants"]]
    assert bleu[0] == bleu[1]
    assert "marian" in capfd.readouterr().out
    assert "system" not in Path("report", "report.md").read_text(encoding="utf-8").partition("in common")[2]


@pytest.mark.usefixtures("files")
def test_programs_are_compared_without_a_run() -> None:
    report = compared(
        "systems={a: m1.txt, b: source.txt}", "source=source.txt", "reference=reference.txt", "baseline=b"
    )
    assert [each["label"] for each in report["variants"]] == ["a", "b"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ((), "Give runs=FOLDER"),
        (("systems={a: m1.txt}",), "Give runs=FOLDER"),
        (("systems={a: short.txt}", "RUNS"), r"short.txt has [\d,]+ lines, but test has [\d,]+ sentences"),
        (("systems={a: none.txt}", "RUNS"), "none.txt"),
        (("systems={a: 3}", "RUNS"), "systems.a=3: must be a file of translations"),
        (("systems={a: []}", "RUNS"), "must be a file of translations"),
        (("systems={bahdanau-1: m1.txt}", "RUNS"), "called bahdanau-1 already"),
        (("systems={1: m1.txt}", "RUNS"), "systems: 1 is not a name"),
    ],
)
@pytest.mark.usefixtures("files")
def test_mistakes_name_the_file_or_the_setting(
    line: tuple[str, ...], message: str, swept: Path, capfd: Capture
) -> None:
    words = [f"runs={swept}/bahdanau-1" if word == "RUNS" else word for word in line]
    assert call("compare", *words, "output=report", *QUICK) == 1
    assert re.search(message, capfd.readouterr().err.splitlines()[-1])
    assert not Path("report").exists()
