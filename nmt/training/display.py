"""The display of a training: a bar or lines, the run's log, curves and samples in TensorBoard."""

import math
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, Self

from nmt.system.progress import Progress, clock
from nmt.training.board import Board
from nmt.training.budget import Spent
from nmt.training.learner import Update
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Validated


class Records(Protocol):
    """The parts of a run folder that the loop needs."""

    @property
    def folder(self) -> Path:
        """The folder, for weights, state and curves."""

    def log(self, line: str) -> None:
        """Append a line to the run's log."""

    def history(self) -> list[dict[str, float]]:
        """The validations so far."""

    def keep_history(self, history: Sequence[dict[str, float]]) -> None:
        """Write the validations."""


class RunningMeans:
    """Means since the last validation, and the speed over the last 50 readings of the clock, after reading updates."""

    def __init__(self) -> None:
        self._loss = self._negative_log_likelihood = 0.0
        self.tokens = self._new_tokens = self.skipped = 0
        self._recent = [(time.monotonic(), 0)]

    def state(self) -> list[float]:
        """The sums, for `restore`."""
        return [self._loss, self._negative_log_likelihood, self.tokens, self.skipped]

    def restore(self, state: Sequence[float]) -> None:
        """Continue from the sums that `state` returned."""
        self._loss, self._negative_log_likelihood = state[:2]
        self.tokens, self.skipped = map(int, state[2:])

    def add(self, update: Update) -> None:
        """Add the numbers of an update; skipped updates are only counted."""
        if update.skipped:
            self.skipped += 1
            return
        self._loss += update.loss
        self._negative_log_likelihood += update.negative_log_likelihood
        self.tokens += update.tokens
        self._new_tokens += update.tokens

    def look_at_clock(self) -> None:
        """Call when all updates so far are counted."""
        if self._new_tokens:
            self._recent = [*self._recent[-50:], (time.monotonic(), self._new_tokens)]
            self._new_tokens = 0

    @property
    def loss(self) -> float:
        """The mean loss of a token."""
        return self._loss / max(self.tokens, 1)

    @property
    def negative_log_likelihood(self) -> float:
        """The mean negative log-likelihood of a token."""
        return self._negative_log_likelihood / max(self.tokens, 1)

    @property
    def perplexity(self) -> float:
        """The exponential of the negative log-likelihood, kept finite."""
        return math.exp(min(self.negative_log_likelihood, 50.0))

    @property
    def speed(self) -> float:
        """The target tokens per second."""
        seconds = self._recent[-1][0] - self._recent[0][0]
        return sum(tokens for _, tokens in self._recent[1:]) / seconds if seconds else 0.0


class Display:
    """Shows updates and validations; a context that closes the bar and the curves."""

    def __init__(self, records: Records, settings: TrainerSettings, first_step: int) -> None:
        """`first_step` is where this session begins: curves of earlier sessions end there."""
        self._board = Board(records.folder / "tensorboard", settings.tensorboard, first_step)
        self._progress = Progress(records.log, settings.log_seconds)
        self._samples, self.means, self._selects = settings.samples, RunningMeans(), settings.select != "last"

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._progress.close()
        self._board.close()

    def say(self, line: str) -> None:
        """Print a line, and write it to the log."""
        self._progress.say(line)

    def show_update(self, update: Update, spent: Spent, share: float, is_latest: bool = True) -> None:
        """Show an update after which `share` of the budget is used; `is_latest` if it is the last one so far."""
        means = self.means
        means.add(update)
        if is_latest:
            means.look_at_clock()
        seconds_left = spent.minutes * 60 * (1 - share) / share if share else math.inf
        self._progress.update(
            share,
            f"step {spent.steps} | epoch {spent.epochs:.2f} | loss {means.loss:.3f} | ppl {means.perplexity:.2f} | "
            f"lr {update.rate:.2e} | {means.speed:,.0f} target tokens/s | {clock(seconds_left)} left",
        )
        if spent.steps % 20 == 0:
            curves = {
                "train/loss": means.loss,
                "train/perplexity": means.perplexity,
                "train/learning_rate": update.rate,
                "train/gradient_norm": update.gradient_norm,
                "train/target_tokens_per_second": means.speed,
            }
            self._board.scalars(spent.steps, curves)

    def show_validation(
        self, result: Validated, spent: Spent, best: bool, further: Mapping[str, float]
    ) -> dict[str, float]:
        """Show a validation, with points for the curves in `further`; return the validation's entry in the history."""
        means = self.means
        self.say(
            f"step {spent.steps} | epoch {spent.epochs:.2f} | {clock(spent.minutes * 60)} | "
            f"train loss {means.loss:.3f} | valid ppl {result.perplexity:.2f} | valid {result.figures}"
            f"{'  best so far' if best and self._selects else ''}"
        )
        scores = result.figures.entries()
        curves = {"valid/perplexity": result.perplexity, **{f"valid/{name}": value for name, value in scores.items()}}
        self._board.scalars(spent.steps, {**further, **curves})
        self._board.samples(spent.steps, result.translations[: self._samples], result.views)
        return {
            "step": spent.steps,
            "epoch": round(spent.epochs, 4),
            "minutes": round(spent.minutes, 3),
            "train_loss": means.loss,
            "train_negative_log_likelihood": means.negative_log_likelihood,
            "train_tokens": means.tokens,
            "train_tokens_per_second": round(means.speed, 1),
            "valid_loss": result.loss,
            "valid_perplexity": result.perplexity,
            **{f"valid_{name}": value for name, value in scores.items()},
            "best": float(best),
            **({"skipped_updates": means.skipped} if means.skipped else {}),
        }
