"""Base class of decoders that attend to the source in every layer."""

from collections.abc import Sequence
from typing import NamedTuple, TypeVar

import torch
from torch import Tensor

from nmt.attention import Attended, Attention, AttentionState, Memory
from nmt.model.contract import Decoded, Decoder, Encoded, Selectable, Words, head_names
from nmt.system.errors import UserError


class LayeredMemory(NamedTuple):
    """The memories of B sentences, one for each layer."""

    layers: tuple[Memory, ...]

    def select(self, rows: Tensor) -> "LayeredMemory":
        """The sentences `rows` [B'] of the batch."""
        return LayeredMemory(tuple(memory.select(rows) for memory in self.layers))


def all_heads(layers: Sequence[Attended]) -> Tensor | None:
    """The weights [N, H, T, S] of the heads of all layers, None if not requested."""
    weights = [attended.weights for attended in layers if attended.weights is not None]
    return torch.cat(weights, 1) if weights else None


def of_all_layers(attended: Sequence[Attended]) -> tuple[Tensor | None, dict[str, Tensor]]:
    """The weights [N, H, T, S] of all layers' heads, None if not requested; each term's sum [N, T] over layers."""
    terms: dict[str, Tensor] = {}
    for of_layer in attended:
        for name, term in of_layer.terms.items():
            terms[name] = terms.get(name, 0) + term
    return all_heads(attended), terms


State = TypeVar("State", bound=Selectable)


class LayeredDecoder(Decoder[LayeredMemory, State]):
    """A decoder whose layers each have an attention to the source. Subclasses define `run`."""

    attentions: Sequence[Attention]

    def take(self, attentions: Sequence[Attention], choice: str) -> None:
        """Register the attention of each layer; `choice` is the decoder's name in the configuration.

        Raises:
            UserError: the attention would need a readout.
        """
        if attentions[0].read.enumerates:
            raise UserError(
                f"attention.read.objective=enumerate lets a readout choose among slots, and decoder={choice} has no "
                "readout. Give attention.read.objective=sampled, or another decoder."
            )
        self.attentions, self.max_positions = attentions, attentions[0].score.max_positions
        self.heads = head_names(each.heads for each in attentions)

    @property
    def source_attentions(self) -> Sequence[Attention]:
        return self.attentions

    @property
    def way(self) -> str:
        """How targets are trained, for `describe`."""
        return f"training {'step by step' if self.attentions[0].coverage else 'all steps at once'}"

    def remember(self, encoded: Encoded) -> tuple[LayeredMemory, tuple[AttentionState, ...]]:
        """The memory of each layer's attention, and each attention's state before the first step."""
        memories = tuple(
            each.remember(encoded.values, encoded.mask, encoded.keys, encoded.pins) for each in self.attentions
        )
        states = (each.start(memory) for each, memory in zip(self.attentions, memories, strict=True))
        return LayeredMemory(memories), tuple(states)

    def step(self, words: Words, state: State, memory: LayeredMemory, *, weights: bool = True) -> tuple[Decoded, State]:
        decoded, state = self.run(words.spread(words.embedded).unsqueeze(1), state, memory, weights)
        seen = None if decoded.weights is None else decoded.weights[:, :, 0]
        terms = {name: term[:, 0] for name, term in decoded.terms.items()}
        return Decoded(decoded.features[:, 0], seen, terms), state

    def forward(self, embedded: Tensor, state: State, memory: LayeredMemory, *, weights: bool = True) -> Decoded:
        if self.attentions[0].coverage:  # a step depends on the weights of earlier steps
            return super().forward(embedded, state, memory, weights=weights)
        return self.run(embedded, state, memory, weights)[0]

    def run(self, embedded: Tensor, state: State, memory: LayeredMemory, weights: bool) -> tuple[Decoded, State]:
        """Run embedded words [N, T, E]: one word of each hypothesis, or all words of one hypothesis per sentence."""
        raise TypeError(f"{type(self).__name__} does not define what its layers do")
