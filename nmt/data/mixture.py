"""Training on two texts: every batch has the same share of the second text, which is sampled anew in each epoch."""

import math
from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

import numpy as np

from nmt.data.batch import Integers
from nmt.data.dataset import Split
from nmt.data.pairs import EncodedPairs, SampledPairs
from nmt.data.stored import Stored
from nmt.data.token_batches import Plan, TokenBatches, plan_batches

Value = TypeVar("Value")


class Chain(Stored[Value]):
    """The concatenation of two sequences, without copying them."""

    def __init__(self, first: Sequence[Value], second: Sequence[Value]) -> None:
        self._first, self._second = first, second

    def __len__(self) -> int:
        return len(self._first) + len(self._second)

    def between(self, first: int, end: int) -> list[Value]:
        """The values from number `first` to before `end`."""
        middle = len(self._first)
        before, after = min(first, middle), max(end, middle)
        return [*self._first[before : min(end, middle)], *self._second[max(first, middle) - middle : after - middle]]


def joined(first: Split, second: Split, name: str) -> Split:
    """Concatenate two splits.

    If only the first has links or documents, pairs of the second get empty links, and each is a separate document.
    """
    links = documents = None
    if first.links is not None:
        links = Chain(first.links, second.links or [""] * len(second.source))
    if first.documents is not None:
        others = range(len(second.source)) if second.documents is None else second.documents
        after = max(first.documents, default=-1) + 1
        documents = [*first.documents, *(after + number for number in others)]
    return Split(name, Chain(first.source, second.source), Chain(first.target, second.target), links, documents)


class MixedBatches(TokenBatches):
    """Batches of a `joined` split. An epoch is one pass over the first text, with draws from the second one.

    Args:
        pairs: the pairs of both texts.
        first_rows: number of rows of the first text.
        share: share of the second text in the tokens of a batch.
        settings: see `TokenBatches`.
    """

    def __init__(self, pairs: EncodedPairs | SampledPairs, first_rows: int, share: float, **settings: Any) -> None:
        super().__init__(pairs, **settings)
        self._first_rows, self._share = first_rows, share

    def fix_shapes(self) -> None:
        """Do nothing: pairs are drawn to match the lengths in a batch, which therefore has no fixed shape."""

    def _planned(self, pairs: EncodedPairs, epoch: int) -> Plan:
        is_first = pairs.rows < self._first_rows
        generator = np.random.default_rng((self._seed, epoch))
        lengths = np.stack([pairs.source_lengths, pairs.target_lengths]) + 1
        tokens = lengths.sum(0)
        first, budget = np.flatnonzero(is_first), max(1, round((1 - self._share) * self._tokens))
        plan = [
            first[batch]
            for batch in plan_batches(lengths[0, first], lengths[1, first], budget, self._sentences, generator)
        ]
        # Pairs of similar lengths share a batch: the longest drawn ones go to the batch of the longest.
        plan.sort(key=lambda batch: float(tokens[batch].mean()))
        wanted = np.cumsum([tokens[batch].sum() for batch in plan]) * self._share / (1 - self._share)
        drawn = _drawn(np.flatnonzero(~is_first), tokens, float(wanted[-1]) if len(plan) else 0.0, generator)
        cuts = np.searchsorted(np.cumsum(tokens[drawn]), wanted[:-1])
        parts = zip(plan, np.split(drawn, cuts), strict=True)
        mixed = [batch for pair in parts for batch in self._fitting(*pair, lengths)]
        mixed = [mixed[at] for at in generator.permutation(len(mixed))]
        places = np.array([lengths[:, batch].max(1) * len(batch) for batch in mixed]).sum(0)
        order = np.concatenate(mixed)
        source, target = (1 - lengths[:, order].sum(1) / places).tolist()
        return Plan(order, np.cumsum([0, *map(len, mixed)]), (source, target))

    def _fitting(self, first: Integers, second: Integers, lengths: Integers) -> Iterator[Integers]:
        """Yield one batch of both texts, or several with the same share if one exceeds the budget."""
        batch = np.concatenate([first, second])
        most = self._sentences or len(batch)
        if len(first) < 2 or (lengths[:, batch].max() * len(batch) <= self._tokens and len(batch) <= most):
            yield batch
            return
        shorter, longer = zip(*(_halves(part, lengths[:, part].max(0)) for part in (first, second)), strict=True)
        yield from self._fitting(shorter[0], shorter[1], lengths)
        yield from self._fitting(longer[0], longer[1], lengths)


def _halves(pairs: Integers, lengths: Integers) -> tuple[Integers, Integers]:
    """The shorter and the longer half of some pairs."""
    order, middle = np.argsort(lengths, kind="stable"), len(pairs) // 2
    return pairs[order[:middle]], pairs[order[middle:]]


def _drawn(pairs: Integers, tokens: Integers, wanted: float, generator: np.random.Generator) -> Integers:
    """Draw pairs with about `wanted` tokens, sorted by length; no pair is drawn again before all others were."""
    rounds = math.ceil(wanted / int(tokens[pairs].sum())) + 1
    order = np.concatenate([generator.permutation(pairs) for _ in range(rounds)])
    drawn = order[: int(np.searchsorted(np.cumsum(tokens[order]), wanted)) + 1]
    return drawn[np.argsort(tokens[drawn], kind="stable")]
