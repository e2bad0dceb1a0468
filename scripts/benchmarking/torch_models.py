"""The comparison in plain torch on a GPU: its own GRUs.

`Plain` has no attention: its decoder reads the encoder's last state as its first one and otherwise nothing but the
words before, which is less arithmetic than any wiring of the project, in two kernels that the library has for it.
"""

import itertools

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence

from benchmarking.settings import Place, Sizes
from nmt.data.batch import Batch
from nmt.data.token_batches import TokenBatches
from nmt.text.tokenizer import PAD


class Plain(nn.Module):
    """Embeddings, a bidirectional GRU, a GRU and a softmax of the sizes of the matched model."""

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
    """Train with AdamW, clipping and label smoothing until `batches` raises what ends it."""
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
