"""The runs of a sweep as a Slurm job array: a script for sbatch, which `dry_run=true` prints."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from nmt.config.quotes import shell_word, unquoted
from nmt.system.errors import UserError
from nmt.system.limits import Amount, NotNegative, Positive
from nmt.system.terminal import print_message
from nmt.train.workers import Planned, environment

SAVING_SECONDS = 120  # SIGTERM is sent this long before the time limit of a job


@dataclass(frozen=True)
class Cluster:
    """The launcher of a sweep, and the resources of each job; `configs/sweep.yaml` explains the settings."""

    launcher: Literal["local", "slurm"]
    minutes: Positive
    gpus: NotNegative
    cpus: Positive | None
    memory_gb: Amount | None
    partition: str | None
    options: Mapping[str, Any]

    def script(self, place: Path, plan: Sequence[Planned], jobs: int) -> str:
        """Return the script of a job array with a task for each run, at most `jobs` tasks at a time; 0 sets no limit.

        Before its time limit, a task gets SIGTERM, so that the run is saved. Then the task is queued again.
        """
        options = {
            "job-name": place.name,
            "array": f"0-{len(plan) - 1}{f'%{jobs}' if jobs else ''}",
            "time": self.minutes,
            "gpus-per-node": self.gpus or None,
            "cpus-per-task": self.cpus,
            "mem": None if self.memory_gb is None else f"{round(self.memory_gb * 1024)}M",
            "partition": self.partition,
            "signal": f"TERM@{SAVING_SECONDS}",
            "output": "slurm-%x.out",
            "open-mode": "append",
            **self.options,
        }
        lines = ["#!/bin/bash"]
        lines += [f"#SBATCH --{key}={shell_word(str(value))}" for key, value in options.items() if value is not None]
        lines += [f"mkdir -p {shell_word(str(place))}", "case $SLURM_ARRAY_TASK_ID in"]
        for number, planned in enumerate(plan):
            command = " ".join(map(shell_word, [sys.executable, "-m", "nmt.train", *map(unquoted, planned.words)]))
            lines.append(f"{number}) srun {command} >> {shell_word(str(place / planned.name))}.log 2>&1 ;;")
        lines += ["esac", "status=$?", '[ $status -eq 143 ] && scontrol requeue "$SLURM_JOB_ID"', "exit $status", ""]
        return "\n".join(lines)


def submit(script: str, place: Path) -> None:
    """Submit a script to the queue.

    Raises:
        UserError: the queue already has jobs of this sweep, sbatch rejects the script, or Slurm is missing.
    """
    waiting = _output_of(["squeue", "--me", "--noheader", "--format=%i", f"--name={place.name}"])
    if waiting:
        raise UserError(
            f"The jobs of {place} are in the queue already: {' '.join(waiting.split())}. Wait until they end, or "
            f"cancel them: scancel --me --name={shell_word(place.name)}"
        )
    print_message(_output_of(["sbatch"], script))


def _output_of(command: Sequence[str], script: str = "") -> str:
    try:
        done = subprocess.run(command, input=script, env=environment(), capture_output=True, text=True, check=False)
    except OSError as error:
        raise UserError(
            f"The jobs cannot be submitted: {command[0]} cannot be started ({error.strerror}). Run the command on a "
            "login node of a Slurm cluster."
        ) from error
    if done.returncode:
        reason = re.sub(r"\s+", " ", done.stderr).strip()
        raise UserError(f"The jobs cannot be submitted: {command[0]}: {reason or f'status {done.returncode}'}")
    return done.stdout.strip()
