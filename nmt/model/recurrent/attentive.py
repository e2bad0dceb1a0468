"""Base class of recurrent decoders with attention: the memory, and attending at one step or at all steps."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.attention import AdditiveForm, Attended, Attention, Choices, Memory, Product
from nmt.kernels import attentive_gru, is_fast
from nmt.kernels.attentive_gru import Inner
from nmt.kernels.dot_tanh import at_least_float32
from nmt.kernels.energies import ProjectedMemory, Query
from nmt.model.contract import DecoderParts, Encoded, head_names
from nmt.model.layered import of_all_layers
from nmt.model.recurrent.first_state import FirstStateKind
from nmt.model.recurrent.readouts import FromState, product_type
from nmt.model.recurrent.recurrent_decoder import Products, RecurrentDecoder, RecurrentState, Seen, linear
from nmt.system.errors import SettingError, UserError


class RecurrentMemory(NamedTuple):
    """The attention's memory of B sentences; `folded` if its values [B, 1, S, R + U] are already multiplied.

    R is 3D if contexts go into the recurrence, else 0. U is the number of units if the readout sees them, else 0.
    lower: with multi-step attention, the memories of the layers below the top layer.
    """

    products: Products
    attention: Memory
    folded: bool = False
    lower: tuple[Memory, ...] = ()

    def select(self, rows: Tensor) -> "RecurrentMemory":
        """The sentences `rows` [B'] of the batch."""
        lower = tuple(memory.select(rows) for memory in self.lower)
        return self._replace(attention=self.attention.select(rows), lower=lower)


class ContextGates(nn.Module):
    """The product W c of a context for the gates of a layer, without a bias."""

    def __init__(self, context_size: int, size: int) -> None:
        """`size` is the size D of the layer's state."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(3 * size, context_size))
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Make the matrix of each gate uniform after Glorot and Bengio 2010."""
        for gate in self.weight.chunk(3):
            nn.init.xavier_uniform_(gate)


class AttentiveDecoder(RecurrentDecoder[RecurrentMemory]):
    """A recurrent decoder with one attention to the source, or with multi-step attention in each layer.

    `attention` belongs to the top layer, `lower` to the layers below. Multi-step attention is from Gehring et al. 2017,
    section 3.3, where layers are convolutions.
    """

    def __init__(
        self,
        parts: DecoderParts,
        fed: str,
        size: int,
        layers: int,
        first_state: FirstStateKind,
        dropout: float,
        multi_step: bool,
    ) -> None:
        """`multi_step` puts an attention into every layer; other arguments as in `RecurrentDecoder`.

        Raises:
            SettingError: `multi_step` with only one layer.
            UserError: `multi_step` with attention that lets the readout choose among slots.
        """
        super().__init__(parts, fed, size, layers, first_state, dropout)
        below = range(layers - 1) if multi_step else ()
        self.multi_step = multi_step
        lower = nn.ModuleList(parts.attention(query_size=size, value_size=parts.sizes.value) for _ in below)
        upper = nn.ModuleList(ContextGates(parts.sizes.value, size) for _ in below)
        self.lower, self.upper = cast("Sequence[Attention]", lower), cast("Sequence[ContextGates]", upper)
        if not multi_step:
            return
        if layers == 1:
            rule = "needs a second layer. Give {key}.layers=2 or {key}.multi_step=false."
            raise SettingError("multi_step", "true", rule)
        if self.attention.read.enumerates:
            raise UserError(
                "attention.read.objective=enumerate lets the readout choose among the slots of one attention, and "
                "decoder.multi_step=true has several. Give attention.read.objective=sampled or "
                "decoder.multi_step=false."
            )
        self.heads = head_names(each.heads for each in (*self.lower, self.attention))

    def describe(self) -> str:
        return f"{', attention in every layer' if self.multi_step else ''}{super().describe()}"

    def products(self) -> Products:
        return super().products()._replace(upper=[product_type(gates.weight) for gates in self.upper])

    def check_parts(self) -> None:
        if self.attention.read.enumerates and isinstance(self.readout, FromState):
            raise UserError(
                "attention.read.objective=enumerate lets the readout choose among slots, which decoder/readout=state "
                "does not see. Give decoder/readout=maxout, tanh or context, or attention.read.objective=sampled."
            )

    def make_attention(self, attention: Callable[..., Attention], query_size: int, value_size: int) -> None:
        self.attention = attention(query_size=query_size, value_size=value_size)
        self.heads = tuple(str(head) for head in range(self.attention.heads))
        self.max_positions, self.searched_parts = self.attention.score.max_positions, self.attention.read.searched

    @property
    def attends_plainly(self) -> bool:
        """Whether there is one layer, and a fused recurrence can compute the attention.

        It can compute an additive score or a dot product without projections or coverage, a global window, a softmax
        and a soft read, without dropout of the weights.
        """
        attention = self.attention
        return (
            attention.out is None
            and attention.query is None
            and attention.score.form is not None
            and not attention.coverage
            and attention.window.is_everything
            and attention.normaliser.is_softmax
            and attention.read.is_sum
            and self.rnn.num_layers == 1
            and not (attention.training and attention.dropout.p > 0)
        )

    @property
    def has_fast_path(self) -> bool:
        """Whether a fused recurrence computes this attention."""
        return self.attends_plainly and is_fast()

    def is_fused(self, memory: RecurrentMemory) -> bool:
        """Whether a fused recurrence computes a whole target with this memory."""
        return self.has_fast_path and not memory.folded and memory.attention.pins is None

    def query(self) -> Query | None:
        """The parameters of an additive score; None for a product."""
        form = self.attention.score.form
        return Query(*form) if isinstance(form, AdditiveForm) else None

    def projected(self, memory: Memory, shares: Tensor) -> ProjectedMemory:
        """The memory for a fused recurrence; the scale of a product is multiplied into the keys."""
        form, keys = self.attention.score.form, memory.keys[:, 0]
        if isinstance(form, Product) and form.scale != 1:
            keys = keys * form.scale
        return ProjectedMemory(shares, keys, memory.mask)

    def recur(
        self,
        embedded: Tensor,
        first: Tensor,
        memory: RecurrentMemory,
        gru: tuple[Tensor, Tensor],
        inner: Inner | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Run the fused recurrence; return states [B, T, D], contexts [B, T, C] and weights [B, T, S].

        Takes the first state [B, D], and in `gru` weight and bias for the product of the states that attend.
        """
        slots, products = memory.attention, memory.products
        values = slots.values[:, 0]
        shares = self.shares(values, products)[0]
        assert shares is not None
        states, weights = attentive_gru.fast_attentive_gru(
            self.of_words(embedded, products)[0],
            first,
            self.projected(slots, shares),
            attentive_gru.Parameters(self.query(), *gru, inner),
        )
        return states, weights.to(values.dtype) @ values, weights

    @property
    def source_attentions(self) -> Sequence[Attention]:
        return (*self.lower, self.attention)

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[RecurrentMemory, RecurrentState]:
        products = self.products()
        memories = [
            each.remember(encoded.values, encoded.mask, encoded.keys, encoded.pins) for each in self.source_attentions
        ]
        # In float32: every step adds to the gradient of the keys, and bfloat16 would round each sum.
        memories = [memory._replace(keys=at_least_float32(memory.keys)) for memory in memories]
        states = (each.start(memory) for each, memory in zip(self.source_attentions, memories, strict=True))
        state = self.first(encoded, tuple(part for parts in states for part in parts))
        *lower, memory = memories
        # Not with projected values: the products multiply contexts after the output projection.
        folded = searching and self.attention.out is None and is_fast()
        if folded:
            shares = [share for share in self.shares(memory.values, products) if share is not None]
            memory = memory._replace(values=torch.cat(shares, -1))
        return RecurrentMemory(products, memory, folded, tuple(lower)), state

    def shares(self, contexts: Tensor, products: Products, folded: bool = False) -> tuple[Tensor | None, Tensor | None]:
        """The products of contexts [..., C] for gates and readout; `folded` contexts [..., R + U] are only split."""
        context_weight, readout = products.context, products.readout.context
        if folded:
            recurrent = 0 if context_weight is None else context_weight.shape[0]
            both = contexts.split([recurrent, contexts.shape[-1] - recurrent], -1)
            return both[0] if recurrent else None, both[1] if readout is not None else None
        gates = None if context_weight is None else linear(contexts, context_weight)
        return gates, None if readout is None else readout(contexts)

    def ask(
        self, layer: int, queries: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool
    ) -> Attended:
        """Attend in a layer with the queries [N, D] of one step, or [B, T, D] of whole targets.

        The result has axes [N, T], or [N, 1] at one step.
        """
        attentions, memories = (*self.lower, self.attention), (*memory.lower, memory.attention)
        each = len(state.attention) // len(attentions)
        attention_state = state.attention[layer * each : (layer + 1) * each]
        if queries.ndim == 2:
            queries = queries.unsqueeze(1)
        steps = state.steps.unsqueeze(1) + torch.arange(queries.shape[1], device=queries.device)
        attended: Attended = attentions[layer](queries, memories[layer], steps, attention_state, weights=weights)
        return attended

    def attend(
        self,
        queries: Tensor,
        state: RecurrentState,
        memory: RecurrentMemory,
        weights: bool,
        lower: Sequence[Attended] = (),
    ) -> Seen:
        """Attend in the top layer; the result also has the weights, terms and states of `lower`."""
        rows = queries.shape[:-1]
        attended = self.ask(len(self.lower), queries, state, memory, weights)
        gates, units = self.shares(attended.context.reshape(*rows, -1), memory.products, memory.folded)
        choices = attended.choices
        if choices is not None:
            by_slot = self.shares(choices.contexts, memory.products, memory.folded)[1]
            assert by_slot is not None
            choices = Choices(*(part.reshape(*rows, *part.shape[2:]) for part in (by_slot, choices.log_weights)))
        of_heads, terms = of_all_layers((*lower, attended))
        if of_heads is not None and queries.ndim == 2:
            of_heads = of_heads[:, :, 0]
        states = tuple(part for each in (*lower, attended) for part in each.state)
        return Seen(gates, units, of_heads, {name: term.reshape(rows) for name, term in terms.items()}, states, choices)

    def update_attending(
        self, gates: Tensor, state: RecurrentState, memory: RecurrentMemory, weights: bool
    ) -> tuple[Tensor, Tensor, list[Attended]]:
        """`update`, and the attention results of the layers below the top layer.

        With multi-step attention, each of these layers attends with its new state; the next layer reads the context.
        """
        lower: list[Attended] = []

        def context_of(layer: int, states: Tensor) -> Tensor:
            lower.append(self.ask(layer, states, state, memory, weights))
            return linear(lower[-1].context.reshape(*states.shape[:-1], -1), memory.products.upper[layer])

        top, hidden = self.update(gates, state.hidden, context_of if self.multi_step else None)
        return top, hidden, lower
