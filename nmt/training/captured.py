"""Gradients of batches that are padded to a few fixed shapes, which a GPU replays as CUDA graphs.

A small batch takes a GPU longer to launch than to compute: an update is hundreds of kernels. A CUDA graph is launched
once for all of them, but repeats the same kernels with the same addresses: nothing in it may depend on lengths or on
what the host reads. So each shape has buffers of its own, lengths stay on the device, and padding passes through the
softmax with a loss of zero. On a CPU the same steps run without a graph.
"""

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention import Hard
from nmt.compute import Compute
from nmt.data.batch import Batch
from nmt.model import Seq2Seq
from nmt.processes import Processes
from nmt.text.tokenizer import EOS
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
        return cls(_ceiling(rows, ROWS), _ceiling(source, PIECES), _ceiling(batch.target_in.shape[1], PIECES))


def wanted(settings: TrainerSettings, compute: Compute) -> bool:
    """Whether `trainer.graphs` asks for fixed shapes on this device."""
    return settings.graphs == "always" or (settings.graphs == "auto" and compute.on_gpu)


def reason_against(model: Seq2Seq, settings: TrainerSettings, processes: Processes) -> str | None:
    """Why updates of this training cannot have fixed shapes, None if they can."""
    lstm = any(isinstance(module, nn.LSTM) for module in model.modules())
    reasons = {
        "several processes share an update": processes.count > 1,
        "trainer.accumulate is larger than 1": settings.accumulate > 1,
        "trainer.scheduled_sampling is used": settings.scheduled_sampling > 0,
        "trainer.r_drop is used": settings.r_drop > 0,
        "trainer.guided_alignment is used": settings.guided_alignment > 0,
        "the model sees previous sentences": model.context_sentences > 0,
        "attention is hard": any(isinstance(module, Hard) for module in model.modules()),
        "LSTM layers need packed sequences": lstm,
        "model.fast=false needs packed sequences": not model.fast,
    }
    return next((reason for reason, holds in reasons.items() if holds), None)


class FixedUpdates:
    """The gradients of a training with batches of fixed shapes."""

    def __init__(
        self, model: Seq2Seq, settings: TrainerSettings, compute: Compute, say: Callable[[str], None] = lambda _: None
    ) -> None:
        """`say` is called with a message where graphs end; `reason_against` must be None."""
        self.model, self.settings, self.compute, self.say = model, settings, compute, say
        self.captures = compute.on_gpu
        self.graphs = 0
        self._shapes: dict[Shape, _FixedBatch] = {}
        self._gradients: list[tuple[nn.Parameter, Tensor]] = []
        self._pool: Any = None  # the memory of all graphs, as torch names it

    def __call__(self, batch: Batch, tokens: int) -> Tensor:
        """Set the clipped gradients of the mean loss over `tokens` target tokens.

        Returns:
            [3] on the device: the loss and the negative log-likelihood, both summed, and the norm before clipping.
        """
        shape = Shape.of(batch)
        fixed = self._shapes.get(shape)
        is_new = fixed is None
        if fixed is None:
            parameter = next(self.model.parameters())
            fixed = self._shapes[shape] = _FixedBatch(shape, parameter.device, parameter.dtype)
        fixed.fill(batch, tokens)
        for parameter, gradient in self._gradients:
            parameter.grad = gradient
        if fixed.graph is not None:
            fixed.graph.replay()
        elif is_new or not self.captures or self.graphs >= MOST_GRAPHS:
            self._step(fixed)
        else:
            self._capture(fixed)
        return fixed.result

    def _step(self, fixed: "_FixedBatch") -> None:
        """Everything that a graph repeats. Gradients are added to the same tensors in all shapes."""
        if self._gradients:
            torch._foreach_zero_([gradient for _, gradient in self._gradients])
        with self.compute.autocast():
            loss = batch_loss(self.model, fixed.batch(), self.settings.label_smoothing)
        (loss.total / fixed.tokens).backward()
        norm = nn.utils.clip_grad_norm_(self.model.parameters(), self.settings.clip_norm or math.inf)
        fixed.result.copy_(torch.stack([loss.total.detach(), loss.negative_log_likelihood.detach(), norm]))
        with_gradients = [parameter for parameter in self.model.parameters() if parameter.grad is not None]
        if len(with_gradients) != len(self._gradients):
            self._gradients = [
                (parameter, parameter.grad) for parameter in with_gradients if parameter.grad is not None
            ]

    def _capture(self, fixed: "_FixedBatch") -> None:
        """Compute the batch, capture a graph of it and replay it; without a usable graph, leave what was computed.

        Raises:
            torch.OutOfMemoryError: the memory of the GPU is full.
        """
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # libraries allocate their workspaces for a stream at its first call
            self._step(fixed)
        torch.cuda.current_stream().wait_stream(side)
        eager = fixed.result.tolist()
        if not all(math.isfinite(number) for number in eager):
            return
        try:
            graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(graph, pool=self._pool):
                self._step(fixed)
            graph.replay()
            reason = _difference(fixed.result.tolist(), eager)
        except torch.OutOfMemoryError:
            raise
        except RuntimeError as error:
            reason = str(error).partition("\n")[0]
        if reason is not None:
            self.captures = False
            self.say(f"Updates go on without CUDA graphs: {reason}.")
            self._step(fixed)
            return
        fixed.graph, self._pool = graph, graph.pool()
        self.graphs += 1


class _FixedBatch:
    """The buffers of a shape: one for all integers, so that a batch is one copy."""

    def __init__(self, shape: Shape, device: torch.device, dtype: torch.dtype) -> None:
        self.shape = shape
        rows, source, target = shape
        self._sizes = [rows * source, rows * target, rows * target, rows, rows, 1]
        self._numbers = torch.zeros(sum(self._sizes), dtype=torch.int64, device=device)
        self.result = torch.zeros(3, dtype=dtype, device=device)
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
        on_gpu = self._numbers.device.type == "cuda"
        self._numbers.copy_(host.pin_memory() if on_gpu else host, non_blocking=on_gpu)

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
    """What is implausible about loss and norm of a first replay, None if nothing is."""
    if not abs(replayed[0] - eager[0]) <= LOSS_DIFFERENCE * abs(eager[0]):
        return f"a graph computed the loss {replayed[0]:.6g} in place of {eager[0]:.6g}"
    if not eager[2] / NORM_FACTOR <= replayed[2] <= eager[2] * NORM_FACTOR:
        return f"a graph computed gradients of the norm {replayed[2]:.6g} in place of {eager[2]:.6g}"
    return None


def _ceiling(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple
