"""One command for other programs: a plan before it begins, steps that are cut off and done once, a table."""

import json
import subprocess
import sys
import time
from pathlib import Path

import beside
import pytest
from gpu.steps import Step, ended, measure, plan

from nmt.system.errors import UserError
from tests.benchmark.test_other_programs import PROGRAM
from tests.small import ROOT

#: A program that starts another one, and both go on.
ENDLESS = """
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
open(sys.argv[1], "w").write(str(child.pid))
time.sleep(600)
"""


@pytest.mark.long
def test_a_step_that_takes_too_long_is_cut_off_with_all_that_it_started(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cut off after 20 s"):
        ended([sys.executable, "-c", ENDLESS, str(tmp_path / "pid")], 20)
    child, deadline = Path("/proc", (tmp_path / "pid").read_text()), time.monotonic() + 60
    while child.exists() and " Z " not in (child / "stat").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.1)


def test_the_plan_is_printed_and_steps_that_have_figures_are_not_done_again(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    steps = [Step("one", "cuda", 90, "first"), Step("two", "cpu", 600, "second")]
    done: list[str] = []

    def work(step: Step) -> dict[str, object]:
        done.append(step.name)
        if len(done) == 2:
            raise UserError("cut off after 600 s.")
        return {}

    assert measure(tmp_path, steps, work, lambda: "page") == 1
    said = capsys.readouterr().err
    assert said.index("At most 1.5 minutes on cuda, 10.0 minutes on cpu.") < said.index("one: 0 s")
    assert "two: 0 s, failed: cut off after 600 s." in said
    assert measure(tmp_path, steps, work, lambda: "page") == 0
    assert done == ["one", "two", "two"]
    assert plan(tmp_path, steps).endswith("At most 0.0 minutes on cuda, 0.0 minutes on cpu.")


def test_everything_on_a_gpu_takes_eight_minutes_at_most() -> None:
    steps = beside.planned(dict.fromkeys(beside.PYTHONS, "python"), ["cuda", "cpu"])
    on_gpu = [step for step in steps if step.device == "cuda"]
    assert [step.name for step in on_gpu] == ["joey-cuda", "onmt-cuda", "eole-cuda", "transformer-cuda"]
    assert sum(step.limit for step in on_gpu) <= 8 * 60
    assert "marian-cpu" in [step.name for step in steps]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["devices=tpu"], "tpu"),
        (["joey_python=/nowhere/python"], "joey_python=/nowhere/python is no program"),
        (["joey=python"], "joey= does not exist"),
        (["steps=eole-cpu"], "steps= eole-cpu does not exist"),  # its Python is not given
        (["multi30k=/nowhere"], "multi30k= /nowhere"),
        (["folder=/proc/none"], "/proc/none"),
    ],
)
def test_mistakes_are_said_before_anything_is_measured(words: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=said):
        beside.main([f"folder={tmp_path}", "devices=cpu", *words])


@pytest.mark.long
def test_programs_are_measured_beside_ours_and_are_in_the_table(tmp_path: Path) -> None:
    """eole's program cannot translate: what it trains is kept, and the failure is said."""
    python = tmp_path / "python"
    program = PROGRAM.replace('"-gpu_ranks" in words', "True")
    python.write_text(program.format(python=sys.executable))
    python.chmod(0o755)
    words = [sys.executable, str(ROOT / "scripts" / "beside.py"), f"folder={tmp_path / 'found'}", "devices=cpu"]
    ran = subprocess.run(
        [*words, "quick=true", f"eole_python={python}"], capture_output=True, text=True, check=False, cwd=tmp_path
    )
    assert ran.returncode == 1, ran.stderr
    found = json.loads((tmp_path / "found" / "eole-cpu-failed.json").read_text("utf-8"))
    assert "no GPU here" in found["failed"]
    text = (tmp_path / "found" / "page.md").read_text("utf-8")
    assert "| eole 0.6.4" in text
    assert "| 240 " in text
    assert "- eole-cpu failed: " in text
    (row,) = [line for line in text.splitlines() if line.startswith("| torch.nn.Transformer")]
    assert float(row.split("|")[4]) > 0
