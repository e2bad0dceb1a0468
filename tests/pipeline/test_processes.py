"""Training in several processes: as one process with as many batches an update, and nothing lost when one dies."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch

from nmt.runs import Run
from tests.pipeline.small import call, same, words
from tests.pipeline.test_resume import course

Capture = pytest.CaptureFixture[str]


def torchrun(count: int, words: Sequence[str]) -> subprocess.Popen[str]:
    """Start `nmt.train` in several processes."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # torchrun's own
    return subprocess.Popen(
        [*run, "-m", "nmt.train", *words], env=environment, stderr=subprocess.PIPE, text=True, start_new_session=True
    )


def ended(processes: subprocess.Popen[str]) -> tuple[int, str]:
    """The exit status and the messages of processes that end."""
    _, messages = processes.communicate(timeout=300)
    return processes.returncode, messages


def until(processes: subprocess.Popen[str], run: Path, step: int) -> None:
    """Wait for the validation at a step."""
    while processes.poll() is None and not any(entry["step"] >= step for entry in Run(run).history()):
        time.sleep(0.05)
    assert processes.poll() is None


def followers(processes: subprocess.Popen[str]) -> list[int]:
    """The process ids of the followers."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    children = [int(pid) for pid, parent in re.findall(r"(\d+) +(\d+)", listed) if int(parent) == processes.pid]
    return [pid for pid in children if b"\0RANK=0\0" not in b"\0" + Path(f"/proc/{pid}/environ").read_bytes() + b"\0"]


def close(first: Path, second: Path) -> bool:
    one, other = course(first), course(second)
    return len(one) == len(other) > 1 and all(
        a[0] == b[0] and torch.tensor(a[2]).isclose(torch.tensor(b[2]), rtol=1e-5)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "more", [(), pytest.param(("decoder=none", "schedule=inverse_sqrt"), marks=pytest.mark.slow)], ids=" ".join
)
def test_processes_are_one_with_as_many_batches(count: int, more: tuple[str, ...], text: Path, here: Path) -> None:
    """The epoch's last update has fewer batches than there are processes."""
    line = words(text, here, "trainer.epochs=3", "trainer.save_minutes=0", "tokenizer.sampling=0.3", *more)
    assert call("train", *line, "name=one", f"trainer.accumulate={count}") == 0
    status, messages = ended(torchrun(count, [*line, "name=several"]))
    assert status == 0, messages
    assert f"{count} processes of 1 CPU threads each" in messages
    assert messages.count("Finished after") == 1
    assert close(here / "one", here / "several")


def test_what_was_interrupted_goes_on_exactly(text: Path, here: Path) -> None:
    """Two processes with dropout: interrupted and resumed they make the run that they make at once."""
    line = words(text, here, "trainer.steps=40", "trainer.validate_every=4", "model.dropout=0.2")
    assert ended(torchrun(2, [*line, "name=whole"]))[0] == 0
    processes = torchrun(2, [*line, "name=parted"])
    until(processes, here / "parted", 8)
    os.kill(processes.pid, signal.SIGTERM)
    assert ended(processes)[0] != 0
    assert Run(here / "parted").facts()["status"] == "interrupted"
    assert course(here / "parted") == course(here / "whole")[: len(course(here / "parted"))]
    status, messages = ended(torchrun(2, [*line, "name=parted", "resume=true"]))
    assert status == 0, messages
    assert course(here / "parted") == course(here / "whole")
    assert same(here / "parted" / "last.safetensors", here / "whole" / "last.safetensors")


def test_the_death_of_one_ends_all_and_loses_nothing(text: Path, here: Path, capfd: Capture) -> None:
    """What is left goes on with another number of processes, to where an undisturbed run would be."""
    line = words(text, here, "trainer.steps=60", "trainer.validate_every=4", "trainer.save_minutes=60")
    assert call("train", *line, "name=whole", "trainer.accumulate=2") == 0
    processes = torchrun(2, [*line, "name=left"])
    until(processes, here / "left", 8)
    os.kill(followers(processes)[0], signal.SIGKILL)
    status, messages = ended(processes)
    assert status != 0
    assert "nmt.train: The connection to another process of this training is lost" in messages
    assert "resume=auto" in messages
    saved = torch.load(here / "left" / "trainer.pt", weights_only=True)
    assert saved["step"] >= course(here / "left")[-1][0] >= 8
    assert call("train", *line, "name=left", "resume=auto", "trainer.accumulate=2") == 0
    assert close(here / "whole", here / "left")


def test_a_loss_that_is_no_number_ends_all_with_one_message(text: Path, here: Path) -> None:
    line = words(
        text, here, "name=diverged", "trainer.steps=60", "optimizer=sgd", "optimizer.lr=1e30", "trainer.clip_norm=0"
    )
    status, messages = ended(torchrun(2, line))
    assert status != 0
    assert messages.count("nmt.train: The loss became") == 1


def test_a_mistake_ends_all_with_one_message(text: Path, here: Path) -> None:
    status, messages = ended(torchrun(2, words(text, here, "name=a", "encoder.size=-1")))
    assert status != 0
    assert messages.count("nmt.train: encoder.size=-1: must be at least 1") == 1
    status, messages = ended(torchrun(2, words(text, here, "name=nobody", "resume=true")))
    assert status != 0
    assert messages.count("nmt.train: ") == 1
