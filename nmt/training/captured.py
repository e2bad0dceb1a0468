"""Gradients of batches that are padded to a few fixed shapes, for which a GPU replays CUDA graphs.

An update has hundreds of kernels, and for small batches a GPU needs longer to launch than to compute them. A CUDA graph
has a single launch, but repeats the same kernels with the same addresses: nothing in it may depend on lengths or on
values on the host. So each shape has its own buffers, lengths stay on the device, and padding passes through the
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

#: Lengths are padded to a multiple of this if no shapes were chosen before the training.
PIECES = 4
#: Each gradient begins at a multiple of this number of elements, as vector instructions require.
_ALIGNMENT = 4
#: The largest difference of a first replay from the same batch with other dropout: loss (relative) and norm (factor).
LOSS_DIFFERENCE, NORM_FACTOR = 0.2, 4


def wanted(settings: TrainerSettings, compute: Compute) -> bool:
    """Whether `trainer.graphs` requests fixed shapes on this device."""
    return settings.graphs == "always" or (settings.graphs == "auto" and compute.on_gpu)


def reason_against(model: Seq2Seq, settings: TrainerSettings) -> str | None:
    """The reason why updates of this training cannot have fixed shapes, None if they can."""
    if model.context_sentences:
        return "the model sees previous sentences"
    return None if model.fast else "model.fast=false needs packed sequences"


def has_fixed_shapes(model: Seq2Seq, settings: TrainerSettings, compute: Compute) -> bool:
    """Whether updates have fixed shapes."""
    return wanted(settings, compute) and reason_against(model, settings) is None


class FixedUpdates:
    """The updates of a training with batches of fixed shapes.

    On a GPU, each shape has a graph that adds the gradient of a batch. Another graph, for all shapes, runs `step` after
    the last batch of an update. Between both, several processes sum their gradients.
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
        #: the shapes that get a graph; if empty, the first `MOST_SHAPES` shapes that occur get one
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
        # _losses: loss and negative log-likelihood of each batch of an update. _numbers: these, `_totals` and the norm.
        self._losses = parameters[0].new_zeros(2 * settings.accumulate)
        self._numbers = parameters[0].new_zeros(2 * settings.accumulate + 3)
        self._batches: dict[Shape, _FixedBatch] = {}
        self._is_checked = False  # whether a graph of a gradient was compared with the gradient without one
        self._has_stepped = False  # whether a step has allocated the optimizer's state
        self._step_graph: torch.cuda.CUDAGraph | None = None

    def add(self, batch: Batch) -> None:
        """Add a batch's gradient, divided by the number of tokens that was passed to `GradientStep.prepare`.

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
        """Clip the gradients of an update of `batches` batches; if the device `decides`, also make the step.

        Otherwise, the caller makes the step and then calls `clear`.

        Returns:
            [2 * batches + 3] on the device, valid until the next update: the loss and the negative log-likelihood of
            each batch, summed over tokens; both summed over all batches of all processes; the norm before clipping.
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
        """Use the parameters' current gradients and the given losses of their batches, instead of `add`."""
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
        """Free the memory of all graphs, and capture no more graphs."""
        self.graphs.captures, self._step_graph = False, None
        self._batches.clear()

    def forget_step(self) -> None:
        """Drop the step's graph; call this when the optimizer's state has new tensors, which the graph does not use."""
        self._step_graph, self._has_stepped = None, False

    def _attach(self) -> None:
        for parameter, gradient in self._gradients:
            parameter.grad = gradient

    def _add(self, fixed: "_FixedBatch") -> None:
        """Add the gradient of a batch; a shape's graph captures this. All shapes add gradients to the same tensors."""
        with self.compute.autocast():
            loss = training_loss(self.model, fixed.batch(), self.settings, self.step.baseline)
        (loss.total / self.step.tokens).backward()
        pair = torch.stack([loss.total.detach(), loss.negative_log_likelihood.detach()])
        self._losses.copy_(torch.cat([self._losses[2:], pair]))
        self._totals.add_(pair)

    def _finish(self, decides: bool) -> None:
        """Finish an update; the graph of the step captures this."""
        self._numbers.copy_(self.step([self._losses, self._totals], self._totals[1], decides))
        if decides:
            self.clear()

    def _capture_shape(self, fixed: "_FixedBatch") -> None:
        """Capture a shape's graph and add a batch's gradient with it; without a usable graph, add it directly.

        The first graph is compared with the gradient that is computed without a graph.
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
        """Capture the step's graph and finish an update with it; without a usable graph, finish it directly."""
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
    """The buffers of a shape: one for all integers, so that a batch needs one copy, and one for links if any."""

    def __init__(self, shape: Shape, device: torch.device, has_links: bool = False) -> None:
        self.shape = shape
        rows, source, target = shape
        self._sizes = [rows * source, rows * target, rows * target, rows, rows]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        sides = (rows, target, source) if has_links else (rows, 0, 0)
        self._links = torch.zeros(sides, device=device)
        self.graph: torch.cuda.CUDAGraph | None = None

    def _parts(self, numbers: Tensor) -> tuple[Tensor, ...]:
        """Views of `numbers`: source, target in, target out, and the lengths of both sides."""
        rows, source, target = self.shape
        views = [(rows, source), (rows, target), (rows, target), (rows,), (rows,)]
        return tuple(part.view(view) for part, view in zip(numbers.split(self._sizes), views, strict=True))

    def fill(self, batch: Batch) -> None:
        """Copy a batch from the CPU. Rows without a pair get an empty source sentence and no target."""
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
        """The buffers as a batch with lengths on the device and with all target positions, including padding."""
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
    """A message if the loss or the norm of a shape's first replay is implausible, else None."""
    if not abs(replayed[0] - eager[0]) <= LOSS_DIFFERENCE * abs(eager[0]):
        return f"a graph computed the loss {replayed[0]:.6g} in place of {eager[0]:.6g}"
    if not eager[2] / NORM_FACTOR <= replayed[2] <= eager[2] * NORM_FACTOR:
        return f"a graph computed gradients of the norm {replayed[2]:.6g} in place of {eager[2]:.6g}"
    return None


def _copies(tensors: Sequence[Tensor]) -> list[Tensor]:
    """Copies in the host's memory, because a GPU's memory may be short."""
    return [tensor.to("cpu", copy=True) for tensor in tensors]


def _restore(tensors: Sequence[Tensor], copies: Sequence[Tensor]) -> None:
    for tensor, copy in zip(tensors, copies, strict=True):
        tensor.copy_(copy)


def _other_numbers(replayed: Sequence[Tensor], computed: Sequence[Tensor]) -> str | None:
    """A message if the first replay of a step gives wrong numbers, else None."""
    same = all(torch.allclose(one, other, rtol=1e-4, atol=1e-7) for one, other in zip(replayed, computed, strict=True))
    return None if same else "a graph computed other weights"
