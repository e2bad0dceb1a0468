"""Steps of a measurement: each has a time limit and writes a file, so that the same command resumes the measurement."""

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from verbs import ROOT

from nmt.system.errors import UserError
from nmt.system.files import write_json, write_text

Json = dict[str, Any]


class Step(NamedTuple):
    """A step of a measurement: its name, device, time limit in seconds, and description."""

    name: str
    device: str
    limit: int
    what: str


def measure(folder: Path, steps: Sequence[Step], work: Callable[[Step], Json], page: Callable[[], str]) -> int:
    """Print the plan, do the steps without figures, and write the page after each; return 1 if a step failed.

    `work` does a step and returns its figures (UserError if it fails).
    """
    folder.mkdir(parents=True, exist_ok=True)
    print(plan(folder, steps), file=sys.stderr)
    for step in steps:
        target, failed = figures_of(folder, step.name), figures_of(folder, f"{step.name}-failed")
        if target.exists():
            continue
        began = time.monotonic()
        try:
            figures = work(step)
        except UserError as error:
            figures = {"failed": str(error)}
        figures["seconds"] = time.monotonic() - began
        failed.unlink(missing_ok=True)
        write_json(failed if "failed" in figures else target, figures)
        outcome = f", failed: {figures['failed']}" if "failed" in figures else ""
        print(f"{step.name}: {figures['seconds']:.0f} s{outcome}", file=sys.stderr)
        write_text(folder / "page.md", page())
    print(f"{folder / 'page.md'}", file=sys.stderr)
    return int(any(figures_of(folder, f"{step.name}-failed").exists() for step in steps))


def figures_of(folder: Path, name: str) -> Path:
    """The file with the figures of a step."""
    return folder / f"{name}.json"


def known(folder: Path, names: Sequence[str]) -> dict[str, Json]:
    """The figures by step, of finished and of failed steps."""
    figures: dict[str, Json] = {}
    for name in names:
        for path in (figures_of(folder, name), figures_of(folder, f"{name}-failed")):
            if name not in figures and path.exists():
                figures[name] = json.loads(path.read_text("utf-8"))
    return figures


def plan(folder: Path, steps: Sequence[Step]) -> str:
    """The steps with their limits, and the total limit on each device, as text."""
    rows, limits = [], dict.fromkeys((step.device for step in steps), 0)
    for step in steps:
        is_there = figures_of(folder, step.name).exists()
        limits[step.device] += 0 if is_there else step.limit
        rows.append(f"  {step.name:20} {'is there' if is_there else f'{step.limit:5} s':>8}  {step.what}")
    most = ", ".join(f"{limit / 60:.1f} minutes on {device}" for device, limit in limits.items())
    return "\n".join(["The steps, and how long each may take; a longer one is cut off:", *rows, f"At most {most}."])


def ended(command: Sequence[str], limit: float) -> str:
    """Run a command; return its standard output. Its messages go to standard error.

    Raises:
        UserError: the command fails, or exceeds `limit` seconds and is killed with its child processes.
    """
    paths = [str(ROOT), str(ROOT / "scripts"), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env=environment, start_new_session=True
    ) as process:
        try:
            output, _ = process.communicate(timeout=limit)
        except subprocess.TimeoutExpired:
            raise UserError(f"cut off after {limit:.0f} s.") from None
        finally:
            if process.poll() is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
    if process.returncode:
        raise UserError(f"exit status {process.returncode}; the messages are above.")
    return output
