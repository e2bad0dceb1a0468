"""Checks whether the files of a run are intact, by their checksums and by reading them."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from nmt.drawing.layout import plain_table
from nmt.model.weights import lost
from nmt.runs.run import PRIVATE, Run
from nmt.system.errors import UserError, damaged
from nmt.system.integrity import damage, known
from nmt.system.terminal import printable
from nmt.text.tokenizer import load_tokenizer
from nmt.training.checkpoint import load_state

READABLE, CHANGED = "can be read", "can be read; changed since nmt has written it"


@dataclass(frozen=True)
class Checking:
    """The settings of `nmt.check`."""

    run: Path


def check(request: Checking) -> int:
    """Print the state of each file, and return the exit status: 1 if a file of the run is damaged or missing.

    Raises:
        UserError: there is no run, or its configuration or its checksums are damaged.
    """
    run = Run(request.run)
    run.config()
    states = states_of(run)
    print(printable(plain_table(("file", "state"), [[name, state] for name, state in states.items()])))
    changed = [name for name, state in states.items() if state == CHANGED]
    if changed:
        print(printable(f"\nIf you have not edited {', '.join(changed)}, restore the run from an intact copy."))
    wrong = [name for name, state in states.items() if state.startswith(("damaged", "missing"))]
    if wrong:
        print(printable(f"\n{run.folder} is not intact: {', '.join(wrong)}. Restore the run from an intact copy."))
        return 1
    others = f"Apart from {', '.join(changed)}, " if changed else ""
    print(printable(f"\n{others}{run.folder} is intact."))
    return 0


def states_of(run: Run) -> dict[str, str]:
    """The state of every file that has a checksum or that can be read: "intact", "missing", "damaged" and so on."""
    read: dict[str, Callable[[], object]] = {
        "config.yaml": run.config,
        "overrides.json": run.overrides,
        "run.json": run.facts,
        "history.jsonl": lambda: whole_history(run),
        "tokenizer": lambda: load_tokenizer(run.tokenizer),
    }
    states = {name: _read(reader) for name, reader in read.items()}
    for path in (run.best, run.last):
        states[path.name] = lost(path) or "intact"
    if run.state.exists():
        states[run.state.name] = _read(lambda: load_state(run.state)).replace(READABLE, "intact")
    checksums = known(run.folder)
    for name in checksums:
        path = run.folder / name
        if not path.exists():
            states[name] = "missing"
        elif name not in read:
            states[name] = "damaged" if damage(path) else "intact"
        elif states[name] == READABLE and damage(path):  # users may have edited these files
            states[name] = CHANGED
    for path in (run.best, run.last):
        if path.name not in checksums:
            states[path.name] = states[path.name].replace("intact", "missing checksum")
    if run.best_step() is None and states["best.safetensors"] == "missing":
        states["best.safetensors"] = "not written yet"
    if run.facts().get("status") == "finished" or "last.safetensors" not in checksums:
        deleted = {name for name in PRIVATE if states.get(name) == "missing"}
        states |= dict.fromkeys(deleted, "not there; not needed for translating")
    return states


def _read(reader: Callable[[], object]) -> str:
    try:
        reader()
    except UserError as error:
        return f"damaged: {error}"
    return READABLE


def whole_history(run: Run) -> list[dict[str, float]]:
    """The validations of a run (UserError if the run's other files show that some are lost)."""
    history, facts, path = run.history(), run.facts(), run.folder / "history.jsonl"
    saved: list[dict[str, float]] = []
    if run.state.exists():
        with contextlib.suppress(UserError):  # reported in the row of the state
            saved = load_state(run.state).get("history", [])
    last = history[-1]["step"] if history else 0
    if facts.get("status") == "finished" and last < facts.get("step", 0):
        raise damaged(path, f"its last validation is of step {last}, and the run has {facts['step']} steps")
    if any(entry not in history for entry in saved):
        raise damaged(path, "it does not have the validations of trainer.pt, from which resume=true restores them")
    return history
