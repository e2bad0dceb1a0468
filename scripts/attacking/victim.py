"""Shared by all attacks: a small run, the execution of a command in this process, and the counts of outcomes."""

import contextlib
import importlib
import io
import os
import shutil
import traceback
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

#: Overrides for a model that trains in seconds, on built-in text.
SMALL = (
    *("data=builtin", "data.train_pairs=300", "data.valid_pairs=20", "data.test_pairs=20"),
    *("tokenizer.vocabulary_size=320", "model.embedding_size=32", "encoder.size=16", "decoder.size=32"),
    *("attention.size=16", "optimizer.lr=0.02", "trainer.tokens_per_batch=400", "trainer.tensorboard=false"),
    *("trainer.epochs=null", "threads=1", "device=cpu"),
)


class Ending(NamedTuple):
    """The end of a command: its exit status, its output, and the traceback of an error that it did not catch."""

    status: int
    output: str
    errors: str
    traceback: str = ""

    @property
    def is_one_message(self) -> bool:
        """Whether the command failed properly: with status 1, a message and no traceback."""
        return self.status == 1 and not self.traceback and "Traceback" not in self.errors and "nmt." in self.errors


@dataclass
class Result:
    """A row of the table: the attempts on one target, counted by outcome, and the failures of nmt."""

    name: str
    outcomes: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)

    def add(self, outcome: str) -> None:
        """Count an attempt that nmt has withstood."""
        self.outcomes[outcome] += 1

    def fail(self, failure: str) -> None:
        """Record a failure of nmt."""
        self.failures.append(f"{self.name}: {failure}")

    @property
    def attempts(self) -> int:
        """The number of attempts."""
        return sum(self.outcomes.values()) + len(self.failures)


def table(results: Sequence[Result]) -> str:
    """A Markdown table with a row for each result."""
    lines = ["| attacked | attempts | what became of them | failed |", "|---|---:|---|---:|"]
    for result in results:
        outcomes = ", ".join(f"{count:,} {name}" for name, count in sorted(result.outcomes.items()))
        lines.append(f"| {result.name} | {result.attempts:,} | {outcomes} | {len(result.failures)} |")
    return "\n".join(lines)


def run_verb(verb: str, *words: str) -> Ending:
    """Run a command in this process and capture its output."""
    output, errors = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(errors):
        try:
            status = importlib.import_module(f"nmt.{verb}.__main__").run(list(words))
        except SystemExit as error:
            status = error.code if isinstance(error.code, int) else 1
        except Exception:
            return Ending(-1, output.getvalue(), errors.getvalue(), traceback.format_exc())
    return Ending(status, output.getvalue(), errors.getvalue())


def victim(folder: Path, *words: str) -> Path:
    """Return the trained run in the folder; train it if it is missing."""
    run = folder / "victim"
    if not (run / "config.yaml").exists():
        line = (*SMALL, "trainer.steps=60", "trainer.validate_every=20", *words)
        ended = run_verb("train", "name=victim", f"checkpoints={folder}", f"cache={folder / 'cache'}", *line)
        if ended.status:
            raise RuntimeError(f"the run that is to be attacked was not trained: {ended}")
    return run


@contextlib.contextmanager
def copy_of(run: Path, place: Path) -> Iterator[Path]:
    """A copy of the run in the folder `place`, which is emptied when the context ends."""
    shutil.copytree(run, place / run.name, copy_function=shutil.copyfile)
    try:
        yield place / run.name
    finally:
        for name in os.listdir(place):
            path = place / name
            shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
