"""One training a run at a time, refused at once and freed by whatever ends its process."""

import errno
import fcntl
import os
import platform
import re
import signal
import threading
import warnings
from pathlib import Path

import pytest

from nmt.runs.run import Run, free_name, runs_in
from nmt.system.errors import UserError
from nmt.system.locks import EVALUATION, LockedError, is_locked, lock_file, locked
from tests.small import Capture, call, copied, opened_for_writing, snapshot, start, words, write_lines

pytestmark = pytest.mark.long


def test_a_run_in_training_is_refused_until_its_process_ends(here: Path, text: Path, capfd: Capture) -> None:
    line = words(text, here / "runs", "name=a", "trainer.steps=1000000", "trainer.validate_every=5")
    run = Run(here / "runs" / "a")
    program = start("train", *line, cwd=here)
    assert program.stderr is not None
    lines = b""
    while b"valid ppl" not in lines:
        lines += program.stderr.readline()
        assert program.poll() is None, lines
    for more in (["resume=true"], ["resume=auto"], []):
        assert call("train", "name=a", f"checkpoints={here / 'runs'}", *more) == 1
        message = capfd.readouterr().err
        who = rf"\(process {program.pid} on {platform.node()} since \d{{4}}-\d\d-\d\d \d\d:\d\d\)"
        assert re.fullmatch(
            rf"nmt\.train: {run.folder}: another process is training this run {who}\. "
            r"Wait until it ends, or give another name=\.\n",
            message,
        )
    write_lines(here / "in.txt", ["eins"])
    assert call("translate", f"run={run.folder}", f"input={here / 'in.txt'}", f"output={here / 'out.txt'}") == 0
    assert call("evaluate", f"run={run.folder}") == 0
    program.send_signal(signal.SIGKILL)
    program.communicate(timeout=600)
    assert not is_locked(run.folder)
    assert runs_in(here / "runs") == [run.folder], "what a killed process left is no run"
    steps = f"trainer.steps={int(Run(run.folder).history()[-1]['step']) + 2}"
    assert call("train", "name=a", f"checkpoints={here / 'runs'}", "resume=true", steps) == 0
    assert [path.name for path in (here / "runs").iterdir()] == ["a"]


def test_a_name_is_taken_before_any_text_is_read(here: Path, text: Path, capfd: Capture) -> None:
    os.mkfifo(here / "train.de")
    write_lines(here / "train.en", ["x"])
    line = words(text, here / "new" / "runs", "name=a", f"data.train={here / 'train'}", "trainer.steps=9")
    program = start("train", *line, cwd=here)
    pipe = opened_for_writing(here / "train.de", program)  # as soon as it is read, which then waits for more
    cache = here / "cache"
    for more in ([], ["resume=auto"]):
        assert call("train", *words(text, here / "new" / "runs", "name=a", "trainer.steps=9"), *more,
                    f"cache={cache}") == 1  # fmt: skip
        assert "a: another process is training this run" in capfd.readouterr().err
    assert not cache.exists()
    program.send_signal(signal.SIGTERM)
    program.communicate(timeout=600)
    os.close(pipe)
    assert not (here / "new").exists()
    assert call("train", *words(text, here / "new" / "runs", "name=a", "trainer.steps=2")) == 0


def test_a_run_without_a_name_is_locked_too(here: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    states = []

    def observe(self: Run, line: str) -> None:
        states.append(is_locked(self.folder))

    monkeypatch.setattr(Run, "log", observe)
    with locked(here / "text-de-en-bahdanau-additive"):
        assert free_name(here, "text-de-en-bahdanau-additive") == "text-de-en-bahdanau-additive-2"
        assert call("train", *words(text, here, "trainer.steps=2")) == 0
    assert states == [True] * len(states) != []
    assert [path.name for path in here.iterdir()] == ["text-de-en-bahdanau-additive-2"]


def test_a_lock_leaves_nothing_behind(tmp_path: Path) -> None:
    folder = tmp_path / "deep" / "down" / "run"
    with locked(folder):
        assert is_locked(folder)
        assert not folder.exists()
        with pytest.raises(LockedError), locked(folder):
            pass
        assert is_locked(folder), "who is refused takes nothing from who holds it"
    assert snapshot(tmp_path) == {}
    with pytest.raises(KeyError), locked(folder):
        raise KeyError
    assert snapshot(tmp_path) == {}


def test_a_place_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    write_lines(tmp_path / "file", ["in the way"])
    with pytest.raises(UserError, match=r"Cannot make .*checkpoints=FOLDER"), locked(tmp_path / "file" / "run"):
        pass


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOSYS, errno.ENOTSUP])
def test_a_file_system_without_locks_is_said_and_used(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: Capture
) -> None:
    def missing(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", missing)
    with locked(tmp_path / "run"):
        pass
    assert capfd.readouterr().err == (
        f"{tmp_path}/run: this file system has no locks, so nothing notices whether another process is training this "
        "run. Start one only.\n"
    )
    assert snapshot(tmp_path) == {}


def test_a_lock_file_of_nobody_names_nobody(tmp_path: Path) -> None:
    """A killed process leaves its file, and anybody can write one."""
    path = lock_file(tmp_path / "run")
    for content in (b"process 1 on a since 2026-01-01 00:00\n", b"\x1b[2J\n", b"\xff", b"x" * 100_000):
        path.write_bytes(content)
        assert not is_locked(tmp_path / "run")
    with locked(tmp_path / "run"):
        path.write_bytes(b"process 1 on \x1b[2J since 2026-01-01 00:00\n")
        with pytest.raises(LockedError, match=r"this run\. Wait"), locked(tmp_path / "run"):
            pass


def test_one_process_evaluates_a_split(here: Path, trained: Path, capfd: Capture) -> None:
    run = Run(copied(trained, here))
    with locked(run.evaluation / "test", EVALUATION):
        assert call("evaluate", f"run={run.folder}", "pictures=0") == 1
        message = f"{run.evaluation / 'test'}: another process is evaluating this split (process {os.getpid()}"
        assert message in capfd.readouterr().err
        assert call("evaluate", f"run={run.folder}", "pictures=0", "split=valid") == 0
        assert call("evaluate", f"run={run.folder}", "pictures=0", f"output={here / 'out'}") == 0
    assert run.splits() == ["valid"]
    assert call("evaluate", f"run={run.folder}", "pictures=0") == 0
    assert sorted(path.name for path in run.evaluation.iterdir()) == ["test", "valid"]


def test_whoever_comes_while_a_lock_is_freed_takes_it_or_is_refused(tmp_path: Path) -> None:
    """The file, and the folders that were made for it, go away between any two steps of another thread."""
    target, errors = tmp_path / "a" / "b" / "run", []

    def work() -> None:
        for _ in range(200):
            try:
                with locked(target):
                    pass
            except LockedError:
                continue
            except Exception as error:  # a thread's errors would be lost
                errors.append(error)

    before = warnings.filters[:]
    workers = [threading.Thread(target=work) for _ in range(4)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert errors == []
    assert warnings.filters == before, "threads share them"
