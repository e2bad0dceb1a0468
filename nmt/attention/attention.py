"""Attention: a score, a window, a normaliser and a read composed; it owns the mask, the heads and the projections."""

import inspect
from collections.abc import Callable, Sequence
from typing import Literal, NamedTuple

import torch
from torch import Tensor, nn

from nmt.attention.forms import Product
from nmt.attention.normalisers import Normaliser
from nmt.attention.pins import PinnedSteps
from nmt.attention.reads import Choices, Read
from nmt.attention.scores import Score
from nmt.attention.windows import Causal, View, Window
from nmt.kernels import is_fast
from nmt.kernels.dot_tanh import at_least_float32
from nmt.system.errors import SettingError
from nmt.system.limits import Fraction, Positive, Weight

AttentionState = tuple[Tensor, ...]

#: Whose states the memory holds: of another sequence, or of the queries' own, all of them or those up to the query.
Memorised = Literal["other", "own", "past"]


class Memory(NamedTuple):
    """The encoder's states as attention sees them: to be compared (keys) and to be read (values).

    keys [B, H, S, Dk], values [B, H, S, Dv], mask [B, S]. pins: the steps that look at given slots alone; None if all
    are free.
    """

    keys: Tensor
    values: Tensor
    mask: Tensor
    pins: PinnedSteps | None = None

    def select(self, rows: Tensor) -> "Memory":
        """The sentences `rows` [B'] of the batch."""
        # On a CPU several times as fast as indexing, which beam search would spend a tenth of its time on.
        keys, values, mask = (part.index_select(0, rows) for part in (self.keys, self.values, self.mask))
        return Memory(keys, values, mask, None if self.pins is None else self.pins.select(rows))

    def append(self, other: "Memory") -> "Memory":
        """The slots of `other` after these."""
        if not self.mask.shape[1]:
            return other
        keys, values = (torch.cat(pair, 2) for pair in ((self.keys, other.keys), (self.values, other.values)))
        return Memory(keys, values, torch.cat((self.mask, other.mask), 1))


class Stages(NamedTuple):
    """How energies became weights, [B, H, T, S] each.

    energies: of the score, before the window. view: what the window shows, whose parts broadcast to [B, H, T, S].
    shares: of the normaliser, from energies and bias. weights: shares times the window's factor.
    """

    energies: Tensor
    view: View
    shares: Tensor
    weights: Tensor


class Attended(NamedTuple):
    """What a query took away: context [B, T, C], weights [B, H, T, S], the new state, terms for the loss [B, T].

    The weights are None where nobody asked for them. With `choices` the context is for recurrences only, and the
    readout is to see the choices.
    """

    context: Tensor
    weights: Tensor | None
    state: AttentionState
    terms: dict[str, Tensor]
    choices: Choices | None


class Attention(nn.Module):
    """Query + memory -> context + weights.

    With one head it is the plain mechanism on the query and the memory as they are. With projections, which several
    heads need, queries, keys and values are projected to H subspaces of `size / H` each, the score and the window run
    in each with parameters of its own, and the concatenated contexts are projected back (Vaswani et al. 2017, section
    3.2.2).

    With `memorised` "own" or "past" it is self-attention: queries and memory come from one sequence. In "past" a query
    sees nothing after itself, whatever the window.
    """

    def __init__(
        self,
        score: Callable[..., Score],
        window: Callable[..., Window],
        normaliser: Callable[..., Normaliser],
        read: Callable[..., Read],
        *,
        query_size: int,
        value_size: int,
        size: Positive | None = None,
        heads: Positive = 1,
        project: bool | None = None,
        bias: bool = False,
        dropout: Fraction = 0.0,
        coverage: bool = False,
        coverage_loss: Weight = 0.0,
        context_size: int | None = None,
        memorised: Memorised = "other",
        also: Sequence[Callable[..., Window]] = (),
    ) -> None:
        """Build the mechanism.

        Args:
            score, window, normaliser, read: make these parts, for the sizes of one head and `heads`.
            query_size, value_size: Dq and Dv, the sizes of a query and of a memory slot.
            size: of the space in which queries and keys are compared, over all heads; None for that of a query.
            heads, context_size: H and C; None for `value_size`.
            project, bias: of queries, keys, values, contexts; None projects for several heads or if the score wants it.
            dropout: of the weights, in training.
            coverage: shows the score the sum of the weights so far, which becomes the state.
            coverage_loss: weight, in training, of what a step looks at again (See et al. 2017, eq. 12 and 13).
            memorised: whose states the memory holds.
            also: make windows whose views are intersected with that of `window`, as `window` does.

        Raises:
            UserError: `size` is not a multiple of `heads`, or the other settings, the score and the read do not fit.
        """
        super().__init__()
        self.heads, self.context_size = heads, value_size if context_size is None else context_size
        size = query_size if size is None else size
        self.read = read()
        self._check_heads(heads, size, project)
        if project is None:
            project = heads > 1 or getattr(inspect.unwrap(score), "wants_projections", False)
        inner = (size // heads,) * 3 if project else (query_size, value_size, size)
        self.score = score(query_size=inner[0], key_size=inner[1], size=inner[2], heads=heads)
        self._check_coverage(coverage, coverage_loss, memorised)
        if coverage:
            self.score.cover()
        self.window = window(query_size=inner[0], heads=heads)
        self.normaliser = normaliser(heads=heads)
        causal = (Causal,) if memorised == "past" else ()
        self.also = nn.ModuleList(more(query_size=inner[0], heads=heads) for more in (*causal, *also))
        self._add_projections(query_size, value_size, size if project else None, bias)
        self.merge: nn.Module | None = None
        self.dropout, self.coverage, self.coverage_loss = nn.Dropout(dropout), coverage, coverage_loss
        if memorised != "other":
            self._check_self_attention(memorised)

    def _add_projections(self, query_size: int, value_size: int, size: int | None, bias: bool) -> None:
        """The projections to a space of `size` and back; None for a space as it is, perhaps with one to the context."""
        self.query = nn.Linear(query_size, size, bias) if size else None
        self.key = nn.Linear(value_size, size, bias) if size and self.score.compares_keys else None
        self.value = nn.Linear(value_size, size, bias) if size else None
        reshaped = size or self.context_size != value_size
        self.out = nn.Linear(size or value_size, self.context_size, bias) if reshaped else None

    def _check_heads(self, heads: int, size: int, project: bool | None) -> None:
        """SettingError for a number of heads that does not fit the size, the projections or the read."""
        if size % heads:
            near = max(1, round(size / heads)) * heads
            rule = f"must be a multiple of {{key}}.heads={heads}. Give {{key}}.size={near} or another number of heads."
            raise SettingError("size", size, rule)
        if heads > 1 and project is False:
            rule = (
                f"must be true or null with {{key}}.heads={heads}. Give {{key}}.heads=1 or leave {{key}}.project out."
            )
            raise SettingError("project", "false", rule)
        if self.read.enumerates and heads > 1:
            rule = "must be 1 with {key}.read.objective=enumerate, which tries every slot of one head."
            raise SettingError("heads", heads, f"{rule} Give {{key}}.heads=1 or {{key}}.read.objective=sampled.")

    @staticmethod
    def _check_coverage(coverage: bool, coverage_loss: float, memorised: Memorised) -> None:
        """SettingError for coverage where there are no steps, or a loss of coverage without it."""
        if coverage_loss and not coverage:
            raise SettingError("coverage_loss", coverage_loss, "must be 0 without coverage. Give {key}.coverage=true.")
        if coverage and memorised != "other":
            rule = "must be false in self-attention, which computes all steps at once. Give {key}.coverage=false."
            raise SettingError("coverage", "true", rule)

    def _check_self_attention(self, memorised: Memorised) -> None:
        """SettingError for what needs a place in the loss, the end of a target, or its later words."""
        if self.read.has_terms:
            rule = "must be soft: only the attention to the source can add terms to the loss."
            raise SettingError("read", "hard", f"{rule} Give attention/read@{{key}}.read=soft.")
        if memorised == "past" and self.window.needs_length:
            rule = "must not depend on the length of the target, which search does not know."
            raise SettingError("window", "local_p", f"{rule} Give attention/window@{{key}}.window=local_m or global.")
        if memorised == "past" and (step := self.window.first_ahead) is not None:
            rule = f"must name no word after the step's own, but step {step} does: no step sees later words."
            raise SettingError("window.slots", "...", f"{rule} Give attention/window@{{key}}.window=global.")

    def _split(self, projection: nn.Linear | None, vectors: Tensor) -> Tensor:
        """[B, N, D] -> [B, H, N, D / H], or [B, 1, N, D] as they are without a projection."""
        if projection is None:
            return vectors.unsqueeze(1)
        split: Tensor = projection(vectors).unflatten(-1, (self.heads, -1)).transpose(1, 2)
        return split.contiguous()

    def branch(self, make: Callable[[int, int, int], nn.Module]) -> None:
        """Merge the heads' contexts by what `make` returns, [B, H, T, Dv] -> [B, T, C], in place of a projection.

        `make` is called with H, the size Dv of one head's context, and C.
        """
        size = self.context_size if self.out is None else self.out.in_features
        self.merge, self.out = make(self.heads, size // self.heads, self.context_size), None

    @property
    def max_positions(self) -> int | None:
        """How many slots can get weight, from the first on; None for all."""
        return self.score.max_positions

    def remember(
        self, values: Tensor, mask: Tensor, keys: Tensor | None = None, pins: PinnedSteps | None = None
    ) -> Memory:
        """Memory from values [B, S, Dv] and mask [B, S], once a sentence; keys come from the values unless given."""
        prepared = self.score.prepare(self._split(self.key, values if keys is None else keys))
        # Compared in float32 at every step, so cast once.
        return Memory(at_least_float32(prepared), self._split(self.value, values), mask, pins)

    def start(self, memory: Memory) -> AttentionState:
        """The state before the first step: tensors [B, 1, ...], none unless a mechanism keeps one.

        With coverage it is the sum of the weights so far, [B, T, H, S], zero before the first step.
        """
        if not self.coverage:
            return ()
        sentences, slots = memory.mask.shape
        return (memory.values.new_zeros(sentences, 1, self.heads, slots),)

    def view(self, queries: Tensor, steps: Tensor, memory: Memory) -> View:
        """What queries [B, H, T, D], projected already, may look at; steps [B, T]."""
        mask = memory.mask.unsqueeze(1)
        view: View = self.window(queries, steps.unsqueeze(1), mask)
        for window in self.also:
            view &= window(queries, steps.unsqueeze(1), mask)
        return view if memory.pins is None else memory.pins.restrict(view, steps)

    def forward(
        self, queries: Tensor, memory: Memory, steps: Tensor, state: AttentionState = (), *, weights: bool = True
    ) -> Attended:
        """Attend with queries [B, T, Dq] at positions `steps` [B, T] of their sequence.

        The T axis holds the hypotheses of a beam at one step or, where there is no state, the steps of a sentence.
        Without `weights` none are returned, and a plain scaled dot product never holds them all.
        """
        split = self._split(self.query, queries)
        view = self.view(split, steps, memory)
        if not weights and self._is_product(view):
            return Attended(self._merge(self._product(split, memory, view)), None, state, {}, None)
        covered = state[0] if self.coverage else None
        assert covered is None or covered.shape[1] == queries.shape[1], "one step at a time where there is a state"
        shares = self._weigh(split, memory, view, covered).weights
        context, terms, choices = self.read(self.dropout(shares), memory.values)
        if covered is not None:
            by_step = shares.transpose(1, 2)
            state = (covered + by_step,)
            if self.training and self.coverage_loss:  # the mean over heads, each of which has a coverage of its own
                again = torch.minimum(by_step, covered).sum(-1).mean(-1)
                terms = {**terms, "coverage": self.coverage_loss * again}
        if choices is not None and self.out is not None:
            choices = choices._replace(contexts=self.out(choices.contexts))
        return Attended(self._merge(context), shares if weights else None, state, terms, choices)

    def _weigh(self, split: Tensor, memory: Memory, view: View, covered: Tensor | None) -> Stages:
        """From projected queries [B, H, T, D] to weights; `covered` [B, T, H, S] is the coverage."""
        energies = self.score(split, memory.keys, *(() if covered is None else (covered.transpose(1, 2),)))
        shares = self.normaliser(energies if view.bias is None else energies + view.bias, view.visible)
        weights = shares if view.factor is None else shares * view.factor
        return Stages(energies, view, shares, weights)

    def stages(
        self, queries: Tensor, memory: Memory, steps: Tensor, state: AttentionState = ()
    ) -> tuple[Stages, Tensor | None]:
        """How `forward` comes to its weights for the same arguments, and the window's centres [B, H, T] if it has any.

        A memory with pins has no centres: a pinned step does not look there. The read is not a part: hard attention
        reads the slot with the largest weight.
        """
        split = self._split(self.query, queries)
        view = self.view(split, steps, memory)
        centres = self.window.centres(split, steps.unsqueeze(1), memory.mask.unsqueeze(1))
        centres = None if centres is None or memory.pins is not None else centres.expand(split.shape[:3])
        return self._weigh(split, memory, view, state[0] if self.coverage else None), centres

    def over(self, queries: Tensor, real: Tensor, memory: Memory) -> tuple[Tensor, Tensor]:
        """Attention-over-attention: one context [B, C] for all queries [B, T, Dq], and its weights [B, H, S].

        Cui et al. 2017, section 3. Energies M [S, T] of slots (the document D) and queries (the query Q) are
        normalised in both directions: alpha(t) over slots, beta(i) over queries. The weight of a slot is sum_t
        alpha(t) beta_t,
        with beta the mean of beta(i) over slots. Every query must be there from the start: between complete sentences.

        `real` [B, T] is true where a query is not padding. Heads have weights of their own. Slots without any query get
        zeros.
        """
        split = self._split(self.query, queries)
        steps = torch.arange(queries.shape[1], device=queries.device).expand(real.shape)
        view = self.view(split, steps, memory)
        energies = self.score(split, memory.keys)
        energies = energies if view.bias is None else energies + view.bias  # [B, H, T, S]
        visible = (view.visible & real[:, None, :, None]).expand(energies.shape)
        alpha = self.normaliser(energies, visible)
        beta = self.normaliser(energies.transpose(2, 3), visible.transpose(2, 3))  # [B, H, S, T]
        slots = visible.any(2, keepdim=True).sum(-1).clamp(min=1)  # [B, H, 1]
        shares = (beta.sum(2) / slots).unsqueeze(2) @ alpha  # [B, H, 1, S]
        context, _, _ = self.read(self.dropout(shares), memory.values)
        return self._merge(context).squeeze(1), shares.squeeze(2)

    def ask(
        self, queries: Tensor, memory: Memory, steps: Tensor, state: AttentionState = (), *, weights: bool = True
    ) -> Attended:
        """`forward` with T queries of each of N = B * K hypotheses of B sentences, whose memory is not copied.

        T or K is 1. Takes queries [N, T, Dq], steps [N, T] and the state [N, ...]; returns all with N in place of B.
        """
        sentences, (rows, count) = len(memory.mask), queries.shape[:2]
        attended = self(
            queries.reshape(sentences, -1, queries.shape[-1]),
            memory,
            steps.reshape(sentences, -1),
            tuple(part.unflatten(0, (sentences, -1)) for part in state),
            weights=weights,
        )
        by_step, choices = attended.weights, attended.choices
        if by_step is not None:  # [B, H, K * T, S] -> [N, H, T, S]
            by_step = by_step.unflatten(2, (-1, count)).transpose(1, 2).flatten(0, 1)
        if choices is not None:
            choices = Choices(*(part.reshape(rows, count, *part.shape[2:]) for part in choices))
        return Attended(
            attended.context.reshape(rows, count, -1),
            by_step,
            tuple(part.flatten(0, 1) for part in attended.state),
            {name: term.reshape(rows, count) for name, term in attended.terms.items()},
            choices,
        )

    def _merge(self, context: Tensor) -> Tensor:
        """[B, H, T, Dv] -> [B, T, C]."""
        merged: Tensor
        if self.merge is not None:
            merged = self.merge(context)
            return merged
        merged = context.transpose(1, 2).flatten(2)
        if self.out is not None:
            merged = self.out(merged)
        return merged

    def _is_product(self, view: View) -> bool:
        """Whether torch's `scaled_dot_product_attention` computes the context of this view."""
        return (
            isinstance(self.score.form, Product)
            and self.query is not None  # for queries, keys and values of one size, as torch's fast forms want them
            and self.normaliser.is_softmax
            and self.read.is_sum
            and view.factor is None
            and not self.coverage
            and not (self.training and self.dropout.p > 0)
            and is_fast()
        )

    def _product(self, queries: Tensor, memory: Memory, view: View) -> Tensor:
        """The context [B, H, T, Dv] of a product, as torch computes it; zeros where nothing is visible."""
        form = self.score.form
        assert isinstance(form, Product)
        mask = view.visible if view.bias is None else view.bias.masked_fill(~view.visible, -torch.inf)
        queries, values = at_least_float32(queries), at_least_float32(memory.values)
        attend = nn.functional.scaled_dot_product_attention
        return attend(queries, memory.keys, values, attn_mask=mask, scale=form.scale)
