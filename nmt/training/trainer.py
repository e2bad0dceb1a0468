"""The training loop: batches in, better weights out; validates, keeps the best and the last, stops, goes on."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.optim.lr_scheduler import LambdaLR

from nmt.data.batch import Batch
from nmt.data.planning import TokenBatches
from nmt.errors import UserError
from nmt.memory import give_memory_back
from nmt.model import Seq2Seq
from nmt.model.weights import save_weights
from nmt.training.averaging import Averaging
from nmt.training.board import Board
from nmt.training.loss import batch_loss
from nmt.training.progress import Progress, clock
from nmt.training.schedules import Schedule
from nmt.training.state import save_state
from nmt.translation.types import Translation

#: Steps between returns of free memory to the system: half a minute or so, at a cost of some tenths of a second.
_TIDY_EVERY = 100


class Outcome(NamedTuple):
    """How training ended: "steps", "epochs", "minutes", "patience" or a signal's name; and the validation history."""

    finished_by: str
    interrupted: bool
    step: int
    minutes: float
    history: list[dict[str, float]]


class Validation(NamedTuple):
    """What is validated on: batches for the loss; `translate` gives translations and their BLEU with a model."""

    batches: TokenBatches
    translate: Callable[[Seq2Seq], tuple[list[Translation], float]]


class Trainer:
    """Settings of the loop; `run` takes the finished parts."""

    def __init__(
        self,
        *,
        steps: int | None,
        epochs: float | None,
        minutes: float | None,
        tokens_per_batch: int,
        sentences_per_batch: int | None,
        accumulate: int,
        clip_norm: float,
        label_smoothing: float,
        scheduled_sampling: float,
        average: str,
        ema_decay: float,
        average_checkpoints: int,
        validate_every: int | None,
        validate_sentences: int,
        select: str,
        patience: int | None,
        save_minutes: float,
        log_seconds: float,
        samples: int,
        max_source_length: int,
        max_target_length: int,
        workers: int,
        tensorboard: bool,
        guided_alignment: float = 0.0,
    ) -> None:
        """Settings as `configs/trainer/default.yaml` explains them.

        Raises:
            UserError: no budget is given, or a value is out of range.
        """
        if steps is None and epochs is None and minutes is None:
            raise UserError("There is no budget. Give trainer.steps, trainer.epochs or trainer.minutes.")
        for name, value in (("steps", steps), ("epochs", epochs), ("minutes", minutes)):
            if value is not None and not 0 < value < math.inf:
                raise UserError(f"trainer.{name} must be positive and finite, not {value}; null sets no such limit.")
        for name, number in (
            ("tokens_per_batch", tokens_per_batch),
            ("sentences_per_batch", sentences_per_batch),
            ("accumulate", accumulate),
            ("max_source_length", max_source_length),
            ("max_target_length", max_target_length),
            ("average_checkpoints", average_checkpoints),
            ("validate_every", validate_every),
            ("validate_sentences", validate_sentences),
            ("patience", patience),
            ("workers", workers),
        ):
            if number is not None and number < 1:
                raise UserError(f"trainer.{name} must be at least 1, not {number}.")
        for name, least in (
            ("clip_norm", clip_norm),
            ("save_minutes", save_minutes),
            ("log_seconds", log_seconds),
            ("samples", samples),
            ("guided_alignment", guided_alignment),
        ):
            if least < 0:
                raise UserError(f"trainer.{name} must not be negative, but is {least}.")
        if not 0 <= ema_decay < 1:
            raise UserError(f"trainer.ema_decay must lie between 0 and 1, but is {ema_decay}.")
        if select not in ("bleu", "perplexity"):
            raise UserError(f"trainer.select={select} is not known. Give trainer.select=bleu or =perplexity.")
        if average not in Averaging.KINDS:
            raise UserError(
                f"trainer.average={average} is not known. Give trainer.average= one of {', '.join(Averaging.KINDS)}."
            )
        if not 0 <= label_smoothing < 1 or not 0 <= scheduled_sampling <= 1:
            raise UserError("trainer.label_smoothing and trainer.scheduled_sampling must lie between 0 and 1.")
        self.steps, self.epochs, self.minutes = steps, epochs, minutes
        self.tokens_per_batch, self.sentences_per_batch = tokens_per_batch, sentences_per_batch
        self.accumulate, self.clip_norm = accumulate, clip_norm
        self.label_smoothing, self.scheduled_sampling = label_smoothing, scheduled_sampling
        self.average, self.ema_decay, self.average_checkpoints = average, ema_decay, average_checkpoints
        self.validate_every, self.validate_sentences = validate_every, validate_sentences
        self.select, self.patience = select, patience
        self.save_minutes, self.log_seconds, self.samples = save_minutes, log_seconds, samples
        self.max_source_length, self.max_target_length = max_source_length, max_target_length
        self.workers, self.tensorboard = workers, tensorboard
        self.guided_alignment = guided_alignment

    def run(
        self,
        model: Seq2Seq,
        batches: TokenBatches,
        validation: Validation,
        *,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        folder: Path,
        device: torch.device,
        autocast: torch.dtype | None,
        seed: int,
        log: Callable[[str], None],
        history: list[dict[str, float]],
        keep_history: Callable[[Sequence[dict[str, float]]], None],
        state: dict[str, Any] | None,
    ) -> Outcome:
        """Trains until the budget is used, patience ends, or SIGINT or SIGTERM asks to stop; saves in every case.

        Args:
            model: on `device`, initialised.
            batches: the training batches, epoch by epoch.
            validation: what is validated on.
            optimizer: over the model's parameters.
            schedule: of the learning rate.
            folder: the run folder; best, last and the trainer's state are kept in it.
            device: where to compute.
            autocast: bfloat16 to compute in it; None for float32.
            seed: of dropout and scheduled sampling.
            log: keeps a line in the run's log.
            history: the validations so far.
            keep_history: writes them down.
            state: what an earlier sitting saved (`load_state`), to be taken up; None begins anew.

        Raises:
            UserError: the state does not fit, the loss is no number, or the disk is full.
        """
        loop = _Loop(
            self, model, batches, validation, optimizer, schedule, folder, device, autocast, seed, log, history,
            keep_history, 0 if state is None else int(state.get("step", 0)),
        )  # fmt: skip
        try:
            if state is not None:
                loop.restore(state)
            return loop.run()
        finally:
            loop.close()


class _Stop(Exception):  # noqa: N818  a way out of the loop, not an error
    """Raised inside the loop to end it."""


class _Loop:
    """One run of the loop: what changes while it runs."""

    def __init__(
        self,
        settings: Trainer,
        model: Seq2Seq,
        batches: TokenBatches,
        validation: Validation,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        folder: Path,
        device: torch.device,
        autocast: torch.dtype | None,
        seed: int,
        log: Callable[[str], None],
        history: list[dict[str, float]],
        keep_history: Callable[[Sequence[dict[str, float]]], None],
        first_step: int,
    ) -> None:
        self.settings, self.model, self.batches, self.validation = settings, model, batches, validation
        self.optimizer, self.schedule, self.folder = optimizer, schedule, folder
        self.device, self.autocast = device, autocast
        self.history, self.keep_history = history, keep_history
        self.averaging = Averaging(model, settings.average, settings.ema_decay, settings.average_checkpoints)
        self.step, self.epoch, self.batch = 0, 0, 0
        self.seconds_before = 0.0  # of earlier sittings
        self.started = time.monotonic()
        self.best = (-math.inf, -math.inf)
        self.bad_validations = 0
        self.baseline = 0.0  # the moving average of log p(y_t), for mechanisms that draw (Xu et al. 2015, section 4.1)
        self.progress = Progress(log, settings.log_seconds)
        self.asked_to_stop: str | None = None
        self.epoch_batches = max(1, len(batches.plan(0)))
        self.window = _Window()
        self.board = Board(folder / "tensorboard", settings.tensorboard, first_step)
        torch.manual_seed(seed)
        self.scheduler = LambdaLR(optimizer, lambda _: schedule.factor(self.step, self.share()))

    # Time and budget

    def seconds(self) -> float:
        """Training time over all sittings."""
        return self.seconds_before + time.monotonic() - self.started

    def epochs_done(self) -> float:
        """Epochs, with the part of the one in progress."""
        return self.epoch + self.batch / self.epoch_batches

    def used(self) -> dict[str, float]:
        """The share of each budget that is used."""
        settings = self.settings
        shares = {}
        if settings.steps is not None:
            shares["steps"] = self.step / settings.steps
        if settings.epochs is not None:
            shares["epochs"] = self.epochs_done() / settings.epochs
        if settings.minutes is not None:
            shares["minutes"] = self.seconds() / 60 / settings.minutes
        return shares

    def share(self) -> float:
        """The share of the budget that is furthest used."""
        return max(self.used().values())

    # The loop

    def run(self) -> Outcome:
        """See `Trainer.run`."""
        finished_by = ""
        with _Signals(self._ask_to_stop):
            try:
                self.model.train()
                self._expect()
                self._loop()
            except _Stop as stop:
                finished_by = str(stop)
            interrupted = finished_by == self.asked_to_stop
            if not interrupted and (not self.history or self.history[-1]["step"] < self.step):
                self._validate()
            self.save()
        return Outcome(finished_by, interrupted, self.step, self.seconds() / 60, self.history)

    def close(self) -> None:
        """Takes the progress bar away and ends the events file."""
        self.progress.close()
        self.board.close()

    def _ask_to_stop(self, name: str) -> None:
        self.asked_to_stop = name
        with contextlib.suppress(OSError):  # straight to the descriptor: a handler may come in the middle of a print
            os.write(2, f"\n{name}: stopping after this step or validation. Ctrl-C again stops at once.\n".encode())

    def _loop(self) -> None:
        last_save = time.monotonic()
        while True:  # an epoch that was left on its last batch has no more batches and is over
            self.epoch_batches = max(1, len(self.batches.plan(self.epoch)))
            epoch = self.batches.epoch(self.epoch, self.batch)
            for group in _groups(epoch, self.settings.accumulate):
                self._check()
                self._update(group)
                if self.step % _TIDY_EVERY == 0:
                    give_memory_back()
                every = self.settings.validate_every
                if every is not None and self.step % every == 0:
                    self._validate()
                if time.monotonic() - last_save > self.settings.save_minutes * 60:
                    self.save()
                    last_save = time.monotonic()
            self.epoch, self.batch = self.epoch + 1, 0
            if self.settings.validate_every is None:
                self._validate()

    def _check(self) -> None:
        """Ends the loop where it has to end."""
        if self.asked_to_stop is not None:
            raise _Stop(self.asked_to_stop)
        for name, share in self.used().items():
            if share >= 1:
                raise _Stop(name)
        patience = self.settings.patience
        if patience is not None and self.bad_validations >= patience:
            raise _Stop("patience")

    def _update(self, group: list[Batch]) -> None:
        """One optimiser step over the batches of `group`."""
        tokens = sum(int(batch.target_mask.sum()) for batch in group)
        total = plain = 0.0
        for batch in group:
            with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
                loss = batch_loss(
                    self.model,
                    batch.to(self.device),
                    self.settings.label_smoothing,
                    self.settings.scheduled_sampling,
                    self.baseline,
                    self.settings.guided_alignment,
                )
            (loss.total / tokens).backward()
            total += loss.total.item()
            plain += loss.negative_log_likelihood.item()
        if not math.isfinite(total):
            raise UserError(
                f"The loss became {total} at step {self.step}. Train anew under another name with a smaller "
                f"optimizer.lr or trainer.clip_norm."
            )
        norm = nn.utils.clip_grad_norm_(
            self.model.parameters(), self.settings.clip_norm if self.settings.clip_norm > 0 else math.inf
        )
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.averaging.after_update()
        self.baseline += 0.1 * (-plain / tokens - self.baseline)
        # Counted before the schedule asks how far the training is: a resumed one asks at the same place.
        self.step, self.batch = self.step + 1, self.batch + len(group)
        self.scheduler.step()
        self.window.add(total, plain, tokens)
        self._show(float(norm))

    def _show(self, norm: float) -> None:
        share, rate = self.share(), float(self.scheduler.get_last_lr()[0])
        left = self.seconds() * (1 - share) / share if share else math.inf
        loss, perplexity, speed = self.window.read()
        text = (
            f"step {self.step} | epoch {self.epochs_done():.2f} | loss {loss:.3f} | ppl {perplexity:.2f} | "
            f"lr {rate:.2e} | {speed:,.0f} target tokens/s | {clock(left)} left"
        )
        self.progress.update(share, text)
        if self.step % 20 == 0:
            self.board.scalars(
                self.step,
                {"train/loss": loss, "train/perplexity": perplexity, "train/learning_rate": rate,
                 "train/gradient_norm": norm, "train/target_tokens_per_second": speed},
            )  # fmt: skip

    def _expect(self) -> None:
        """Says how long it will take, from the time of a few batches that change nothing."""
        if self.asked_to_stop is not None:
            return
        seconds, timed = 0.0, 0
        plan = self.batches.plan(self.epoch)
        devices = [self.device] if self.device.type == "cuda" else []
        with torch.random.fork_rng(devices):
            for number, indices in enumerate(plan[: min(4, len(plan))]):
                batch = self.batches.collate(indices, self.epoch).to(self.device)
                before = time.monotonic()
                with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
                    loss = batch_loss(self.model, batch, self.settings.label_smoothing)
                loss.total.backward()
                loss.total.item()
                if number or len(plan) == 1:  # the first one warms up
                    seconds += time.monotonic() - before
                    timed += 1
        self.model.zero_grad(set_to_none=True)
        per_step = seconds / max(timed, 1) * self.settings.accumulate
        expected = [math.inf]
        if self.settings.steps is not None:
            expected.append((self.settings.steps - self.step) * per_step)
        if self.settings.epochs is not None:
            steps_an_epoch = self.epoch_batches / self.settings.accumulate
            expected.append((self.settings.epochs - self.epochs_done()) * steps_an_epoch * per_step)
        if self.settings.minutes is not None:
            expected.append(self.settings.minutes * 60 - self.seconds())
        self.progress.say(f"Expected time: about {clock(min(expected))} of training, validation not counted.")
        # The estimate is no training time.
        self.started = time.monotonic()

    # Validation and keeping

    def _validate(self) -> None:
        self.averaging.before_validation()
        model = self.averaging.best_guess
        was_training = model.training
        model.eval()
        nll, tokens = 0.0, 0
        with torch.inference_mode():
            for batch in self.validation.batches.epoch(0):
                with torch.autocast(self.device.type, dtype=self.autocast, enabled=self.autocast is not None):
                    loss = batch_loss(model, batch.to(self.device))
                nll += loss.negative_log_likelihood.item()
                tokens += loss.tokens
        translations, bleu = self.validation.translate(model)
        model.train(was_training)
        mean = nll / max(tokens, 1)
        perplexity = math.exp(min(mean, 50.0))
        # The other figure decides between equals: a young model's BLEU stays at 0 while its perplexity falls.
        figures = (bleu, -mean) if self.settings.select == "bleu" else (-mean, bleu)
        better = figures > self.best
        train_loss, _, speed = self.window.read()
        self.history.append(
            {
                "step": self.step,
                "epoch": round(self.epochs_done(), 4),
                "minutes": round(self.seconds() / 60, 3),
                "train_loss": train_loss,
                "train_negative_log_likelihood": self.window.plain(),
                "train_tokens_per_second": round(speed, 1),
                "valid_loss": mean,
                "valid_perplexity": perplexity,
                "valid_bleu": bleu,
                "best": float(better),
            }
        )
        mark = "  best so far" if better else ""
        self.progress.say(
            f"step {self.step} | epoch {self.epochs_done():.2f} | {clock(self.seconds())} | "
            f"train loss {train_loss:.3f} | valid ppl {perplexity:.2f} | valid BLEU {bleu:.2f}{mark}"
        )
        self.bad_validations = 0 if better else self.bad_validations + 1
        self.board.scalars(self.step, {"valid/perplexity": perplexity, "valid/bleu": bleu})
        self.board.samples(self.step, translations[: self.settings.samples])
        if better:
            self.best = figures
            save_weights(self.folder / "best.safetensors", model)
        self.keep_history(self.history)
        self.save()
        self.window.restart()

    def save(self) -> None:
        """Keeps the last weights, and all that going on takes."""
        save_weights(self.folder / "last.safetensors", self.averaging.best_guess)
        state: dict[str, Any] = {
            "model": {name: value.detach() for name, value in self.model.named_parameters()},
            "optimizer": self.optimizer.state_dict(),
            "scheduler": {"last_epoch": self.scheduler.last_epoch},
            "averaging": self.averaging.state_dict(),
            "step": self.step,
            "epoch": self.epoch,
            "batch": self.batch,
            "seconds": self.seconds(),
            "best": self.best,
            "bad_validations": self.bad_validations,
            "baseline": self.baseline,
            "rng": torch.get_rng_state(),
            "cuda_rng": torch.cuda.get_rng_state_all() if self.device.type == "cuda" else [],
        }
        save_state(self.folder / "trainer.pt", state)

    def restore(self, state: dict[str, Any]) -> None:
        """Takes up what `save` kept."""
        try:
            with torch.no_grad():
                for name, parameter in self.model.named_parameters():
                    parameter.copy_(state["model"][name])
            self.optimizer.load_state_dict(state["optimizer"])
            self.averaging.load_state_dict(state["averaging"])
            self.step, self.epoch, self.batch = state["step"], state["epoch"], state["batch"]
            self.seconds_before, self.best = state["seconds"], tuple(state["best"])
            self.bad_validations = state["bad_validations"]
            self.baseline = state.get("baseline", 0.0)  # older states have none
            last_epoch = state["scheduler"]["last_epoch"]
            torch.set_rng_state(state["rng"])
            if self.device.type == "cuda" and len(state["cuda_rng"]) == torch.cuda.device_count():
                torch.cuda.set_rng_state_all(state["cuda_rng"])
        except (KeyError, ValueError, TypeError, AttributeError, RuntimeError) as error:
            raise UserError(
                f"{self.folder / 'trainer.pt'} does not fit this run: {error}. Train anew under another name."
            ) from error
        # What was validated after the last save will be validated again.
        self.history[:] = [entry for entry in self.history if entry["step"] <= self.step]
        self.epoch_batches = max(1, len(self.batches.plan(self.epoch)))
        self.started = time.monotonic()
        self.scheduler = LambdaLR(
            self.optimizer,
            lambda _: self.schedule.factor(self.step, self.share()),
            last_epoch=last_epoch - 1,
        )


class _Window:
    """Sums since the last validation, and the speed over the last steps."""

    def __init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        """Begins anew."""
        self.total = self.nll = 0.0
        self.tokens = 0
        self.recent: list[tuple[float, int]] = [(time.monotonic(), 0)]

    def add(self, total: float, nll: float, tokens: int) -> None:
        """Counts one step."""
        self.total, self.nll, self.tokens = self.total + total, self.nll + nll, self.tokens + tokens
        self.recent = [*self.recent[-50:], (time.monotonic(), tokens)]

    def read(self) -> tuple[float, float, float]:
        """Mean loss a token, perplexity, target tokens a second."""
        tokens = max(self.tokens, 1)
        seconds = self.recent[-1][0] - self.recent[0][0]
        speed = sum(count for _, count in self.recent[1:]) / seconds if seconds else 0.0
        return self.total / tokens, math.exp(min(self.nll / tokens, 50.0)), speed

    def plain(self) -> float:
        """Mean negative log-likelihood a token."""
        return self.nll / max(self.tokens, 1)


class _Signals:
    """While it is open, SIGINT and SIGTERM ask the loop to stop; a second SIGINT stops at once."""

    def __init__(self, ask: Callable[[str], None]) -> None:
        self.ask, self.count = ask, 0
        self.before: dict[int, Any] = {}

    def _handle(self, number: int, _frame: FrameType | None) -> None:
        self.count += 1
        if self.count > 1 and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.ask(signal.Signals(number).name)

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            try:
                self.before[number] = signal.signal(number, self._handle)
            except ValueError:  # not in the main thread: whoever is decides what a signal means
                return

    def __exit__(self, *_: object) -> None:
        for number, handler in self.before.items():
            signal.signal(number, handler)


def _groups(batches: Iterator[Batch], size: int) -> Iterator[list[Batch]]:
    while group := list(islice(batches, size)):
        yield group
