"""Positions: how a model without a recurrence knows where a word stands."""

import functools
from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn

from nmt.attention import Window
from nmt.attention.windows import Relative, SinusoidalDistances
from nmt.system.limits import Positive


def sinusoids(positions: Tensor, size: int) -> Tensor:
    """Sines and cosines of positions [...], as vectors [..., size]. Vaswani et al. 2017, section 3.5.

    PE(t, 2i) = sin(t / 10000^(2i / size)), PE(t, 2i + 1) = cos(t / 10000^(2i / size)).
    """
    columns = torch.arange(size, device=positions.device)
    angles = positions.unsqueeze(-1) / 10000 ** ((columns - columns % 2) / size)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())


def looked_up_sinusoids(positions: Tensor, size: int) -> Tensor:
    """`sinusoids`, on a CPU from a table: a step of search wants the same few positions for all of its hypotheses."""
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
    """The contract, and no positions at all: self-attention then sees a bag of words.

    Attributes:
        learned_positions: how many it can tell apart; words beyond share the last one. None for all.
    """

    learned_positions: int | None = None

    @property
    def is_absolute(self) -> bool:
        """Whether a word's vector depends on where the word stands."""
        return type(self).forward is not Positions.forward

    def __init__(self, size: int) -> None:
        """`size` is that of an embedding, E."""
        super().__init__()
        self.size = size

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        """Embeddings [..., T, E] of deviation E^-1/2 with their positions [..., T] added."""
        return embedded

    def windows(self) -> Sequence[Callable[..., Window]]:
        """What makes windows for the self-attention of each layer, beside its own."""
        return ()


class Sinusoidal(Positions):
    """x_t = E y_t + PE_t / E^1/2: the embeddings of Vaswani et al. 2017, section 3.4, before they multiply by E^1/2."""

    def forward(self, embedded: Tensor, positions: Tensor) -> Tensor:
        added: Tensor = looked_up_sinusoids(positions, self.size).to(embedded.dtype) * self.size**-0.5
        return embedded + added


class Learned(Positions):
    """x_t = E y_t + P_t, with a table P that starts as embeddings do. Gehring et al. 2017, section 3.1."""

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
        """`distance` is the paper's k, beyond which distances are alike; `values` adds its vectors to values, too."""
        super().__init__(size)
        self.distance, self.values = distance, values

    def windows(self) -> Sequence[Callable[..., Window]]:
        return (functools.partial(Relative, distance=self.distance, values=self.values),)


class TransformerXL(Positions):
    """Nothing is added to a word; every layer compares queries with sinusoids of distances. Dai et al. 2019, 3.3."""

    def windows(self) -> Sequence[Callable[..., Window]]:
        return (functools.partial(SinusoidalDistances, size=self.size, vectors=sinusoids),)
