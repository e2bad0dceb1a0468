"""Positions tell a model without a recurrence where each word is."""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmt.attention import Window
from nmt.attention.windows import Relative, SinusoidalDistances
from nmt.system.limits import Positive


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """The sinusoidal vectors [..., size] of positions [...]. Vaswani et al. 2017, section 3.5.

    PE(t, 2i) = sin(t / 10000^(2i / size)), PE(t, 2i + 1) = cos(t / 10000^(2i / size)).
    """
    columns = torch.arange(size, device=positions.device)
    angles = positions.unsqueeze(-1) / 10000 ** ((columns - columns % 2) / size)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def looked_up_sinusoids(positions: Tensor, size: int) -> Tensor:
    """`sinusoids`, on a CPU from a table: all hypotheses of a search step need the same few positions."""
    if positions.device.type != "cpu" or not positions.numel():
        return sinusoids(positions, size)
    rows = 1 << int(positions.max()).bit_length()  # a power of two above the last position
    return nn.functional.embedding(positions, _table(rows, size))


@functools.lru_cache(maxsize=16)
def _table(count: int, size: int) -> Tensor:
    """The sinusoids of the first positions, [count, size]."""
    with torch.inference_mode(False), torch.no_grad():
        return sinusoids(torch.arange(count), size)


class Positions(nn.Module):
    """Base class, which adds no positions: self-attention then sees a bag of words.

    Attributes:
        learned_positions: the number of learned positions; later words share the last one. None for no limit.
    """

    learned_positions: int | None = None

    @property
    def is_absolute(self) -> bool:
        """Whether a word's vector depends on the word's position."""
        return type(self).forward is not Positions.forward

    def __init__(self, size: int) -> None:
        """`size` is the embedding size E."""
        super().__init__()
        self.size = size

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Embeddings [..., T, E] of deviation E^-1/2 with their positions [..., T] added."""
        return embedded

    def windows(self) -> Sequence[Callable[..., Window]]:
        """Functions that make additional windows for the self-attention of each layer."""
        return ()


class Sinusoidal(Positions):
    """x_t = E y_t + PE_t / E^1/2: the sum of Vaswani et al. 2017, section 3.4, divided by E^1/2."""

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        added: Tensor = looked_up_sinusoids(positions, self.size).to(embedded.dtype) * self.size**-0.5
        return embedded + added


class Learned(Positions):
    """x_t = E y_t + P_t, with a table P that is initialised like embeddings. Gehring et al. 2017, section 3.1."""

    def __init__(self, size: int, count: Positive) -> None:
        """`count` is the number of rows of P."""
        super().__init__(size)
        self.table = nn.Embedding(count, size)
        self.learned_positions = count

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        learned: Tensor = self.table(positions.clamp(max=self.table.num_embeddings - 1))
        return embedded + learned


class RelativePositions(Positions):
    """Nothing is added to a word; every layer learns a bias for each distance. Shaw, Uszkoreit, Vaswani 2018."""

    def __init__(self, size: int, distance: Positive, values: bool = False) -> None:
        """`distance` is the paper's k, to which distances are clipped; `values` adds vectors to values, too."""
        super().__init__(size)
        self.distance, self.values = distance, values

    def windows(self) -> Sequence[Callable[..., Window]]:
        return (functools.partial(Relative, distance=self.distance, values=self.values),)


class TransformerXL(Positions):
    """Nothing is added to a word; every layer compares queries with sinusoids of distances. Dai et al. 2019, 3.3."""

    def windows(self) -> Sequence[Callable[..., Window]]:
        return (functools.partial(SinusoidalDistances, size=self.size, vectors=sinusoids),)
