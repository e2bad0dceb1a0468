"""Readouts: state + previous word + context -> the features that the softmax over the vocabulary sees.

Shapes: states [..., D], embedded [..., E] (the previous target word), contexts [..., C], features [..., F].
"""

import functools
from collections.abc import Callable
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.errors import UserError

#: Vectors [..., I] -> units [..., U], linear in them and without a bias.
Product = Callable[[Tensor], Tensor]


class Parts(NamedTuple):
    """A readout before its nonlinearity as a sum: a product for each input and a bias [U], None for what is not there.

    What an input of None holds is not seen.
    """

    state: Product | None
    word: Product | None
    context: Product | None
    bias: Tensor | None


class Readout(nn.Module):
    """The contract: `forward` is `activate` of the sum of the products of `parts`."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        """`size` is F, that of the features; `context_size` is C, 0 for decoder=none with decoder.summary=first."""
        super().__init__()
        self.state_size, self.embedding_size, self.context_size, self.size = (
            state_size,
            embedding_size,
            context_size,
            size,
        )

    def parts(self) -> Parts:
        """What each input adds to the units."""
        raise TypeError(f"{type(self).__name__} does not say what it multiplies")

    def activate(self, units: Tensor) -> Tensor:
        """Units [..., U] -> features [..., F]."""
        return units

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Features [..., F]."""
        raise TypeError(f"{type(self).__name__} does not say what it reads out")


class Maxout(Readout):
    """t = maxout(U_o s + V_o E y + C_o c), pairs of units. Bahdanau, Cho, Bengio 2015, appendix A.2.2."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(state_size + embedding_size + context_size, 2 * size)

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        return self.activate(self.linear(torch.cat([states, embedded, contexts], -1)))

    def parts(self) -> Parts:
        sizes = [self.state_size, self.embedding_size, self.context_size]
        state, word, context = self.linear.weight.split(sizes, 1)
        return Parts(_product(state), _product(word), _product(context), self.linear.bias)

    def activate(self, units: Tensor) -> Tensor:
        features: Tensor = units.unflatten(-1, (self.size, 2)).amax(-1)
        return features


class Tanh(Readout):
    """htilde = tanh(W_c [c; h]), the attentional layer. Luong, Pham, Manning 2015, eq. 5.

    With `word` it sees the previous word too, tanh(W_c [c; h; E y]): Sennrich et al. 2017 (Nematus), section 2.
    """

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int, word: bool = False) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.word = word
        self.linear = nn.Linear(context_size + state_size + (embedding_size if word else 0), size, bias=False)

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        seen = [contexts, states, embedded] if self.word else [contexts, states]
        return self.activate(self.linear(torch.cat(seen, -1)))

    def parts(self) -> Parts:
        weight = self.linear.weight
        context, state, word = weight.split(
            [self.context_size, self.state_size, weight.shape[1] - self.context_size - self.state_size], 1
        )
        return Parts(_product(state), _product(word) if self.word else None, _product(context), None)

    def activate(self, units: Tensor) -> Tensor:
        return torch.tanh(units)


class FromState(Readout):
    """The state alone, through a linear layer where the sizes differ."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(state_size, size) if state_size != size else nn.Identity()

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        features: Tensor = self.linear(states)
        return features

    def parts(self) -> Parts:
        state, bias = _product_and_bias(self.linear)
        return Parts(state, None, None, bias)


class FromContext(Readout):
    """The context alone, through a linear layer where the sizes differ."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        """Sizes as every readout has them.

        Raises:
            UserError: there is no context.
        """
        if context_size == 0:
            raise UserError(
                "decoder/readout=context sees the context alone, and with decoder.summary=first there is none. "
                "Give decoder/readout=maxout, tanh or state."
            )
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(context_size, size) if context_size != size else nn.Identity()

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        features: Tensor = self.linear(contexts)
        return features

    def parts(self) -> Parts:
        context, bias = _product_and_bias(self.linear)
        return Parts(None, None, context, bias)


def _product(weight: Tensor) -> Product:
    """The product with a matrix [U, I]."""
    return functools.partial(nn.functional.linear, weight=weight)


def _product_and_bias(layer: nn.Module) -> tuple[Product, Tensor | None]:
    """The two parts of a linear layer; an identity is itself, without a bias."""
    return (_product(layer.weight), layer.bias) if isinstance(layer, nn.Linear) else (layer, None)
