"""The comparisons in plain torch: its GRUs on a GPU, and its Transformer layers in the project's model and loop.

`Plain` has no attention: the decoder starts from the encoder's last state, and then reads only the previous words. This
is less arithmetic than any wiring of the project, and the library has two kernels for it.

In the Transformer, embeddings, positions, tied softmax and loop are the project's. Encoder and decoder are
`torch.nn.TransformerEncoder` and `torch.nn.TransformerDecoder`. Dropout of attention weights and of the inner layer is
off, because the project's layers do not have it.
"""

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarking.settings import HEADS, Place, Sizes
from nmt.data.batch import Batch
from nmt.data.token_batches import TokenBatches
from nmt.model import Decoder, Encoder, Seq2Seq
from nmt.model.contract import Decoded, Encoded
from nmt.model.positions import Sinusoidal
from nmt.model.transformer.transformer_layer import Entrance
from nmt.text.tokenizer import PAD


class Plain(nn.Module):
    """Embeddings, a bidirectional GRU, a GRU and a softmax, with the sizes of the matched model."""

    def __init__(self, sizes: Sizes, dropout: float) -> None:
        super().__init__()
        self.source = nn.Embedding(sizes.pieces, sizes.embedding, padding_idx=PAD)
        self.target = nn.Embedding(sizes.pieces, sizes.embedding, padding_idx=PAD)
        self.encoder = nn.GRU(sizes.embedding, sizes.encoder, batch_first=True, bidirectional=True)
        self.first = nn.Linear(2 * sizes.encoder, sizes.decoder)
        self.decoder = nn.GRU(sizes.embedding, sizes.decoder, batch_first=True)
        self.features = nn.Linear(sizes.decoder, sizes.features)
        self.output = nn.Linear(sizes.features, sizes.pieces)
        self.dropout = nn.Dropout(dropout)

    def forward(self, batch: Batch) -> Tensor:
        """Logits of the real target tokens [N, V]."""
        packed = pack_padded_sequence(
            self.dropout(self.source(batch.source)), batch.source_lengths, batch_first=True, enforce_sorted=False
        )
        _, last = self.encoder(packed)
        first = torch.tanh(self.first(last.transpose(0, 1).flatten(1))).unsqueeze(0)
        states, _ = self.decoder(self.dropout(self.target(batch.target_in)), first)
        features = torch.tanh(self.features(states[batch.target_mask]))
        logits: Tensor = self.output(self.dropout(features))
        return logits


def train_plain(model: Plain, batches: TokenBatches, place: Place) -> None:
    """Train with AdamW, clipping and label smoothing until `batches` raises `Enough`."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.001, weight_decay=0.0, fused=True)
    device = torch.device(place.device)
    autocast = place.precision == "bf16"
    for epoch in itertools.count():
        for on_cpu in batches.epoch(epoch):
            batch = on_cpu.to(device)
            with torch.autocast(device.type, dtype=torch.bfloat16, enabled=autocast):
                logits: Tensor = model(batch)
            loss = nn.functional.cross_entropy(logits.float(), batch.target_out[batch.target_mask], label_smoothing=0.1)
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            optimizer.zero_grad(set_to_none=True)


class Nothing(NamedTuple):
    """The empty state of a decoder that is only trained."""

    def select(self, rows: Tensor) -> "Nothing":
        """Return the empty state."""
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
    """`torch.nn.TransformerDecoder`, pre-normalised; for training only."""

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
    """Replace the model's layers by torch's layers with torch's initialisation; return the model."""
    model.encoder, model.decoder = TorchEncoder(sizes, dropout), TorchDecoder(sizes, dropout)
    return model.to(model.output.weight.device)
