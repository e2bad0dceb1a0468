"""The runs of a sweep, trained by the queue of a cluster: a job for each, queued again until its run is finished."""

import contextlib
import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from nmt.errors import UserError
from nmt.files import write_json
from nmt.limits import Amount, NotNegative, Positive
from nmt.locks import is_locked
from nmt.pipeline.job import TrainingJob
from nmt.pipeline.launching import Failure, Planned, environment, reason_of, result_of, training
from nmt.signals import handling, stop_signals
from nmt.terminal import print_message

if TYPE_CHECKING:
    import submitit

FILES = ".submitit"  # the jobs' own files, in the folder of the sweep
SAVING_SECONDS = 120  # before the end of a job's time
TIMEOUTS = 1000  # at most, until a job is not queued again
#: States in which a job will train, or trains.
_ALIVE = ("READY", "PENDING", "RUNNING", "REQUEUED", "COMPLETING", "PREEMPTED")


@dataclass(frozen=True)
class Cluster:
    """Who trains the runs of a sweep, and what a job asks for; `configs/sweep.yaml` explains the settings."""

    launcher: Literal["local", "slurm", "submitit_local"]
    minutes: Positive
    gpus: NotNegative
    cpus: Positive | None
    memory_gb: Amount | None
    partition: str | None
    options: Mapping[str, Any]


@contextlib.contextmanager
def _environment() -> Iterator[None]:
    """What jobs inherit: they find this installation."""
    path = environment()["PYTHONPATH"]
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = path
    try:
        yield
    finally:
        if before is None:
            del os.environ["PYTHONPATH"]
        else:
            os.environ["PYTHONPATH"] = before


@contextlib.contextmanager
def _submitting() -> Iterator[None]:
    """Turn submitit's errors, which are of many kinds, into UserError."""
    try:
        yield
    except UserError:
        raise
    except Exception as error:
        reason = (str(error).strip() or type(error).__name__).splitlines()[0]
        raise UserError(f"The jobs cannot be submitted: {reason}") from error


class ClusterLauncher:
    """Submits a job for each run, and reports until all have ended. A signal ends the reports, not the jobs."""

    def __init__(self, place: Path, plan: Sequence[Planned], jobs: int, cluster: Cluster) -> None:
        """`jobs` runs are trained at a time at most; 0 leaves that to the queue."""
        self.place, self.plan, self.jobs, self.cluster = place, list(plan), jobs, cluster
        self.failures: list[Failure] = []
        self.finished = 0
        self.asked: list[int] = []  # the signals, in order
        self._before: dict[str, int] = {}  # the bytes that a log had

    def run(self) -> int:
        """Return the number of the signal that ended the reports, or 0.

        Raises:
            UserError: the jobs cannot be submitted.
        """
        with handling(stop_signals(), lambda number, _: self.asked.append(number)):
            watched = self._submit() if self.plan else {}
            checked = time.monotonic()
            while watched and not self.asked:
                time.sleep(0.2)
                if self.cluster.launcher == "slurm" and time.monotonic() - checked < 5:
                    continue
                checked = time.monotonic()
                for name in [name for name, job in watched.items() if job.done()]:
                    self._ended(name, watched.pop(name))
        if watched:
            ids = " ".join(job.job_id for job in watched.values())
            print_message(f"The jobs go on: {ids}. Run the same command again to see how they end.")
        return self.asked[0] if self.asked else 0

    def _submit(self) -> "dict[str, submitit.Job[int]]":
        """The jobs by the names of their runs: of an earlier command if they are still queued, else new ones."""
        folder = self.place / FILES
        executor = self._executor(folder)
        watched: dict[str, submitit.Job[int]] = {}
        jobs: dict[str, TrainingJob] = {}
        for planned in self.plan:
            earlier = self._earlier(planned.name)
            if earlier is not None:
                watched[planned.name] = earlier
                print_message(f"{planned.name}: job {earlier.job_id} is in the queue already")
            elif is_locked(self.place / planned.name):
                self._fail(planned.name, "another process is training it", None)
            else:
                log, status = self.place / f"{planned.name}.log", folder / f"{planned.name}.status"
                status.unlink(missing_ok=True)
                self._before[planned.name] = log.stat().st_size if log.exists() else 0
                jobs[planned.name] = TrainingJob(training(planned.words), log, status)
        if jobs:
            with _environment(), _submitting(), executor.batch():
                watched |= {name: executor.submit(job) for name, job in jobs.items()}
        for name in jobs:
            write_json(folder / f"{name}.json", {"launcher": self.cluster.launcher, "job": watched[name].job_id})
            print_message(f"{name}: job {watched[name].job_id}")
        return watched

    def _executor(self, folder: Path) -> "submitit.AutoExecutor":
        try:
            import submitit
        except ImportError as error:
            raise UserError(
                f"sweep.launcher={self.cluster.launcher} needs submitit. Install it: pip install 'nmt[cluster]'"
            ) from error
        cluster, name = self.cluster, self.cluster.launcher.removeprefix("submitit_")
        with _submitting():
            executor = submitit.AutoExecutor(folder, name, **{f"{name}_max_num_timeout": TIMEOUTS})
            executor.update_parameters(
                name=self.place.name,
                timeout_min=cluster.minutes,
                gpus_per_node=cluster.gpus,
                cpus_per_task=cluster.cpus,
                mem_gb=cluster.memory_gb,
                slurm_partition=cluster.partition,
                slurm_array_parallelism=self.jobs or len(self.plan),
                slurm_signal_delay_s=SAVING_SECONDS,
                slurm_additional_parameters=dict(cluster.options) or None,
            )
        return executor

    def _earlier(self, name: str) -> "submitit.Job[int] | None":
        """The job that an earlier command has submitted for a run, if the queue still has it."""
        path = self.place / FILES / f"{name}.json"
        if not path.exists() or self.cluster.launcher != "slurm":
            return None
        import submitit

        try:
            known = json.loads(path.read_text(encoding="utf-8"))
            number = str(known["job"]) if known["launcher"] == "slurm" else ""
        except (ValueError, KeyError, TypeError):
            return None
        if not number.replace("_", "").isdigit():
            return None
        job: submitit.Job[int] = submitit.SlurmJob(path.parent, number)
        return job if job.state.upper() in _ALIVE else None

    def _ended(self, name: str, job: "submitit.Job[int]") -> None:
        log, path = self.place / f"{name}.log", self.place / FILES / f"{name}.status"
        if not path.exists():
            self._fail(name, f"job {job.job_id} ended without a status ({job.state.lower()})", job.paths.stderr)
            return
        status = int(path.read_text(encoding="ascii"))
        if status == 0:
            self.finished += 1
            print_message(f"{name}: finished, {result_of(self.place / name)}")
        else:
            self._fail(name, reason_of(status, log, self._before.get(name, 0)), log)

    def _fail(self, name: str, message: str, log: Path | None) -> None:
        self.failures.append(Failure(name, message, log))
        print_message(f"{name}: failed: {message}")
