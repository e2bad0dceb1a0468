"""The Transformer's decoder: a whole target at once in training, one word against cached keys and values in search."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.attention import Attention, AttentionState, Memory
from nmt.errors import UserError
from nmt.limits import Fraction, Positive
from nmt.model.contract import Decoded, Decoder, DecoderParts, Encoded, Slots, Words, head_names, stack_steps
from nmt.model.transformer.layer import DecoderLayer, Entrance, Norm


class SourceMemory(NamedTuple):
    """The memory of B sentences, layer by layer."""

    layers: tuple[Memory, ...]

    def select(self, rows: Tensor) -> "SourceMemory":
        """The sentences `rows` [B'] of the batch."""
        return SourceMemory(tuple(memory.select(rows) for memory in self.layers))


class Cache(NamedTuple):
    """What N hypotheses hand to their next step: steps [N] and, layer by layer, what is kept of their words.

    past: keys and values of self-attention, [N, H, t, ...]. attention: the state of the attention to the source.
    """

    steps: Tensor
    past: tuple[Memory, ...]
    attention: tuple[AttentionState, ...]

    def select(self, rows: Tensor) -> "Cache":
        """The rows `rows` [N'], in that order, repeats allowed."""
        states = (tuple(part.index_select(0, rows) for part in state) for state in self.attention)
        return Cache(
            self.steps.index_select(0, rows), tuple(memory.select(rows) for memory in self.past), tuple(states)
        )


class TransformerDecoder(Decoder[SourceMemory, Cache]):
    """Layers of masked self-attention, attention to the source and feed-forward networks.

    Vaswani et al. 2017, section 3.1. A target word never sees the words after it.
    """

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Positive = 3,
        feed_forward_size: Positive | None = None,
        branches: bool = False,
        norm: Norm = "pre",
        dropout: Fraction = 0.0,
        fast: bool = True,
    ) -> None:
        """Settings are those of the encoder.

        Raises:
            UserError: the attention would need a readout.
        """
        super().__init__()
        self.entrance = Entrance(parts.positions, parts.sizes.embedding, size)
        windows = self.entrance.positions.windows()
        stack = nn.ModuleList(
            DecoderLayer(
                parts.self_attention(size, size, context_size=size, memorised="past", also=windows),
                parts.attention(size, parts.sizes.value, context_size=size),
                *(size, feed_forward_size, branches, norm, dropout, fast),
            )
            for _ in range(layers)
        )
        self.layers = cast("Sequence[DecoderLayer]", stack)
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        towards = self.towards_source
        if towards[0].read.enumerates:
            raise UserError(
                "attention.read.objective=enumerate lets a readout choose among slots, and decoder=transformer has no "
                "readout. Give attention.read.objective=sampled, or another decoder."
            )
        self.features, self.max_positions = size, towards[0].max_positions
        self.learned_positions = self.entrance.positions.learned_positions
        self.heads = head_names(each.heads for each in towards)
        self.self_heads = head_names(layer.self_attention.heads for layer in self.layers)
        # What a step reads goes through the self-attention of the layers above into later steps.
        self.carries_contexts = layers > 1
        self.kind = f"{layers} layers, norm {norm}"

    @property
    def towards_source(self) -> list[Attention]:
        """The attention to the source of each layer."""
        return [layer.attention for layer in self.layers]

    def describe(self) -> str:
        way = "step by step" if self.towards_source[0].coverage else "all steps at once"
        return f", {self.kind}, training {way}"

    def pin(self, slots: Slots, device: torch.device) -> None:
        for attention in self.towards_source:
            attention.pin(slots, device)

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[SourceMemory, Cache]:
        values, mask = encoded.values, encoded.mask
        towards = self.towards_source
        memories = [attention.remember(values, mask, encoded.keys) for attention in towards]
        states = (attention.start(memory) for attention, memory in zip(towards, memories, strict=True))
        nothing = values.new_zeros(len(mask), 0, self.features)
        return SourceMemory(tuple(memories)), Cache(
            torch.zeros(len(mask), dtype=torch.int64, device=mask.device),
            tuple(layer.self_attention.remember(nothing, mask[:, :0]) for layer in self.layers),
            tuple(tuple(part.flatten(0, 1) for part in state) for state in states),
        )

    def step(self, words: Words, state: Cache, memory: SourceMemory, *, weights: bool = True) -> tuple[Decoded, Cache]:
        return self._step(words.spread(words.embedded), state, memory, weights)

    def _step(
        self, words: Tensor, state: Cache, memory: SourceMemory, weights: bool, looking: bool = False
    ) -> tuple[Decoded, Cache]:
        """The next word of N hypotheses, [N, E]."""
        decoded, state = self._run(words.unsqueeze(1), state, memory, weights, looking)
        seen, seen_of_self = (
            None if each is None else each[:, :, 0] for each in (decoded.weights, decoded.self_weights)
        )
        terms = {name: term[:, 0] for name, term in decoded.terms.items()}
        return Decoded(decoded.features[:, 0], seen, terms, self_weights=seen_of_self), state

    def forward(self, embedded: Tensor, state: Cache, memory: SourceMemory, *, weights: bool = True) -> Decoded:
        return self._whole(embedded, state, memory, weights, looking=False)

    def look(self, embedded: Tensor, state: Cache, memory: SourceMemory) -> Decoded:
        return self._whole(embedded, state, memory, weights=True, looking=True)

    def _whole(self, embedded: Tensor, state: Cache, memory: SourceMemory, weights: bool, looking: bool) -> Decoded:
        if not self.towards_source[0].coverage:
            return self._run(embedded, state, memory, weights, looking)[0]
        steps = []
        for word in embedded.unbind(1):  # a step depends on the weights of those before it
            decoded, state = self._step(word, state, memory, weights, looking)
            steps.append(decoded)
        return stack_steps(steps)

    def _run(
        self, embedded: Tensor, state: Cache, memory: SourceMemory, weights: bool, looking: bool
    ) -> tuple[Decoded, Cache]:
        """The next words of N hypotheses, embedded [N, T, E]: one of each, or all of one hypothesis a sentence."""
        rows, count = embedded.shape[:2]
        steps = state.steps.unsqueeze(1) + torch.arange(count, device=embedded.device)
        mask = torch.ones_like(steps, dtype=torch.bool)
        x = self.entrance(embedded, steps)
        past, states, seen, seen_of_self = [], [], [], []
        terms: dict[str, Tensor] = {}
        for layer, words, source, before in zip(self.layers, state.past, memory.layers, state.attention, strict=True):
            x, words, own = layer.attend_to_self(x, mask, steps, words, looking=looking)
            x, attended = layer.attend_to_source(x, source, steps, before, weights)
            x = layer.transform(x)
            past.append(words)
            states.append(tuple(part.flatten(0, 1) for part in attended.state))
            if own is not None:
                seen_of_self.append(own)
            if attended.weights is not None:  # [B, H, K * T, S] -> [N, H, T, S]
                seen.append(attended.weights.unflatten(2, (-1, count)).transpose(1, 2).flatten(0, 1))
            for name, term in attended.terms.items():
                terms[name] = terms.get(name, 0) + term.reshape(rows, count)
        of_source, of_self = (torch.cat(each, 1) if each else None for each in (seen, seen_of_self))
        decoded = Decoded(self.norm(x), of_source, terms, self_weights=of_self)
        return decoded, Cache(state.steps + count, tuple(past), tuple(states))
