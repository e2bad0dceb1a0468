"""What a checkpoint keeps: a training in two sessions is one training."""

import re
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.compute import CPU
from nmt.data.planning import TokenBatches
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs import Run
from nmt.training.checkpoint import check_state, load_state
from nmt.training.learner import Learner
from nmt.training.loop import TrainingLoop
from nmt.training.schedules import Constant
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Validated, Validation
from tests.catalogue import model
from tests.training.test_trainer import encoded, train, trainer


def session(folder: Path, settings: TrainerSettings, state: dict[str, Any] | None = None) -> Seq2Seq:
    """Train a model with dropout by an optimiser with momentum, from the beginning or from a state."""
    folder.mkdir(exist_ok=True)
    made = model("model.dropout=0.5").double()
    optimizer = torch.optim.SGD(made.parameters(), lr=0.1, momentum=0.9)
    batches = TokenBatches(encoded(30, 1), tokens_per_batch=40, seed=3)
    validation = Validation(TokenBatches(encoded(5, 2), tokens_per_batch=100, shuffle=False), lambda _: ([], 0.0), CPU)
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


@pytest.mark.parametrize("average", ["ema", "checkpoints"])
def test_a_training_in_two_sessions_is_one_training(average: str, tmp_path: Path) -> None:
    """Weights, averages, the optimiser, random numbers, counters and history are equal, bit by bit."""
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    cadence = {"average": average, "validate_every": 3, "select": "bleu"}
    session(whole, trainer(steps=13, **cadence))
    session(parts, trainer(steps=6, **cadence))
    assert load_state(parts / "trainer.pt")["batch"] > 0, "the first session ends in the middle of an epoch"
    session(parts, trainer(steps=13, **cadence), load_state(parts / "trainer.pt"))
    states = [load_state(folder / "trainer.pt") for folder in (whole, parts)]
    for state in states:
        state.pop("seconds")
    assert same(*states)
    assert (whole / "last.safetensors").read_bytes() == (parts / "last.safetensors").read_bytes()
    losses = [[(entry["valid_loss"], entry["best"]) for entry in Run(folder).history()] for folder in (whole, parts)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 5


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
    with pytest.raises(UserError, match=r"The loss became .* at step 1"):
        train(tmp_path, trainer(steps=3), lr=1e30, made=model())


def test_a_perplexity_is_finite() -> None:
    assert Validated(1000.0, 0.0, []).perplexity == Validated(50.0, 0.0, []).perplexity
