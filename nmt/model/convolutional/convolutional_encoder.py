"""The convolutional encoder: each word sees its neighbours, and each layer widens the neighbourhood."""

from collections.abc import Callable, Sequence
from typing import cast

import torch
from torch import Tensor, nn

from nmt.model.contract import Encoded, Encoder
from nmt.model.convolutional.convolutional_layer import (
    GatedConvolution,
    NormalLinear,
    PositionedEntrance,
    normalise_weights,
)
from nmt.model.positions import Positions
from nmt.system.limits import Fraction, Layers, Positive


class ConvolutionalEncoder(Encoder):
    """Layers of gated convolutions. Keys are their outputs z_j, values z_j + e_j. Gehring et al. 2017, section 3.

    e_j is the embedding of word j with its position. The encoder has no last state.
    """

    def __init__(
        self,
        positions: Callable[..., Positions],
        embedding_size: int,
        *,
        size: Positive,
        layers: Layers = 4,
        kernel_size: Positive = 3,
        dropout: Fraction = 0.0,
        weight_norm: bool = False,
    ) -> None:
        """`positions` makes the positions for embeddings of size E, also the size of a slot; `size` is D in all layers.

        A layer's output depends on `kernel_size` words; an even number includes one more word on the right. `dropout`
        acts on the inputs of each layer; `weight_norm` normalises the weights of all linear layers.
        """
        super().__init__()
        self.size = embedding_size
        self.entrance = PositionedEntrance(positions, embedding_size, size, keep=1 - dropout)
        stack = nn.ModuleList(GatedConvolution(size, kernel_size, dropout) for _ in range(layers))
        self.layers = cast("Sequence[GatedConvolution]", stack)
        self.exit = NormalLinear(size, embedding_size)
        self.padding = ((kernel_size - 1) // 2, kernel_size // 2)
        self.learned_positions = self.entrance.positions.learned_positions
        if weight_norm:
            normalise_weights(self)

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        steps, real = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape), mask.unsqueeze(-1)
        positioned, x = self.entrance(embedded, steps)
        for layer in self.layers:
            inputs = nn.functional.pad(layer.dropout(x) * real, (0, 0, *self.padding))
            x = layer.convolve(inputs, x)
        keys = self.exit(x) * real
        return Encoded(keys + positioned * real, mask, keys)
