"""The recurrent decoder: what every wiring shares, a stack of GRU layers, a first state and a readout.

A wiring is one `transition`, written over gate inputs: what the word, the context and the features fed back add to the
gates of the first layer. The same transition serves search, one step of N hypotheses, and training, a step of B targets
or all their steps at once. A context is a weighted sum of values, so W c_t = sum_j a_tj (W v_j): search multiplies the
values of a sentence once (`RecurrentMemory.folded`), where it would multiply the contexts of K hypotheses T times.

Shapes: N hypotheses or B targets at one step; the axes [...] are [N] at one step and [B, T] for a whole target. D is
the size of the state, L counts layers, C is the size of a context, U that of the readout's units.
"""

import functools
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple, Protocol, TypeVar

import torch
from torch import Tensor, nn

from nmt.attention import Attention, AttentionState, Choices
from nmt.kernels.dropout import dropout
from nmt.kernels.gru import GRU_PARAMETERS, gru
from nmt.model.contract import Decoded, Decoder, DecoderParts, Encoded, Mixture, Selectable, Words, stack_steps
from nmt.model.recurrent.first_state import FirstState, FirstStateKind
from nmt.model.recurrent.readouts import Parts, Readout, product_type

linear = nn.functional.linear


class RecurrentState(NamedTuple):
    """What a step hands to the next.

    hidden [N, L, D], feed [N, F or 0] (the features that are fed back), steps [N], the attention's [N, ...].
    """

    hidden: Tensor
    feed: Tensor
    steps: Tensor
    attention: AttentionState

    def select(self, rows: Tensor) -> "RecurrentState":
        """The rows `rows` [N'], in that order, repeats allowed."""
        hidden, feed, steps = (part.index_select(0, rows) for part in (self.hidden, self.feed, self.steps))
        return RecurrentState(hidden, feed, steps, tuple(part.index_select(0, rows) for part in self.attention))


class Products(NamedTuple):
    """What is linear in a decoder, its matrices taken apart once a batch.

    word [3D, E] and fed [3D, I] act on the inputs of the first layer, context [R, C] on a context on its way into the
    recurrence (R is 3D for its gates; None if it takes none), readout on the inputs of the readout. upper [3D, C] act
    on the contexts that go into the second layer and those above it; none do without multi-step attention.
    """

    word: Tensor
    fed: Tensor
    context: Tensor | None
    readout: Parts
    upper: Sequence[Tensor] = ()


class Seen(NamedTuple):
    """What a step took from the source, multiplied already.

    gates [..., R]: what the context adds to gate inputs; None where it does not go into the recurrence.
    units [..., U]: what it adds to the units of the readout; None where the readout does not see it.
    weights [..., H, S] at one step, [B, H, T, S] for a whole target. state: the attention's next one.
    choices: slots among which the readout is left to choose, as units [..., J, U] and log-weights [..., J].
    """

    gates: Tensor | None
    units: Tensor | None
    weights: Tensor | None = None
    terms: Mapping[str, Tensor] = MappingProxyType({})
    state: AttentionState = ()
    choices: Choices | None = None


class PreparedMemory(Selectable, Protocol):
    """A memory of the family: it carries the products of its batch."""

    @property
    def products(self) -> Products:
        """See `Products`."""
        ...


Asked = TypeVar("Asked", bound=PreparedMemory)


class RecurrentDecoder(Decoder[Asked, RecurrentState]):
    """A wiring says what the recurrence takes in beside the previous word (`fed`), and defines `transition`."""

    #: The first state that the paper of the wiring has.
    PAPER_FIRST_STATE: FirstStateKind = "last"

    def __init__(
        self,
        parts: DecoderParts,
        fed: str,
        size: int,
        layers: int,
        first_state: FirstStateKind,
        dropout: float,
        sees_context: bool = True,
    ) -> None:
        """`fed` is "context", "features" (of the readout, from the step before) or "nothing"."""
        super().__init__()
        sizes = parts.sizes
        self.make_attention(parts.attention, size, sizes.value)
        self.context_size = sizes.value if sees_context else 0
        self.readout: Readout = parts.readout(
            state_size=size, embedding_size=sizes.embedding, context_size=self.context_size
        )
        self.first_state = FirstState(first_state, self.PAPER_FIRST_STATE, sizes, layers, size)
        self.feed_size = self.readout.size if fed == "features" else 0
        self.input_sizes = [sizes.embedding, self.context_size if fed == "context" else self.feed_size]
        self.rnn = nn.GRU(sum(self.input_sizes), size, layers, batch_first=True, dropout=dropout if layers > 1 else 0.0)
        self.features = self.readout.size
        # A fresh model's features are about as small as the embeddings they come from, E^-1/2. Without this factor the
        # softmax starts flat and learns several times slower (docs/results.md).
        self.logit_scale = self.features**0.5
        self.check_parts()

    def check_parts(self) -> None:
        """Raise UserError if the attention and the readout do not fit together."""

    def make_attention(self, attention: Callable[..., Attention], query_size: int, value_size: int) -> None:
        """Make the attention of a wiring that has one: first, as optimizers know parameters by their order."""

    @property
    def has_fast_path(self) -> bool:
        """Whether training computes a whole target other than step by step."""
        return self.at_once

    @property
    def at_once(self) -> bool:
        """Whether one transition may take all steps of a target, because none depends on what the one before read."""
        return False

    def describe(self) -> str:
        kind = "last, backward" if self.first_state.kind == "backward" else self.first_state.kind
        first = kind if kind == "zero" else f"the encoder's {kind}"
        return f"; first decoder state: {first}; {'fast training' if self.has_fast_path else 'training step by step'}"

    def context_weight(self, fed: Tensor) -> Tensor | None:
        """The matrix of `Products.context`; `fed` is that of what the first layer takes in beside the word."""
        return fed

    def products(self) -> Products:
        """The products, for one batch."""
        word, fed = product_type(layer_parameters(self.rnn)[0]).split(self.input_sizes, 1)
        return Products(word, fed, self.context_weight(fed), self.readout.parts())

    def first(self, encoded: Encoded, attention: AttentionState = ()) -> RecurrentState:
        """The state before the first step."""
        batch, device = encoded.mask.shape[0], encoded.mask.device
        return RecurrentState(
            self.first_state(encoded),
            encoded.values.new_zeros(batch, self.feed_size),
            torch.zeros(batch, dtype=torch.int64, device=device),
            attention,
        )

    def transition(
        self, gates: Tensor, state: RecurrentState, memory: Asked, weights: bool
    ) -> tuple[Tensor, Tensor, Seen]:
        """The wiring: one step up to, not including, the readout.

        Takes what the word adds to the gates [..., 3D]. Returns the state that the readout sees [..., D], the new
        hidden state [N, L, D], and what was seen of the source, with its weights only if asked for.
        """
        raise TypeError(f"{type(self).__name__} does not define how it is wired")

    def update(
        self, gates: Tensor, hidden: Tensor, more: Callable[[int, Tensor], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """The recurrent layers from the gate inputs of the first [..., 3D] and hidden [N, L, D].

        `more` says what else goes into the gates of a layer above the first, from the number of the layer below it and
        the new states of that [..., D]. Returns the states of the top layer [..., D] and the new hidden state.
        """
        lasts: list[Tensor] = []
        states = gates
        for layer, first in enumerate(hidden.unbind(1)):
            weight_ih, weight_hh, bias_ih, bias_hh = layer_parameters(self.rnn, layer)
            if layer:
                below = states
                states = linear(dropout(below, self.rnn.dropout, self.training), weight_ih, bias_ih)
                if more is not None:
                    states = states + more(layer - 1, below)
            states = gru(states, first, weight_hh, bias_hh)
            lasts.append(states if states.ndim == 2 else states[:, -1])
        return states, torch.stack(lasts, 1)

    def of_words(self, embedded: Tensor, products: Products) -> tuple[Tensor, Tensor | None]:
        """What words [..., E] add to the gates [..., 3D] and to the readout's units [..., U]."""
        gates = linear(embedded, products.word, layer_parameters(self.rnn)[2])
        # Sums of products are in float32 under autocast too.
        gates = gates.to(torch.promote_types(gates.dtype, torch.float32))
        return gates, None if products.readout.word is None else products.readout.word(embedded)

    def step(
        self, words: Words, state: RecurrentState, memory: Asked, *, weights: bool = True
    ) -> tuple[Decoded, RecurrentState]:
        gates, units = self.of_words(words.embedded, memory.products)
        units = None if units is None else words.spread(units)
        return self.advance(words.spread(gates), units, state, memory, weights)

    def forward(self, embedded: Tensor, state: RecurrentState, memory: Asked, *, weights: bool = True) -> Decoded:
        gates, units = self.of_words(embedded, memory.products)
        if self.at_once:
            return self.advance(gates, units, state, memory, weights)[0]
        steps = []
        units_of_steps = [None] * gates.shape[1] if units is None else units.unbind(1)
        for gates_now, units_now in zip(gates.unbind(1), units_of_steps, strict=True):
            decoded, state = self.advance(gates_now, units_now, state, memory, weights)
            steps.append(decoded)
        return stack_steps(steps)

    def advance(
        self, gates: Tensor, units: Tensor | None, state: RecurrentState, memory: Asked, weights: bool
    ) -> tuple[Decoded, RecurrentState]:
        """A transition and its readout, from what words add to the gates [..., 3D] and to the units [..., U]."""
        top, hidden, seen = self.transition(gates, state, memory, weights)
        decoded = self.read_out(top, units, seen, memory.products.readout)
        feed = decoded.features if self.feed_size else state.feed
        return decoded, RecurrentState(hidden, feed, state.steps + 1, seen.state)

    def read_out(self, top: Tensor, units: Tensor | None, seen: Seen, parts: Parts) -> Decoded:
        """The readout of states [..., D], of what words add to its units [..., U], and of what was seen."""
        base = _sum(units, None if parts.state is None else parts.state(top), parts.bias)
        mixture = None
        if seen.choices is not None:
            by_slot = _sum(None if base is None else base.unsqueeze(-2), seen.choices.contexts)
            mixture = Mixture(self.readout.activate(by_slot), seen.choices.log_weights)
        return Decoded(self.readout.activate(_sum(base, seen.units)), seen.weights, seen.terms, mixture)


def _sum(*parts: Tensor | None) -> Any:
    """The sum of what is there, None if nothing is."""
    given = [part for part in parts if part is not None]
    return functools.reduce(torch.add, given) if given else None


def layer_parameters(rnn: nn.GRU, layer: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """weight_ih, weight_hh, bias_ih and bias_hh of a layer."""
    weight_ih, weight_hh, bias_ih, bias_hh = (getattr(rnn, f"{name}_l{layer}") for name in GRU_PARAMETERS)
    return weight_ih, weight_hh, bias_ih, bias_hh
