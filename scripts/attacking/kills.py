"""Attack: kill a training at random times. Resumed after each SIGKILL, it must give the same run as without kills."""

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from attacking.victim import SMALL, Result, run_verb

#: Mean number of updates between two kills, and seconds of start-up in which a kill may also happen.
UPDATES, START_UP = 40, 4.0
TIMES = ("minutes", "train_tokens_per_second")


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Kill a training `count` times and resume it; it saves its state as often as possible."""
    generator, result = random.Random(seed), Result("SIGKILLs in a training")
    steps = UPDATES * (count + 2)
    line = [*SMALL, "model.dropout=0.2", f"trainer.steps={steps}", "trainer.validate_every=10"]
    line += ["trainer.save_minutes=0.01", f"checkpoints={folder}", f"cache={folder / 'cache'}"]
    whole = run_verb("train", "name=whole", *line)
    if whole.status:
        raise RuntimeError(f"the undisturbed training failed: {whole}")
    for number in range(count):
        before = _step(folder / "killed")
        with (folder / "killed.log").open("ab") as log:
            process = subprocess.Popen(_command(line), stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})
        if number % 5 == 4:  # at a random time during start-up
            time.sleep(generator.uniform(0, START_UP))
        else:
            wanted = before + generator.randint(0, 2 * UPDATES)
            while process.poll() is None and _step(folder / "killed") < wanted:
                time.sleep(0.01)
            time.sleep(generator.uniform(0, 0.3))
        if process.poll() not in (None, 0):
            result.fail(f"attempt {number}: resuming ended with {process.returncode}, see killed.log")
            process.wait()
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        result.add("resumed")
        print(f"kill {number + 1}: at step {_step(folder / 'killed')}", flush=True)
    ended = subprocess.run(_command(line), capture_output=True, text=True, check=False)
    if ended.returncode:
        result.fail(f"the last resume ended with {ended.returncode}: {ended.stderr}")
        return [result]
    for name in ("last.safetensors", "best.safetensors"):
        if (folder / "killed" / name).read_bytes() != (folder / "whole" / name).read_bytes():
            result.fail(f"{name} differs from that of the undisturbed training")
    if course(folder / "killed") != course(folder / "whole"):
        result.fail("history.jsonl differs from that of the undisturbed training")
    if list((folder / "killed").glob(".*")):
        result.fail("temporary files are left")
    return [result]


def _command(line: list[str]) -> list[str]:
    return [sys.executable, "-m", "nmt.train", "name=killed", *line, "resume=auto"]


def _step(run: Path) -> int:
    """The step of the last validation; 0 before the first."""
    validations = course(run)
    return int(validations[-1]["step"]) if validations else 0


def course(run: Path) -> list[dict[str, float]]:
    """The validations without their times."""
    path = run / "history.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [{key: value for key, value in json.loads(line).items() if key not in TIMES} for line in lines]
