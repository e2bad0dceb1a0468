"""The training loop: updates the weights, validates, saves the best and the last weights, stops and resumes."""

import contextlib
import math
import os
import signal
import time
from collections.abc import Iterator, Sequence
from itertools import islice
from types import FrameType
from typing import Any, NamedTuple

import torch

from nmt.data.batch import Batch
from nmt.data.prefetch import ahead
from nmt.data.token_batches import TokenBatches
from nmt.model.transformer.weighted import branch_weights
from nmt.system.errors import UserError
from nmt.system.memory import give_memory_back
from nmt.system.processes import LostProcessError
from nmt.system.progress import clock
from nmt.system.signals import handling, stop_signals
from nmt.training.budget import Spent
from nmt.training.checkpoint import Checkpoint, Counters
from nmt.training.display import Display, Records, RunningMeans
from nmt.training.followers import TIDY_EVERY, Order, use_shapes
from nmt.training.learner import Learner, Update
from nmt.training.settings import TrainerSettings
from nmt.training.validation import Validation
from nmt.translation.types import Translation

#: The maximum number of source words of the example, if possible.
EXAMPLE_WORDS = 12
#: The maximum number of pairs that the message about a skipped update names.
SHOWN_PAIRS = 10
#: Seconds between readings of the updates' numbers from a GPU.
READ_SECONDS = 1.0


class Outcome(NamedTuple):
    """How training ended: "steps", "epochs", "minutes", "patience" or a signal's name; and the validation history.

    `example` is a translation from the best validation of this session, None if no validation was the best.
    """

    finished_by: str
    interrupted: bool
    step: int
    minutes: float
    history: list[dict[str, float]]
    example: Translation | None = None


class TrainingLoop:
    """A training, in one or several sessions. This process leads other processes, if any; the caller stops them."""

    def __init__(
        self,
        settings: TrainerSettings,
        learner: Learner,
        batches: TokenBatches,
        validation: Validation,
        records: Records,
    ) -> None:
        """Prepare a training.

        Args:
            settings: budget and intervals.
            learner: the model, initialised and on its device, with its optimiser.
            batches: the training batches, epoch by epoch.
            validation: measures the average of the weights.
            records: the run folder, for weights, state, history and log.
        """
        self.settings, self.budget = settings, settings.budget
        self.learner, self.batches, self.validation, self.records = learner, batches, validation, records
        self.checkpoint, self.processes = Checkpoint(records.folder, learner), learner.processes
        self.counters, self.seed = Counters(), 0
        self.history: list[dict[str, float]] = []
        self.example: Translation | None = None
        use_shapes(batches, learner, None)
        self.epoch_batches = max(1, len(batches.plan(0)))
        self.stop = StopRequest()
        self._has_split, self._skipped, self._saved_step = False, 0, 0
        self._unread: list[tuple[Order, Spent]] = []
        self.started = self.saved = self._read_at = time.monotonic()

    def run(self, seed: int, state: dict[str, Any] | None = None, validate_first: bool = False) -> Outcome:
        """Train until the budget is used, patience ends, or a signal arrives (`stop_signals`); save in every case.

        Args:
            seed: for dropout and scheduled sampling.
            state: the state of an earlier session (`load_state`); None starts from the beginning.
            validate_first: whether to validate a model that is already trained before the first update.

        Raises:
            UserError: the state does not fit, too many updates in a row were skipped, or the disk is full.
        """
        self.seed = seed
        torch.manual_seed(seed)
        if state is not None:
            self.counters = self.checkpoint.restore(state)
            use_shapes(self.batches, self.learner, state)
            known = self.records.history()
            self.history = state["history"]  # validations after the last save will be repeated
            self.epoch_batches = max(1, len(self.batches.plan(self.counters.epoch)))
        self._start_clock()
        with (
            Display(self.records, self.settings, self.counters.step) as self.display,
            handling(stop_signals(), self.stop),
        ):
            if state is not None:
                self.display.means.restore(state["means"])
            self.learner.model.train()
            if state is not None and self.checkpoint.draws_differently(state):
                self.display.say("The saved state is of another device: dropout goes on with other random numbers.")
            self._say_notes()
            if state is not None and any(entry not in known for entry in self.history):
                self.display.say("history.jsonl has lost validations: they are restored from the saved state.")
                self.records.keep_history(self.history)
            self._estimate()
            with self._saving_if_lost():
                self.processes.equalise(self.learner.model)
                first = self.counters.step
                if validate_first:
                    self._validate()
                finished_by = self._train()
                self._read()
                if 2 * self._skipped > self.counters.step - first:
                    raise self._no_number()
                interrupted = finished_by == self.stop.signal
                unknown = not self.history or self.history[-1]["step"] < self.counters.step
                if not interrupted and (unknown or self.counters.best == Counters().best):
                    self._validate()
                self._save()
        minutes = self._spent().minutes
        return Outcome(finished_by, interrupted, self.counters.step, minutes, self.history, self.example)

    @contextlib.contextmanager
    def _saving_if_lost(self) -> Iterator[None]:
        """Save the state of the last complete update if another process ends."""
        try:
            yield
        except LostProcessError:
            self._write_state()
            raise

    def _train(self) -> str:
        """Update, validate and save until there is a reason to stop; return the reason."""
        settings, counters = self.settings, self.counters
        size = settings.accumulate * self.processes.count
        while True:  # an epoch that was interrupted after its last batch has no batches left
            plan = self.batches.plan(counters.epoch)
            self.epoch_batches = max(1, len(plan))
            with self._upcoming() as batches:
                while group := list(islice(batches, settings.accumulate)):
                    if reason := self._reason_to_stop():
                        return reason
                    self._update(group, min(size, len(plan) - counters.batch))
                    if counters.step % TIDY_EVERY == 0 and not self.learner.compute.on_gpu:
                        give_memory_back()
                    if settings.validate_every is not None and counters.step % settings.validate_every == 0:
                        self._validate()
                    if time.monotonic() - self.saved > settings.save_minutes * 60:
                        self._save()
            counters.epoch, counters.batch = counters.epoch + 1, 0
            if settings.validates_epochs:
                self._validate()

    def _upcoming(self) -> contextlib.AbstractContextManager[Iterator[Batch]]:
        """This process's share of the epoch's remaining batches; for a GPU, a thread prepares them."""
        batches = self.batches.epoch(self.counters.epoch, self.counters.batch, self.processes.count)
        return ahead(batches) if self.learner.compute.on_gpu else contextlib.nullcontext(batches)

    def _reason_to_stop(self) -> str | None:
        patience = self.settings.patience
        impatient = patience is not None and self.counters.bad_validations >= patience
        return self.stop.signal or self.budget.used_up(self._spent()) or ("patience" if impatient else None)

    def _update(self, group: Sequence[Batch], count: int) -> None:
        """Make an update from `count` batches of all processes; `group` is this process's share."""
        counters = self.counters
        order = Order(counters.epoch, counters.batch, count, counters.step, self.budget.share(self._spent()))
        self.processes.share(order)
        self.processes.seed(self.seed, order.step)
        update = self.learner.update(group, order.step, order.share)
        counters.step += 1
        counters.batch += count
        self._unread.append((order, self._spent()))
        if update is not None or time.monotonic() - self._read_at > READ_SECONDS:
            self._read(update)

    def _read(self, update: Update | None = None) -> None:
        """Show the updates since the last call: `update`, or if it is None, those whose numbers are on the GPU."""
        unread, self._unread = self._unread, []
        updates = self.learner.read() if update is None else [update]
        for left, known, (order, spent) in zip(reversed(range(len(unread))), updates, unread, strict=True):
            self._notice(known, order)
            self.display.show_update(known, spent, self.budget.share(spent), is_latest=not left)
        self._read_at = time.monotonic()

    def _notice(self, update: Update, order: Order) -> None:
        """Report notes, split batches and skipped updates.

        Raises:
            UserError: too many updates in a row were skipped.
        """
        self._say_notes()
        if update.splits and not self._has_split:
            self._has_split = True
            self.display.say(
                f"The GPU's memory is full at step {order.step}: batches are halved where they do not fit, which takes "
                "longer. The updates are the same. A smaller trainer.tokens_per_batch avoids it."
            )
        if not update.skipped:
            self._skipped = 0
            return
        self._skipped += 1
        self._last_skipped = update, order.step
        if self._skipped == self.settings.skipped_updates:
            raise self._no_number()
        pairs = ", ".join(str(row + 1) for row in update.rows[:SHOWN_PAIRS])
        more = ", ..." if len(update.rows) > SHOWN_PAIRS else ""
        self.display.say(
            f"step {order.step}: loss {update.loss:.4g}, gradient norm {update.gradient_norm:.4g}. The update is "
            f"skipped. Its batch has the training pairs {pairs}{more} (epoch {order.epoch})."
        )

    def _say_notes(self) -> None:
        for note in self.learner.take_notes():
            self.display.say(note)

    def _no_number(self) -> UserError:
        """The error for too many skipped updates in a row."""
        update, last = self._last_skipped
        norm = f" with the gradient's norm {update.gradient_norm}" if math.isfinite(update.loss) else ""
        keep = f"The state of step {self._saved_step} is saved. " if self._saved_step else ""
        return UserError(
            f"The loss became {update.loss}{norm} at step {last + 1 - self._skipped}, and stayed so for "
            f"{self._skipped} updates. {keep}Train again with another name= and a smaller optimizer.lr or "
            "trainer.clip_norm."
        )

    def _validate(self) -> None:
        counters = self.counters
        self._read()
        self.learner.averaging.before_validation()
        self.checkpoint.check(counters.step)
        result = self.validation(self.learner.averaging.best_guess)
        if not math.isfinite(result.loss):
            raise UserError(
                f"The validation loss became {result.loss} at step {counters.step}. {self.records.folder} keeps what "
                "was saved before. Train again with another name= and a smaller optimizer.lr or trainer.clip_norm."
            )
        # The second figure breaks ties: early in training, BLEU stays at 0 while perplexity falls.
        score = result.figures.score
        figures = (score, -result.loss) if self.settings.select == "bleu" else (-result.loss, score)
        better = figures > counters.best
        best = better or self.settings.select == "last"
        # Early in training, chrF falls before it rises, so with chrF a lower loss also counts as an improvement.
        learning = result.figures.chrf is not None and result.loss < min(
            (entry.get("valid_loss", math.inf) for entry in self.history), default=math.inf
        )
        counters.bad_validations = 0 if better or learning else counters.bad_validations + 1
        further = branch_weights(self.learner.averaging.best_guess)
        entry = self.display.show_validation(result, self._spent(), best, further)
        self.history = [*(earlier for earlier in self.history if earlier["step"] < counters.step), entry]
        counters.best = max(figures, counters.best)
        if best:
            lengths = [len(translation.source.split()) for translation in result.translations]
            several = [at for at, length in enumerate(lengths) if 3 < length <= EXAMPLE_WORDS]
            self.example = result.translations[several[0] if several else 0] if lengths else None
            self.checkpoint.save_best()
        self.records.keep_history(self.history)
        self.display.means = RunningMeans()
        self._save()

    def _save(self) -> None:
        self._read()
        self.counters.seconds = time.monotonic() - self.started
        self._write_state()
        self._saved_step = self.counters.step
        self.saved = time.monotonic()

    def _write_state(self) -> None:
        self.counters.shapes = [list(shape) for shape in self.batches.shapes(self.counters.epoch)]
        self.checkpoint.save(self.counters, self.display.means.state(), self.history)

    def _estimate(self) -> None:
        """Print the expected training time, measured with a few batches, which do not count as training time."""
        if self.stop.signal is not None:
            return
        epoch = self.counters.epoch
        batches = (self.batches.collate(indices, epoch) for indices in self.batches.plan(epoch)[:4])
        accumulate = self.settings.accumulate
        seconds, of_update = self.learner.seconds_per_batch(batches) * accumulate, accumulate * self.processes.count
        left = self.budget.seconds_left(self._spent(), seconds, self.epoch_batches / of_update)
        self.display.say(f"Expected time: about {clock(left)} of training, validation not counted.")
        self._start_clock()

    def _start_clock(self) -> None:
        self.started = time.monotonic() - self.counters.seconds

    def _spent(self) -> Spent:
        counters = self.counters
        epochs = counters.epoch + counters.batch / self.epoch_batches
        return Spent(counters.step, epochs, (time.monotonic() - self.started) / 60)


class StopRequest:
    """A signal handler that remembers the signal. A second SIGINT stops at once."""

    signal: str | None = None

    def __call__(self, number: int, frame: FrameType | None) -> None:
        """Remember the signal."""
        if self.signal is not None and number == signal.SIGINT:
            raise KeyboardInterrupt
        self.signal = signal.Signals(number).name
        line = f"\n{self.signal}: stopping after this step or validation. Ctrl-C again stops at once.\n"
        with contextlib.suppress(OSError):  # directly to the descriptor: the signal may interrupt a print
            os.write(2, line.encode())
