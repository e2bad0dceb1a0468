"""Encoders: embedded source tokens -> the states that attention remembers, and where a decoder may start from."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import UserError
from nmt.kernels.gru import rnn_layers


class Encoded(NamedTuple):
    """What an encoder leaves behind.

    values [B, S, E]: one state a source token, zero where padded.
    mask [B, S]: true where the token is real.
    finals [B, L, E]: each layer's state after its last token, both directions side by side.
    backward [B, D]: the top layer's backward state at the first word (the forward state at the last word
        where there is one direction only).
    """

    values: Tensor
    mask: Tensor
    finals: Tensor
    backward: Tensor


class RecurrentEncoder(nn.Module):
    """A stack of bidirectional GRU or LSTM layers that padding never enters.

    Bahdanau, Cho, Bengio 2015, section 3.2: h_j is the forward state at j beside the backward state at j.
    """

    CELLS = ("gru", "lstm")

    def __init__(
        self,
        embedding_size: int,
        size: int,
        layers: int = 1,
        cell: str = "gru",
        bidirectional: bool = True,
        dropout: float = 0.0,
        fast: bool = True,
    ) -> None:
        """`size` is that of one direction's state; `dropout` acts between layers, not on the values (docs/results.md).

        With `fast`, GRUs on a CPU are computed by `nmt.kernels.gru`, else by torch's own layers.

        Raises:
            UserError: `cell` is neither gru nor lstm.
        """
        super().__init__()
        if cell not in self.CELLS:
            raise UserError(f"encoder.cell={cell} is not known. Give encoder.cell=gru or encoder.cell=lstm.")
        make = nn.GRU if cell == "gru" else nn.LSTM
        self.rnn = make(
            embedding_size,
            size,
            layers,
            batch_first=True,
            bidirectional=bidirectional,
            dropout=dropout if layers > 1 else 0.0,
        )
        self.layers, self.directions = layers, 2 if bidirectional else 1
        self.output_size = size * self.directions
        self.backward_size = size
        self.fast = fast

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        """Encodes embedded [B, S, E] with mask [B, S] and lengths [B] (on the CPU, at least 1)."""
        values, hidden = rnn_layers(self.rnn, embedded, mask, lengths, self.fast)
        finals = hidden.unflatten(0, (self.layers, self.directions)).permute(2, 0, 1, 3)
        return Encoded(values, mask, finals.flatten(2), finals[:, -1, -1])


def summary_of(encoded: Encoded) -> Tensor:
    """The encoder's last state [B, E]: all that a decoder without attention knows of the source."""
    return encoded.finals[:, -1]


def mean_of(encoded: Encoded) -> Tensor:
    """The mean of the values over real positions, [B, E]."""
    weights = encoded.mask.unsqueeze(-1).to(encoded.values.dtype)
    return (encoded.values * weights).sum(1) / weights.sum(1).clamp(min=1)


def lengths_of(mask: Tensor) -> Tensor:
    """Real tokens a sentence, [B], on the CPU as packing wants them."""
    return mask.sum(-1).to("cpu", torch.int64)
