"""The recurrent encoder: a stack of GRU or LSTM layers, in one direction or both."""

from typing import Literal

from torch import Tensor, nn

from nmt.kernels.gru import rnn_layers
from nmt.model.contract import Encoded, Encoder
from nmt.system.limits import Fraction, Layers, Positive


class RecurrentEncoder(Encoder):
    """A stack of GRU or LSTM layers, bidirectional by default; padding does not influence their states.

    Bahdanau, Cho, Bengio 2015, section 3.2: h_j concatenates the forward state and the backward state at j.
    """

    def __init__(
        self,
        embedding_size: int,
        size: Positive,
        layers: Layers = 1,
        cell: Literal["gru", "lstm"] = "gru",
        bidirectional: bool = True,
        dropout: Fraction = 0.0,
    ) -> None:
        """`size` is the state size of one direction; `dropout` acts between layers, not on values (docs/results.md)."""
        super().__init__()
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
        self.size = size * self.directions

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        values, hidden = rnn_layers(self.rnn, embedded, mask, lengths)
        last = hidden.unflatten(0, (self.layers, self.directions)).permute(2, 0, 1, 3)
        return Encoded(values, mask, last=last.flatten(2))
