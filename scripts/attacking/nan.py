"""NaN and infinity: where they arise in a training, and in each file of a run that has numbers."""

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import safetensors.torch
import torch

from attacking.victim import Result, Said, copy_of, said, victim
from nmt.model.weights import lost
from nmt.training.checkpoint import load_state
from nmt.training.loop import TrainingLoop

VALUES = (torch.nan, torch.inf, -torch.inf)
VERBS = ("translate", "evaluate", "align", "check")
STATE = ("model", "optimizer", "averaging")


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Put `count` such numbers into weights, into saved states, and into what is trained."""
    run, place = victim(folder), folder / "copy"
    place.mkdir(exist_ok=True)
    (folder / "in.txt").write_text("Spain\n", encoding="utf-8")
    results = []
    for name, attempt in (("weights", _weights), ("saved states", _state), ("a training", _training)):
        generator, result = random.Random(f"{seed} {name}"), Result(f"NaN and infinity in {name}")
        for number in range(count):
            with copy_of(run, place) as copy:
                attempt(result, f"attempt {number}", copy, generator)
        results.append(result)
    return results


def _poison(tensors: list[torch.Tensor], generator: random.Random) -> None:
    flat = generator.choice([each for each in tensors if each.is_floating_point() and each.numel()]).detach().view(-1)
    flat[generator.randrange(len(flat))] = generator.choice(VALUES)


def _tensors(tree: object) -> list[torch.Tensor]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list | tuple) else ()
    return [tensor for part in parts for tensor in _tensors(part)]


def _judge(result: Result, what: str, ended: Said, word: str) -> None:
    if ended.traceback or ended.status != 1 or word not in ended.errors + ended.output:
        result.fail(f"{what}: status {ended.status}, {ended.traceback or ended.errors}")
    else:
        result.add("refused")


def _weights(result: Result, what: str, run: Path, generator: random.Random) -> None:
    """A stranger's file of weights, without its checksum."""
    name = generator.choice(("best", "last"))
    path, verb = run / f"{name}.safetensors", generator.choice(VERBS)
    tensors = safetensors.torch.load_file(path)
    _poison([*tensors.values()], generator)
    safetensors.torch.save_file(tensors, path)
    (run / "checksums.json").unlink()
    more = {"translate": [f"input={run.parent.parent / 'in.txt'}"], "evaluate": ["pictures=0"]}.get(verb, [])
    more = [] if verb == "check" else [*more, f"checkpoint={name}", "device=cpu", "threads=1"]
    _judge(result, f"{what}, {path.name}, {verb}", said(verb, f"run={run}", *more), path.name)


def _state(result: Result, what: str, run: Path, generator: random.Random) -> None:
    """It goes on from the state before, and what it saves is finite."""
    path = run / "trainer.pt"
    state = torch.load(path, weights_only=True)
    _poison(_tensors(state[generator.choice(STATE)]), generator)
    torch.save(state, path)
    (run / "checksums.json").unlink()
    ended = _resume(run)
    if ended.status or "continues from trainer-before.pt" not in ended.errors or not _is_finite(run):
        result.fail(f"{what}: status {ended.status}, {ended.traceback or ended.errors}")
    else:
        result.add("resumed from the state before")


def _training(result: Result, what: str, run: Path, generator: random.Random) -> None:
    """It ends before anything is saved that is not finite, and can be resumed."""
    at, update = 60 + generator.randint(1, 20), TrainingLoop._update

    def then_poison(self: TrainingLoop, *arguments: Any) -> None:
        update(self, *arguments)
        if self.counters.step == at:
            with torch.no_grad():
                _poison(_tensors(self.learner.state()[generator.choice(STATE)]), generator)

    TrainingLoop._update = then_poison  # type: ignore[method-assign,assignment]
    try:
        ended = _resume(run)
    finally:
        TrainingLoop._update = update  # type: ignore[method-assign]
    _judge(result, f"{what}, at step {at}", ended, "trainer.clip_norm")
    again = _resume(run)
    if not _is_finite(run) or again.status:
        result.fail(f"{what}, at step {at}, resumed: status {again.status}, {again.traceback or again.errors}")


def _resume(run: Path) -> Said:
    words = ("resume=true", "trainer.steps=90", "trainer.save_minutes=0")
    return said("train", f"name={run.name}", f"checkpoints={run.parent}", *words)


def _is_finite(run: Path) -> bool:
    load_state(run / "trainer.pt")
    readers: list[Callable[[], str]] = [lambda: lost(run / "best.safetensors"), lambda: lost(run / "last.safetensors")]
    return not any(read() for read in readers)
