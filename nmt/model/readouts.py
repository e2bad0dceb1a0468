"""Readouts: state + previous word + context -> the features that the softmax over the vocabulary sees.

Shapes: states [..., D], embedded [..., E] (the previous target word), contexts [..., C], features [..., F].
"""

import torch
from torch import Tensor, nn


class Readout(nn.Module):
    """The contract."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        """`size` is F, the size of the features; `context_size` is 0 where there is no attention."""
        super().__init__()
        self.size = size

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        """Features [..., F]."""
        raise TypeError(f"{type(self).__name__} does not say what it reads out")


class Maxout(Readout):
    """t = maxout(U_o s + V_o E y + C_o c), pairs of units. Bahdanau, Cho, Bengio 2015, appendix A.2.2."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(state_size + embedding_size + context_size, 2 * size)

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        units = self.linear(torch.cat([states, embedded, contexts], -1))
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
        return torch.tanh(self.linear(torch.cat(seen, -1)))


class FromState(Readout):
    """The state alone, through a linear layer where the sizes differ."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(state_size, size) if state_size != size else nn.Identity()

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        features: Tensor = self.linear(states)
        return features


class FromContext(Readout):
    """The context alone, through a linear layer where the sizes differ."""

    def __init__(self, state_size: int, embedding_size: int, context_size: int, size: int) -> None:
        super().__init__(state_size, embedding_size, context_size, size)
        self.linear = nn.Linear(context_size, size) if context_size != size else nn.Identity()

    def forward(self, states: Tensor, embedded: Tensor, contexts: Tensor) -> Tensor:
        features: Tensor = self.linear(contexts)
        return features
