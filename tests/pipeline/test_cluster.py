"""Sweeps as jobs: submitit's executor on this machine, and what a queue is given."""

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import pytest

from nmt.runs import Run
from tests.pipeline.small import call
from tests.pipeline.test_sweep import sweep

pytestmark = pytest.mark.long


Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OMP_NUM_THREADS", "1")


def children(pid: int) -> list[int]:
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    return [int(child) for child, parent in re.findall(r"(\d+) +(\d+)", listed) if int(parent) == pid]


def test_a_job_whose_time_ends_is_saved_and_goes_on(text: Path, here: Path, capfd: Capture) -> None:
    """One of two jobs is told that its time ends, as a queue does; the other has nothing to train."""
    log = here / "s" / "max_source_length-50.log"
    told: list[int] = []

    def tell() -> None:
        while not (log.exists() and b"valid ppl" in log.read_bytes()):
            time.sleep(0.05)
        job = (here / "s" / ".submitit" / "max_source_length-50.json").read_text(encoding="utf-8")
        (task,) = children(int(re.findall(r"\d+", job)[0]))
        (training,) = children(task)
        told.extend([task, training])
        os.kill(training, signal.SIGUSR2)  # a queue tells all processes of the job
        os.kill(task, signal.SIGUSR2)

    watcher = threading.Thread(target=tell, daemon=True)
    watcher.start()
    line = ["trainer.max_source_length=1,50", "trainer.steps=200", "trainer.validate_every=10"]
    assert sweep(text, here, *line, "sweep.launcher=submitit_local") == 1
    watcher.join(timeout=600)
    assert len(told) == 2
    err = capfd.readouterr().err
    assert f"2 runs in {here / 's'}: 1 finished, 1 failed." in err
    assert "failed: max_source_length-1: The valid set is empty" in err
    assert "max_source_length-50: finished, validation BLEU" in err
    messages = log.read_text(encoding="utf-8")
    assert messages.count("Stopped by SIGTERM") == 1
    assert messages.count("Finished after 200 steps") == 1
    run = Run(here / "s" / "max_source_length-50")
    assert [entry["step"] for entry in run.history()] == list(range(10, 201, 10))
    assert run.facts()["status"] == "finished"
    assert sweep(text, here, *line, "sweep.launcher=submitit_local", "dry_run=true") == 0
    assert "1 of 2 runs are already finished" in capfd.readouterr().err


QUEUE = {
    "srun": "exit 1",
    "sbatch": 'cp "$1" submitted; touch called; echo "Submitted batch job 4242"',
    "sacct": "touch called; echo 'JobID|State|NodeList'; echo '4242_0|PENDING|'; echo '4242_1|RUNNING|'",
}


@pytest.fixture
def queue(here: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The programs of a queue whose jobs wait; here is what it was given."""
    for name, script in QUEUE.items():
        program = here / "bin" / name
        program.parent.mkdir(exist_ok=True)
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{here / 'bin'}{os.pathsep}{os.environ['PATH']}")
    return here


def stop_when_called(called: Path, ended: threading.Event) -> None:
    """Send this process SIGTERM once it has called the queue, unless it has ended by then."""
    while not called.exists() and not ended.is_set():
        time.sleep(0.05)
    if not ended.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


def test_jobs_are_submitted_once_to_a_queue(text: Path, queue: Path, capfd: Capture) -> None:
    line = ["seed=1,2", "sweep.launcher=slurm", "jobs=1", "sweep.minutes=90", "sweep.cpus=3", "sweep.gpus=2"]
    line += ["sweep.memory_gb=8", "sweep.partition=night", "+sweep.options.account=mine"]
    for messages in (["seed-1: job 4242_0", "seed-2: job 4242_1"], ["seed-1: job 4242_0 is in the queue already"]):
        (queue / "called").unlink(missing_ok=True)
        ended = threading.Event()
        threading.Thread(target=stop_when_called, args=[queue / "called", ended]).start()
        status = sweep(text, queue, *line)
        ended.set()
        assert status == 143
        err = capfd.readouterr().err
        for message in [*messages, "The jobs go on: 4242_0 4242_1.", "2 left to do"]:
            assert message in err
    submitted = (queue / "submitted").read_text(encoding="utf-8")
    for option in (
        *("array=0-1%1", "time=90", "cpus-per-task=3", "gpus-per-node=2", "mem=8GB", "partition=night", "account=mine"),
        *("signal=USR2@120", "job-name=s"),
    ):
        assert f"#SBATCH --{option}\n" in submitted
    (queue / "submitted").unlink()
    capfd.readouterr()
    assert call("train", "-m", "name=s", *line[:2], "sweep.cpus=3", "dry_run=true") == 0
    assert [command.split()[-1] for command in capfd.readouterr().out.splitlines()] == ["threads=3"] * 2
    assert not (queue / "submitted").exists()


def test_without_a_queue_nothing_is_submitted(text: Path, here: Path, capfd: Capture) -> None:
    assert sweep(text, here, "seed=1,2", "sweep.launcher=slurm") == 1
    err = capfd.readouterr().err
    assert 'nmt.train: The jobs cannot be submitted: Could not detect "srun"' in err
    assert sweep(text, here, "seed=1,2", "sweep.launcher=slrum") == 1
    assert (
        "sweep.launcher=slrum: must be local, slurm or submitit_local. Did you mean 'slurm'?" in capfd.readouterr().err
    )
    assert call("train", "sweep.launcher=slurm") == 1
    assert (
        "sweep.launcher is a setting of sweeps: python -m nmt.train -m sweep.launcher=slurm" in capfd.readouterr().err
    )
    assert [path.name for path in here.iterdir()] == []
