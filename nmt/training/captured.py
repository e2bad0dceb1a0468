"""Gradients of batches that are padded to a few fixed shapes, which a GPU replays as CUDA graphs.

A small batch takes a GPU longer to launch than to compute: an update is hundreds of kernels. A CUDA graph is launched
once for all of them, but repeats the same kernels with the same addresses: nothing in it may depend on lengths or on
what the host reads. So each shape has buffers of its own, lengths stay on the device, and padding passes through the
softmax with a loss of zero. On a CPU the same steps run without a graph.
"""

import math
from collections.abc import Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Read
from nmt.data.batch import Batch
from nmt.kernels.sizes import ceiling
from nmt.model import Seq2Seq
from nmt.system.compute import Compute
from nmt.system.processes import Processes
from nmt.text.tokenizer import EOS
from nmt.training.gradient_step import GradientStep
from nmt.training.graphs import Graphs, send
from nmt.training.loss import batch_loss
from nmt.training.settings import TrainerSettings

#: Lengths are padded to a multiple of this, and the number of pairs to a multiple of `ROWS`.
PIECES, ROWS = 4, 8
#: Shapes with a graph; others are computed without one.
MOST_GRAPHS = 128
#: How far loss (share) and norm (factor) of a first replay may be from those of the same batch with other dropout.
LOSS_DIFFERENCE, NORM_FACTOR = 0.2, 4


class Shape(NamedTuple):
    """Pairs, source pieces and target pieces of a padded batch."""

    rows: int
    source: int
    target: int

    @classmethod
    def of(cls, batch: Batch) -> "Shape":
        """The smallest shape that holds the batch."""
        rows, source = batch.source.shape
        return cls(ceiling(rows, ROWS), ceiling(source, PIECES), ceiling(batch.target_in.shape[1], PIECES))


def wanted(settings: TrainerSettings, compute: Compute) -> bool:
    """Whether `trainer.graphs` asks for fixed shapes on this device."""
    return settings.graphs == "always" or (settings.graphs == "auto" and compute.on_gpu)


def reason_against(model: Seq2Seq, settings: TrainerSettings, processes: Processes) -> str | None:
    """Why updates of this training cannot have fixed shapes, None if they can."""
    lstm = any(isinstance(module, nn.LSTM) for module in model.modules())
    reasons = {
        "several processes share an update": processes.count > 1,
        "trainer.scheduled_sampling is used": settings.scheduled_sampling > 0,
        "trainer.r_drop is used": settings.r_drop > 0,
        "trainer.simcut is used": settings.simcut > 0,
        "trainer.guided_alignment is used": settings.guided_alignment > 0,
        "the model sees previous sentences": model.context_sentences > 0,
        "attention is hard": any(isinstance(module, Read) and module.has_terms for module in model.modules()),
        "LSTM layers need packed sequences": lstm,
        "model.fast=false needs packed sequences": not model.fast,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


class FixedUpdates:
    """The updates of a training with batches of fixed shapes.

    Two parts are graphs on a GPU. That of each shape adds the gradient of a batch. That of `step` follows the last
    batch of an update; it is the same for all shapes.
    """

    def __init__(
        self, model: Seq2Seq, settings: TrainerSettings, compute: Compute, step: GradientStep, graphs: Graphs
    ) -> None:
        """`reason_against` must be None."""
        self.model, self.settings, self.compute, self.step, self.graphs = model, settings, compute, step, graphs
        parameter = next(model.parameters())
        # Loss and negative log-likelihood of each batch of an update, the last one last; and the same with the norm.
        self._losses = parameter.new_zeros(2 * settings.accumulate)
        self._numbers = parameter.new_zeros(2 * settings.accumulate + 1)
        self._shapes: dict[Shape, _FixedBatch] = {}
        self._gradients: list[tuple[nn.Parameter, Tensor]] = []
        self._has_stepped = False  # and so the optimizer has its state
        self._step_graph: torch.cuda.CUDAGraph | None = None

    def add(self, batch: Batch, tokens: int) -> None:
        """Add the gradient of a batch of an update, divided by the `tokens` target tokens of all its batches.

        Raises:
            torch.OutOfMemoryError: the memory of the GPU is full.
        """
        shape = Shape.of(batch)
        fixed = self._shapes.get(shape)
        is_new = fixed is None
        if fixed is None:
            fixed = self._shapes[shape] = _FixedBatch(shape, self._losses.device)
        fixed.fill(batch, tokens)
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        if fixed.graph is not None:
            fixed.graph.replay()
        elif is_new or not self.graphs.captures or self.graphs.count > MOST_GRAPHS:  # one is that of the step
            self._add(fixed)
        else:
            self._capture_shape(fixed)

    def finish(self, decides: bool, batches: int) -> Tensor:
        """Clip the gradients of an update of so many batches; where the device `decides`, step as well.

        Without the device's decision, `clear` must follow the step.

        Returns:
            [2 * batches + 1] on the device, until the next update: the loss and the negative log-likelihood of each
            batch, summed over its tokens, and the norm before clipping.
        """
        if self._step_graph is not None:
            self._step_graph.replay()
        elif self._has_stepped and self.graphs.captures:
            self._capture_step(decides)
        else:
            self._finish(decides)
            self._has_stepped = True
        return self._numbers[-2 * batches - 1 :]

    def clear(self) -> None:
        """Make all gradients zero."""
        if self._gradients:
            torch._foreach_zero_([gradient for _, gradient in self._gradients])

    def forget_step(self) -> None:
        """Call where the optimizer has got another state, whose tensors no graph knows."""
        self._step_graph, self._has_stepped = None, False

    def _add(self, fixed: "_FixedBatch") -> None:
        """What the graph of a shape repeats. Gradients are added to the same tensors in all shapes."""
        with self.compute.autocast():
            loss = batch_loss(self.model, fixed.batch(), self.settings.label_smoothing)
        (loss.total / fixed.tokens).backward()
        pair = torch.stack([loss.total.detach(), loss.negative_log_likelihood.detach()])
        self._losses.copy_(torch.cat([self._losses[2:], pair]))
        gradients = [(each, each.grad) for each in self.model.parameters() if each.grad is not None]
        if len(gradients) != len(self._gradients):
            self._gradients = gradients
            for other in self._shapes.values():  # their graphs know fewer gradients
                other.graph = None
            self.forget_step()

    def _finish(self, decides: bool) -> None:
        """What the graph of the step repeats."""
        self._numbers.copy_(self.step([self._losses], decides))
        self._losses.zero_()
        if decides:
            self.clear()

    def _capture_shape(self, fixed: "_FixedBatch") -> None:
        """Add the gradient of a batch by a graph that is captured of it; without a usable graph, as it was computed."""
        changed = [self._losses, *(gradient for _, gradient in self._gradients)]
        before = [tensor.clone() for tensor in changed]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries allocate their workspaces for a stream at its first call
            self._add(fixed)
        torch.cuda.current_stream().wait_stream(side)
        computed = self._measured()
        has_more = len(changed) != 1 + len(self._gradients)  # gradients that none of the batches before had
        if has_more or not all(math.isfinite(number) for number in computed):
            return
        torch._foreach_copy_(changed, before)
        fixed.graph = self.graphs.capture(lambda: self._add(fixed), lambda: _difference(self._measured(), computed))
        if fixed.graph is None:
            torch._foreach_copy_(changed, before)
            self._add(fixed)

    def _measured(self) -> list[float]:
        """The last loss, its negative log-likelihood, and the norm of the gradients."""
        norm = nn.utils.get_total_norm([gradient for _, gradient in self._gradients])
        return [*self._losses[-2:].tolist(), norm.item()]

    def _capture_step(self, decides: bool) -> None:
        """Finish an update by a graph that is captured of it; without a usable graph, as it was computed."""
        gradients = [gradient for _, gradient in self._gradients]
        changed = [self._losses, self._numbers, *gradients, *self.step.tensors()]
        before = _copies(changed)
        self._finish(decides)
        computed = _copies(changed)
        if not self._numbers.isfinite().all():
            return
        _restore(changed, before)
        self._step_graph = self.graphs.capture(
            lambda: self._finish(decides), lambda: _other_numbers(_copies(changed), computed)
        )
        if self._step_graph is None:
            _restore(changed, computed)


class _FixedBatch:
    """The buffers of a shape: one for all integers, so that a batch is one copy."""

    def __init__(self, shape: Shape, device: torch.device) -> None:
        self.shape = shape
        rows, source, target = shape
        self._sizes = [rows * source, rows * target, rows * target, rows, rows, 1]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def _parts(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Source, target in, target out, lengths of both sides and the number of target tokens."""
        rows, source, target = self.shape
        views = [(rows, source), (rows, target), (rows, target), (rows,), (rows,), ()]
        return tuple(part.view(view) for part, view in zip(numbers.split(self._sizes), views, strict=True))

    @property
    def tokens(self) -> Tensor:
        """The number of target tokens of the update."""
        return self._parts(self._numbers)[-1]

    def fill(self, batch: Batch, tokens: int) -> None:
        """Copy a batch of the CPU. A row without a pair is an empty sentence without a target."""
        host = torch.zeros(len(self._numbers), dtype=torch.int64)
        source, target_in, target_out, source_lengths, target_lengths, count = self._parts(host)
        rows = len(batch.source)
        source[:rows, : batch.source.shape[1]] = batch.source
        source[rows:, 0] = EOS
        target_in[:rows, : batch.target_in.shape[1]] = batch.target_in
        target_out[:rows, : batch.target_out.shape[1]] = batch.target_out
        source_lengths[:rows] = batch.source_lengths
        source_lengths[rows:] = 1
        target_lengths[:rows] = batch.target_mask.sum(1)
        count.fill_(tokens)
        send(host, self._numbers)

    def batch(self) -> Batch:
        """The buffers as a batch whose lengths are on the device, and of whose target no place is left out."""
        source, target_in, target_out, source_lengths, target_lengths, _ = self._parts(self._numbers)
        device = source.device

        def mask(lengths: Tensor, longest: int) -> Tensor:
            return torch.arange(longest, device=device) < lengths.unsqueeze(1)

        return Batch(
            source=source,
            source_mask=mask(source_lengths, self.shape.source),
            source_lengths=source_lengths,
            target_in=target_in,
            target_out=target_out,
            target_mask=mask(target_lengths, self.shape.target),
            rows=torch.arange(self.shape.rows),
            links=torch.zeros(self.shape.rows, 0, 0, device=device),
            target_places=torch.arange(target_out.numel(), device=device),
        )


def _difference(replayed: list[float], eager: list[float]) -> str | None:
    """What is implausible about loss and norm of a shape's first replay, None if nothing is."""
    if not abs(replayed[0] - eager[0]) <= LOSS_DIFFERENCE * abs(eager[0]):
        return f"a graph computed the loss {replayed[0]:.6g} in place of {eager[0]:.6g}"
    if not eager[2] / NORM_FACTOR <= replayed[2] <= eager[2] * NORM_FACTOR:
        return f"a graph computed gradients of the norm {replayed[2]:.6g} in place of {eager[2]:.6g}"
    return None


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies in the memory of the computer: that of a GPU may be short."""
    return [tensor.to("cpu", copy=True) for tensor in tensors]


def _restore(tensors: Sequence[Tensor], copies: Sequence[Tensor]) -> None:
    for tensor, copy in zip(tensors, copies, strict=True):
        tensor.copy_(copy)


def _other_numbers(replayed: Sequence[Tensor], computed: Sequence[Tensor]) -> str | None:
    """What is wrong about the first replay of a step, None if nothing is."""
    same = all(torch.allclose(one, other, rtol=1e-4, atol=1e-7) for one, other in zip(replayed, computed, strict=True))
    return None if same else "a graph computed other weights"
