"""Readouts: state + previous word + context -> the features that the softmax over the vocabulary sees.

Shapes: states [..., D], embedded [..., E] (the previous target word), contexts [..., C], features [..., F], units
[..., U].
"""

import functools
from collections.abc import Callable, Mapping
from typing import NamedTuple

import torch
from torch import Tensor, nn

from nmt.system.errors import UserError
from nmt.system.limits import Positive

#: A linear map without a bias: vectors [..., I] -> units [..., U].
Product = Callable[[Tensor], Tensor]


class Parts(NamedTuple):
    """A readout's sum before the nonlinearity: a product for each input that it sees, and a bias [U]."""

    state: Product | None
    word: Product | None
    context: Product | None
    bias: Tensor | None


class Readout(nn.Module):
    """Base class of readouts: one linear layer of the inputs, and a nonlinearity.

    A subclass passes its inputs to `__init__`, in the order of the matrix's columns, and defines `activate`.
    """

    linear: nn.Linear | nn.Identity
    #: Shown with translations.
    equation = ""

    def __init__(self, sees: Mapping[str, int], size: int, *, units: int | None = None, bias: bool = True) -> None:
        """`sees` has the size of each input: "state", "word", "context" or some; `size` is F, `units` is U if not F."""
        super().__init__()
        self.sees, self.size = dict(sees), size
        self.linear = nn.Linear(sum(sees.values()), size if units is None else units, bias=bias)

    def activate(self, units: Tensor) -> Tensor:
        """Units [..., U] -> features [..., F]."""
        return units

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Features [..., F]."""
        inputs = {"state": states, "word": embedded, "context": contexts}
        return self.activate(self.linear(torch.cat([inputs[name] for name in self.sees], -1)))

    def columns(self) -> dict[str, Tensor]:
        """The matrix's columns [U, I] for each input, by name."""
        assert isinstance(self.linear, nn.Linear)
        return dict(zip(self.sees, self.linear.weight.split(list(self.sees.values()), 1), strict=True))

    def parts(self) -> Parts:
        """The products of the inputs, and the bias, whose sum is the units."""
        if isinstance(self.linear, nn.Identity):
            products: dict[str, Product] = dict.fromkeys(self.sees, self.linear)
            bias = None
        else:
            products = {
                name: functools.partial(nn.functional.linear, weight=product_type(column))
                for name, column in self.columns().items()
            }
            bias = self.linear.bias
        return Parts(products.get("state"), products.get("word"), products.get("context"), bias)


class Maxout(Readout):
    """t = maxout(U_o s + V_o E y + C_o c) over pairs of units. Bahdanau, Cho, Bengio 2015, appendix A.2.2."""

    equation = "r_t = maxout(U_o s_t + V_o E y_(t-1) + C_o c_t)"

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: Positive) -> None:
        super().__init__({"state": state_size, "word": embedding_size, "context": context_size}, size, units=2 * size)

    def activate(self, units: Tensor) -> Tensor:
        features: Tensor = units.unflatten(-1, (self.size, 2)).amax(-1)
        return features


class Tanh(Readout):
    """htilde = tanh(W_c [c; h]), the attentional layer. Luong, Pham, Manning 2015, eq. 5.

    With `word`, it also sees the previous word: tanh(W_c [c; h; E y]). Sennrich et al. 2017 (Nematus), section 2.
    """

    def __init__(
        self, state_size: int, embedding_size: int, context_size: int, size: Positive, word: bool = False
    ) -> None:
        sees = {"context": context_size, "state": state_size}
        super().__init__(sees | ({"word": embedding_size} if word else {}), size, bias=False)
        self.equation = f"r_t = tanh(W_c [c_t; s_t{'; E y_(t-1)' if word else ''}])"

    def activate(self, units: Tensor) -> Tensor:
        return torch.tanh(units)


class FromState(Readout):
    """The state alone, through a linear layer if the sizes differ."""

    equation = "r_t = s_t, through a linear layer where sizes differ"

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: Positive) -> None:
        super().__init__({"state": state_size}, size)
        if state_size == size:
            self.linear = nn.Identity()


class FromContext(Readout):
    """The context alone, through a linear layer if the sizes differ."""

    equation = "r_t = c_t, through a linear layer where sizes differ"

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: Positive) -> None:
        """Sizes as in other readouts.

        Raises:
            UserError: there is no context.
        """
        if context_size == 0:
            raise UserError(
                "decoder/readout=context sees the context alone, and with decoder.summary=first there is none. "
                "Give decoder/readout=maxout, tanh or state."
            )
        super().__init__({"context": context_size}, size)
        if context_size == size:
            self.linear = nn.Identity()


def product_type(weight: Tensor) -> Tensor:
    """Cast a matrix to the type of products: under autocast once here, instead of at every step."""
    device = weight.device.type
    if device == "meta":  # a model that is only built to count its weights
        return weight
    return weight.to(torch.get_autocast_dtype(device)) if torch.is_autocast_enabled(device) else weight
