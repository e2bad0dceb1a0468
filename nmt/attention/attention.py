"""`Attention`: a score, a window, a normaliser and a read, with the mask, the heads and the projections."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.normalisers import Normaliser
from nmt.attention.pins import PinnedSteps
from nmt.attention.reads import Choices, Read
from nmt.attention.score_forms import Product
from nmt.attention.scores import Score
from nmt.attention.windows import View, Window
from nmt.kernels import is_fast
from nmt.kernels.dot_tanh import at_least_float32

AttentionState = tuple[Tensor, ...]


class Memory(NamedTuple):
    """The memory of B sentences: keys to compare with queries, and values to read.

    keys [B, H, S, Dk], values [B, H, S, Dv], mask [B, S]: true for real slots. pins: the steps that are restricted to
    given slots; None if there are none. used [B]: the number of filled slots, equal for all sentences, in a memory from
    `with_room`; None in any other.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    pins: PinnedSteps | None = None
    used: Tensor | None = None

    def select(self, rows: Tensor) -> "Memory":
        """The sentences `rows` [B'] of the batch."""
        # Several times as fast on a CPU as indexing, which would take a tenth of the time of beam search.
        keys, values, mask = (part.index_select(0, rows) for part in (self.keys, self.values, self.mask))
        pins = None if self.pins is None else self.pins.select(rows)
        return Memory(keys, values, mask, pins, None if self.used is None else self.used.index_select(0, rows))

    def with_room(self, slots: int) -> "Memory":
        """An empty memory with room for `slots` slots: its shape is constant, as CUDA graphs require."""
        keys, values = (part.new_zeros(*part.shape[:2], slots, part.shape[3]) for part in (self.keys, self.values))
        return Memory(keys, values, mask := self.mask.new_zeros(len(self.mask), slots), None, mask.sum(1))

    def append(self, other: "Memory") -> "Memory":
        """This memory followed by the slots of `other`: exactly one slot if this memory is from `with_room`."""
        if self.used is not None:
            place = self.used[:1]
            keys, values = (buffer.index_copy(2, place, new) for buffer, new in zip(self[:2], other[:2], strict=True))
            return Memory(keys, values, self.mask.index_copy(1, place, other.mask), None, self.used + 1)
        if not self.mask.shape[1]:
            return other
        keys, values = (torch.cat(pair, 2) for pair in ((self.keys, other.keys), (self.values, other.values)))
        return Memory(keys, values, torch.cat((self.mask, other.mask), 1))


class Stages(NamedTuple):
    """The stages from energies to weights, [B, H, T, S]; T counts steps of one hypothesis, or hypotheses at one step.

    energies: from the score, before the window. view: from the windows; its parts broadcast to [B, H, T, S].
    shares: from the normaliser, for energies plus bias. weights: shares times the view's factor. queries [B, H, T, D]:
    the queries of each head.
    """

    energies: Tensor
    view: View
    shares: Tensor
    weights: Tensor
    queries: Tensor


class Attended(NamedTuple):
    """The result of attention: context [N, T, C], weights [N, H, T, S], the new state, terms [N, T] for the loss.

    Weights and stages are None unless requested. With `choices`, the context is for recurrences only, and the readout
    uses the choices.
    """

    context: Tensor
    weights: Tensor | None
    state: AttentionState
    terms: dict[str, Tensor]
    choices: Choices | None = None
    stages: Stages | None = None


class Projections(NamedTuple):
    """Projections of queries, keys and values to the heads' subspaces, and of the concatenated contexts; None for none.

    Vaswani et al. 2017, section 3.2.2.
    """

    query: nn.Linear | None = None
    key: nn.Linear | None = None
    value: nn.Linear | None = None
    out: nn.Linear | None = None


class Attention(nn.Module):
    """Query + memory -> context + weights.

    Without projections, one head compares the query with the memory directly. With projections, which several heads
    need, the score and the window run in the subspace of each head, with separate parameters.
    """

    attends = True

    def __init__(
        self,
        score: Score,
        window: Window,
        normaliser: Normaliser,
        read: Read,
        projections: Projections | None = None,
        *,
        heads: int = 1,
        dropout: float = 0.0,
        coverage: bool = False,
        coverage_loss: float = 0.0,
        also: Sequence[Window] = (),
    ) -> None:
        """Compose parts for the sizes of one head and for H `heads`; `AttentionSettings` makes matching parts.

        Args:
            score, window, normaliser, read: the four choices.
            projections: of queries, keys, values and contexts; None for none.
            heads: H.
            dropout: the dropout probability of the weights.
            coverage: whether the score also gets the sum of the weights so far, which is then the state.
            coverage_loss: the weight of the coverage loss in training (See et al. 2017, eq. 12 and 13).
            also: additional windows; the views of all windows are intersected.
        """
        super().__init__()
        # Initialisation and optimizers depend on the order of these assignments.
        self.heads, self.read, self.score, self.window, self.normaliser = heads, read, score, window, normaliser
        self.also = nn.ModuleList(also)
        self.query, self.key, self.value, self.out = projections or Projections()
        self.dropout, self.coverage, self.coverage_loss = nn.Dropout(dropout), coverage, coverage_loss
        self.merge: nn.Module | None = None
        self._adding = tuple(each for each in (window, *also) if each.adds_values)

    @property
    def adds_values(self) -> bool:
        """Whether a window adds vectors to the context (`Window.added`)."""
        return bool(self._adding)

    def branch(self, make: Callable[[int, int, int], nn.Module], context_size: int) -> None:
        """Replace the projection of contexts by the module that `make` returns: [B, H, T, Dv] -> [B, T, C].

        `make` is called with H, the size Dv of one head's context, and `context_size` C.
        """
        size = context_size if self.out is None else self.out.in_features
        self.merge, self.out = make(self.heads, size // self.heads, context_size), None

    def remember(
        self, values: Tensor, mask: Tensor, keys: Tensor | None = None, pins: PinnedSteps | None = None
    ) -> Memory:
        """Make the memory of values [B, S, Dv] and mask [B, S], once per sentence; `keys` None uses the values."""
        prepared = self.score.prepare(self.split(self.key, values if keys is None else keys))
        # Every step compares keys in float32, so cast them once; but not if torch's product would cast them back.
        if not (prepared.device.type == "cuda" and torch.is_autocast_enabled("cuda") and self._may_be_product()):
            prepared = at_least_float32(prepared)
        return Memory(prepared, self.split(self.value, values), mask, pins)

    def start(self, memory: Memory) -> AttentionState:
        """The state before the first step: a tuple of tensors [B, ...], empty without coverage.

        With coverage, the state is the sum of the weights so far, [N, H, S], zero before the first step.
        """
        if not self.coverage:
            return ()
        sentences, slots = memory.mask.shape
        return (memory.values.new_zeros(sentences, self.heads, slots),)

    def split(self, projection: nn.Linear | None, vectors: Tensor) -> Tensor:
        """Project vectors and split them by head, [B, N, I] -> [B, H, N, D / H]; [B, 1, N, I] without a projection."""
        if projection is None:
            return vectors.unsqueeze(1)
        split: Tensor = projection(vectors).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return split if split.device.type == "cuda" else split.contiguous()

    def view(self, queries: Tensor, steps: Tensor, memory: Memory) -> View:
        """The view of queries [B, H, T, D], already projected, at steps [B, T]."""
        mask = memory.mask.unsqueeze(1)
        view: View = self.window(queries, steps.unsqueeze(1), mask)
        for window in self.also:
            view &= window(queries, steps.unsqueeze(1), mask)
        return view if memory.pins is None else memory.pins.restrict(view, steps)

    def forward(
        self, queries: Tensor, memory: Memory, steps: Tensor, state: AttentionState = (), *, weights: bool = True
    ) -> Attended:
        """Attend with T queries per hypothesis, for N = B * K hypotheses of B sentences, without copying the memory.

        Takes queries [N, T, Dq] at positions `steps` [N, T]. T or K must be 1; with a state [N, ...], T must be 1.
        Without `weights`, no weights are returned, and a plain scaled dot product does not store them all.
        """
        sentences, (rows, count) = len(memory.mask), queries.shape[:2]
        if rows == sentences:
            return self._attend(queries, memory, steps, state, weights)
        attended = self._attend(
            queries.reshape(sentences, -1, queries.shape[-1]), memory, steps.reshape(sentences, -1), state, weights
        )
        by_step, choices = attended.weights, attended.choices
        if by_step is not None:  # [B, H, K * T, S] -> [N, H, T, S]
            by_step = by_step.unflatten(2, (-1, count)).transpose(1, 2).flatten(0, 1)
        if choices is not None:
            choices = Choices(*(part.reshape(rows, count, *part.shape[2:]) for part in choices))
        return attended._replace(
            context=attended.context.reshape(rows, count, -1),
            weights=by_step,
            terms={name: term.reshape(rows, count) for name, term in attended.terms.items()},
            choices=choices,
        )

    def _attend(self, queries: Tensor, memory: Memory, steps: Tensor, state: AttentionState, weights: bool) -> Attended:
        """`forward` for queries [B, T, Dq], where T counts steps or hypotheses of a sentence; state [N, ...]."""
        split = self.split(self.query, queries)
        view, free = self.view(split, steps, memory), None
        if memory.pins is not None and not memory.pins.are_whole:
            free = self.view(split, steps, memory._replace(pins=None))
        if not weights and free is None and self._is_product(view):
            return Attended(self.merged(self._product(split, memory, view)), None, state, {})
        covered = [part.unflatten(0, (len(queries), -1)).transpose(1, 2) for part in state]  # [B, H, T, S]
        assert not covered or covered[0].shape[2] == queries.shape[1], "one step at a time where there is a state"
        energies = self.score(split, at_least_float32(memory.keys), *covered)
        shares = self._shares(energies, view)
        if free is not None and memory.pins is not None:
            usual = self._shares(energies, free)
            shares = memory.pins.shared(shares, usual if free.factor is None else usual * free.factor, steps)
            view = view._replace(visible=view.visible | (shares > 0))
        weighed = shares if view.factor is None else shares * view.factor
        used = self.dropout(weighed)
        context, terms, choices = self.read(used, memory.values)
        for window in self._adding:
            context = context + window.added(used, steps.unsqueeze(1))
        if covered:
            (before,) = covered
            state = ((before + weighed).transpose(1, 2).flatten(0, 1),)
            if self.training and self.coverage_loss:  # the mean over heads, which have separate coverages
                again = torch.minimum(weighed, before).sum(-1).mean(1)
                terms = {**terms, "coverage": self.coverage_loss * again}
        if choices is not None and self.out is not None:
            choices = choices._replace(contexts=self.out(choices.contexts))
        stages = Stages(energies, view, shares, weighed, split) if weights else None
        return Attended(self.merged(context), weighed if weights else None, state, terms, choices, stages)

    def _shares(self, energies: Tensor, view: View) -> Tensor:
        """The normaliser's shares [B, H, T, S] for energies [B, H, T, S] and a view."""
        shares: Tensor = self.normaliser(energies if view.bias is None else energies + view.bias, view.visible)
        return shares

    def merged(self, context: Tensor) -> Tensor:
        """Merge the contexts of all heads: [B, H, T, Dv] -> [B, T, C]."""
        merged: Tensor
        if self.merge is not None:
            merged = self.merge(context)
            return merged
        merged = context.transpose(1, 2).flatten(2)
        if self.out is not None:
            merged = self.out(merged)
        return merged

    def _may_be_product(self) -> bool:
        """Whether torch's `scaled_dot_product_attention` can compute the context, given a view without a factor."""
        return (
            isinstance(self.score.form, Product)
            and self.query is not None  # then queries, keys and values have one size, as torch's fast kernels require
            and self.normaliser.is_softmax
            and self.read.is_sum
            and not self._adding
            and not self.coverage
            and is_fast()
        )

    def _is_product(self, view: View) -> bool:
        """Whether torch computes the context of this view; with dropout only on a GPU, where it is still one kernel."""
        drops = self.training and self.dropout.p > 0 and view.visible.device.type != "cuda"
        return view.factor is None and not drops and self._may_be_product()

    def _product(self, queries: Tensor, memory: Memory, view: View) -> Tensor:
        """The context [B, H, T, Dv] from torch's scaled dot product; zeros where no slot is visible."""
        form = self.score.form
        assert isinstance(form, Product)
        mask = view.visible if view.bias is None else view.bias.masked_fill(~view.visible, -torch.inf)
        keys, values = memory.keys, memory.values
        if not (keys.device.type == "cuda" and torch.is_autocast_enabled("cuda")):  # CUDA's autocast does the cast
            queries, values = at_least_float32(queries), at_least_float32(values)
        attend, dropout = nn.functional.scaled_dot_product_attention, self.dropout.p if self.training else 0.0
        return attend(queries, keys, values, attn_mask=mask, dropout_p=dropout, scale=form.scale)
