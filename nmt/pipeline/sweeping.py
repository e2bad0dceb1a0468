"""A command line with several values -> a run for each combination, several at a time, in one process per run.

Processes have advantages over threads or a pool. A run that fails or is killed does not stop the others. Each run can
be stopped with its state saved. The queue of a cluster can start the same commands (`dry_run=true` prints them). The
state of a sweep is the state of its run folders, nothing else.
"""

import contextlib
import hashlib
import json
import os
import re
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO, NamedTuple

from nmt import build
from nmt.command.composing import compose
from nmt.command.keys import SHARED_KEYS
from nmt.command.quoting import pasteable, python, quote, unquoted
from nmt.command.sweeping import Combination, expand
from nmt.compute import choose_device
from nmt.data.files import UserFiles
from nmt.errors import UserError
from nmt.limits import NotNegative
from nmt.locks import SWEEP, is_locked, locked
from nmt.pipeline.recipe import already_finished, check_model, resumed
from nmt.pipeline.requests import read
from nmt.runs import Run, check_name, settings
from nmt.signals import handling

MEMORY = 4 << 30  # bytes per run, if no run of the sweep is finished
_LONGEST = 100  # characters of a name


@dataclass(frozen=True)
class Sweeping:
    """How to train the runs of a sweep; `configs/sweep.yaml` explains the settings."""

    jobs: NotNegative
    dry_run: bool


class Planned(NamedTuple):
    """A run of a sweep: its name and its complete command line, which also resumes it."""

    name: str
    words: list[str]


class Failure(NamedTuple):
    """A run that did not finish, the reason, and its log."""

    name: str
    message: str
    log: Path | None


def sweep(words: Sequence[str]) -> int:
    """Train the runs of the command line that are not finished.

    Returns:
        0; 1 if a run failed; 128 + the signal that stopped it.

    Raises:
        UserError: the command line has a mistake; nothing was started.
    """
    sweep_keys = {str(key) for key in compose("sweep", [])}
    ours = [word for word in words if word.partition("=")[0] in sweep_keys]
    options = read(Sweeping, compose("sweep", ours))
    place, prefix, combinations = _read(expand("train", [word for word in words if word not in ours]))
    names = _names([combination.swept for combination in combinations], prefix)
    with contextlib.nullcontext() if options.dry_run else locked(place, SWEEP):
        return _sweep(options, place, names, combinations, threads=any(word.startswith("threads=") for word in words))


def _sweep(
    options: Sweeping, place: Path, names: Sequence[str], combinations: Sequence[Combination], threads: bool
) -> int:
    """See `sweep`; without `threads` in the command line, the runs share the cores."""
    plan, impossible, done = _check(place, names, combinations)
    jobs = min(options.jobs or _room(place, plan), max(1, len(plan)))
    if not threads:
        share = f"threads={max(1, _cores() // jobs)}"
        plan = [Planned(planned.name, [*planned.words, share]) for planned in plan]
    if options.dry_run:
        for planned in plan:
            print(shlex.join([python(), "-m", "nmt.train", *map(unquoted, planned.words)]))
        return int(bool(impossible))
    if plan:
        look = f"tail -f {shlex.quote(str(place))}/*.log"
        _say(f"{len(plan)} {'run' if len(plan) == 1 else 'runs'} to train, {jobs} at a time. Follow with: {look}")
    count = len(done) + len(plan) + len(impossible)
    launcher = _Launcher(place, plan, jobs)
    stopped = launcher.run()
    failures = launcher.failures
    parts = [f"{len(done) + launcher.finished} finished" + (f" ({len(done)} of them before)" if done else "")]
    left = len(plan) - launcher.finished - len(failures)
    parts += [f"{left} left to do"] * bool(left) + [f"{len(failures)} failed"] * bool(failures)
    parts += [f"{len(impossible)} cannot be trained (see above)"] * bool(impossible)
    _say(f"{count} {'run' if count == 1 else 'runs'} in {place}: {', '.join(parts)}.")
    if stopped:
        _say("Everything is saved. Run the same command again to resume.")
    elif len(done) + launcher.finished > 1:
        _say(f"Compare them: {python()} -m nmt.compare {pasteable('runs', place)}")
    for failure in failures:
        where = f" (see {failure.log})" if failure.log is not None else ""
        _say(f"failed: {failure.name}: {failure.message}{where}")
    return 128 + stopped if stopped else int(bool(failures or impossible))


def _say(line: str) -> None:
    # The reader of standard output may have gone (| tee, a closed terminal): keep the runs going.
    with contextlib.suppress(OSError):
        print(line, file=sys.stderr, flush=True)


# From the command line to a plan


def _read(combinations: list[Combination]) -> tuple[Path, str, list[Combination]]:
    """The sweep's folder, the prefix of its runs' names, and the combinations for the runs.

    Raises:
        UserError: there is no name, or a shared key has several values.
    """
    _, swept, fixed = combinations[0]
    for key in swept:
        if key.lstrip("+") in SHARED_KEYS | {"resume"}:
            comma = f", or quote the comma: \"{key}='A,B'\"" if key in SHARED_KEYS else ""
            raise UserError(
                f"{key}= must have one value in a sweep: the runs are named by the values that differ. "
                f"Give one value{comma}."
            )
    name, _, prefix = fixed.get("name", "null").partition("/")
    if name == "null":
        raise UserError("-m needs a name for the sweep: name=SWEEP, the folder of its runs.")
    check_name(name)
    if prefix:
        check_name(prefix)
    if not swept:
        raise UserError("-m needs a key with several values, such as seed=1,2,3. To train one run, leave out -m.")
    place = ("name", "checkpoints", "resume")
    run_combinations = [
        combination._replace(overrides=[word for word in combination.overrides if word.partition("=")[0] not in place])
        for combination in combinations
    ]
    return Path(fixed.get("checkpoints", "checkpoints")) / name, prefix, run_combinations


def _names(swept: Sequence[Mapping[str, str]], prefix: str = "") -> list[str]:
    """Names from the values, easy to type: `additive-bahdanau-1`, `general-heads-2-1`.

    A choice is named by its name, a setting by its last word and its value, the seed by its number at the end. A value
    that is not safe in a shell is changed and gets a digest, so that names stay unique.
    """
    keys = list(swept[0])
    ends = [key.split(".")[-1] for key in keys]

    def part(key: str, value: str) -> str:
        safe = re.sub(r"[^A-Za-z0-9_.]+", "-", value.strip("[]")).strip("-.")
        if safe != value.strip("[]"):
            safe = f"{safe}-{_digest(value)}".strip("-")
        if "." not in key.partition("@")[0] and key != "seed":
            return safe  # a choice
        end = key.split(".")[-1]
        known = end if ends.count(end) == 1 else key.lstrip("+~").replace(".", "-")
        return safe if key == "seed" and (prefix or len(keys) > 1) else f"{known}-{safe}"

    order = sorted(keys, key=lambda key: key == "seed")
    names = ["-".join([*([prefix] if prefix else []), *(part(key, values[key]) for key in order)]) for values in swept]
    return [
        f"{name[:_LONGEST]}-{_digest(json.dumps(values))}" if len(name) > _LONGEST or names.count(name) > 1 else name
        for name, values in zip(names, [dict(values) for values in swept], strict=True)
    ]


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()[:6]


def _check(
    place: Path, names: Sequence[str], combinations: Sequence[Combination]
) -> tuple[list[Planned], list[str], list[str]]:
    """What is to be trained, names of what cannot be, and what is finished (UserError for a mistaken line)."""
    plan: list[Planned] = []
    impossible: list[str] = []
    done: list[str] = []
    known: dict[str, str] = {}
    configs = []
    for name, combination in zip(names, combinations, strict=True):
        try:
            configs.append(compose("train", combination.overrides))
        except UserError as error:
            raise UserError(f"{error} (In the run {name}; nothing was started.)") from error
    for name, combination, config in zip(names, combinations, configs, strict=True):
        same = known.setdefault(json.dumps(settings(config), sort_keys=True, default=str), name)
        if same != name:
            _say(f"{name} is skipped: it would be the same run as {same}. The settings that differ have no effect.")
            continue
        words = [*combination.overrides, *quote([f"name={name}", f"checkpoints={place}"]), "resume=auto"]
        try:
            run = Run(place / name)
            if run.exists():
                message = already_finished(resumed(run, words), run)
                if message:
                    done.append(name)
                    continue
            elif not isinstance(build.build_source(config), UserFiles):  # its sizes depend on the text
                check_model(config)
        except UserError as error:
            impossible.append(name)
            _say(f"{name} cannot be trained: {error}")
            continue
        plan.append(Planned(name, words))
    if done:
        _say(f"{len(done)} of {len(done) + len(plan) + len(impossible)} runs are already finished.")
    return plan, impossible, done


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _room(place: Path, plan: Sequence[Planned]) -> int:
    """The number of runs at a time: one per core within the memory, or one on a GPU."""
    if not plan:
        return 1
    if choose_device(str(compose("train", plan[0].words).device)).type == "cuda":
        return 1
    needed = _needed(place)
    free = needed
    with contextlib.suppress(OSError):
        text = Path("/proc/meminfo").read_text(encoding="ascii")
        match = re.search(r"MemAvailable:\s*(\d+) kB", text)
        free = 1024 * int(match[1]) if match else free
    return max(1, min(len(plan), _cores(), free // needed))


def _needed(place: Path) -> int:
    """The peak memory of the runs of the sweep so far, in bytes."""
    known = []
    for path in place.glob("*/run.json"):
        with contextlib.suppress(UserError, KeyError, TypeError, ValueError):
            known.append(int(Run(path.parent).facts()["peak_memory"]))
    return max(known, default=MEMORY)


# The processes


class _Job(NamedTuple):
    """A training in progress; its log had `before` bytes when it began."""

    planned: Planned
    process: "subprocess.Popen[bytes]"
    log: Path
    before: int
    started: float


class _Launcher:
    """Runs `jobs` trainings at a time until all are finished or a signal arrives."""

    def __init__(self, place: Path, plan: Sequence[Planned], jobs: int) -> None:
        self.place, self.plan, self.jobs = place, list(plan), jobs
        self.failures: list[Failure] = []
        self.finished = self.number = 0
        self.asked: list[int] = []  # the signals, in order

    def run(self) -> int:
        """Return the number of the signal that stopped it, or 0."""
        waiting, running, signals_sent = list(self.plan), list[_Job](), 0
        # Under nohup, SIGHUP stays ignored.
        signals = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
        heeded = [number for number in signals if signal.getsignal(number) is not signal.SIG_IGN]
        with handling(heeded, lambda number, _: self.asked.append(number)):
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
                    job.process.terminate()
                for job in running:
                    job.process.wait()
        return self.asked[0] if self.asked else 0

    def _start(self, planned: Planned) -> list[_Job]:
        """The job, or nothing if it cannot start or another process is training the run."""
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
            package = str(Path(build.__file__).resolve().parents[1])
            path = [package, *filter(None, [os.environ.get("PYTHONPATH")])]
            try:
                process = subprocess.Popen(
                    [sys.executable, "-m", "nmt.train", *planned.words],
                    stdin=subprocess.DEVNULL,
                    stdout=file,
                    stderr=subprocess.STDOUT,
                    env={**os.environ, "PYTHONPATH": os.pathsep.join(path), "PYTHONUNBUFFERED": "1"},
                    start_new_session=True,  # Ctrl-C reaches this process only, which then signals each child once
                )
            except OSError as error:  # no memory, too many processes
                self._fail(planned.name, f"it cannot be started: {error.strerror}", log)
                return []
        _say(f"[{self.number}/{len(self.plan)}] {planned.name}: begins")
        return [_Job(planned, process, log, before, time.monotonic())]

    def _stop(self, running: Sequence[_Job], at_once: bool) -> None:
        for job in running:
            with contextlib.suppress(ProcessLookupError):
                if at_once:
                    os.killpg(job.process.pid, signal.SIGKILL)
                else:
                    job.process.terminate()
        name = signal.Signals(self.asked[-1]).name
        if at_once:
            _say(f"{name}: the runs are killed. Their last saved state is kept.")
        else:
            _say(f"{name}: the runs save their state and stop. Ctrl-C again kills them.")

    def _ended(self, job: _Job) -> None:
        name, status = job.planned.name, job.process.returncode
        if status == 0:
            self.finished += 1
            _say(f"{name}: finished, {_result(self.place / name)}")
        elif self.asked and status in (130, 143, -signal.SIGTERM, -signal.SIGKILL):
            _say(f"{name}: stopped")
        else:
            self._fail(name, _reason(status, job.log, job.before), job.log)

    def _fail(self, name: str, message: str, log: Path | None) -> None:
        self.failures.append(Failure(name, message, log))
        _say(f"{name}: failed: {message}")


def _result(folder: Path) -> str:
    """The result of a finished run, in a few words."""
    run = Run(folder)
    with contextlib.suppress(UserError):
        best = [entry for entry in run.history() if entry.get("best")]
        if best:
            return f"validation BLEU {best[-1]['valid_bleu']:.2f} after {run.facts().get('minutes', 0):.1f} minutes"
    return "done"


def _reason(status: int, log: Path, before: int) -> str:
    """Why a training failed: its message, or the last line of its log."""
    with log.open("rb") as file:
        file.seek(before)
        text = file.read().decode("utf-8", "replace")
    if status < 0:
        memory = ", probably out of memory. Give a smaller jobs=" if -status == signal.SIGKILL else ""
        return f"it was killed by {signal.Signals(-status).name}{memory}."
    at = text.rfind("nmt.train: ")
    if at >= 0 and (at == 0 or text[at - 1] == "\n"):
        return text[at:].removeprefix("nmt.train: ").strip()
    lines = text.strip().splitlines()
    return lines[-1].strip() if lines else f"it ended with status {status}"
