"""The loop's parts: what a step does, what is kept, and what signals do."""

import itertools
import math
import os
import signal
from collections.abc import Sequence
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
from nmt.system.compute import CPU
from nmt.system.errors import UserError
from nmt.system.limits import checked
from nmt.system.signals import handling
from nmt.training.checkpoint import load_state
from nmt.training.learner import Learner
from nmt.training.loop import StopRequest, TrainingLoop
from nmt.training.loss import batch_loss
from nmt.training.schedules import Constant, Schedule
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Figures, Validation
from tests.catalogue import model

SETTINGS = {
    "steps": 2,
    "epochs": None,
    "minutes": None,
    "tokens_per_batch": 40,
    "sentences_per_batch": None,
    "accumulate": 1,
    "clip_norm": 0.0,
    "label_smoothing": 0.0,
    "scheduled_sampling": 0.0,
    "average": "none",
    "ema_decay": 0.9,
    "average_checkpoints": 2,
    "validate_every": None,
    "validate_sentences": 5,
    "select": "perplexity",
    "patience": None,
    "save_minutes": 5.0,
    "log_seconds": 30.0,
    "samples": 0,
    "max_source_length": 50,
    "max_target_length": 50,
    "workers": 1,
    "tensorboard": False,
    "guided_alignment": 0.0,
    "guided_head": None,
    "r_drop": 0.0,
    "simcut": 0.0,
    "skipped_updates": 10,
    "graphs": "never",
}


def trainer(**changes: object) -> TrainerSettings:
    return checked(TrainerSettings, {**SETTINGS, **changes}, "trainer")()


def encoded(rows: int, seed: int) -> EncodedPairs:
    """Random pairs of two to six tokens a side."""
    generator = np.random.default_rng(seed)

    def side(pieces: int) -> Ragged:
        lengths = generator.integers(2, 7, rows)
        values = generator.integers(4, pieces, int(lengths.sum())).astype(np.int32)
        return Ragged([(values, np.concatenate([[0], np.cumsum(lengths)]))])

    return EncodedPairs(side(23), side(29), np.arange(rows), {})


def train(
    folder: Path,
    settings: TrainerSettings,
    lr: float = 0.1,
    *,
    schedule: Schedule | None = None,
    made: Seq2Seq | None = None,
    bleu: Sequence[float] = (),
    figures: Sequence[Figures] = (),
) -> dict[str, torch.Tensor]:
    """Train a small model by gradient descent; return its parameters before and after, as `before.` and plain.

    The scores of its validations are `figures`, or have the BLEU of `bleu`, then 0.
    """
    scores = itertools.chain(figures, map(Figures, bleu), itertools.repeat(Figures(0.0)))
    made = model().double() if made is None else made
    before = {f"before.{name}": parameter.detach().clone() for name, parameter in made.named_parameters()}
    outcome = TrainingLoop(
        settings,
        Learner(made, torch.optim.SGD(made.parameters(), lr=lr), schedule or Constant(0), settings, CPU),
        TokenBatches(encoded(30, 1), tokens_per_batch=settings.tokens_per_batch, seed=3),
        Validation(TokenBatches(encoded(5, 2), tokens_per_batch=100, shuffle=False), lambda _: ([], next(scores)), CPU),
        Run(folder),
    ).run(seed=1)
    assert not outcome.interrupted
    return before | {name: parameter.detach() for name, parameter in made.named_parameters()}


@pytest.mark.parametrize("accumulate", [1, 3])
def test_a_step_goes_down_the_gradient_of_the_mean_over_tokens(accumulate: int, tmp_path: Path) -> None:
    found = train(tmp_path, trainer(steps=1, accumulate=accumulate))
    # The same by hand: all pairs of the first batches as one batch, the loss a token, one step of size 0.1.
    pairs = encoded(30, 1)
    plan = TokenBatches(pairs, tokens_per_batch=40, seed=3).plan(0)[:accumulate]
    rows = [int(row) for indices in plan for row in indices]
    made = model().double()
    loss = batch_loss(made, make_batch([pairs.source(row) for row in rows], [pairs.target(row) for row in rows]))
    (loss.total / loss.tokens).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(found[name], parameter.detach() - 0.1 * parameter.grad)


@pytest.mark.parametrize("accumulate", [1, 2])
def test_the_baseline_of_draws_follows_the_mean_gain_of_a_token(accumulate: int, tmp_path: Path) -> None:
    train(tmp_path, trainer(steps=2, accumulate=accumulate), lr=0.0)
    pairs = encoded(30, 1)
    plan = TokenBatches(pairs, tokens_per_batch=40, seed=3).plan(0)
    made, means = model().double(), []
    for step in range(2):
        rows = [int(row) for rows in plan[step * accumulate : (step + 1) * accumulate] for row in rows]
        loss = batch_loss(made, make_batch([pairs.source(row) for row in rows], [pairs.target(row) for row in rows]))
        means.append(-loss.negative_log_likelihood.item() / loss.tokens)
    expected = 0.9 * 0.1 * means[0] + 0.1 * means[1]
    assert load_state(tmp_path / "trainer.pt")["baseline"] == pytest.approx(expected, rel=1e-5)


def test_the_gradient_is_clipped(tmp_path: Path) -> None:
    found = train(tmp_path, trainer(steps=1, clip_norm=1e-3), lr=1.0)
    change = sum((found[name] - found[f"before.{name}"]).square().sum() for name in found if "before." not in name)
    assert float(change) ** 0.5 == pytest.approx(1e-3, rel=1e-3)


class Only(Schedule):
    """The full rate at one update, and none at all others."""

    def __init__(self, update: int) -> None:
        super().__init__()
        self.update = update

    def decay(self, step: int, progress: float) -> float:
        return float(step == self.update)


@pytest.mark.parametrize("update", [0, 1, 2])
def test_an_update_has_the_rate_that_the_schedule_gives_its_number(update: int, tmp_path: Path) -> None:
    """Counted from 0; a rate of zero leaves the weights alone, so that one batch of the three moves them."""
    after = train(tmp_path, trainer(steps=3), schedule=Only(update))
    pairs = encoded(30, 1)
    rows = [int(row) for row in TokenBatches(pairs, tokens_per_batch=40, seed=3).plan(0)[update]]
    made = model().double()
    loss = batch_loss(made, make_batch([pairs.source(row) for row in rows], [pairs.target(row) for row in rows]))
    (loss.total / loss.tokens).backward()
    for name, parameter in made.named_parameters():
        assert parameter.grad is not None
        torch.testing.assert_close(after[name], parameter.detach() - 0.1 * parameter.grad)


def validation_loss(made: Seq2Seq) -> float:
    """The mean negative log-likelihood of the validation pairs in one batch."""
    pairs = encoded(5, 2)
    batch = make_batch([pairs.source(row) for row in range(5)], [pairs.target(row) for row in range(5)])
    loss = batch_loss(made.eval(), batch)
    return float(loss.negative_log_likelihood) / loss.tokens


def test_what_is_validated_and_kept_is_the_average(tmp_path: Path) -> None:
    made, averaged = model().double(), model().double()
    train(tmp_path, trainer(steps=3, validate_every=1, average="checkpoints"), made=made)
    load_weights(tmp_path / "last.safetensors", averaged)
    validated = Run(tmp_path).history()[-1]["valid_loss"]
    assert validated == pytest.approx(validation_loss(averaged))
    assert validated != pytest.approx(validation_loss(made), rel=1e-3)


def test_validation_drops_nothing_out_and_training_goes_on_dropping(tmp_path: Path) -> None:
    """The rate is zero, so that every validation is the same loss of the same five pairs."""
    made = model("model.dropout=0.5").double()
    training: list[bool] = []
    made.encoder.register_forward_hook(lambda module, *_: training.append(module.training))
    train(tmp_path, trainer(steps=3, validate_every=1), lr=0.0, made=made)
    assert [entry["valid_loss"] for entry in Run(tmp_path).history()] == pytest.approx([validation_loss(made)] * 3)
    assert [mode for mode, _ in itertools.groupby(training)] == [True, False] * 3


@pytest.mark.parametrize(
    ("select", "lr", "bleu", "best"),
    [
        ("bleu", 0.01, [3, 2, 5, 5.1], [1, 0, 1, 1]),  # perplexity falls at every step of 0.01
        ("perplexity", 0.01, [3, 2, 5, 5], [1, 1, 1, 1]),
        ("bleu", 0.01, [3, 3, 3, 2], [1, 1, 1, 0]),  # the other figure decides between equals
        ("perplexity", 0.0, [3, 2, 5, 5], [1, 0, 1, 0]),
        ("bleu", 0.0, [3, 3, 3, 3], [1, 0, 0, 0]),  # what is equal in both is no better
    ],
    ids=str,
)
def test_the_best_validation_by_the_selected_figure(
    select: str, lr: float, bleu: list[float], best: list[float], tmp_path: Path
) -> None:
    train(tmp_path, trainer(steps=4, validate_every=1, select=select), lr=lr, bleu=bleu)
    history = Run(tmp_path).history()
    assert [entry["valid_bleu"] for entry in history] == bleu
    if lr:
        perplexities = [entry["valid_perplexity"] for entry in history]
        assert perplexities == sorted(perplexities, reverse=True)
    assert [entry["best"] for entry in history] == best


@pytest.mark.parametrize(("bleu", "validations"), [([1, 2, 3, 4, 5, 6], 6), ([1, 1, 2, 2, 1, 3], 5)])
def test_patience_counts_validations_in_a_row_that_were_no_better(
    bleu: list[float], validations: int, tmp_path: Path
) -> None:
    train(tmp_path, trainer(steps=6, validate_every=1, select="bleu", patience=2), lr=0.0, bleu=bleu)
    assert len(Run(tmp_path).history()) == validations
    train(tmp_path, trainer(steps=6, validate_every=1, select="last", patience=2), lr=0.0, bleu=bleu)
    assert [entry["best"] for entry in Run(tmp_path).history()] == [1.0] * validations, "the last weights are kept"


@pytest.mark.parametrize(("more", "each"), [({}, False), ({"patience": 1}, True), ({"average": "checkpoints"}, True)])
def test_the_last_weights_need_no_validation_but_for_patience_or_a_mean(more: dict[str, object], each: bool) -> None:
    assert trainer(select="last", **more).validates_epochs == each
    assert trainer(**more).validates_epochs


def test_the_estimate_changes_nothing(tmp_path: Path) -> None:
    found = train(tmp_path, trainer(steps=1), lr=0.0)
    said = (tmp_path / "train.log").read_text(encoding="utf-8").splitlines()
    assert all(found[name].equal(found[f"before.{name}"]) for name in found if "before." not in name)
    assert said[0].startswith("Expected time: about 0:0")
    assert said[1].startswith("step 1 | epoch ")


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"steps": None}, "There is no budget"),
        ({"minutes": math.inf}, "trainer.minutes=inf: must be a finite number"),
        ({"patience": 0}, "trainer.patience=0: must be at least 1, or null"),
        ({"average": "some"}, "trainer.average=some: must be none, ema or checkpoints"),
        ({"ema_decay": 1.0}, "trainer.ema_decay=1.0: must be at least 0 and less than 1"),
        ({"select": "ter"}, "trainer.select=ter: must be bleu, perplexity or last"),
        ({"scheduled_sampling": 1.5}, "trainer.scheduled_sampling=1.5: must be from 0 to 1"),
        ({"graphs": "sometimes"}, "trainer.graphs=sometimes: must be"),
    ],
)
def test_settings_out_of_range_are_refused(changes: dict[str, object], message: str) -> None:
    with pytest.raises(UserError, match=message):
        trainer(**changes)


# State


# Signals


def test_a_signal_is_taken_note_of_and_a_second_ctrl_c_stops_at_once() -> None:
    request = StopRequest()
    before = [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)]
    with handling((signal.SIGINT, signal.SIGTERM), request):
        os.kill(os.getpid(), signal.SIGTERM)
        assert request.signal == "SIGTERM"
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
    assert [signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)] == before


def test_where_bleu_cannot_judge_chrf_selects_and_a_lower_loss_is_progress(tmp_path: Path) -> None:
    chrf = [15.0, 4.0, 3.0, 9.0, 20.0, 18.0]
    figures = [Figures(0.0, 10.0, value) for value in chrf]
    train(tmp_path, trainer(steps=6, validate_every=1, select="bleu", patience=2), lr=0.01, figures=figures)
    known = Run(tmp_path).history()
    assert [entry["valid_chrf"] for entry in known] == chrf, "patience was not used up while the loss fell"
    assert [entry["best"] for entry in known] == [1, 0, 0, 0, 1, 0]
    assert {(entry["valid_bleu"], entry["valid_exact"]) for entry in known} == {(0.0, 10.0)}
