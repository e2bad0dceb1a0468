"""The contract of every search: the step function, the limits, and the hypotheses that it returns."""

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
        """The hypotheses `rows` [N'] in that order; `sentences` [B'] says which sentences are still searched."""
        ...


# Previous tokens [N] and a state -> log-probabilities [N, V], attention weights [N, H, S] or None, the next state.
Step = Callable[[Tensor, SearchState], tuple[Tensor, Tensor | None, SearchState]]


class Limits(NamedTuple):
    """Limits that come from the vocabulary and from the batch.

    bos, eos: token ids. forbidden: ids that are never produced. lengths [B]: maximum number of tokens with the end of
    sentence, which is the only possible token at that length. slots [B, S]: true where the memory has a real slot, for
    the coverage penalty. prefixes: how each translation must begin, () for no prefix; `lengths` must leave room for the
    longest prefix. few_sizes: whether sentences that are finished stay in the batch until it has one of few sizes.
    sources: the source tokens of each sentence, on which its random draws depend; () for the numbers of the sentences.
    shows: the text of each token, for a beam search that goes on with one hypothesis for each text; () for any.
    constraints: what each translation must say, which beam search obeys; () for none. `lengths` must leave room for
    them. edges: of words, for constraints that are words; None for an edge between any two tokens. heads: whose mean
    weight says where a step stands; () for all.
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

    `cut` is true if it has as many tokens as the search allows, where it must end.
    """

    tokens: list[int]
    log_prob: float
    score: float
    weights: npt.NDArray[np.float32] | None
    cut: bool = False


class Search:
    """From a step function and a first state to the n best hypotheses of each sentence, best first.

    Attributes:
        choice: its name in `configs/search/`.
        nbest: n.
        beam_size: the number of hypotheses that are kept at each step; None for random draws.
    """

    choice: ClassVar[str]
    nbest: int = 1
    beam_size: int | None = None

    def settings(self) -> dict[str, Any]:
        """Its settings by name, as in `configs/search/`, and `nbest`."""
        return {"nbest": self.nbest, **{name: value for name, value in vars(self).items() if name[0] != "_"}}

    def score_of(self, log_prob: float, length: int) -> float:
        """The score of a hypothesis of `length` tokens, its end among them, without a coverage penalty."""
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
    """Sets the log-probabilities of impossible next tokens to -inf; made once a search, so that no step waits."""

    def __init__(self, limits: Limits) -> None:
        self.eos, device = limits.eos, limits.lengths.device
        self.tokens = torch.tensor(list(limits.forbidden), dtype=torch.int64, device=device)
        self.shortest = int(limits.lengths.min()) if limits.lengths.numel() else 0

    def __call__(
        self, log_probs: Tensor, lengths: Tensor, position: int | Tensor, prefix: PrefixStates | None = None
    ) -> Tensor:
        """Change log_probs [N, V] of token number `position`, from 1, in place; a row has at most `lengths` [N] tokens.

        Impossible are forbidden tokens, tokens that do not fit the prefix, and, at the limit of a row, all but the end
        of sentence. With a tensor for the position, all steps launch the same kernels.
        """
        if prefix is not None:
            prefix.restrict(log_probs)
        if self.tokens.numel():
            log_probs.index_fill_(1, self.tokens, float("-inf"))
        if isinstance(position, int) and position < self.shortest:
            return log_probs
        last = lengths <= position
        if last.device.type == "cpu" and not last.any():  # on a GPU, asking costs more than it saves
            return log_probs
        ends = log_probs[:, self.eos].clone()
        log_probs.masked_fill_(last.unsqueeze(1), float("-inf"))
        log_probs[:, self.eos] = ends
        return log_probs
