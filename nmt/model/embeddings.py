"""The simplest encoder: embeddings and positions. No word knows its neighbours."""

from torch import Tensor

from nmt.model.contract import Encoded, Encoder
from nmt.model.positions import sinusoids


class EmbeddingEncoder(Encoder):
    """v_j = E x_j + PE_j / E^1/2: what attention does where the memory has no context.

    Embeddings start with deviation E^-1/2, and the positions are made as small (Vaswani et al. 2017, section 3.4,
    multiply the embeddings by E^1/2 instead). It has no parameters and no last state.
    """

    def __init__(self, embedding_size: int) -> None:
        """`embedding_size` is E."""
        super().__init__()
        self.size = embedding_size

    def forward(self, embedded: Tensor, mask: Tensor, lengths: Tensor) -> Encoded:
        positions = sinusoids(embedded.shape[1], self.size, embedded.device).to(embedded.dtype)
        values = embedded + positions * self.size**-0.5
        return Encoded(values * mask.unsqueeze(-1), mask)
