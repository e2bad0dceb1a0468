"""A batch whose loss is no number is skipped, and one that does not fit into the memory of a GPU is halved."""

from pathlib import Path

import numpy as np
import pytest
import torch

from nmt.data.batch import make_batch
from nmt.data.pairs import EncodedPairs, Ragged
from nmt.data.token_batches import TokenBatches
from nmt.model import Seq2Seq
from nmt.model.weights import load_weights
from nmt.runs.run import Run
from nmt.system.compute import CPU, Compute
from nmt.system.errors import UserError
from nmt.training.checkpoint import load_state
from nmt.training.learner import Learner
from nmt.training.loop import TrainingLoop
from nmt.training.loss import batch_loss
from nmt.training.schedules import Constant
from nmt.training.validation import Figures, Validation
from tests.catalogue import model
from tests.training.test_trainer import trainer

Capture = pytest.CaptureFixture[str]
#: A source piece of one pair alone, and the number of this pair.
RARE, BAD = 22, 7


def pairs() -> EncodedPairs:
    """Twelve pairs of four pieces a side."""
    source = np.arange(48, dtype=np.int32) % 15 + 4
    source[4 * BAD + 1] = RARE
    target = (np.arange(48, dtype=np.int32) * 5) % 20 + 4
    offsets = np.arange(0, 49, 4)
    return EncodedPairs(Ragged([(source, offsets)]), Ragged([(target, offsets)]), np.arange(12), {})


def broken() -> Seq2Seq:
    """A model that overflows wherever the rare piece is."""
    made = model().double()

    def overflow(_: torch.nn.Module, arguments: tuple[torch.Tensor], embedded: torch.Tensor) -> torch.Tensor:
        return embedded.masked_fill((arguments[0] == RARE)[..., None], torch.inf)

    made.source_embedding.register_forward_hook(overflow)
    return made


def loop(folder: Path, made: Seq2Seq, fused: bool = False, **settings: object) -> TrainingLoop:
    """A training by gradient descent, or by a fused AdamW, in batches of three pairs."""
    chosen = trainer(sentences_per_batch=3, tokens_per_batch=100, validate_every=4, **settings)
    optimizer: torch.optim.Optimizer = torch.optim.SGD(made.parameters(), lr=0.1)
    if fused:
        optimizer = torch.optim.AdamW(made.parameters(), lr=0.125, fused=True)  # 0.125 in float32, too
    learner = Learner(made, optimizer, Constant(0), chosen, CPU)
    good = EncodedPairs(Ragged([(np.full(4, 5, np.int32), np.array([0, 4]))]), pairs()._target, np.arange(1), {})
    validation = Validation(TokenBatches(good, tokens_per_batch=100, shuffle=False), lambda _: ([], Figures(0.0)), CPU)
    batches = TokenBatches(pairs(), tokens_per_batch=100, sentences_per_batch=3, seed=3)
    return TrainingLoop(chosen, learner, batches, validation, Run(folder))


def test_one_bad_batch_is_named_skipped_and_counted(tmp_path: Path, capsys: Capture) -> None:
    made, by_hand = broken(), broken()
    loop(tmp_path, made, steps=4, average="none").run(seed=1)
    skipped = []
    for number, indices in enumerate(
        TokenBatches(pairs(), tokens_per_batch=100, sentences_per_batch=3, seed=3).plan(0)
    ):
        if BAD in indices:
            skipped.append((number, indices))
            continue
        batch = make_batch([pairs().source(row) for row in indices], [pairs().target(row) for row in indices])
        by_hand.zero_grad()
        loss = batch_loss(by_hand.train(), batch, trainer().label_smoothing)
        (loss.total / loss.tokens).backward()
        torch.optim.SGD(by_hand.parameters(), lr=0.1).step()
    ((number, indices),) = skipped
    for ours, theirs in zip(made.parameters(), by_hand.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    message = next(line for line in capsys.readouterr().err.splitlines() if "skipped" in line)
    assert message.startswith(f"step {number}: loss ")
    assert f"training pairs {', '.join(str(row + 1) for row in indices)} (epoch 0)" in message
    (entry,) = Run(tmp_path).history()
    assert entry["skipped_updates"] == 1
    assert np.isfinite(entry["train_loss"])


def test_the_count_survives_an_interruption(tmp_path: Path) -> None:
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    for folder in (whole, parts):
        folder.mkdir()
    loop(whole, broken(), steps=4, average="none").run(seed=1)
    first = loop(parts, broken(), steps=4, average="none")
    original = first.learner.update

    def stopping(*arguments: object) -> object:
        if first.counters.step == 2:
            first.stop.signal = "SIGTERM"
        return original(*arguments)  # type: ignore[arg-type]

    first.learner.update = stopping  # type: ignore[assignment]
    assert first.run(seed=1).interrupted
    loop(parts, broken(), steps=4, average="none").run(1, load_state(parts / "trainer.pt"))
    kept = ("train_loss", "valid_loss", "skipped_updates")
    one, other = (
        [{key: entry.get(key) for key in kept} for entry in Run(folder).history()] for folder in (whole, parts)
    )
    assert one == other


def test_too_many_in_a_row_end_it_at_the_last_good_state(tmp_path: Path) -> None:
    made = model().double()
    training = loop(tmp_path, made, steps=40, skipped_updates=3)
    original, good = training.learner.update, list[torch.Tensor]()

    def overflowing(*arguments: object) -> object:
        if training.counters.step == 5:
            good.extend(parameter.detach().clone() for parameter in made.parameters())
            with torch.no_grad():
                made.source_embedding.weight.fill_(torch.inf)
        return original(*arguments)  # type: ignore[arg-type]

    training.learner.update = overflowing  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"at step 5, and stayed so for 3 updates\. The state of step 4"):
        training.run(seed=1)
    assert load_state(tmp_path / "trainer.pt")["step"] == 4
    assert all(
        ours.equal(before)
        for (name, ours), before in zip(made.named_parameters(), good, strict=True)
        if name != "source_embedding.weight"
    )


def test_a_batch_that_does_not_fit_is_halved_and_said_once(tmp_path: Path, capsys: Capture) -> None:
    plain, halved, tried = model().double(), model().double(), []

    def full(module: torch.nn.Module, arguments: tuple[torch.Tensor, ...]) -> None:
        tried.append(len(arguments[0]))
        if module.training and len(arguments[0]) > 2:
            raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB")

    halved.encoder.register_forward_pre_hook(full)
    for name, made in (("plain", plain), ("halved", halved)):
        (tmp_path / name).mkdir()
        loop(tmp_path / name, made, steps=3, average="none").run(seed=1)
    for ours, theirs in zip(plain.parameters(), halved.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert {1, 2, 3} <= {*tried}
    assert capsys.readouterr().err.count("The GPU's memory is full at step 0: batches are halved") == 1


@pytest.mark.parametrize("seconds", [0.0, 100.0])
def test_updates_that_leave_their_numbers_on_the_device_are_the_ordinary_ones(
    seconds: float, tmp_path: Path, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on a GPU: skipped there, read now and then; the same weights, averages, history and messages."""
    monkeypatch.setattr("nmt.training.loop.READ_SECONDS", seconds)
    states, said, histories = [], [], []
    for defers in (False, True):
        (folder := tmp_path / str(defers)).mkdir()
        training = loop(folder, broken(), fused=True, steps=9, average="ema")
        assert training.learner.defers is False
        training.learner.defers = defers
        training.run(seed=1)
        states.append(load_state(folder / "trainer.pt"))
        said.append([line for line in capsys.readouterr().err.splitlines() if "skipped" in line])
        kept = ("step", "train_loss", "valid_loss", "skipped_updates")
        histories.append([{key: entry.get(key) for key in kept} for entry in Run(folder).history()])
    assert len(said[0]) == 3
    assert said[0] == said[1]
    for one, other in zip(*histories, strict=True):
        assert one == pytest.approx(other, rel=1e-6)
    for part in ("model", "optimizer"):
        torch.testing.assert_close(states[0][part], states[1][part], rtol=0, atol=0, equal_nan=True)
    one, other = (state["averaging"]["averaged"] for state in states)
    assert one["n_averaged"] == other["n_averaged"] == 9
    torch.testing.assert_close(one, other, rtol=1e-6, atol=1e-6, equal_nan=True)  # the device's share is in float32


def test_what_the_host_decides_is_read_at_once() -> None:
    """An optimizer that cannot skip by itself."""
    gpu = Compute(torch.device("cuda", 0))
    for words, fused, defers in (((), True, True), ((), False, False), (("attention/read=hard",), True, True)):
        made = model(*words)
        optimizer = torch.optim.AdamW(made.parameters(), fused=fused)
        assert Learner(made, optimizer, Constant(0), trainer(steps=1, graphs="never"), gpu).defers is defers


def test_the_device_moves_the_baseline_of_draws_as_the_host_does() -> None:
    """Not in the update without a finite loss."""
    baselines = []
    for defers in (False, True):
        made = model("attention/read=hard")
        factor = made.output.bias.new_ones(())
        made.output.register_forward_hook(lambda _, __, output, factor=factor: output * factor)
        optimizer = torch.optim.AdamW(made.parameters(), fused=True)
        learner = Learner(made.train(), optimizer, Constant(0), trainer(steps=9, graphs="never"), CPU)
        learner.defers = defers
        torch.manual_seed(2)
        for step in range(4):
            factor.fill_(torch.inf if step == 2 else 1)
            learner.update([make_batch([[5, 6], [7]], [[8, 9], [10]])], step, 0.0)
        baselines.append(learner.state()["baseline"])
    assert baselines[0] == pytest.approx(baselines[1], rel=1e-6)
    assert baselines[0] < -0.5


@pytest.mark.parametrize(("part", "value"), [("weights", torch.nan), ("average", torch.inf), ("optimizer", torch.nan)])
def test_what_is_no_number_is_not_saved(part: str, value: float, tmp_path: Path) -> None:
    """It ends the training; the files of the save before stay."""
    made = model()
    training = loop(tmp_path, made, fused=True, steps=12, save_minutes=0.0)
    update = training.learner.update

    def then_overflow(*arguments: object) -> object:
        result = update(*arguments)  # type: ignore[arg-type]
        if training.counters.step == 5:
            tensors = {
                "weights": made.output.bias,
                "average": training.learner.averaging.best_guess.output.bias,
                "optimizer": training.learner.optimizer.state[made.output.bias]["exp_avg_sq"],
            }
            with torch.no_grad():
                tensors[part][3] = value
        return result

    training.learner.update = then_overflow  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"has NaN or infinity at step 6, so it is not saved\. .* keeps what was saved"):
        training.run(seed=1)
    assert load_state(tmp_path / "trainer.pt")["step"] == 5
    for name in ("last", "best"):
        load_weights(tmp_path / f"{name}.safetensors", model())
    assert [entry["step"] for entry in Run(tmp_path).history()] == [4]


def test_a_validation_that_is_no_number_ends_training(tmp_path: Path) -> None:
    training = loop(tmp_path, model(), steps=8)
    validate = training.validation
    training.validation = lambda made: validate(made)._replace(loss=torch.nan)  # type: ignore[assignment]
    with pytest.raises(UserError, match=r"The validation loss became nan at step 4\."):
        training.run(seed=1)
    assert Run(tmp_path).history() == []
