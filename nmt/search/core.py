"""What every search shares: the step function it is given, the limits it keeps to, the hypotheses it returns."""

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
from torch import Tensor

from nmt.search.prefixes import Prefix, PrefixStates


class SearchState(Protocol):
    """What a step function hands from step to step. Rows are hypotheses, the same number K to every sentence."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The hypotheses `rows` [N'] in that order; `sentences` [B'] says which sentences are still searched."""
        ...


# Previous tokens [N] and a state -> log-probabilities [N, V], attention weights [N, H, S] or None, the next state.
Step = Callable[[Tensor, SearchState], tuple[Tensor, Tensor | None, SearchState]]


class Limits(NamedTuple):
    """What a search must know of the vocabulary and of the batch.

    bos, eos: token ids. forbidden: ids that are never produced. lengths [B]: the most tokens a translation may have,
    the end of sentence counted; the last allowed token can only be the end of sentence. slots [B, S]: true where the
    memory has a real slot, for penalties on what was not looked at. fast: whether fast kernels may run. prefixes: what
    each translation must begin with, () where it is free; `lengths` must leave room for the longest way through.
    """

    bos: int
    eos: int
    forbidden: Sequence[int]
    lengths: Tensor
    slots: Tensor | None = None
    fast: bool = True
    prefixes: Sequence[Prefix] = ()


class Hypothesis(NamedTuple):
    """One translation: tokens (end of sentence last), their log-probability, the score it is ranked by, [H, T, S]."""

    tokens: list[int]
    log_prob: float
    score: float
    weights: npt.NDArray[np.float32] | None


class Search:
    """From a step function and a first state to the n best hypotheses of each sentence, best first.

    Attributes:
        nbest: n.
    """

    nbest: int = 1

    @property
    def needs_weights(self) -> bool:
        """Whether hypotheses are ranked by attention weights too."""
        return False

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        """Search all sentences of a batch at once; the first state has one row a sentence."""
        raise TypeError(f"{type(self).__name__} does not define how it searches")


def forbid(log_probs: Tensor, limits: Limits, last: Tensor, prefix: PrefixStates | None = None) -> Tensor:
    """Take from log_probs [N, V], in place, what may not come next.

    That is forbidden tokens, what departs from a prefix, and, where `last` [N], all but the end of sentence.
    """
    if prefix is not None:
        prefix.restrict(log_probs)
    if limits.forbidden:
        log_probs[:, list(limits.forbidden)] = float("-inf")
    if last.any():
        ends = log_probs[last, limits.eos]
        log_probs[last] = float("-inf")
        log_probs[last, limits.eos] = ends
    return log_probs
