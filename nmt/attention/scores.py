"""Scores: how well does a memory slot answer the query? Each is its equation and nothing else.

The mask, the softmax and the sum belong to `Attention`. A score looks at the last two axes only, so a single
step (T = 1), a whole sequence and the hypotheses of a beam are one implementation.

Shapes: queries [..., T, Dq], keys as `prepare` returns them [..., S, Dk], energies [..., T, S].
"""

import math

import torch
from torch import Tensor, nn

from nmt.errors import UserError


class Score(nn.Module):
    """The contract: `prepare` runs once a sentence, `forward` at every step."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        """Sizes of a query, of a memory slot, and of the space in which a score compares them if it has one."""
        super().__init__()
        self.query_size, self.key_size, self.size = query_size, key_size, size

    def prepare(self, values: Tensor) -> Tensor:
        """Keys [..., S, Dk] from values [..., S, Dv]: whatever of the equation does not depend on the query."""
        return values

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        """Energies [..., T, S]."""
        raise TypeError(f"{type(self).__name__} does not define its equation")


class Additive(Score):
    """e_tj = v^T tanh(W q_t + U k_j). Bahdanau, Cho, Bengio 2015, section 3.1 and appendix A.1.2."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__(query_size, key_size, size)
        self.W = nn.Linear(query_size, size, bias=False)
        self.U = nn.Linear(key_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size))

    def prepare(self, values: Tensor) -> Tensor:
        keys: Tensor = self.U(values)
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return torch.tanh(self.W(queries).unsqueeze(-2) + keys.unsqueeze(-3)) @ self.v


class Concat(Score):
    """e_tj = v^T tanh(W [q_t; k_j]). Luong, Pham, Manning 2015, section 3.1, after eq. 7.

    The same function class as `Additive`: the two halves of W are its W and U. Expect equal results.
    """

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__(query_size, key_size, size)
        self.W = nn.Linear(query_size + key_size, size, bias=False)
        self.v = nn.Parameter(torch.empty(size))

    def prepare(self, values: Tensor) -> Tensor:
        return nn.functional.linear(values, self.W.weight[:, self.query_size :])

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        projected = nn.functional.linear(queries, self.W.weight[:, : self.query_size])
        return torch.tanh(projected.unsqueeze(-2) + keys.unsqueeze(-3)) @ self.v


class General(Score):
    """e_tj = q_t^T W k_j. Luong, Pham, Manning 2015, section 3.1. W k is computed once a sentence."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__(query_size, key_size, size)
        self.W = nn.Linear(key_size, query_size, bias=False)

    def prepare(self, values: Tensor) -> Tensor:
        keys: Tensor = self.W(values)
        return keys

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.transpose(-1, -2)


class Dot(Score):
    """e_tj = q_t^T k_j. Luong, Pham, Manning 2015, section 3.1. Needs queries and keys of one size."""

    def __init__(self, query_size: int, key_size: int, size: int) -> None:
        super().__init__(query_size, key_size, size)
        if query_size != key_size:
            raise UserError(
                f"A dot product needs queries and keys of one size, but the decoder's state has {query_size} "
                f"and the encoder's {key_size}. Give decoder.size={key_size}, or let heads project both with "
                f"attention.heads=2, or take attention/score=general."
            )

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.transpose(-1, -2)


class ScaledDot(Dot):
    """e_tj = q_t^T k_j / sqrt(Dk). Vaswani et al. 2017, eq. 1; Dk is the size of a key."""

    def forward(self, queries: Tensor, keys: Tensor) -> Tensor:
        return queries @ keys.transpose(-1, -2) / math.sqrt(keys.shape[-1])
