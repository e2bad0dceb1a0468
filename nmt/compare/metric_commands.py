"""Sentence scores of external metrics (commands or Python functions), tested in the same way as BLEU and chrF."""

import importlib
import math
import re
import shlex
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from nmt.compare.results import OF_HEADS, Result, RunOnSplit
from nmt.evaluation.metrics import MetricScore
from nmt.system.errors import UserError
from nmt.system.files import write_text
from nmt.system.terminal import print_message

_NUMBER = re.compile(
    r"(?<![\w.,])[-+]?(?:(?:\d+(?:\.\d*)?|\.\d+)(?:e[-+]?\d+)?|nan|inf(?:inity)?)(?![\w,])", re.IGNORECASE
)
_OURS = ("bleu", "chrf", "ter", "seeds", "entropy", "verdict")
PYTHON = "python:"


def with_metrics(metrics: Mapping[str, Any], results: Sequence[Result]) -> list[Result]:
    """Add the scores of external metrics to the results.

    Args:
        metrics: {name: a command with the placeholders {source}, {hypotheses} and {reference} for files, which prints a
            line with a number for each sentence; or python:MODULE:FUNCTION, a function that takes the three lists of
            lines and returns a number for each sentence}.
        results: results of runs that include the text.

    Raises:
        UserError: a command or a function is missing, fails, or does not return a finite number for each sentence.
    """
    measured = {key for result in results for scored in result.splits.values() for key in scored.measured}
    for name, command in metrics.items():
        if name.lower() in _OURS or name in measured or name.startswith(tuple(OF_HEADS.values())):
            raise UserError(f"metrics.{name}: nmt has a figure of this name. Choose another name.")
        if not isinstance(command, str):
            raise UserError(f"metrics.{name}={command}: give a command, or python:MODULE:FUNCTION.")
    return [
        result._replace(splits={split: _measured(metrics, result, split) for split in result.splits})
        for result in results
    ]


def _measured(metrics: Mapping[str, str], result: Result, split: str) -> RunOnSplit:
    scored = result.splits[split]
    if scored.sources is None or scored.references is None:
        raise UserError(f"{result.name} is a record without the text of {split}, which metrics= needs.")
    scores, counts = dict(scored.scores), dict(scored.counts)
    for name, command in metrics.items():
        print_message(f"{result.name}, {split}: {name} ...")
        texts = scored.sources, scored.hypotheses, scored.references
        values = _called(name, command, texts) if command.startswith(PYTHON) else _run(name, command, texts)
        if len(values) != len(scored.hypotheses) or not all(map(math.isfinite, values)):
            raise UserError(
                f"metrics.{name}: {len(values):,} numbers for {len(scored.hypotheses):,} sentences of {split}. Give a "
                "metric that has one finite number for each."
            )
        scores[name] = MetricScore(float(np.mean(values)), command)
        counts[name] = np.column_stack([np.array(values, dtype=np.float64), np.ones(len(values))])
    return scored._replace(scores=scores, counts=counts)


def _called(name: str, command: str, texts: Sequence[Sequence[str]]) -> list[float]:
    """The sentence scores that a Python function returns."""
    module, _, function = command.removeprefix(PYTHON).partition(":")
    try:
        metric = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise UserError(f"metrics.{name}={command}: {error}. Give python:MODULE:FUNCTION.") from error
    try:
        return [float(value) for value in metric(*map(list, texts))]
    except Exception as error:  # a user's function may raise anything
        raise UserError(f"metrics.{name}={command} failed: {type(error).__name__}: {error}") from error


def _run(name: str, command: str, texts: Sequence[Sequence[str]]) -> list[float]:
    """The last number of each line that a command prints; one extra line, the mean, is ignored."""
    with tempfile.TemporaryDirectory() as folder:
        files = {key: Path(folder, f"{key}.txt") for key in ("source", "hypotheses", "reference")}
        for path, lines in zip(files.values(), texts, strict=True):
            write_text(path, "".join(f"{line}\n" for line in lines))
        try:
            words = shlex.split(command)
            for key, path in files.items():
                words = [word.replace(f"{{{key}}}", str(path)) for word in words]
            done = subprocess.run(words, capture_output=True, text=True, encoding="utf-8", check=False)
        except (OSError, ValueError, IndexError) as error:
            raise UserError(f"metrics.{name}={command}: cannot be run: {error}.") from error
    if done.returncode:
        last = (done.stderr.strip().splitlines() or ["no message"])[-1]
        raise UserError(f"metrics.{name}={command}: ended with status {done.returncode}: {last}")
    numbers = [matches[-1] for line in done.stdout.splitlines() if (matches := _NUMBER.findall(line))]
    return list(map(float, numbers[: len(texts[0])] if len(numbers) == len(texts[0]) + 1 else numbers))
