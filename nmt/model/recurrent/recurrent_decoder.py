"""Base class of recurrent decoders: a stack of GRU layers, a first state and a readout.

A wiring is a decoder that defines one `transition`. It works on gate inputs: the products of the word, the context and
the fed-back features for the gates of the first layer. The same transition serves search (one step of N hypotheses)
and training (one step or all steps of B targets). A context is a weighted sum of values, so W c_t = sum_j a_tj (W v_j):
search multiplies a sentence's values once (`RecurrentMemory.folded`), not the contexts of K hypotheses T times.

Shapes: N hypotheses or B targets at one step; the axes [...] are [N] at one step and [B, T] for a whole target. D is
the size of the state, L the number of layers, C the size of a context, U the number of the readout's units.
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
    """The state between two steps.

    hidden [N, L, D], feed [N, F or 0] (the fed-back features), steps [N], and the attention's state [N, ...].
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
    """The matrices of a decoder's products, split by input once per batch.

    word [3D, E] and fed [3D, I] multiply the inputs of the first layer. context [R, C], with R = 3D for the gates,
    multiplies contexts that go into the recurrence; None if none do. readout has the products of the readout. upper
    [3D, C] multiply contexts for the second and higher layers; empty without multi-step attention.
    """

    word: Tensor
    fed: Tensor
    context: Tensor | None
    readout: Parts
    upper: Sequence[Tensor] = ()


class Seen(NamedTuple):
    """The attention's result at a step, already multiplied for the recurrence and the readout.

    gates [..., R]: the context's product for the gate inputs; None if the context does not go into the recurrence.
    units [..., U]: the context's product for the readout's units; None if the readout does not see the context.
    weights [..., H, S] at one step, [B, H, T, S] for a whole target. state: the attention's next state.
    choices: slots from which the readout chooses, as units [..., J, U] and log-weights [..., J].
    """

    gates: Tensor | None
    units: Tensor | None
    weights: Tensor | None = None
    terms: Mapping[str, Tensor] = MappingProxyType({})
    state: AttentionState = ()
    choices: Choices | None = None


class PreparedMemory(Selectable, Protocol):
    """A memory of recurrent decoders, which contains the products of its batch."""

    @property
    def products(self) -> Products:
        """See `Products`."""
        ...


Asked = TypeVar("Asked", bound=PreparedMemory)


class RecurrentDecoder(Decoder[Asked, RecurrentState]):
    """A subclass, a wiring, chooses the input beside the previous word (`fed`) and defines `transition`."""

    #: The kind of first state in the wiring's paper.
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
        """`fed` is "context", "features" (the readout's features of the previous step) or "nothing"."""
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
        # A fresh model's features are about as small as embeddings, E^-1/2. Without this factor, the softmax starts
        # flat and learns several times slower (docs/results.md).
        self.logit_scale = self.features**0.5
        self.check_parts()

    def check_parts(self) -> None:
        """Raise UserError if the attention and the readout do not fit together."""

    def make_attention(self, attention: Callable[..., Attention], query_size: int, value_size: int) -> None:
        """Make the wiring's attention, if any. Called first: saved optimizers depend on the order of parameters."""

    @property
    def has_fast_path(self) -> bool:
        """Whether training computes a whole target faster than step by step."""
        return self.at_once

    @property
    def at_once(self) -> bool:
        """Whether one transition can compute all steps of a target: no step depends on the previous step's context."""
        return False

    def describe(self) -> str:
        kind = "last, backward" if self.first_state.kind == "backward" else self.first_state.kind
        first = kind if kind == "zero" else f"the encoder's {kind}"
        return f"; first decoder state: {first}; {'fast training' if self.has_fast_path else 'training step by step'}"

    def context_weight(self, fed: Tensor) -> Tensor | None:
        """The matrix of `Products.context`; `fed` is the matrix of the first layer's input beside the word."""
        return fed

    def products(self) -> Products:
        """The products for one batch."""
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
        """One step of the wiring, without the readout.

        Takes the word's product for the gates [..., 3D]. Returns the state [..., D] that the readout sees, the new
        hidden state [N, L, D], and the attention's result, which includes weights only if requested.
        """
        raise TypeError(f"{type(self).__name__} does not define how it is wired")

    def update(
        self, gates: Tensor, hidden: Tensor, more: Callable[[int, Tensor], Tensor] | None = None
    ) -> tuple[Tensor, Tensor]:
        """Run the recurrent layers from the first layer's gate inputs [..., 3D] and hidden [N, L, D].

        `more` returns additional gate inputs for a layer above the first, from the number and the new states [..., D]
        of the layer below. Returns the top layer's states [..., D] and the new hidden state.
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
        """The products of words [..., E] for the gates [..., 3D] and for the readout's units [..., U]."""
        gates = linear(embedded, products.word, layer_parameters(self.rnn)[2])
        # Products are summed in float32, under autocast too.
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
        """A transition and its readout, from the words' products for gates [..., 3D] and readout units [..., U]."""
        top, hidden, seen = self.transition(gates, state, memory, weights)
        decoded = self.read_out(top, units, seen, memory.products.readout)
        feed = decoded.features if self.feed_size else state.feed
        return decoded, RecurrentState(hidden, feed, state.steps + 1, seen.state)

    def read_out(self, top: Tensor, units: Tensor | None, seen: Seen, parts: Parts) -> Decoded:
        """Apply the readout to states [..., D], the words' products [..., U] and the attention's result."""
        base = _sum(units, None if parts.state is None else parts.state(top), parts.bias)
        mixture = None
        if seen.choices is not None:
            by_slot = _sum(None if base is None else base.unsqueeze(-2), seen.choices.contexts)
            mixture = Mixture(self.readout.activate(by_slot), seen.choices.log_weights)
        return Decoded(self.readout.activate(_sum(base, seen.units)), seen.weights, seen.terms, mixture)


def _sum(*parts: Tensor | None) -> Any:
    """The sum of the parts that are not None; None if there are none."""
    given = [part for part in parts if part is not None]
    return functools.reduce(torch.add, given) if given else None


def layer_parameters(rnn: nn.GRU, layer: int = 0) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """weight_ih, weight_hh, bias_ih and bias_hh of a layer."""
    weight_ih, weight_hh, bias_ih, bias_hh = (getattr(rnn, f"{name}_l{layer}") for name in GRU_PARAMETERS)
    return weight_ih, weight_hh, bias_ih, bias_hh
