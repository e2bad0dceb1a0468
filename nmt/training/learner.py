"""One update of a model: gradients of a group of batches, clipping, the optimiser, the average of the weights."""

import math
import time
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import torch
from torch import nn

from nmt.compute import Compute
from nmt.data.batch import Batch
from nmt.errors import UserError
from nmt.model import Seq2Seq
from nmt.processes import ALONE, Processes
from nmt.training.averaging import Averaging
from nmt.training.loss import batch_loss
from nmt.training.schedules import Schedule
from nmt.training.settings import TrainerSettings


class Update(NamedTuple):
    """The result of an update: sums over its target tokens, their number, gradient norm and learning rate."""

    loss: float
    negative_log_likelihood: float
    tokens: int
    gradient_norm: float
    rate: float


class Learner:
    """A model with its optimiser, schedule and average, and their state."""

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
        # Only the leader measures and saves the average.
        average = settings.average if processes.leads else "none"
        self.averaging = Averaging(model, average, settings.ema_decay, settings.average_checkpoints)
        self.baseline = 0.0  # moving average of log p(y_t), for mechanisms that sample (Xu et al. 2015, section 4.1)
        for group in optimizer.param_groups:
            group.setdefault("initial_lr", group["lr"])

    def update(self, batches: Sequence[Batch], step: int, share: float) -> Update:
        """Make update number `step`, counted from 0, from the batches of all processes; `share` of the budget is used.

        Raises:
            UserError: the loss is not a number, or another process has ended.
        """
        settings = self.settings
        tokens = self.processes.total(sum(int(batch.target_mask.sum()) for batch in batches))
        total = plain = 0.0
        for batch in batches:
            with self.compute.autocast():
                loss = batch_loss(
                    self.model,
                    batch.to(self.compute.device),
                    settings.label_smoothing,
                    settings.scheduled_sampling,
                    self.baseline,
                    settings.guided_alignment,
                    settings.r_drop,
                    settings.guided_head,
                )
            (loss.total / tokens).backward()
            total += loss.total.item()
            plain += loss.negative_log_likelihood.item()
        total, plain = self.processes.sum_gradients(list(self.model.parameters()), [total, plain])
        if not math.isfinite(total):
            raise UserError(
                f"The loss became {total} at step {step}. Train again with another name= and a smaller "
                f"optimizer.lr or trainer.clip_norm."
            )
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), settings.clip_norm or math.inf)
        factor = self.schedule.factor(step, share)
        for group in self.optimizer.param_groups:
            group["lr"] = group["initial_lr"] * factor
        self.optimizer.step()
        self.optimizer.zero_grad(set_to_none=True)
        self.averaging.after_update()
        self.baseline += 0.1 * (-plain / tokens - self.baseline)
        return Update(total, plain, tokens, float(norm), float(self.optimizer.param_groups[0]["lr"]))

    def seconds_per_batch(self, batches: Iterable[Batch]) -> float:
        """The mean time of a gradient after one warm-up batch. Weights and random state stay the same."""
        seconds = []
        with torch.random.fork_rng([self.compute.device] if self.compute.on_gpu else []):
            for batch in batches:
                began = time.monotonic()
                with self.compute.autocast():
                    settings = self.settings
                    moved = batch.to(self.compute.device)
                    loss = batch_loss(self.model, moved, settings.label_smoothing, r_drop=settings.r_drop)
                loss.total.backward()
                loss.total.item()
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
            "baseline": self.baseline,
        }

    def restore(self, state: dict[str, Any]) -> None:
        """Continue from what `state` returned."""
        with torch.no_grad():
            for name, weight in self.model.named_parameters():
                weight.copy_(state["model"][name])
        self.optimizer.load_state_dict(state["optimizer"])
        self.averaging.load_state_dict(state["averaging"])
        self.baseline = state.get("baseline", 0.0)  # states of earlier versions have none
