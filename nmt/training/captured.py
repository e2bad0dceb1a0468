"""Gradients of batches that are padded to a few fixed shapes, which a GPU replays as CUDA graphs.

A small batch takes a GPU longer to launch than to compute: an update is hundreds of kernels. A CUDA graph is launched
once for all of them, but repeats the same kernels with the same addresses: nothing in it may depend on lengths or on
what the host reads. So each shape has buffers of its own, lengths stay on the device, and padding passes through the
softmax with a loss of zero. On a CPU the same steps run without a graph.
"""

import functools
import math
from collections.abc import Sequence

import torch
from torch import Tensor

from nmt.data.batch import Batch
from nmt.data.shapes import MOST_SHAPES, ROWS, Shape, Shapes
from nmt.kernels.sizes import ceiling
from nmt.model import Seq2Seq
from nmt.system.compute import Compute
from nmt.system.graphs import Graphs, send
from nmt.system.processes import ALONE, Processes
from nmt.text.tokenizer import EOS
from nmt.training.gradient_step import GradientStep
from nmt.training.loss import training_loss
from nmt.training.settings import TrainerSettings

#: Lengths are padded to a multiple of this where no shapes were chosen before the training.
PIECES = 4
#: Each gradient begins at a multiple of this many numbers, as vector instructions want it.
_ALIGNMENT = 4
#: How far loss (share) and norm (factor) of a first replay may be from those of the same batch with other dropout.
LOSS_DIFFERENCE, NORM_FACTOR = 0.2, 4


def wanted(settings: TrainerSettings, compute: Compute) -> bool:
    """Whether `trainer.graphs` asks for fixed shapes on this device."""
    return settings.graphs == "always" or (settings.graphs == "auto" and compute.on_gpu)


def reason_against(model: Seq2Seq, settings: TrainerSettings) -> str | None:
    """Why updates of this training cannot have fixed shapes, None if they can."""
    if model.context_sentences:
        return "the model sees previous sentences"
    return None if model.fast else "model.fast=false needs packed sequences"


def has_fixed_shapes(model: Seq2Seq, settings: TrainerSettings, compute: Compute) -> bool:
    """Whether updates have fixed shapes."""
    return wanted(settings, compute) and reason_against(model, settings) is None


class FixedUpdates:
    """The updates of a training with batches of fixed shapes.

    Two parts are graphs on a GPU. That of each shape adds the gradient of a batch. That of `step` follows the last
    batch of an update; it is the same for all shapes. Between them, several processes sum their gradients.
    """

    def __init__(
        self,
        model: Seq2Seq,
        settings: TrainerSettings,
        compute: Compute,
        step: GradientStep,
        graphs: Graphs,
        processes: Processes = ALONE,
    ) -> None:
        """`reason_against` must be None."""
        self.model, self.settings, self.compute, self.step, self.graphs = model, settings, compute, step, graphs
        self.processes = processes
        #: the shapes that get a graph; without any, the first `MOST_SHAPES` that occur do
        self.shapes: Shapes = ()
        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        sizes = [ceiling(parameter.numel(), _ALIGNMENT) for parameter in parameters]
        # All gradients, and the sums of loss and negative log-likelihood of an update.
        self._sums = parameters[0].new_zeros(sum(sizes) + 2)
        *parts, self._totals = self._sums.split([*sizes, 2])
        self._gradients = [
            (parameter, part[: parameter.numel()].view_as(parameter))
            for parameter, part in zip(parameters, parts, strict=True)
        ]
        # Loss and negative log-likelihood of each batch of an update, the last one last; then `_totals` and the norm.
        self._losses = parameters[0].new_zeros(2 * settings.accumulate)
        self._numbers = parameters[0].new_zeros(2 * settings.accumulate + 3)
        self._batches: dict[Shape, _FixedBatch] = {}
        self._is_checked = False  # whether a graph of a gradient was compared with the gradient without one
        self._has_stepped = False  # and so the optimizer has its state
        self._step_graph: torch.cuda.CUDAGraph | None = None

    def add(self, batch: Batch) -> None:
        """Add the gradient of a batch of an update, divided by the tokens that `GradientStep.prepare` was given.

        Raises:
            torch.OutOfMemoryError: the memory of the GPU is full.
        """
        needed = Shape.of(batch) if self.shapes else Shape.of(batch, 2 * ROWS, PIECES)
        shape = next((shape for shape in self.shapes if shape.holds(needed)), None)
        if not self.shapes and (needed in self._batches or len(self._batches) < MOST_SHAPES):
            shape = needed
        fixed = None if shape is None else self._batches.get(shape)
        is_new = fixed is None
        if fixed is None:
            fixed = _FixedBatch(shape or needed, self._sums.device, has_links=self.settings.guided_alignment > 0)
        if shape is not None:
            self._batches[shape] = fixed
        fixed.fill(batch)
        self._attach()
        if fixed.graph is not None:
            fixed.graph.replay()
        elif is_new or not self.graphs.captures:
            self.graphs.warmed(functools.partial(self._add, fixed))
        else:
            self._capture_shape(fixed)

    def finish(self, decides: bool, batches: int) -> Tensor:
        """Clip the gradients of an update of so many batches; where the device `decides`, step as well.

        Without the device's decision, `clear` must follow the step.

        Returns:
            [2 * batches + 3] on the device, until the next update: the loss and the negative log-likelihood of each
            batch, summed over its tokens; both summed over all batches of all processes; the norm before clipping.
        """
        self._attach()
        self.processes.sum_in_place(self._sums)
        if self._step_graph is not None:
            self._step_graph.replay()
        elif self._has_stepped and self.graphs.captures:
            self._capture_step(decides)
        else:
            self._finish(decides)
            self._has_stepped = True
        return self._numbers[-2 * batches - 3 :]

    def take(self, losses: Sequence[tuple[Tensor, Tensor]]) -> None:
        """Take the gradients that the parameters have, and the losses of their batches, in place of `add`."""
        self.clear()
        for parameter, gradient in self._gradients:
            if parameter.grad is not None:
                gradient.copy_(parameter.grad)
        for pair in losses:
            self._totals.add_(torch.stack(pair))

    def clear(self) -> None:
        """Make all gradients and losses zero."""
        self._sums.zero_()
        self._losses.zero_()

    def forget_graphs(self) -> None:
        """Free the memory of all graphs, and capture no more."""
        self.graphs.captures, self._step_graph = False, None
        self._batches.clear()

    def forget_step(self) -> None:
        """Call where the optimizer has got another state, whose tensors no graph knows."""
        self._step_graph, self._has_stepped = None, False

    def _attach(self) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient

    def _add(self, fixed: "_FixedBatch") -> None:
        """What the graph of a shape repeats. Gradients are added to the same tensors in all shapes."""
        with self.compute.autocast():
            loss = training_loss(self.model, fixed.batch(), self.settings, self.step.baseline)
        (loss.total / self.step.tokens).backward()
        pair = torch.stack([loss.total.detach(), loss.negative_log_likelihood.detach()])
        self._losses.copy_(torch.cat([self._losses[2:], pair]))
        self._totals.add_(pair)

    def _finish(self, decides: bool) -> None:
        """What the graph of the step repeats."""
        self._numbers.copy_(self.step([self._losses, self._totals], self._totals[1], decides))
        if decides:
            self.clear()

    def _capture_shape(self, fixed: "_FixedBatch") -> None:
        """Add the gradient of a batch by a graph that is captured of it; without a usable graph, as it was computed.

        The first graph is compared with the gradient as it is computed without one.
        """
        work = functools.partial(self._add, fixed)
        if self._is_checked:
            fixed.graph = self.graphs.capture(work)
            if fixed.graph is None:
                work()
            return
        changed = [self._losses, self._sums]
        before = [tensor.clone() for tensor in changed]
        self.graphs.warmed(work)
        computed, after = self._measured(), [tensor.clone() for tensor in changed]
        if not all(map(math.isfinite, computed)):
            return
        _restore(changed, before)
        fixed.graph = self.graphs.capture(work, lambda: _difference(self._measured(), computed))
        if fixed.graph is None:
            _restore(changed, after)
        else:
            self._is_checked = True

    def _measured(self) -> list[float]:
        """The last loss, its negative log-likelihood, and the norm of the gradients."""
        norm = torch.linalg.vector_norm(self._sums[:-2])
        return torch.cat([self._losses[-2:], norm.view(1)]).tolist()

    def _capture_step(self, decides: bool) -> None:
        """Finish an update by a graph that is captured of it; without a usable graph, as it was computed."""
        changed = [self._losses, self._numbers, self._sums, *self.step.tensors()]
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
    """The buffers of a shape: one for all integers and one for links if there are any, so that a batch is one copy."""

    def __init__(self, shape: Shape, device: torch.device, has_links: bool = False) -> None:
        self.shape = shape
        rows, source, target = shape
        self._sizes = [rows * source, rows * target, rows * target, rows, rows]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        sides = (rows, target, source) if has_links else (rows, 0, 0)
        self._links = torch.zeros(sides, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def _parts(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Source, target in, target out, and lengths of both sides."""
        rows, source, target = self.shape
        views = [(rows, source), (rows, target), (rows, target), (rows,), (rows,)]
        return tuple(part.view(view) for part, view in zip(numbers.split(self._sizes), views, strict=True))

    def fill(self, batch: Batch) -> None:
        """Copy a batch of the CPU. A row without a pair is an empty sentence without a target."""
        host = torch.zeros(len(self._numbers), dtype=torch.int64)
        source, target_in, target_out, source_lengths, target_lengths = self._parts(host)
        rows = len(batch.source)
        source[:rows, : batch.source.shape[1]] = batch.source
        source[rows:, 0] = EOS
        target_in[:rows, : batch.target_in.shape[1]] = batch.target_in
        target_out[:rows, : batch.target_out.shape[1]] = batch.target_out
        source_lengths[:rows] = batch.source_lengths
        source_lengths[rows:] = 1
        target_lengths[:rows] = batch.target_mask.sum(1)
        send(host, self._numbers)
        if self._links.numel():
            links = torch.zeros(self._links.shape)
            if batch.links.numel():
                links[:rows, : batch.links.shape[1], : batch.links.shape[2]] = batch.links
            send(links, self._links)

    def batch(self) -> Batch:
        """The buffers as a batch whose lengths are on the device, and of whose target no place is left out."""
        source, target_in, target_out, source_lengths, target_lengths = self._parts(self._numbers)
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
            links=self._links,
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
