"""The convolutional decoder: whole targets at once in training; in search, each layer keeps its last k - 1 inputs."""

from collections.abc import Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from nmt.attention import Attended, Attention, AttentionState, Memory
from nmt.kernels.dot_tanh import at_least_float32
from nmt.model.contract import Asks, Decoded, DecoderParts, Encoded
from nmt.model.convolutional.convolutional_layer import (
    HALF_VARIANCE,
    GatedConvolution,
    NormalLinear,
    PositionedEntrance,
    normalise_weights,
)
from nmt.model.layered import LayeredDecoder, LayeredMemory, of_all_layers
from nmt.system.limits import Fraction, Layers, Positive


class ConvolutionState(NamedTuple):
    """The state of N hypotheses between two steps.

    steps [N], inputs [N, L, k - 1, D] (the last inputs of each of L layers), the state of each layer's attention.
    """

    steps: Tensor
    inputs: Tensor
    attention: tuple[AttentionState, ...]

    def select(self, rows: Tensor) -> "ConvolutionState":
        """The rows `rows` [N'], in that order, repeats allowed."""
        states = tuple(tuple(part.index_select(0, rows) for part in state) for state in self.attention)
        return ConvolutionState(self.steps.index_select(0, rows), self.inputs.index_select(0, rows), states)


class AttentiveConvolution(GatedConvolution):
    """A gated convolution, then attention to the source with the query d_i = W_d h_i + b_d + g_i.

    g_i is the embedding of the previous word, with its position. The context c_i = sum_j a_ij (z_j + e_j), times S
    (1/S)^1/2 for S source words, is added to h_i. This sum is scaled like the sum around a convolution. Gehring et al.
    2017, section 3.3, eq. 1 and 2, and section 3.4.
    """

    def __init__(self, attention: Attention, size: int, query_size: int, kernel_size: int, dropout: float) -> None:
        """`query_size` is the size of g."""
        super().__init__(size, kernel_size, dropout)
        self.query = NormalLinear(size, query_size)
        self.attention = attention

    def attend(
        self, x: Tensor, words: Tensor, memory: Memory, steps: Tensor, state: AttentionState, weights: bool
    ) -> tuple[Tensor, Attended]:
        """Add the context to x [N, T, D], for words g [N, T, E] at steps [N, T]; other arguments as in `Attention`."""
        attended = self.attention(self.query(x) + words, memory, steps, state, weights=weights)
        lengths = memory.mask.sum(-1).to(x.dtype).repeat_interleave(len(x) // len(memory.mask))[:, None, None]
        return (x + lengths.sqrt() * attended.context) * HALF_VARIANCE, attended


class ConvolutionalDecoder(LayeredDecoder[ConvolutionState]):
    """Layers of gated convolutions over the words so far, with attention to the source in each.

    Gehring et al. 2017, section 3. A target word never sees the words after it.
    """

    asks = Asks("d_t", "W_d h_t + b_d + g_t: the layer's convolution over the words so far, and the word before", 1)

    def __init__(
        self,
        parts: DecoderParts,
        *,
        size: Positive,
        layers: Layers = 3,
        kernel_size: Positive = 3,
        dropout: Fraction = 0.0,
        weight_norm: bool = False,
    ) -> None:
        """Settings as in the encoder; `kernel_size` counts a word and the words before it.

        A linear layer maps slots to the embedding size if they differ, like the last layer of the paper's encoder.

        Raises:
            UserError: the attention would need a readout, or the positions are for self-attention.
        """
        super().__init__()
        embedding_size, value_size = parts.sizes.embedding, parts.sizes.value
        self.entrance = PositionedEntrance(parts.positions, embedding_size, size, keep=1 - dropout)
        self.bridge = NormalLinear(value_size, embedding_size) if value_size != embedding_size else None
        stack = nn.ModuleList(
            AttentiveConvolution(
                parts.attention(embedding_size, embedding_size, context_size=size),
                *(size, embedding_size, kernel_size, dropout),
            )
            for _ in range(layers)
        )
        self.layers = cast("Sequence[AttentiveConvolution]", stack)
        self.take([layer.attention for layer in self.layers], "conv")
        self.exit = NormalLinear(size, embedding_size)
        self.size, self.kernel_size, self.features = size, kernel_size, embedding_size
        # A fresh model's features are 2 to 4 times as large as embeddings, E^-1/2: the scale of contexts assumes slots
        # without a common mean, but they have one. With this factor, tied logits have a deviation of 0.3 to 1.
        self.logit_scale = 0.25 * embedding_size**0.5
        self.learned_positions = self.entrance.positions.learned_positions
        # Convolutions in higher layers carry a step's context into later steps.
        self.carries_contexts = layers > 1 and kernel_size > 1
        if weight_norm:
            normalise_weights(self)

    def describe(self) -> str:
        return f", {len(self.layers)} layers, kernel {self.kernel_size}, {self.way}"

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[LayeredMemory, ConvolutionState]:
        if self.bridge is not None:
            keys = None if encoded.keys is None else self.bridge(encoded.keys)
            encoded = encoded._replace(values=self.bridge(encoded.values), keys=keys)
        memory, states = self.remember(encoded)
        count, device = len(encoded.mask), encoded.mask.device
        nothing = encoded.values.new_zeros(count, len(self.layers), self.kernel_size - 1, self.size)
        steps = torch.zeros(count, dtype=torch.int64, device=device)
        return memory, ConvolutionState(steps, at_least_float32(nothing), states)

    def run(
        self, embedded: Tensor, state: ConvolutionState, memory: LayeredMemory, weights: bool
    ) -> tuple[Decoded, ConvolutionState]:
        count = embedded.shape[1]
        steps = state.steps.unsqueeze(1) + torch.arange(count, device=embedded.device)
        words, x = self.entrance(embedded, steps)
        last, seen = [], []
        for layer, before, source, attention_state in zip(
            self.layers, state.inputs.unbind(1), memory.layers, state.attention, strict=True
        ):
            inputs = torch.cat([before, layer.dropout(x)], 1)
            x, attended = layer.attend(layer.convolve(inputs, x), words, source, steps, attention_state, weights)
            last.append(inputs[:, count:])
            seen.append(attended)
        of_heads, terms = of_all_layers(seen)
        following = ConvolutionState(
            state.steps + count, torch.stack(last, 1), tuple(attended.state for attended in seen)
        )
        return Decoded(self.exit(x), of_heads, terms), following
