"""The Transformer's decoder: whole targets at once in training; in search, one word with cached keys and values."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.attention import AttentionState, Memory
from nmt.attention.windows import Causal
from nmt.model.contract import Asks, Decoded, DecoderParts, Encoded, head_names
from nmt.model.layered import LayeredDecoder, LayeredMemory, of_all_layers
from nmt.model.transformer.transformer_layer import DecoderLayer, Entrance, Norm
from nmt.system.limits import Fraction, Layers, Positive


class Cache(NamedTuple):
    """The state of N hypotheses between two steps: steps [N] and, for each layer, `past` and `attention`.

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


class TransformerDecoder(LayeredDecoder[Cache]):
    """Layers of masked self-attention, attention to the source and feed-forward networks.

    Vaswani et al. 2017, section 3.1. A target word never sees the words after it.
    """

    asks = Asks("x_t", "the word's vector in this layer, after self-attention over the words so far", 1)
    drops_features = True  # on embeddings and sublayers' outputs; more dropout makes training much slower

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 3,
        feed_forward_size: Positive | None = None,
        branches: bool = False,
        norm: Norm = "pre",
        dropout: Fraction = 0.0,
    ) -> None:
        """Settings as in the encoder.

        Raises:
            UserError: the attention would need a readout.
        """
        super().__init__()
        self.entrance = Entrance(parts.positions, parts.sizes.embedding, size)
        windows = self.entrance.positions.windows()
        stack = nn.ModuleList(
            DecoderLayer(
                parts.self_attention(size, size, context_size=size, is_self_attention=True, also=(Causal, *windows)),
                parts.attention(size, parts.sizes.value, context_size=size),
                *(size, feed_forward_size, branches, norm, dropout),
            )
            for _ in range(layers)
        )
        self.layers = cast("Sequence[DecoderLayer]", stack)
        self.norm = nn.LayerNorm(size) if norm == "pre" else nn.Identity()
        self.take([layer.attention for layer in self.layers], "transformer")
        self.features, self.value_size = size, parts.sizes.value
        self.learned_positions = self.entrance.positions.learned_positions
        self.self_heads = head_names(layer.self_attention.heads for layer in self.layers)
        # Self-attention in higher layers carries a step's context into later steps.
        self.carries_contexts = layers > 1
        self.kind = f"{layers} layers, norm {norm}"

    def describe(self) -> str:
        return f", {self.kind}, {self.way}"

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[LayeredMemory, Cache]:
        scale = self.value_size**0.5  # as `Entrance` does with embeddings
        keys = None if encoded.keys is None else encoded.keys * scale
        memory, states = self.remember(encoded._replace(values=encoded.values * scale, keys=keys))
        mask, nothing = encoded.mask, encoded.values.new_zeros(len(encoded.mask), 0, self.features)
        past = tuple(layer.self_attention.remember(nothing, mask[:, :0]) for layer in self.layers)
        return memory, Cache(torch.zeros(len(mask), dtype=torch.int64, device=mask.device), past, states)

    def with_room(self, state: Cache, steps: int) -> Cache:
        return state._replace(past=tuple(words.with_room(steps) for words in state.past))

    def run(self, embedded: Tensor, state: Cache, memory: LayeredMemory, weights: bool) -> tuple[Decoded, Cache]:
        count = embedded.shape[1]
        steps = state.steps.unsqueeze(1) + torch.arange(count, device=embedded.device)
        mask = torch.ones_like(steps, dtype=torch.bool)
        x = self.entrance(embedded, steps)
        past, seen = [], []
        for layer, words, source, before in zip(self.layers, state.past, memory.layers, state.attention, strict=True):
            x, words = layer.attend_to_self(x, mask, steps, words)
            x, attended = layer.attend_to_source(x, source, steps, before, weights)
            x = layer.transform(x)
            past.append(words)
            seen.append(attended)
        of_source, terms = of_all_layers(seen)
        return Decoded(self.norm(x), of_source, terms), Cache(
            state.steps + count, tuple(past), tuple(attended.state for attended in seen)
        )
