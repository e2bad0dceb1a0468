"""The runs of a sweep, trained by processes on this machine: several at a time, each with its own log."""

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import IO, NamedTuple

from nmt.runs.run import Run
from nmt.system import platform as system
from nmt.system.errors import UserError
from nmt.system.locks import is_locked
from nmt.system.signals import handling, stop_signals
from nmt.system.terminal import print_message
from nmt.train.advice import in_words


class Planned(NamedTuple):
    """A run of a sweep: its name and its complete command line, which also resumes it."""

    name: str
    words: list[str]


class Failure(NamedTuple):
    """A run that did not finish, the reason, and its log."""

    name: str
    message: str
    log: Path | None


def environment() -> dict[str, str]:
    """The environment for a training process, with this installation on PYTHONPATH."""
    package = str(Path(__file__).resolve().parents[2])
    path = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"}


class _Job(NamedTuple):
    """A training in progress; its log had `before` bytes when the training began."""

    planned: Planned
    process: "subprocess.Popen[bytes]"
    log: Path
    before: int
    started: float


class Launcher:
    """Runs `jobs` trainings at a time until all are finished or a signal arrives."""

    def __init__(self, place: Path, plan: Sequence[Planned], jobs: int) -> None:
        self.place, self.plan, self.jobs = place, list(plan), jobs
        self.failures: list[Failure] = []
        self.finished = self.number = 0
        self.asked: list[int] = []  # the signals, in order

    def run(self) -> int:
        """Train all runs; return the number of the signal that stopped the launcher, or 0."""
        waiting, running, signals_sent = list(self.plan), list[_Job](), 0
        with handling(stop_signals(), lambda number, _: self.asked.append(number)):
            try:
                while running or (waiting and not self.asked):
                    while waiting and len(running) < self.jobs and not self.asked:
                        running += self._start(waiting.pop(0))
                    if len(self.asked) > signals_sent:
                        signals_sent = len(self.asked)
                        self._stop(running, at_once=self.asked.count(signal.SIGINT) > 1)
                    time.sleep(0.1)
                    ended = [job for job in running if job.process.poll() is not None]
                    running = [job for job in running if job not in ended]
                    for job in ended:
                        self._ended(job)
            finally:  # after an error, stop all processes and let them save their state
                for job in running:
                    system.ask_to_stop(job.process)
                for job in running:
                    job.process.wait()
        return self.asked[0] if self.asked else 0

    def _start(self, planned: Planned) -> list[_Job]:
        """Start a job; return it in a list, which is empty if the job cannot start or the run is locked."""
        log = self.place / f"{planned.name}.log"
        self.number += 1
        try:
            self.place.mkdir(parents=True, exist_ok=True)
            file: IO[bytes] = log.open("ab")
        except OSError as error:
            place = "Choose a place with checkpoints=FOLDER."
            self._fail(planned.name, f"Cannot write {log}: {error.strerror}. {place}", None)
            return []
        with file:
            if is_locked(self.place / planned.name):  # two processes must not write one log
                self._fail(planned.name, "another process is training it", log)
                return []
            before = file.tell()
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "nmt.train", *planned.words],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env=environment(),
                    **system.apart(),  # Ctrl-C reaches this process only, which then signals each child once
                )
            except OSError as error:  # no memory, too many processes
                self._fail(planned.name, f"it cannot be started: {error.strerror}", log)
                return []
        print_message(f"[{self.number}/{len(self.plan)}] {planned.name}: begins")
        return [_Job(planned, process, log, before, time.monotonic())]

    def _stop(self, running: Sequence[_Job], at_once: bool) -> None:
        for job in running:
            (system.kill if at_once else system.ask_to_stop)(job.process)
        name = signal.Signals(self.asked[-1]).name
        if at_once:
            print_message(f"{name}: the runs are killed. Their last saved state is kept.")
        else:
            print_message(f"{name}: the runs save their state and stop. Ctrl-C again kills them.")

    def _ended(self, job: _Job) -> None:
        name, status = job.planned.name, job.process.returncode
        if status == 0:
            self.finished += 1
            print_message(f"{name}: finished, {result_of(self.place / name)}")
        elif self.asked and (status in (130, 143, -signal.SIGTERM) or system.was_killed(status)):
            print_message(f"{name}: stopped")
        else:
            self._fail(name, reason_of(status, job.log, job.before), job.log)

    def _fail(self, name: str, message: str, log: Path | None) -> None:
        self.failures.append(Failure(name, message, log))
        print_message(f"{name}: failed: {message}")


def result_of(folder: Path) -> str:
    """The best validation score and the training time of a finished run, or "done" if they are unknown."""
    run = Run(folder)
    with contextlib.suppress(UserError):
        best = [entry for entry in run.history() if entry.get("best")]
        if best:
            return f"{in_words(best[-1])} after {run.facts().get('minutes', 0):.1f} minutes"
    return "done"


def reason_of(status: int, log: Path, before: int) -> str:
    """Why a training failed: its message, or the last line of its log."""
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode("utf-8", "replace")
    if status < 0:
        memory = ", probably out of memory. Give a smaller jobs=" if system.was_killed(status) else ""
        return f"it was killed by {signal.Signals(-status).name}{memory}."
    at = text.rfind("nmt.train: ")
    if at >= 0 and (at == 0 or text[at - 1] == "\n"):
        return text[at:].removeprefix("nmt.train: ").strip()
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else f"it ended with status {status}"
