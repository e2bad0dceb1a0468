"""Beam search in tensors of fixed shapes, with steps that a GPU replays as a CUDA graph.

A step of a beam takes a hundred kernels, which a GPU needs longer to launch than to compute. Here finished sentences
stay in the batch, the device decides which sentences are finished, and the host checks every few steps for open ones.
"""

import threading
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor
from torch.utils import _pytree

from nmt.kernels.sizes import ceiling, round_up
from nmt.kernels.topk import largest
from nmt.search.banks import OneBank
from nmt.search.beam import BeamSearch, Finished, hypotheses, log_coverage, seen_slots
from nmt.search.core import Forbidding, Hypothesis, Limits, Search, SearchState
from nmt.search.greedy import GreedySearch
from nmt.system.graphs import Graphs

#: The number of steps between the host's checks for open sentences, each of which waits for the GPU.
ASKS = 4
#: The number of beams to keep; each combination of shapes and settings has one.
MOST_BEAMS = 16
#: Up to this number, sentences are rounded up to a power of 4; above, to one of four sizes between powers of 2.
FEW = 64


class Room(NamedTuple):
    """The size of a padded batch: sentences, source tokens, and the maximum number of target tokens."""

    rows: int
    slots: int
    steps: int

    @classmethod
    def of(cls, rows: int, slots: int, most: Callable[[int], int]) -> "Room":
        """One of few sizes that fit `rows` sentences and `slots` slots; `most` maps slots to the most target tokens."""
        few = next((size for size in (1, 4, 16, FEW) if rows <= size), 0)
        slots = ceiling(slots, max(4, 1 << max((slots - 1).bit_length() - 2, 0)))
        return cls(few or round_up(rows), slots, most(slots))


class KeyedStep(Protocol):
    """A step function with a key.

    Attributes:
        key: identifies all inputs beside tokens and state; functions with equal keys compute the same.
        check: raises an error if the search must stop.
    """

    check: Callable[[], None]

    @property
    def key(self) -> Hashable:
        """See the attributes of the class."""
        ...

    def __call__(self, tokens: Tensor, state: Any) -> tuple[Tensor, Tensor | None, Any]:
        """Make one step: see `Step`."""
        ...


def _tensors(state: Any) -> list[Tensor]:
    return [leaf for leaf in _pytree.tree_leaves(state) if isinstance(leaf, Tensor)]


def _copy(into: Any, state: Any) -> None:
    """Copy the tensors of `state` into the tensors of `into`, except tensors that both share, such as weights."""
    for buffer, tensor in zip(_tensors(into), _tensors(state), strict=True):
        if buffer.data_ptr() != tensor.data_ptr():
            buffer.copy_(tensor)


class FixedBeam:
    """A beam search of one shape: all of its tensors, and the CUDA graph of a step.

    All K hypotheses of a sentence exist from the beginning; those that are not open have the log-probability -inf.
    """

    def __init__(self, search: BeamSearch, state: SearchState, limits: Limits, steps: int) -> None:
        """`state` has a row for each sentence and room for `steps` steps; only the beam may use it afterwards."""
        count, size, device = len(limits.lengths), search.beam_size, limits.lengths.device
        self.search, self.bank, self.forbid = search, OneBank(limits), Forbidding(limits)
        self._rows = torch.arange(0, count * size, size, device=device).unsqueeze(1)
        self._firsts = (self._rows // size).expand(count, size).flatten()
        repeated = state.select(self._firsts)
        self.state: Any = _pytree.tree_map_only(Tensor, _writable, repeated)
        self.lengths = limits.lengths.clone()
        self.slots = None if limits.slots is None else limits.slots.clone()
        self.finished = Finished.none(count, size, device)
        self.log_probs = torch.zeros_like(self.finished.scores)
        self.tokens = torch.zeros(count * size, dtype=torch.int64, device=device)
        self.position, self.open = (torch.zeros((), dtype=torch.int64, device=device) for _ in range(2))
        self.path = torch.zeros(2, steps, count, size, dtype=torch.int32, device=device)
        self.weights: Tensor | None = None  # [T, N, H, S], made at the first step
        self.coverage: Tensor | None = None
        self.graph: torch.cuda.CUDAGraph | None = None

    def __call__(
        self, step: KeyedStep, state: SearchState, limits: Limits, longest: int, graphs: Graphs
    ) -> list[list[Hypothesis]]:
        """Search sentences whose translations have at most `longest` tokens."""
        self._begin(state, limits)
        for position in range(longest):
            if self.graph is not None:
                self.graph.replay()
            elif position == 0 or not graphs.captures:
                graphs.warmed(lambda: self._advance(step))
            else:
                self.graph = graphs.capture(lambda: self._advance(step))
                if self.graph is None:  # the failed capture may have changed the buffers
                    return self(step, state, limits, longest, graphs)
            if position % ASKS == ASKS - 1:
                step.check()
                if not self.open.item():
                    break
        best = Finished(*(part[:, : self.search.nbest] for part in self.finished))
        weigh = None if self.weights is None else self._weights_of
        return hypotheses(best, self.path[:, : position + 1], limits.eos, weigh)

    def _begin(self, state: SearchState, limits: Limits) -> None:
        _copy(self.state, state.select(self._firsts))
        self.lengths.copy_(limits.lengths)
        if self.slots is not None and limits.slots is not None:
            self.slots.copy_(limits.slots)
        for part, first in zip(self.finished, (float("-inf"), 0, 0, 0), strict=True):
            part.fill_(first)
        self.log_probs.fill_(float("-inf"))
        self.log_probs[:, 0] = 0
        self.tokens.fill_(limits.bos)
        self.position.zero_()
        if self.coverage is not None:
            self.coverage.zero_()

    def _advance(self, step: KeyedStep) -> None:
        """Extend all hypotheses by one token; the CUDA graph captures this method."""
        cached = torch.is_autocast_cache_enabled()
        torch.set_autocast_cache_enabled(False)  # cached casts do not outlive the search, but the graph does
        try:
            log_probs, weights, following = step(self.tokens, self.state)
        finally:
            torch.set_autocast_cache_enabled(cached)
        size, index, position = self.search.beam_size, self.position.view(1), self.position + 1
        if weights is not None:
            if self.weights is None:
                self.weights = weights.new_zeros(self.path.shape[1], *weights.shape)
            self.weights.index_copy_(0, index, weights.unsqueeze(0))
        lengths = self.lengths.repeat_interleave(size, output_size=len(log_probs))
        allowed = self.forbid(log_probs, lengths, position)
        values, words = largest(allowed, min(size, allowed.shape[1]))
        values, words = values.view(*self.log_probs.shape, -1), words.view(len(self.lengths), -1)
        covered = self._covered(weights)
        place = position, self.lengths, self.search.nbest
        of_step = self.search.advance((values, words), self.log_probs, covered, self.finished, place, self.bank)
        self.path.index_copy_(1, index, torch.stack([of_step.words, of_step.parents]).int().unsqueeze(1))
        _copy(self.finished, of_step.finished)
        self.tokens.copy_(of_step.words.flatten())
        self.log_probs.copy_(of_step.log_probs)  # finished sentences continue too, but can no longer win
        self.open.copy_((~of_step.done).sum())
        self.position.copy_(position)
        rows = (self._rows + of_step.parents).flatten()
        _copy(self.state, following.select(rows))
        if self.coverage is not None:
            self.coverage.copy_(self.coverage.flatten(0, 1).index_select(0, rows).view_as(self.coverage))

    def _covered(self, weights: Tensor | None) -> Tensor | None:
        if weights is None or self.slots is None or not self.search.needs_weights:
            return None
        seen = seen_slots(weights, self.slots, self.search.beam_size)
        if self.coverage is None:
            self.coverage = torch.zeros_like(seen)
        return log_coverage(self.coverage.add_(seen), self.slots)

    def _weights_of(self, slots: Tensor) -> Tensor:
        """The weights [T, B, n, H, S] of the hypotheses [T, B, n] of each step: only these leave the device."""
        assert self.weights is not None
        of_steps = self.weights[: len(slots)].unflatten(1, self.log_probs.shape)
        weights: Tensor = of_steps.take_along_dim(slots[..., None, None], 2).float()
        return weights


def _writable(tensor: Tensor) -> Tensor:
    """The tensor, or a copy if it is expanded and cannot be written to."""
    return tensor.clone() if 0 in tensor.stride() and tensor.numel() > 1 else tensor


class Replays:
    """A translator's most recently used beams, by shape and settings. Only one thread searches at a time."""

    def __init__(self, graphs: Graphs) -> None:
        self.graphs = graphs
        self.beams: dict[Hashable, FixedBeam] = {}
        self._one_at_a_time = threading.Lock()

    @staticmethod
    def beam_of(search: Search) -> BeamSearch | None:
        """The beam search with the same results as `search`; None if there is none."""
        if type(search) is GreedySearch:
            return BeamSearch(1, length_penalty=0.0)
        return search if type(search) is BeamSearch else None

    def __call__(
        self, search: Search, step: KeyedStep, state: SearchState, limits: Limits, room: Room, longest: int
    ) -> list[list[Hypothesis]]:
        """Search a batch of the size of `room`.

        Args:
            search, step, state, limits: as in other searches, without prefixes and constraints.
            room: the size of the batch.
            longest: the maximum number of tokens of a translation.
        """
        beam = self.beam_of(search)
        assert beam is not None
        shapes = tuple((tensor.shape, tensor.dtype) for tensor in _tensors(state))
        key = (step.key, type(search).__name__, tuple(search.settings().items()), room, tuple(limits.forbidden), shapes)
        with self._one_at_a_time:
            try:
                fixed = self.beams.pop(key, None) or FixedBeam(beam, state, limits, room.steps)
                self.beams[key] = fixed
                if len(self.beams) > MOST_BEAMS:
                    del self.beams[next(iter(self.beams))]
                return fixed(step, state, limits, longest, self.graphs)
            except torch.OutOfMemoryError:
                self.beams.clear()
                raise
