"""The contract of all searches: the step function, the limits, and the resulting hypotheses."""

from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.search.constraints import Constraint, Edges
from nmt.search.prefixes import Prefix, PrefixStates


class SearchState(Protocol):
    """The state between two steps. Rows are hypotheses, the same number K for every sentence."""

    def select(self, rows: Tensor, sentences: Tensor | None = None) -> Self:
        """The hypotheses `rows` [N'], in that order; `sentences` [B'] are still searched, all if None."""
        ...


# Previous tokens [N] and a state -> log-probabilities [N, V], attention weights [N, H, S] or None, the next state.
Step = Callable[[Tensor, SearchState], tuple[Tensor, Tensor | None, SearchState]]


class Limits(NamedTuple):
    """Limits of a search, from the vocabulary and from the batch.

    bos, eos: token ids. forbidden: ids that are never produced. lengths [B]: maximum number of tokens including the end
    of sentence, the only possible token at that length. slots [B, S]: true where the memory has a real slot, for the
    coverage penalty. prefixes: required beginnings of translations, () for none; `lengths` must leave room for the
    longest prefix. few_sizes: whether some finished sentences stay in the batch, so that it has one of few sizes.
    sources: the source tokens that seed each sentence's random draws; () to seed with the sentence's number.
    shows: the text of each token, for a beam search with one hypothesis per text; () allows equal texts.
    constraints: the phrases that each translation must contain, in beam search only; () for none. `lengths` must leave
    room for them. edges: word boundaries, for constraints of whole words; None for a boundary between any two tokens.
    heads: the heads whose mean weight aligns a step with source slots; () for all.
    """

    bos: int
    eos: int
    forbidden: Sequence[int]
    lengths: Tensor
    slots: Tensor | None = None
    prefixes: Sequence[Prefix] = ()
    few_sizes: bool = False
    sources: Sequence[Sequence[int]] = ()
    shows: Sequence[bytes] = ()
    constraints: Sequence[Sequence[Constraint]] = ()
    edges: Edges | None = None
    heads: Sequence[int] = ()


class Hypothesis(NamedTuple):
    """One translation: tokens with the end of sentence, log-probability, score, attention weights [H, T, S].

    `cut` is true if it has the maximum number of tokens, where the search forces the end.
    """

    tokens: list[int]
    log_prob: float
    score: float
    weights: npt.NDArray[np.float32] | None
    cut: bool = False


class Search:
    """Base class of searches: a step function and a first state -> each sentence's n best hypotheses, best first.

    Attributes:
        choice: the search's name in `configs/search/`.
        nbest: the number n of hypotheses.
        beam_size: the number of hypotheses that are kept at each step; None for random draws.
    """

    choice: ClassVar[str]
    nbest: int = 1
    beam_size: int | None = None

    def settings(self) -> dict[str, Any]:
        """The settings by name, as in `configs/search/`, and `nbest`."""
        return {"nbest": self.nbest, **{name: value for name, value in vars(self).items() if name[0] != "_"}}

    def score_of(self, log_prob: float, length: int) -> float:
        """The score of a hypothesis of `length` tokens, including the end, without a coverage penalty."""
        return log_prob

    @property
    def needs_weights(self) -> bool:
        """Whether the ranking of hypotheses uses attention weights."""
        return False

    @property
    def draws(self) -> bool:
        """Whether the result depends on random draws."""
        return False

    def __call__(self, step: Step, state: SearchState, limits: Limits) -> list[list[Hypothesis]]:
        """Search all sentences of a batch at once; the first state has one row per sentence."""
        raise TypeError(f"{type(self).__name__} does not define __call__")


class Forbidding:
    """Sets log-probabilities of impossible next tokens to -inf; made once per search, so that steps need not wait."""

    def __init__(self, limits: Limits) -> None:
        self.eos, device = limits.eos, limits.lengths.device
        self.tokens = torch.tensor(list(limits.forbidden), dtype=torch.int64, device=device)
        self.shortest = int(limits.lengths.min()) if limits.lengths.numel() else 0

    def __call__(
        self, log_probs: Tensor, lengths: Tensor, position: int | Tensor, prefix: PrefixStates | None = None
    ) -> Tensor:
        """Change log_probs [N, V] of token number `position`, from 1, in place; a row has at most `lengths` [N] tokens.

        Impossible tokens are forbidden tokens, tokens that do not fit the prefix, and, at a row's maximum length, all
        tokens but the end of sentence. If `position` is a tensor, all steps launch the same kernels.
        """
        if prefix is not None:
            prefix.restrict(log_probs)
        if self.tokens.numel():
            log_probs.index_fill_(1, self.tokens, float("-inf"))
        if isinstance(position, int) and position < self.shortest:
            return log_probs
        last = lengths <= position
        if last.device.type == "cpu" and not last.any():  # on a GPU, the wait costs more than it saves
            return log_probs
        ends = log_probs[:, self.eos].clone()
        log_probs.masked_fill_(last.unsqueeze(1), float("-inf"))
        log_probs[:, self.eos] = ends
        return log_probs
