"""Updates of a model: gradients of a group of batches, clipping, the optimiser, the average of the weights."""

import math
import time
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any, NamedTuple

import torch
from torch import Tensor

from nmt.data.batch import Batch
from nmt.model import Seq2Seq
from nmt.system.compute import Compute
from nmt.system.graphs import Graphs
from nmt.system.processes import ALONE, Processes
from nmt.training.captured import FixedUpdates, reason_against, wanted
from nmt.training.gradient_step import GradientStep
from nmt.training.loss import training_loss
from nmt.training.schedules import Schedule
from nmt.training.settings import TrainerSettings
from nmt.training.weight_average import Averaging


class Update(NamedTuple):
    """The result of an update.

    Attributes:
        loss, negative_log_likelihood: sums over the target tokens.
        tokens: the number of target tokens.
        gradient_norm: the norm of the gradient before clipping.
        rate: the learning rate.
        skipped: whether the update was skipped, because the loss or the gradient was not finite.
        rows: in a skipped update, the row numbers of this process's pairs that may be the cause.
        splits: the number of times that a batch was halved because the memory of the GPU was full.
    """

    loss: float
    negative_log_likelihood: float
    tokens: int
    gradient_norm: float
    rate: float
    skipped: bool = False
    rows: Sequence[int] = ()
    splits: int = 0


class _Unread(NamedTuple):
    """An update whose numbers are still on the device: each batch's loss and negative log-likelihood, then the norm.

    With `has_sums`, the sums over all batches of all processes come before the norm.
    """

    numbers: Tensor
    batches: Sequence[Batch]
    tokens: int
    rate: float
    splits: int
    has_sums: bool = False


class Learner:
    """A model with its optimiser, schedule and average, and their state.

    On a GPU, an update leaves its numbers there (`defers`): the device itself skips an update without a finite loss or
    gradient, and the host reads the numbers of many updates at once (`read`). So updates do not wait for each other.
    """

    def __init__(
        self,
        model: Seq2Seq,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        settings: TrainerSettings,
        compute: Compute,
        processes: Processes = ALONE,
    ) -> None:
        self.model, self.optimizer, self.schedule = model, optimizer, schedule
        self.settings, self.compute, self.processes = settings, compute, processes
        # Only the leader validates and saves the average.
        average = settings.average if processes.leads else "none"
        self.averaging = Averaging(model, average, settings.ema_decay, settings.average_checkpoints)
        self.step = GradientStep(model, optimizer, self.averaging, settings.clip_norm)
        #: messages for the user, until `take_notes` is called
        self.notes: list[str] = []
        self._unread: list[_Unread] = []
        self.fixed: FixedUpdates | None = None
        if wanted(settings, compute):
            reason = reason_against(model, settings)
            if reason is None:
                graphs = Graphs(compute.on_gpu, self.notes.append)
                self.fixed = FixedUpdates(model, settings, compute, self.step, graphs, processes)
            else:
                self.notes.append(f"Updates run without CUDA graphs: {reason}.")
        # Without fixed buffers, the host reads the sums over processes.
        alone = processes.count == 1 or self.fixed is not None
        self.defers = compute.on_gpu and alone and bool(optimizer.defaults.get("fused"))
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def update(self, batches: Sequence[Batch], step: int, share: float) -> Update | None:
        """Make update number `step`, counted from 0, from the batches of all processes; `share` of the budget is used.

        If the loss or the gradient is infinite or NaN, the update is skipped in all processes: weights, optimizer and
        average do not change.

        Returns:
            The result of the update; None if `read` will return it later.

        Raises:
            UserError: another process has ended.
        """
        tokens = self.processes.total(sum(int(batch.target_mask.sum()) for batch in batches))
        factor = self.schedule.factor(step, share)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        rate = float(self.optimizer.param_groups[0]["lr"])
        self.step.prepare(tokens)
        given = len(batches)
        sums: list[float] | None = None
        measured = self._fixed_update(batches, tokens)
        has_sums = measured is not None
        if measured is None:
            batches, losses = self._gradients(batches, tokens)
            if self.processes.count > 1:
                own_sums = _sums([(total.item(), plain.item()) for total, plain in losses])
                sums = self.processes.sum_gradients(list(self.model.parameters()), own_sums)
            follows = self.defers and self.step.samples
            likelihood = torch.stack([plain for _, plain in losses]).sum() if follows else self.step.baseline
            measured = self.step([number for pair in losses for number in pair], likelihood, self.defers)
        unread = _Unread(measured, batches, tokens, rate, len(batches) - given, has_sums)
        update: Update | None = None
        if self.defers:
            # Clone the numbers: every update may write them to the same tensor.
            self._unread.append(unread._replace(numbers=measured.clone()))
            self.averaging.count_update()
        else:
            update = _read(unread, measured.tolist(), sums)  # all at once: each reading makes the host wait for a GPU
            if not update.skipped:
                self.optimizer.step()
                likelihood = self.step.baseline.new_tensor(update.negative_log_likelihood)
                self.step.follow(likelihood, torch.zeros_like(likelihood))
            self.averaging.after_update(not update.skipped)
            if self.fixed is not None:
                self.fixed.clear()
        self.optimizer.zero_grad(set_to_none=True)
        return update

    def read(self) -> list[Update]:
        """The results of updates for which `update` has returned None since the last call; the host waits once."""
        unread, self._unread = self._unread, []
        numbers = iter(torch.cat([update.numbers for update in unread]).tolist() if unread else [])
        return [_read(update, list(islice(numbers, len(update.numbers)))) for update in unread]

    def take_notes(self) -> list[str]:
        """The messages for the user since the last call."""
        notes = self.notes.copy()
        self.notes.clear()
        return notes

    def _fixed_update(self, batches: Sequence[Batch], tokens: int) -> Tensor | None:
        """The numbers of an update by `FixedUpdates`, None if the training does not use it."""
        if self.fixed is None:
            return None
        try:
            for batch in batches:
                self.fixed.add(batch)
        except torch.OutOfMemoryError:
            if self.fixed.graphs.captures:
                self.notes.append("Updates go on without CUDA graphs: the memory of the GPU is full.")
            self.fixed.forget_graphs()
        else:
            return self.fixed.finish(self.defers, len(batches))
        self.model.zero_grad(set_to_none=True)
        torch.cuda.empty_cache()
        if self.processes.count == 1:
            self.fixed = None
            return None
        _, losses = self._gradients(batches, tokens)
        self.fixed.take(losses)
        return self.fixed.finish(self.defers, len(batches))

    def _gradients(self, batches: Sequence[Batch], tokens: int) -> tuple[Sequence[Batch], list[tuple[Tensor, Tensor]]]:
        """Compute the gradients of all batches, in halves if the memory of the GPU is full.

        Returns:
            The batches, halved if necessary, and the loss and the negative log-likelihood of each.
        """
        while True:
            try:
                return batches, [self._backward(batch, tokens) for batch in batches]
            except torch.OutOfMemoryError:
                if max(len(batch.rows) for batch in batches) == 1:
                    raise
            self.model.zero_grad(set_to_none=True)
            torch.cuda.empty_cache()
            batches = [part for batch in batches for part in (batch.halves() if len(batch.rows) > 1 else (batch,))]

    def _backward(self, batch: Batch, tokens: int) -> tuple[Tensor, Tensor]:
        """Add the gradient of a batch; return its loss and its negative log-likelihood, on its device."""
        batch = batch.to(self.compute.device)
        if self.compute.compiles_shapes:
            batch = batch.with_every_place()
        with self.compute.autocast():
            loss = training_loss(self.model, batch, self.settings, self.step.baseline)
        (loss.total / tokens).backward()
        return loss.total.detach(), loss.negative_log_likelihood.detach()

    def seconds_per_batch(self, batches: Iterable[Batch]) -> float:
        """The mean time of a batch's gradient after a warm-up batch. Weights and random state do not change."""
        seconds = []
        with torch.random.fork_rng([self.compute.device] if self.compute.on_gpu else []):
            for batch in batches:
                began = time.monotonic()
                _, losses = self._gradients([batch], 1)
                losses[-1][0].item()  # a GPU is still computing: wait for it
                seconds.append(time.monotonic() - began)
        self.model.zero_grad(set_to_none=True)
        timed = seconds[1:] or seconds
        return sum(timed) / max(len(timed), 1)

    def state(self) -> dict[str, Any]:
        """Tensors and plain containers from which `restore` continues."""
        return {
            "model": {name: weight.detach() for name, weight in self.model.named_parameters()},
            "optimizer": self.optimizer.state_dict(),
            "averaging": self.averaging.state_dict(),
            "baseline": self.step.baseline.item(),
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        if self.fixed is not None:
            self.fixed.forget_step()
        self.averaging.load_state_dict(state["averaging"])
        self.step.baseline.fill_(state["baseline"])


def _read(update: _Unread, numbers: list[float], sums: Sequence[float] | None = None) -> Update:
    """Make an update from its numbers; `sums` are the sums over all processes, None for the sums of its batches."""
    *of_batches, norm = numbers
    if update.has_sums:
        *of_batches, total, plain = of_batches
        sums = total, plain
    pairs = list(zip(of_batches[::2], of_batches[1::2], strict=True))
    total, plain = _sums(pairs) if sums is None else sums
    known = Update(total, plain, update.tokens, norm, update.rate)
    if math.isfinite(total) and math.isfinite(norm):
        return known._replace(splits=update.splits)
    bad = [batch for batch, pair in zip(update.batches, pairs, strict=True) if not math.isfinite(pair[0])]
    rows = [row for batch in bad or update.batches for row in batch.rows.tolist()]
    return known._replace(skipped=True, rows=rows)


def _sums(losses: Sequence[tuple[float, float]]) -> list[float]:
    """The sums of losses and of negative log-likelihoods."""
    return [sum(pair[side] for pair in losses) for side in (0, 1)]
