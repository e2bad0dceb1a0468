"""A run of a sweep as a job of a cluster. The machine that runs it loads this file, which therefore needs little."""

import contextlib
import os
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from submitit.core.utils import DelayedSubmission


class TrainingJob:
    """Trains a run in a process of its own. If the job's time ends, the run is saved, and the job is queued again.

    Attributes:
        command: the program, whose run resumes if it was begun.
        log: the file to which its messages are appended.
        status: the file for its exit status. The job's result, a pickle, is never read.
    """

    def __init__(self, command: Sequence[str], log: Path, status: Path) -> None:
        self.command, self.log, self.status = list(command), log, status
        self._process: subprocess.Popen[bytes] | None = None

    def __call__(self) -> int:
        """Train, and return the exit status."""
        with self.log.open("ab") as file:
            self._process = process = subprocess.Popen(
                self.command,
                stdin=subprocess.DEVNULL,
                stdout=file,
                stderr=subprocess.STDOUT,
                preexec_fn=_leave_to_the_job,
            )
        try:
            _wait(process.pid)
        except BaseException:
            process.terminate()
            raise
        status = process.wait()
        self.status.write_text(f"{status}\n", encoding="ascii")
        return status

    def checkpoint(self) -> "DelayedSubmission":
        """Save the run, and return the job that resumes it; submitit calls this before the job's time ends."""
        from submitit.helpers import DelayedSubmission

        if self._process is not None:
            with contextlib.suppress(ProcessLookupError, ChildProcessError):  # it has just ended
                os.kill(self._process.pid, signal.SIGTERM)
                _wait(self._process.pid)
        return DelayedSubmission(TrainingJob(self.command, self.log, self.status))


def _wait(pid: int) -> None:
    # Not Popen.wait: `checkpoint` runs in a signal's handler, which may have come in the middle of it.
    os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)


def _leave_to_the_job() -> None:
    # The queue sends its signal to all processes of the job; this one would end without saving.
    signal.signal(signal.SIGUSR2, signal.SIG_IGN)
