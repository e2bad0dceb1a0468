"""Metrics of other programs: `metrics=` of `nmt.compare`."""

import csv
import re
import sys
from pathlib import Path

import pytest

from nmt.compare.results import scorer_of
from tests.compare.test_systems import compared
from tests.small import QUICK, Capture, call

pytestmark = pytest.mark.long

#: Counts the words of a translation that its reference has, and prints a total, as COMET's program does.
PROGRAM = """
import sys
_, hypotheses, reference = [open(path, encoding="utf-8").read().split("\\n")[:-1] for path in sys.argv[1:]]
shares = [len({*a.split()} & {*b.split()}) / len(b.split()) for a, b in zip(hypotheses, reference, strict=True)]
for number, share in enumerate(shares):
    print(f"x.txt\\tSegment {number}\\tscore: {f'{share:.4f}'.lstrip('0')}")
print("x.txt\\tscore:", sum(shares) / len(shares))
"""


@pytest.fixture
def command(here: Path) -> str:
    (here / "metric.py").write_text(PROGRAM, encoding="utf-8")
    return f"'{sys.executable}' metric.py {{source}} {{hypotheses}} {{reference}}"


def shares(sources: list[str], hypotheses: list[str], references: list[str]) -> list[float]:
    assert len(sources) == len(hypotheses)
    pairs = zip(hypotheses, references, strict=True)
    return [len({*one.split()} & {*other.split()}) / len(other.split()) for one, other in pairs]


def test_a_command_and_a_function_have_means_and_tests(swept: Path, command: str) -> None:
    found = compared(f"runs={swept}", f'metrics={{shares: "{command}", mine: "python:{__name__}:shares"}}')
    (split,) = found["splits"]
    for variant in split["variants"]:
        by_command, by_function = (variant["figures"][name]["mean"] for name in ("shares", "mine"))
        assert 0 <= by_command <= 1
        assert by_command == pytest.approx(by_function, abs=1e-4)
    learnt, untrained = split["variants"]
    assert learnt["figures"]["mine"]["mean"] > untrained["figures"]["mine"]["mean"]
    assert untrained["tests"]["shares"]["significant"]
    assert "p of shares" in Path("report", "report.md").read_text(encoding="utf-8")
    assert re.search(r"\| 0\.\d{4} ± 0\.\d{4} \|", Path("report", "report.md").read_text(encoding="utf-8"))
    with Path("report", "segments.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["metric"] == "mine"]
    runs = {row["run"] for row in rows}
    assert len(rows) == 20 * len(runs)
    one = [float(row["value"]) for row in rows if row["run"] == "bahdanau-1"]
    folder = swept / "bahdanau-1" / "evaluation" / "test"
    texts = [(folder / f"{name}.txt").read_text("utf-8").split("\n") for name in ("source", "hypotheses", "reference")]
    assert one == pytest.approx(shares(*(lines[:-1] for lines in texts)))
    compared(f"runs={swept}")
    assert not Path("report", "segments.csv").exists(), "of an earlier report"


def test_the_score_is_the_mean() -> None:
    import numpy as np

    assert scorer_of("comet")(np.array([3.0, 4.0])) == 0.75


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("metrics={bleu: x}", "metrics.bleu: nmt has a figure of this name"),
        ("metrics={BLEU: x}", "metrics.BLEU: nmt has a figure of this name"),
        ("metrics={perplexity: x}", "metrics.perplexity: nmt has a figure of this name"),
        ("metrics={m: 3}", "metrics.m=3: give a command"),
        ("metrics={3: x}", "metrics: 3 is not a name"),
        ('metrics={a: "python:json:loads"}', "metrics.a=python:json:loads failed: TypeError"),
        ('metrics={a: "PYTHON -c \'print(20 * \\"7 nan;\\")\'"}', "metrics.a: 1 numbers"),
        ("metrics=comet", "metrics=comet: give a name for each"),
        ('metrics={a: "no-such-program {source}"}', "metrics.a=no-such-program {source}: cannot be run"),
        ('metrics={a: "python:json:nothing"}', "python:json:nothing: module 'json' has no attribute"),
        ('metrics={a: "python:no_module:f"}', "Give python:MODULE:FUNCTION."),
        ("metrics={a: \"PYTHON -c 'print(1)'\"}", "metrics.a: 1 numbers for 20 sentences"),
        ("metrics={a: \"PYTHON -c 'raise SystemExit(3)'\"}", "ended with status 3: no message"),
    ],
)
@pytest.mark.usefixtures("here")
def test_mistakes_name_the_metric(setting: str, message: str, swept: Path, capfd: Capture) -> None:
    line = [f"runs={swept}/bahdanau-1", setting.replace("PYTHON", f"'{sys.executable}'"), "output=report", *QUICK]
    assert call("compare", *line) == 1
    assert message in capfd.readouterr().err.splitlines()[-1]
