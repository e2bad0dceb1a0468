"""Sweeps as a job array: what a queue is given, and its script, run by stand-ins for Slurm's programs."""

import os
import re
import signal
import subprocess
import time
from pathlib import Path

import pytest

from nmt.runs.run import Run
from tests.small import Capture, call, environment
from tests.train.test_sweep import sweep

pytestmark = pytest.mark.long

QUEUE = {
    "srun": 'exec "$@"',
    "scontrol": 'echo "$@" >> requeued',
    "sbatch": 'cat > submitted; echo "Submitted batch job 4242"',
    "squeue": "cat waiting 2> /dev/null; true",
}


@pytest.fixture
def queue(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Programs of a queue; here is what it was given."""
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    for name, script in QUEUE.items():
        program = here / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return here


def child(pid: int) -> int:
    """The one child of a process."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    (number,) = [int(own) for own, parent in re.findall(r"(\d+) +(\d+)", listed) if int(parent) == pid]
    return number


def test_a_job_whose_time_ends_is_saved_and_goes_on(text: Path, queue: Path, capfd: Capture) -> None:
    line = ["seed=1,2", "trainer.steps=200", "trainer.validate_every=10", "sweep.launcher=slurm"]
    assert sweep(text, queue, *line) == 0
    environ = {**environment(), "SLURM_ARRAY_TASK_ID": "1", "SLURM_JOB_ID": "7"}
    job = subprocess.Popen(["bash", "submitted"], env=environ)
    log, run = queue / "s" / "seed-2.log", Run(queue / "s" / "seed-2")
    while not (log.exists() and b"valid ppl" in log.read_bytes()):
        assert job.poll() is None
        time.sleep(0.05)
    os.kill(child(job.pid), signal.SIGTERM)  # as the queue tells the step of a job
    assert job.wait(timeout=600) == 143
    assert (queue / "requeued").read_text(encoding="utf-8") == "requeue 7\n"
    assert run.facts()["status"] == "interrupted"
    assert subprocess.run(["bash", "submitted"], env=environ, check=False).returncode == 0
    assert (queue / "requeued").read_text(encoding="utf-8") == "requeue 7\n"
    assert [entry["step"] for entry in run.history()] == list(range(10, 201, 10))
    assert run.facts()["status"] == "finished"
    capfd.readouterr()
    assert sweep(text, queue, *line) == 0
    assert "1 of 2 runs are already finished" in capfd.readouterr().err
    assert "seed-2" not in (queue / "submitted").read_text(encoding="utf-8")


def test_jobs_are_submitted_once_to_a_queue(text: Path, queue: Path, capfd: Capture) -> None:
    line = ["seed=1,2", "sweep.launcher=slurm", "jobs=1", "sweep.minutes=90", "sweep.cpus=3", "sweep.gpus=2"]
    line += ["sweep.memory_gb=8", "sweep.partition=night", "+sweep.options.account=mine"]
    assert sweep(text, queue, *line, "dry_run=true") == 0
    script = capfd.readouterr().out
    for option in (
        *("array=0-1%1", "time=90", "cpus-per-task=3", "gpus-per-node=2", "mem=8192M", "partition=night"),
        *("account=mine", "signal=TERM@120", "job-name=s"),
    ):
        assert f"#SBATCH --{option}\n" in script
    assert not (queue / "submitted").exists()
    assert sweep(text, queue, *line) == 0
    assert (queue / "submitted").read_text(encoding="utf-8") == script
    err = capfd.readouterr().err
    assert "Submitted batch job 4242" in err
    assert "0 finished, 2 left to do" in err
    (queue / "submitted").unlink()
    (queue / "waiting").write_text("4242_[0-1]\n", encoding="utf-8")
    assert sweep(text, queue, *line) == 1
    assert "are in the queue already: 4242_[0-1]." in capfd.readouterr().err
    assert not (queue / "submitted").exists()


def test_without_a_queue_nothing_is_submitted(text: Path, here: Path, capfd: Capture) -> None:
    for words, message in (
        (["sweep.launcher=slurm"], "nmt.train: The jobs cannot be submitted: squeue cannot be started (No such file"),
        (["sweep.launcher=slrum"], "sweep.launcher=slrum: must be local or slurm. Did you mean 'slurm'?"),
    ):
        assert sweep(text, here, "seed=1,2", *words) == 1
        assert message in capfd.readouterr().err
    assert call("train", "sweep.launcher=slurm") == 1
    message = "sweep.launcher is a setting of sweeps: python -m nmt.train -m sweep.launcher=slurm"
    assert message in capfd.readouterr().err
    assert [path.name for path in here.iterdir()] == []
