"""Training in several processes: as one process with as many batches an update, and nothing lost when one dies.

Translating and scoring in several processes: the files of one process, byte for byte.
"""

import json
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

from nmt.runs.run import Run
from tests.small import call, opened_for_writing, pairs, same, snapshot, words, write_lines
from tests.train.test_resume import course
from tests.translate.test_partial import SMALL_CHUNKS, until_written

pytestmark = pytest.mark.long


Capture = pytest.CaptureFixture[str]


def torchrun(
    count: int, words: Sequence[str], verb: str = "train", program: Sequence[str] = (), restarts: int = 0
) -> subprocess.Popen[str]:
    """Start a verb, or a program, in several processes."""
    run = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(count)]
    run += ["--max-restarts", str(restarts)]
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}  # torchrun's own
    return subprocess.Popen(
        [*run, *(program or ["-m", f"nmt.{verb}"]), *words],
        env=environment,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
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


def by_rank(processes: subprocess.Popen[str]) -> list[int]:
    """The process ids, the leader's first."""
    listed = subprocess.run(["ps", "-eo", "pid,ppid"], capture_output=True, text=True, check=True).stdout
    children = [int(pid) for pid, parent in re.findall(r"(\d+) +(\d+)", listed) if int(parent) == processes.pid]

    def rank(pid: int) -> int:
        environment = Path(f"/proc/{pid}/environ").read_bytes().split(b"\0")
        return next(int(entry[5:]) for entry in environment if entry.startswith(b"RANK="))

    return sorted(children, key=rank)


def is_running(pid: int) -> bool:
    """Whether a process has not ended; its parent need not have noticed."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"


def close(first: Path, second: Path) -> bool:
    one, other = course(first), course(second)
    return len(one) == len(other) > 1 and all(
        a[0] == b[0] and torch.tensor(a[2]).isclose(torch.tensor(b[2]), rtol=1e-5)
        for a, b in zip(one, other, strict=True)
    )


@pytest.mark.parametrize("count", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize(
    "more",
    [(), ("trainer.graphs=always",), pytest.param(("decoder=none", "schedule=inverse_sqrt"), marks=pytest.mark.slow)],
    ids=" ".join,
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
    leader, follower = by_rank(processes)
    os.kill(processes.pid, signal.SIGSTOP)  # torchrun would end the leader before it has noticed
    os.kill(follower, signal.SIGKILL)
    deadline = time.monotonic() + 300
    while is_running(leader):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    os.kill(processes.pid, signal.SIGCONT)
    status, messages = ended(processes)
    assert status != 0
    assert "nmt.train: The connection to another process of this command is lost" in messages
    assert "resume=auto" in messages
    saved = torch.load(here / "left" / "trainer.pt", weights_only=True)
    assert saved["step"] >= course(here / "left")[-1][0] >= 8
    assert call("train", *line, "name=left", "resume=auto", "trainer.accumulate=2") == 0
    assert close(here / "whole", here / "left")


def test_torchrun_starts_them_again_and_they_go_on(text: Path, here: Path) -> None:
    """With dropout, and from the state that is saved when a process dies."""
    line = words(text, here, "trainer.steps=40", "trainer.validate_every=4", "model.dropout=0.2")
    assert ended(torchrun(2, [*line, "name=whole"]))[0] == 0
    processes = torchrun(2, [*line, "name=again", "resume=auto"], restarts=1)
    until(processes, here / "again", 8)
    os.kill(by_rank(processes)[1], signal.SIGKILL)
    status, messages = ended(processes)
    assert status == 0, messages
    assert "ERROR" not in messages.partition("(exitcode: -9)")[2]
    assert course(here / "again") == course(here / "whole")
    assert same(here / "again" / "last.safetensors", here / "whole" / "last.safetensors")


def test_a_loss_that_is_no_number_ends_all_with_one_message(text: Path, here: Path) -> None:
    line = words(
        text, here, "name=diverged", "trainer.steps=60", "optimizer=sgd", "optimizer.lr=1e30", "trainer.clip_norm=0"
    )
    status, messages = ended(torchrun(2, line))
    assert status != 0
    assert len(re.findall("nmt.train: (?:The (?:validation )?loss became|.*has NaN or infinity)", messages)) == 1, (
        messages
    )


def test_a_mistake_ends_all_with_one_message(text: Path, here: Path) -> None:
    status, messages = ended(torchrun(2, words(text, here, "name=a", "encoder.size=-1")))
    assert status != 0
    assert messages.count("nmt.train: encoder.size=-1: must be at least 1") == 1
    status, messages = ended(torchrun(2, words(text, here, "name=nobody", "resume=true")))
    assert status != 0
    assert messages.count("nmt.train: ") == 1
    status, messages = ended(torchrun(2, words(text, here, "trainer.nonsense=1")))
    assert status != 0
    assert messages.count("There is no setting 'trainer.nonsense'") == 1


# Translating and scoring

SENTENCES = [sentence for sentence, _ in pairs(50, seed=9)]
#: Few sentences a batch, so that there are batches for all processes.
BATCHES = ["threads=1", "device=cpu", "batch_sentences=4"]


def test_several_translate_a_file_as_one(trained: Path, here: Path) -> None:
    write_lines(here / "in.txt", [*SENTENCES, "", " ".join(SENTENCES[:9])])
    write_lines(here / "prefixes", ["", "one", *[""] * 50])
    line = [f"run={trained}", *BATCHES, "input=in.txt", "prefix=prefixes", "format=jsonl", "weights=true"]
    line += ["search.nbest=2", "max_source_length=20"]
    assert call("translate", *line, "output=one", "alignments=one.links") == 0
    status, messages = ended(torchrun(3, [*line, "output=several", "alignments=several.links"], "translate"))
    assert status == 0, messages
    assert messages.count("warning: line 52 has") == 1
    for ending in ("", ".links"):
        assert Path(f"several{ending}").read_bytes() == Path(f"one{ending}").read_bytes() != b""
    assert not list(here.glob("*.part*"))


def test_several_score_as_one(trained: Path, here: Path) -> None:
    line = [f"run={trained}", *BATCHES, "pictures=1"]
    assert call("evaluate", *line, f"output={here / 'one'}") == 0
    status, messages = ended(torchrun(2, [*line, f"output={here / 'several'}"], "evaluate"))
    assert status == 0, messages
    one, several = snapshot(here / "one"), snapshot(here / "several")
    assert one.keys() == several.keys()
    differ = {name for name in one if one[name] != several[name]}
    assert differ <= {"test/scores.json", "test/report.html"}, "they hold the time that it took"
    ours, theirs = (json.loads(files["test/scores.json"]) for files in (one, several))
    assert (ours["measured"]["processes"], theirs["measured"]["processes"]) == (1, 2)
    for scores in (ours, theirs):
        for name in ("seconds", "sentences_per_second", "target_pieces_per_second", "processes"):
            del scores["measured"][name]
    assert ours == theirs


def test_a_translation_goes_on_with_another_number_of_processes(
    trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One of two is killed, so that torchrun ends the other; one process goes on to the file of one process."""
    os.mkfifo(here / "pipe")
    write_lines(here / "in.txt", SENTENCES)
    line = [f"run={trained}", *BATCHES[:2], "batch_sentences=2", "output=out"]
    (here / "program.py").write_text(SMALL_CHUNKS, encoding="utf-8")
    processes = torchrun(2, [*line, "input=pipe"], program=[str(here / "program.py")])
    pipe = opened_for_writing(here / "pipe", processes)
    os.write(pipe, "".join(f"{sentence}\n" for sentence in SENTENCES[:10]).encode())
    until_written(processes, here / "out.part", 8)
    os.kill(by_rank(processes)[1], signal.SIGKILL)
    status, messages = ended(processes)
    os.close(pipe)
    assert status != 0
    assert "lines are translated and kept in" in messages
    monkeypatch.setattr("nmt.translate.work.CHUNK", 4)
    assert call("translate", *line, "input=in.txt", "resume=true") == 0
    resumed = (here / "out").read_bytes()
    assert call("translate", *line, "input=in.txt") == 0
    assert (here / "out").read_bytes() == resumed


def test_a_mistake_of_a_translation_ends_all_with_one_message(trained: Path, here: Path) -> None:
    (here / "in.txt").write_bytes(b"eins\n\xff\n")
    status, messages = ended(torchrun(2, [f"run={trained}", *BATCHES, "input=in.txt", "output=out"], "translate"))
    assert status != 0
    assert messages.count("nmt.translate: ") == messages.count("in.txt, line 2: not valid UTF-8") == 1
