"""The comparison for the Transformer: torch's own layers in the project's model, training loop and loss.

Embeddings, positions, the tied softmax and what stands around them are the project's; encoder and decoder are
`torch.nn.TransformerEncoder` and `torch.nn.TransformerDecoder`. Dropout that the project's layers do not have, of
attention weights and of the inner layer, is off.
"""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from benchmarking.settings import HEADS, Sizes
from nmt.model import Decoder, Encoder, Seq2Seq
from nmt.model.contract import Decoded, Encoded
from nmt.model.positions import Sinusoidal
from nmt.model.transformer.layer import Entrance


class Nothing(NamedTuple):
    """The state of a decoder that is only trained."""

    def select(self, rows: Tensor) -> "Nothing":
        """Nothing."""
        return self


class Source(NamedTuple):
    """The memory [B, S, D] and its padding [B, S]."""

    values: Tensor
    padding: Tensor

    def select(self, rows: Tensor) -> "Source":
        """The sentences `rows` [B'] of the batch."""
        return Source(self.values[rows], self.padding[rows])


def without_inner_dropout(layers: nn.ModuleList) -> None:
    """Turn off the dropout of attention weights and of the inner layer."""
    for layer in layers:
        layer.dropout.p = 0.0  # type: ignore[union-attr]
        for part in layer.children():
            if isinstance(part, nn.MultiheadAttention):
                part.dropout = 0.0


class TorchEncoder(Encoder):
    """`torch.nn.TransformerEncoder`, pre-normalised."""

    def __init__(self, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.size = sizes.embedding
        self.entrance = Entrance(Sinusoidal, sizes.embedding, sizes.embedding)
        layer = nn.TransformerEncoderLayer(
            sizes.embedding, HEADS, 4 * sizes.embedding, dropout, batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerEncoder(
            layer, sizes.layers, nn.LayerNorm(sizes.embedding), enable_nested_tensor=False
        )
        without_inner_dropout(self.stack.layers)

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        steps = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape)
        return Encoded(self.stack(self.entrance(embedded, steps), src_key_padding_mask=~mask), mask)


class TorchDecoder(Decoder[Source, Nothing]):
    """`torch.nn.TransformerDecoder`, pre-normalised; for training alone."""

    def __init__(self, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.features = sizes.embedding
        self.entrance = Entrance(Sinusoidal, sizes.embedding, sizes.embedding)
        layer = nn.TransformerDecoderLayer(
            sizes.embedding, HEADS, 4 * sizes.embedding, dropout, batch_first=True, norm_first=True
        )
        self.stack = nn.TransformerDecoder(layer, sizes.layers, nn.LayerNorm(sizes.embedding))
        without_inner_dropout(self.stack.layers)

    def start(self, encoded: Encoded, *, searching: bool = False) -> tuple[Source, Nothing]:
        return Source(encoded.values, ~encoded.mask), Nothing()

    def forward(self, embedded: Tensor, state: Nothing, memory: Source, *, weights: bool = True) -> Decoded:
        rows, count = embedded.shape[:2]
        steps = torch.arange(count, device=embedded.device).expand(rows, count)
        future = nn.Transformer.generate_square_subsequent_mask(count, device=embedded.device)
        features = self.stack(
            self.entrance(embedded, steps),
            memory.values,
            tgt_mask=future,
            memory_key_padding_mask=memory.padding,
            tgt_is_causal=True,
        )
        return Decoded(features)


def replaced(model: Seq2Seq, sizes: Sizes, dropout: float) -> Seq2Seq:
    """The model with torch's layers in place of its own, initialised as torch does it."""
    model.encoder, model.decoder = TorchEncoder(sizes, dropout), TorchDecoder(sizes, dropout)
    return model.to(model.output.weight.device)
