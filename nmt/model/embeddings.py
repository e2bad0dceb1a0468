"""The simplest encoder: embeddings and positions, without any influence of neighbouring words."""

import torch
from torch import Tensor

from nmt.model.contract import Encoded, Encoder
from nmt.model.positions import Sinusoidal


class EmbeddingEncoder(Encoder):
    """v_j = E x_j + PE_j / E^1/2: shows what attention can do with a memory of words without context.

    Embeddings start with deviation E^-1/2, and positions are scaled down to it (Vaswani et al. 2017, section 3.4,
    multiply the embeddings by E^1/2 instead). The encoder has no parameters and no last state.
    """

    def __init__(self, embedding_size: int) -> None:
        """`embedding_size` is E."""
        super().__init__()
        self.size = embedding_size
        self.positions = Sinusoidal(embedding_size)

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        values = self.positions(embedded, torch.arange(embedded.shape[1], device=embedded.device))
        return Encoded(values * mask.unsqueeze(-1), mask)
