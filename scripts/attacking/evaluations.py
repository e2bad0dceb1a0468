"""Evaluations that are killed at any time, and two at once: what is left is always one evaluation."""

import json
import os
import random
import signal
import time
from pathlib import Path

from attacking.victim import Result, said, victim
from nmt.compare.reader import read_result
from nmt.evaluation.metrics import sentence_chrf
from nmt.runs.run import Run

#: Evaluations whose translations differ.
WAYS = (("checkpoint=best",), ("checkpoint=last", "search.beam_size=1"), ("checkpoint=best", "search=greedy"))
ANOTHER = "another process is evaluating this split"


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Kill `count` evaluations, and start as many pairs of them."""
    run = victim(folder, "trainer.average=none", "trainer.patience=null")
    began = time.monotonic()
    said("evaluate", *_words(run, 0))
    said("evaluate", *_words(run, 0))  # without what is loaded once
    seconds = (time.monotonic() - began) / 2
    killed, doubled = Result("killed evaluations"), Result("two evaluations at once")
    generator = random.Random(seed)
    for number in range(count):
        process = _started(run, number)
        time.sleep(generator.uniform(0, 1.2 * seconds))
        os.kill(process, signal.SIGKILL)
        os.waitpid(process, 0)
        _judge(killed, f"attempt {number}", run, "whole")
    if said("evaluate", *_words(run, 1)).status or list((run / "evaluation").glob(".*")):
        killed.fail("an evaluation after the last kill fails, or leaves temporary files")
    for number in range(count):
        processes = [_started(run, number)]
        time.sleep(generator.uniform(0, seconds))
        processes.append(_started(run, number + 1))
        statuses = [os.waitstatus_to_exitcode(os.waitpid(process, 0)[1]) for process in processes]
        if sorted(statuses) not in ([0, 0], [0, 1]):
            doubled.fail(f"attempt {number}: statuses {statuses}")
        _judge(doubled, f"attempt {number}", run, "one was refused" if any(statuses) else "one after the other")
    return [killed, doubled]


def _words(run: Path, number: int) -> list[str]:
    pictures = f"pictures={number % 2}"
    return [f"run={run}", "data=run", pictures, "threads=1", "device=cpu", *WAYS[number % len(WAYS)]]


def _started(run: Path, number: int) -> int:
    """A process that evaluates, which has loaded all that it needs."""
    process = os.fork()
    if process:
        return process
    ended = said("evaluate", *_words(run, number))
    os._exit(99 if ended.traceback or (ended.status == 1 and ANOTHER not in ended.errors) else ended.status)


def _judge(result: Result, what: str, run: Path, outcome: str) -> None:
    """Scores, translations, measures and pictures of a split belong to one evaluation, if there is one."""
    folder = run / "evaluation" / "test"
    if not folder.exists() and (run / "evaluation" / ".test.before").exists():
        result.add("comes back with the next evaluation")
        return
    try:
        scored = read_result("run", Run(run), "test").splits["test"]
        assert scored.references is not None
        rows = zip(scored.measures, scored.hypotheses, scored.references, strict=True)
        same = all(row["chrf"] == sentence_chrf(text, reference) for row, text, reference in rows)
        same &= (folder / "heatmaps").exists() == (folder / "report.html").exists()
        same &= bool(json.loads((folder / "scores.json").read_text(encoding="utf-8"))["by_length"]["bins"])
    except Exception as error:
        result.fail(f"{what}: {error!r}")
        return
    if same:
        result.add(outcome)
    else:
        result.fail(f"{what}: files of two evaluations")
