"""Layers of both encoder and decoder: a gated convolution, and linear layers that keep the variance of their inputs.

Gehring et al. 2017, section 3, without scaling the encoder's gradient by the number of attentions: this matters for
plain gradient descent, but Adam cancels constant factors of a gradient. Weight normalisation is optional, and never
applies to the softmax, whose matrix can be tied to embeddings.

Shapes: N rows (sentences or hypotheses), T words per row, D the size of a word's vector, E of an embedding.
"""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from nmt.kernels.dot_tanh import at_least_float32
from nmt.kernels.dropout import Dropout
from nmt.model.positions import Positions, TransformerXL
from nmt.system.errors import SettingError

#: Scales the sum of two vectors of equal variance back to that variance. Section 3.4.
HALF_VARIANCE = 0.5**0.5


class NormalLinear(nn.Module):
    """W x + b. W starts normal with variance gain * keep / I, b zero. Section 3.5.

    With weight normalisation, a row of W is g v / |v|, and g and v are learned. Salimans and Kingma 2016, eq. 2.
    """

    def __init__(self, inputs: int, outputs: int, keep: float = 1.0, gain: float = 1.0) -> None:
        """`keep` is the share of inputs that dropout keeps; `gain` is 4 before a gate, which halves its input."""
        super().__init__()
        self.weight = nn.Parameter(torch.empty(outputs, inputs))
        self.bias = nn.Parameter(torch.empty(outputs))
        self.g: nn.Parameter | None = None
        self.deviation = (gain * keep / inputs) ** 0.5
        self.reset_parameters()

    def reset_parameters(self) -> None:
        """Draw W and make b zero; with weight normalisation, draw v and set g to the lengths of its rows."""
        nn.init.normal_(self.weight, std=self.deviation)
        nn.init.zeros_(self.bias)
        if self.g is not None:
            with torch.no_grad():
                self.g.copy_(self.weight.norm(dim=1))

    def forward(self, vectors: Tensor) -> Tensor:
        """[..., I] -> [..., O], in float32 at least."""
        matrix: Tensor = self.weight
        if self.g is not None:
            matrix = self.g.unsqueeze(1) * nn.functional.normalize(self.weight, dim=1)
        return at_least_float32(nn.functional.linear(vectors, matrix, self.bias))


def normalise_weights(module: nn.Module) -> None:
    """Turn on weight normalisation in all `NormalLinear` layers of a module."""
    for layer in module.modules():
        if isinstance(layer, NormalLinear):
            layer.g = nn.Parameter(torch.empty_like(layer.bias))
            layer.reset_parameters()


class PositionedEntrance(nn.Module):
    """e_j, an embedding with its position, and W e_j + b, the input of the first layer. Sections 3.1 and 3.2."""

    def __init__(self, positions: Callable[..., Positions], embedding_size: int, size: int, keep: float) -> None:
        """`keep` is the share of the embeddings that dropout keeps.

        Raises:
            SettingError: the positions are for self-attention.
        """
        super().__init__()
        self.positions = positions(embedding_size)
        if self.positions.windows():
            rule = "is a bias in self-attention, which convolutions do not have."
            given = "transformer_xl" if isinstance(self.positions, TransformerXL) else "relative"
            raise SettingError("positions", given, f"{rule} Give {{key}}/positions=learned, sinusoidal or none.")
        self.linear = NormalLinear(embedding_size, size, keep)

    def forward(self, embedded: Tensor, steps: Tensor) -> tuple[Tensor, Tensor]:
        """Embeddings [N, T, E] at positions steps [N, T] -> e [N, T, E] and the vectors [N, T, D]."""
        positioned = self.positions(embedded, steps)
        return positioned, self.linear(positioned)


class GatedConvolution(nn.Module):
    """h_i = 0.5^1/2 (v(W [x_i, x_(i + 1), ..., x_(i + k - 1)] + b) + h'_i), with v([a; b]) = a sigmoid(b).

    x are the inputs after dropout, with k - 1 additional vectors: padding on both sides, or the previous words.
    h'_i is the vector of word i before the layer. Sections 3.2 and 3.4.
    """

    def __init__(self, size: int, kernel_size: int, dropout: float) -> None:
        """`kernel_size` is k; `dropout` acts on the inputs."""
        super().__init__()
        self.kernel_size = kernel_size
        self.linear = NormalLinear(kernel_size * size, 2 * size, keep=1 - dropout, gain=4.0)
        self.dropout = Dropout(dropout)

    def convolve(self, inputs: Tensor, x: Tensor) -> Tensor:
        """Inputs [N, T + k - 1, D] and the vectors x [N, T, D] of the T words -> [N, T, D]."""
        count = x.shape[1]
        windows = torch.cat([inputs[:, first : first + count] for first in range(self.kernel_size)], -1)
        return (nn.functional.glu(self.linear(windows), -1) + x) * HALF_VARIANCE
