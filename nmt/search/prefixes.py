"""Prefixes of translations: the tokens that may come next in each sentence until its prefix is complete."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple, Self

import torch
from torch import Tensor

# state -> {allowed token: next state}. The first state is 0; beyond the last state all tokens are allowed.
Prefix = Sequence[Mapping[int, int]]


class PrefixStates(NamedTuple):
    """The prefix of each row of a search, and its state: N prefixes and N states."""

    prefixes: list[Prefix]
    states: list[int]

    @classmethod
    def start(cls, prefixes: Sequence[Prefix]) -> Self | None:
        """The first states, one row per sentence; None if no sentence has a prefix."""
        return cls(list(prefixes), [0] * len(prefixes))._unless_complete()

    def forces(self, row: int) -> bool:
        """Whether the prefix of a row is not complete."""
        return self.states[row] < len(self.prefixes[row])

    def restrict(self, log_probs: Tensor) -> None:
        """Set log_probs [N, V] of tokens that the prefixes do not allow to -inf, in place."""
        for row, (prefix, state) in enumerate(zip(*self, strict=True)):
            if state < len(prefix):
                tokens = torch.tensor(list(prefix[state]), device=log_probs.device)
                values = log_probs[row, tokens]
                log_probs[row] = float("-inf")
                log_probs[row, tokens] = values

    def select(self, rows: Tensor, tokens: Tensor) -> Self | None:
        """The states of the rows [N'] after their next tokens [N']; None if all prefixes are complete."""
        prefixes, states = [], []
        for row, token in zip(rows.tolist(), tokens.tolist(), strict=True):
            prefix, state = self.prefixes[row], self.states[row]
            prefixes.append(prefix)
            # A beam that is not full contains tokens that are not allowed, with a probability of zero.
            states.append(prefix[state].get(token, state) if state < len(prefix) else state)
        return type(self)(prefixes, states)._unless_complete()

    def _unless_complete(self) -> Self | None:
        return self if any(state < len(prefix) for prefix, state in zip(*self, strict=True)) else None
