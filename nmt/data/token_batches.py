"""Batches of pairs with similar lengths, filled to a token budget, in an order that a seed determines."""

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, Integers
from nmt.data.pairs import EncodedPairs, SampledPairs
from nmt.data.shapes import Shape, Shapes, choose_shapes, plan_in_shapes
from nmt.data.stored import MANY, Stored, gathered

#: Neighbouring pairs that stay together when very many pairs are divided into parts.
_STRETCH = 256
#: Very many pairs are planned in parts of this number of pairs.
_PART = 1 << 18


class Plan(Stored[Integers]):
    """The batches of an epoch, each as the indices of its pairs.

    Args:
        order: [N] the indices, batch after batch.
        starts: [batches + 1] where each batch begins in `order`.
        padding: share of padding in the source and in the target tokens, padding to a fixed shape included.
    """

    def __init__(self, order: Integers, starts: Integers, padding: tuple[float, float]) -> None:
        self._order, self._starts, self.padding = order, starts, padding

    def __len__(self) -> int:
        return len(self._starts) - 1

    def between(self, first: int, end: int) -> list[Integers]:
        """The batches from number `first` to before `end`."""
        places = zip(self._starts[first:end], self._starts[first + 1 : end + 1], strict=True)
        return [np.asarray(self._order[begin:stop]) for begin, stop in places]


class TokenBatches:
    """Batches of similar lengths, filled to a token budget.

    A batch of B pairs holds B x S padded source tokens and B x T padded target tokens, EOS included. Neither exceeds
    `tokens_per_batch`; a single pair that is longer forms its own batch.

    Args:
        pairs: a tokenised split, or `SampledPairs`.
        tokens_per_batch: the budget.
        seed: determines the order; epoch n does not depend on earlier epochs.
        sentences_per_batch: maximum number of pairs in a batch; None for no limit.
        shuffle: compose and order the batches of each epoch at random; false gives the same batches in every epoch,
            sorted by length.
        guide: adds word links to each batch, for guided attention.
        folder: stores the plan of very many pairs; None for the system's temporary folder.
    """

    def __init__(
        self,
        pairs: EncodedPairs | SampledPairs,
        *,
        tokens_per_batch: int,
        seed: int = 0,
        sentences_per_batch: int | None = None,
        shuffle: bool = True,
        guide: Callable[[Batch], Batch] | None = None,
        folder: Path | None = None,
    ) -> None:
        self._pairs, self._tokens, self._sentences = pairs, tokens_per_batch, sentences_per_batch
        self._seed, self._shuffle, self._guide, self._folder = seed, shuffle, guide, folder
        self._held: tuple[int, EncodedPairs, Plan] | None = None
        self._shapes: Shapes = ()
        self._earlier: tuple[int, Shapes] = -1, ()  # an epoch, and the shapes of all epochs up to it

    def fix_shapes(self) -> None:
        """Use batches of few fixed shapes (`nmt.data.shapes`) where possible; the first call chooses the shapes."""
        if self._shapes:
            return
        pairs, _ = self._open(0)
        lengths = pairs.source_lengths + 1, pairs.target_lengths + 1
        self._shapes = choose_shapes(*lengths, self._tokens, self._sentences)
        self._held = (0, pairs, self._planned(pairs, 0))

    def keep_shapes(self, epoch: int, shapes: Shapes) -> None:
        """Use these shapes for epochs up to `epoch`: a resumed epoch keeps the shapes that it began with."""
        self._earlier, self._held = (epoch, shapes), None

    def shapes(self, epoch: int) -> Shapes:
        """The fixed shapes of an epoch's batches, the cheapest first; () if shapes are not fixed."""
        return self._earlier[1] if epoch <= self._earlier[0] else self._shapes

    def plan(self, epoch: int) -> Plan:
        """The batches of an epoch, each as the indices of its pairs, which `collate` turns into a `Batch`."""
        return self._open(epoch)[1]

    def collate(self, indices: Integers, epoch: int = 0) -> Batch:
        """The batch of the pairs with these indices of `plan(epoch)`; the epoch matters only for sampled pairs."""
        return self._batch(self._open(epoch)[0], indices)

    def epoch(self, epoch: int, start: int = 0, stride: int = 1) -> Iterator[Batch]:
        """Yield every `stride`-th batch of an epoch, from number `start` on (to resume within an epoch)."""
        pairs, plan = self._open(epoch)
        for number in range(start, len(plan), stride):
            yield self._batch(pairs, plan[number])

    def _batch(self, pairs: EncodedPairs, indices: Integers) -> Batch:
        batch = pairs.batch(indices)
        return batch if self._guide is None else self._guide(batch)

    @property
    def padding(self) -> tuple[float, float]:
        """Share of padding in the source and in the target tokens of the last plan."""
        return self._open(0 if self._held is None else self._held[0])[1].padding

    def _open(self, epoch: int) -> tuple[EncodedPairs, Plan]:
        if self._held is None or self._held[0] != epoch:
            pairs = self._pairs.for_epoch(epoch)
            self._held = (epoch, pairs, self._planned(pairs, epoch))
        return self._held[1], self._held[2]

    def _planned(self, pairs: EncodedPairs, epoch: int) -> Plan:
        """Plan the batches of an epoch; more than `MANY` pairs are planned in parts, to limit memory."""
        counts: list[int] = []
        totals = np.zeros((2, 2))  # of each side: tokens, places

        def planned(rows: Integers, generator: np.random.Generator | None) -> Integers:
            lengths = pairs.source_lengths[rows] + 1, pairs.target_lengths[rows] + 1
            plan, places = self._batches(*lengths, self.shapes(epoch), generator)
            counts.extend(map(len, plan))
            totals[:] += np.array([[int(side.sum()) for side in lengths], places]).T
            return rows[np.concatenate(plan)]

        # A generator, so that only one part is in memory at a time.
        orders = (planned(*part) for part in self._parts(len(pairs), epoch))
        order = gathered(orders if len(pairs) else [], len(pairs), self._folder)
        shares = [1.0 - tokens / places if places else 0.0 for tokens, places in totals.tolist()]
        return Plan(order, np.cumsum([0, *counts]), (shares[0], shares[1]))

    def _batches(
        self,
        source_lengths: Integers,
        target_lengths: Integers,
        shapes: Shapes,
        generator: np.random.Generator | None,
    ) -> tuple[list[Integers], tuple[int, int]]:
        """The batches of pairs with these lengths, and their number of tokens on each side with padding."""
        shaped, rest = list[tuple[Shape, Integers]](), np.arange(len(source_lengths))
        if shapes:
            shaped, rest = plan_in_shapes(source_lengths, target_lengths, shapes, generator)
        plan = [batch for _, batch in shaped]
        places = [sum(shape.rows * shape[side] for shape, _ in shaped) for side in (1, 2)]
        if len(rest) or not shapes:
            lengths = source_lengths[rest], target_lengths[rest]
            others = plan_batches(*lengths, self._tokens, self._sentences, generator)
            plan += [rest[batch] for batch in others]
            places = [known + _places(side, others) for known, side in zip(places, lengths, strict=True)]
        if shapes and generator is not None:
            plan = [plan[at] for at in generator.permutation(len(plan))]
        return plan, (places[0], places[1])

    def _parts(self, count: int, epoch: int) -> Iterator[tuple[Integers, np.random.Generator | None]]:
        """Yield the pairs that are planned together, and the generator that shuffles them (None without shuffling).

        Very many pairs are cut into stretches of neighbours, which are combined differently in each epoch, so that a
        pair shares its batches with different pairs.
        """
        if count <= MANY:
            yield np.arange(count), np.random.default_rng((self._seed, epoch)) if self._shuffle else None
            return
        stretches = np.arange(0, count, _STRETCH)
        if self._shuffle:
            stretches = np.random.default_rng((self._seed, epoch)).permutation(stretches)
        each = _PART // _STRETCH
        for number, first in enumerate(range(0, len(stretches), each)):
            rows = (stretches[first : first + each, None] + np.arange(_STRETCH)).ravel()
            generator = np.random.default_rng((self._seed, epoch, number)) if self._shuffle else None
            yield rows[rows < count], generator


def plan_batches(
    source_lengths: Integers,
    target_lengths: Integers,
    tokens_per_batch: int,
    sentences_per_batch: int | None = None,
    generator: np.random.Generator | None = None,
) -> list[Integers]:
    """Divide pairs of these lengths (with specials) into batches; in random order if there is a `generator`.

    Batches are filled to the budget. If more than 9 % of either side would be padding, as happens with few pairs,
    batches with much padding end earlier, but not before a quarter of the budget.
    """
    count = len(source_lengths)
    if count == 0:
        return []
    order = np.arange(count) if generator is None else generator.permutation(count)
    # A little noise, so that a pair does not meet the same neighbours in every epoch.
    noise = np.zeros((2, count)) if generator is None else generator.uniform(-0.5, 0.5, (2, count))
    order = _neighbours(order, source_lengths, target_lengths, noise, tokens_per_batch)
    most = sentences_per_batch or count
    plan: list[Integers] = []
    for limit in (1.0, 0.4, 0.3, 0.25, 0.2, 0.17, 0.15, 0.13, 0.12, 0.11, 0.1):
        plan = _cut(order, source_lengths, target_lengths, tokens_per_batch, most, limit)
        if max(_padding(source_lengths, plan), _padding(target_lengths, plan)) <= 0.09:
            break
    if generator is None:
        return sorted(plan, key=lambda indices: int(target_lengths[indices].max()))
    return [plan[index] for index in generator.permutation(len(plan))]


def _neighbours(
    order: Integers,
    source_lengths: Integers,
    target_lengths: Integers,
    noise: npt.NDArray[np.float64],
    tokens_per_batch: int,
) -> Integers:
    """Sort pairs so that neighbours have similar lengths on both sides.

    A k-d tree: the pairs are halved at the median of the source or of the target length, whichever saves more
    padding, and the halves again, down to a part of a batch. (Sorting by one length and then the other pads twice as
    much.)
    """
    lengths = (source_lengths, target_lengths)
    keys = (source_lengths + noise[0], target_lengths + noise[1])
    result: list[Integers] = []
    stack = [order]
    while stack:
        indices = stack.pop()
        places = len(indices) * max(int(side[indices].max()) for side in lengths)
        if places <= tokens_per_batch // 4 or len(indices) == 1:
            result.append(indices)
            continue
        halves: list[tuple[Integers, Integers]] = []
        costs = []
        for key in keys:
            ranked = indices[np.argsort(key[indices], kind="stable")]
            tokens = np.cumsum(source_lengths[ranked] + target_lengths[ranked])
            middle = min(int(np.searchsorted(tokens, tokens[-1] / 2)) + 1, len(ranked) - 1)
            halves.append((ranked[:middle], ranked[middle:]))
            costs.append(sum(len(half) * int(side[half].max()) for half in halves[-1] for side in lengths))
        first, second = halves[int(np.argmin(costs))]
        stack += [second, first]
    return np.concatenate(result)


def _cut(
    order: Integers, source_lengths: Integers, target_lengths: Integers, tokens: int, most: int, limit: float
) -> list[Integers]:
    """Divide `order` into runs, each as long as the budget and `limit`, the maximum share of padding, allow."""
    plan = []
    start = 0
    while start < len(order):
        window = order[start : start + min(most, max(1, tokens))]
        counts = np.arange(1, len(window) + 1)
        fits = np.ones(len(window), dtype=bool)
        small = np.ones(len(window), dtype=bool)
        dense = np.ones(len(window), dtype=bool)
        for side in (source_lengths, target_lengths):
            lengths = side[window]
            places = np.maximum.accumulate(lengths) * counts
            fits &= places <= tokens
            small &= places <= tokens // 4
            dense &= np.cumsum(lengths) >= (1.0 - limit) * places
        allowed = np.flatnonzero(fits & (small | dense))
        size = int(allowed[-1]) + 1 if len(allowed) else 1
        plan.append(window[:size])
        start += size
    return plan


def _places(lengths: Integers, plan: list[Integers]) -> int:
    return sum(int(lengths[indices].max()) * len(indices) for indices in plan)


def _padding(lengths: Integers, plan: list[Integers]) -> float:
    places = _places(lengths, plan)
    return 1.0 - int(lengths[np.concatenate(plan)].sum()) / places if places else 0.0
