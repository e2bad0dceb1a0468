"""What a checkpoint keeps: a training in two sessions is one training."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.data.token_batches import TokenBatches
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs.run import Run
from nmt.system.compute import CPU, Compute
from nmt.system.errors import UserError
from nmt.training.checkpoint import Checkpoint, Counters, check_state, load_state
from nmt.training.learner import Learner
from nmt.training.loop import TrainingLoop
from nmt.training.schedules import Constant
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Figures, Validation
from tests.catalogue import model
from tests.training.test_trainer import encoded, train, trainer


def session(folder: Path, settings: TrainerSettings, state: dict[str, Any] | None = None) -> Seq2Seq:
    """Train a model with dropout by an optimiser with momentum, from the beginning or from a state."""
    folder.mkdir(exist_ok=True)
    made = model("model.dropout=0.5").double()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)
    batches = TokenBatches(encoded(30, 1), tokens_per_batch=40, seed=3)
    validation = Validation(
        TokenBatches(encoded(5, 2), tokens_per_batch=100, shuffle=False), lambda _: ([], Figures(0.0)), CPU
    )
    learner = Learner(made, optimizer, Constant(0), settings, CPU)
    TrainingLoop(settings, learner, batches, validation, Run(folder)).run(1, state)
    return made


def same(one: object, other: object) -> bool:
    """Whether two trees of containers hold the same numbers."""
    if isinstance(one, torch.Tensor):
        return isinstance(other, torch.Tensor) and one.equal(other)
    if isinstance(one, dict):
        return isinstance(other, dict) and one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return isinstance(other, list | tuple) and len(one) == len(other) and all(map(same, one, other))
    return one == other


@pytest.mark.parametrize(("average", "graphs"), [("ema", "never"), ("checkpoints", "never"), ("ema", "always")])
def test_a_training_in_two_sessions_is_one_training(average: str, graphs: str, tmp_path: Path) -> None:
    """Weights, averages, the optimiser, random numbers, counters and history are equal, bit by bit."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    cadence = {"average": average, "graphs": graphs, "validate_every": 3, "select": "bleu"}
    session(whole, trainer(steps=13, **cadence))
    session(parts, trainer(steps=6, **cadence))
    first = load_state(parts / "trainer.pt")
    assert first["batch"] > 0, "the first session ends in the middle of an epoch"
    assert bool(first["shapes"]) == (graphs == "always")
    session(parts, trainer(steps=13, **cadence), first)
    states = [load_state(folder / "trainer.pt") for folder in (whole, parts)]
    for state in states:
        state.pop("seconds")
        state.pop("history")  # with its times; see below
    assert same(*states)
    assert (whole / "last.safetensors").read_bytes() == (parts / "last.safetensors").read_bytes()
    losses = [[(entry["valid_loss"], entry["best"]) for entry in Run(folder).history()] for folder in (whole, parts)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 5


def checkpoint_on(device: str, folder: Path) -> Checkpoint:
    """A checkpoint of a small model, which believes to be on a device; its tensors are on the CPU."""
    made = model()
    learner = Learner(made, torch.optim.SGD(made.parameters()), Constant(0), trainer(steps=1), CPU)
    learner.compute = Compute(torch.device(device))
    return Checkpoint(folder, learner)


def test_full_memory_is_not_a_state_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    session(tmp_path, trainer(steps=1))
    state = load_state(tmp_path / "trainer.pt")
    checkpoint = checkpoint_on("cpu", tmp_path)

    def fill(_: dict[str, Any]) -> None:
        raise torch.OutOfMemoryError("CUDA out of memory.")

    monkeypatch.setattr(checkpoint.learner, "restore", fill)
    with pytest.raises(torch.OutOfMemoryError):
        checkpoint.restore(state)


@pytest.mark.parametrize("of_gpu", [True, False])
def test_the_random_state_of_one_gpu_is_restored(of_gpu: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    checkpoint = checkpoint_on("cuda:1", tmp_path)
    set_states: list[tuple[torch.Tensor, torch.device]] = []
    monkeypatch.setattr(torch.cuda, "get_rng_state", lambda device: torch.full((3,), float(device.index)))
    monkeypatch.setattr(torch.cuda, "set_rng_state", lambda *state: set_states.append(state))
    checkpoint.save(Counters())
    state = load_state(tmp_path / "trainer.pt")
    assert [random.tolist() for random in state["cuda_rng"]] == [[1.0] * 3], "of its own device alone"
    state["cuda_rng"] = [torch.zeros(3)] if of_gpu else []
    checkpoint.restore(state)
    assert checkpoint.draws_differently(state) != of_gpu
    assert [(random[0].item(), str(place)) for random, place in set_states] == [(0, "cuda:1")] * of_gpu


def test_the_last_weights_are_the_average_and_the_state_holds_those_trained(tmp_path: Path) -> None:
    made = session(tmp_path, trainer(steps=3, average="ema"))
    first, last = model("model.dropout=0.5").double(), model("model.dropout=0.5").double()
    load_weights(tmp_path / "last.safetensors", last)
    state = load_state(tmp_path / "trainer.pt")
    for name, trained in made.named_parameters():
        averaged = last.get_parameter(name)
        assert state["model"][name].equal(trained)
        assert not averaged.equal(trained)
        assert not averaged.equal(first.get_parameter(name))


@pytest.mark.parametrize("change", ["smaller", "missing"])
def test_a_state_of_another_model_is_refused(change: str, tmp_path: Path) -> None:
    session(tmp_path, trainer(steps=1))
    path, made = tmp_path / "trainer.pt", model()
    state = load_state(path)
    check_state(path, state, made)
    if change == "smaller":
        state["model"]["output.bias"] = state["model"]["output.bias"][1:]
    else:
        del state["model"]["output.bias"]
    with pytest.raises(UserError, match=f"{re.escape(str(path))} does not fit this run: output.bias"):
        check_state(path, state, made)


def test_a_loss_that_is_no_number_ends_the_training(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"The loss became .* at step 1, and stayed so for 2 updates"):
        train(tmp_path, trainer(steps=3), lr=1e30, made=model())
