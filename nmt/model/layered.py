"""What decoders share that attend to the source in every layer, whatever else their layers do."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from nmt.attention import Attended, Attention, AttentionState, Memory
from nmt.model.contract import Decoded, Decoder, Encoded, Selectable, Words, head_names, stack_steps
from nmt.system.errors import UserError


class LayeredMemory(NamedTuple):
    """The memory of B sentences, layer by layer."""

    layers: tuple[Memory, ...]

    def select(self, rows: Tensor) -> "LayeredMemory":
        """The sentences `rows` [B'] of the batch."""
        return LayeredMemory(tuple(memory.select(rows) for memory in self.layers))


def of_all_layers(attended: Sequence[Attended]) -> tuple[Tensor | None, dict[str, Tensor]]:
    """The weights [N, H, T, S] of the heads of all layers, None where nobody asked; each term's sum [N, T]."""
    weights = [of_layer.weights for of_layer in attended if of_layer.weights is not None]
    terms: dict[str, Tensor] = {}
    for of_layer in attended:
        for name, term in of_layer.terms.items():
            terms[name] = terms.get(name, 0) + term
    return torch.cat(weights, 1) if weights else None, terms


State = TypeVar("State", bound=Selectable)


class LayeredDecoder(Decoder[LayeredMemory, State]):
    """A decoder of layers that each have an attention to the source. A family defines `run`."""

    attentions: Sequence[Attention]

    def take(self, attentions: Sequence[Attention], choice: str) -> None:
        """Take the attention of each layer; `choice` is the decoder's in the configuration.

        Raises:
            UserError: the attention would need a readout.
        """
        if attentions[0].read.enumerates:
            raise UserError(
                f"attention.read.objective=enumerate lets a readout choose among slots, and decoder={choice} has no "
                "readout. Give attention.read.objective=sampled, or another decoder."
            )
        self.attentions, self.max_positions = attentions, attentions[0].max_positions
        self.heads = head_names(each.heads for each in attentions)

    @property
    def source_attentions(self) -> Sequence[Attention]:
        return self.attentions

    @property
    def way(self) -> str:
        """How training goes, for `describe`."""
        return f"training {'step by step' if self.attentions[0].coverage else 'all steps at once'}"

    def remember(self, encoded: Encoded) -> tuple[LayeredMemory, tuple[AttentionState, ...]]:
        """The memory of each layer's attention, and its state before the first step."""
        memories = tuple(
            each.remember(encoded.values, encoded.mask, encoded.keys, encoded.pins) for each in self.attentions
        )
        states = (each.start(memory) for each, memory in zip(self.attentions, memories, strict=True))
        return LayeredMemory(memories), tuple(states)

    def step(self, words: Words, state: State, memory: LayeredMemory, *, weights: bool = True) -> tuple[Decoded, State]:
        return self._next(words.spread(words.embedded), state, memory, weights=weights, looking=False)

    def forward(self, embedded: Tensor, state: State, memory: LayeredMemory, *, weights: bool = True) -> Decoded:
        return self._whole(embedded, state, memory, weights=weights, looking=False)

    def look(self, embedded: Tensor, state: State, memory: LayeredMemory) -> Decoded:
        return self._whole(embedded, state, memory, weights=True, looking=True)

    def _next(
        self, words: Tensor, state: State, memory: LayeredMemory, *, weights: bool, looking: bool
    ) -> tuple[Decoded, State]:
        """The next word of N hypotheses, [N, E]."""
        decoded, state = self.run(words.unsqueeze(1), state, memory, weights=weights, looking=looking)
        seen, own = (None if each is None else each[:, :, 0] for each in (decoded.weights, decoded.self_weights))
        terms = {name: term[:, 0] for name, term in decoded.terms.items()}
        return Decoded(decoded.features[:, 0], seen, terms, self_weights=own), state

    def _whole(self, embedded: Tensor, state: State, memory: LayeredMemory, *, weights: bool, looking: bool) -> Decoded:
        if not self.attentions[0].coverage:
            return self.run(embedded, state, memory, weights=weights, looking=looking)[0]
        steps = []
        for word in embedded.unbind(1):  # a step depends on the weights of those before it
            decoded, state = self._next(word, state, memory, weights=weights, looking=looking)
            steps.append(decoded)
        return stack_steps(steps)

    def run(
        self, embedded: Tensor, state: State, memory: LayeredMemory, *, weights: bool, looking: bool
    ) -> tuple[Decoded, State]:
        """The next words of N hypotheses, embedded [N, T, E]: one of each, or all of one hypothesis a sentence.

        With `looking` the weights of self-attention are returned as well.
        """
        raise TypeError(f"{type(self).__name__} does not define what its layers do")
