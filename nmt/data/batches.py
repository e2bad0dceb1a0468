"""Token ids to batches: the last station before the model.

`EncodedPairs` is a tokenised split in a few flat arrays (memory-mapped where it comes from the cache),
`TokenBatches` cuts it into batches of similar lengths that fill a token budget, `SampledPairs` tokenises anew
for every epoch, and `make_batch` pads.  Shapes: B pairs, S source tokens with EOS, T target tokens with one
special.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.data.corpus import Split
from nmt.text.lexicon import PLACES, Lexicon, learn_lexicon
from nmt.text.tokenizer import BOS, EOS, PAD, Tokenizer

Integers = npt.NDArray[np.int64]

#: Sentences that are tokenised at a time.
BLOCK = 20_000


class Batch(NamedTuple):
    """Padded pairs.  Masks are true where a token is real.

    Attributes:
        source: [B, S] int64, every sentence ends in EOS.
        source_mask: [B, S] bool.
        source_lengths: [B] int64 on the CPU, with the EOS.
        target_in: [B, T] int64: BOS y1 y2 ...
        target_out: [B, T] int64: y1 y2 ... EOS.
        target_mask: [B, T] bool; T is 0 where there are no targets.
        rows: [B] int64 on the CPU, row numbers in the split.
        links: [B, T, S] float32, the share of each source token in what a target token is linked to, where word
            links guide the training (see `nmt.data.guide`); T and S are 0 elsewhere.
    """

    source: Tensor
    source_mask: Tensor
    source_lengths: Tensor
    target_in: Tensor
    target_out: Tensor
    target_mask: Tensor
    rows: Tensor
    links: Tensor

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on `device`; lengths and row numbers stay on the CPU, where packing wants them."""
        device = torch.device(device)

        def move(tensor: Tensor) -> Tensor:
            if device.type == "cuda" and tensor.device.type == "cpu":
                return tensor.pin_memory().to(device, non_blocking=True)
            return tensor.to(device)

        return self._replace(
            source=move(self.source),
            source_mask=move(self.source_mask),
            target_in=move(self.target_in),
            target_out=move(self.target_out),
            target_mask=move(self.target_mask),
            links=move(self.links),
        )


def make_batch(
    source_tokens: Sequence[Sequence[int]],
    target_tokens: Sequence[Sequence[int]] | None = None,
    rows: Sequence[int] | Integers | None = None,
) -> Batch:
    """Pads lists of token ids (without specials); EOS is appended to the sources.

    `rows` is 0, 1, 2 ... where it is not given; without targets the target side is [B, 0].
    """
    source, source_lengths = _flatten(source_tokens)
    target, target_lengths = (None, None) if target_tokens is None else _flatten(target_tokens)
    numbers = np.arange(len(source_tokens)) if rows is None else np.asarray(rows, dtype=np.int64)
    return _pad(source, source_lengths, target, target_lengths, numbers)


def _flatten(lists: Sequence[Sequence[int]]) -> tuple[npt.NDArray[np.int32], Integers]:
    """All ids after one another, and how many each list holds."""
    lengths = np.fromiter(map(len, lists), dtype=np.int64, count=len(lists))
    values = np.fromiter((token for tokens in lists for token in tokens), dtype=np.int32, count=int(lengths.sum()))
    return values, lengths


def _pad(
    source: npt.NDArray[np.int32],
    source_lengths: Integers,
    target: npt.NDArray[np.int32] | None,
    target_lengths: Integers | None,
    rows: Integers,
) -> Batch:
    """A batch from flat ids and lengths."""
    padded, source_mask = _grid(source, source_lengths)
    padded[np.arange(len(rows)), source_lengths] = EOS
    if target is None or target_lengths is None:
        target_in = target_out = np.zeros((len(rows), 0), dtype=np.int64)
        target_mask = np.zeros((len(rows), 0), dtype=bool)
    else:
        target_out, target_mask = _grid(target, target_lengths)
        target_in = np.empty_like(target_out)
        target_in[:, 0] = BOS
        target_in[:, 1:] = target_out[:, :-1]
        target_out[np.arange(len(rows)), target_lengths] = EOS
    return Batch(
        source=torch.from_numpy(padded),
        source_mask=torch.from_numpy(source_mask),
        source_lengths=torch.from_numpy(source_lengths + 1),
        target_in=torch.from_numpy(target_in),
        target_out=torch.from_numpy(target_out),
        target_mask=torch.from_numpy(target_mask),
        rows=torch.from_numpy(np.ascontiguousarray(rows, dtype=np.int64)),
        links=torch.zeros(len(rows), 0, 0),
    )


def _grid(values: npt.NDArray[np.int32], lengths: Integers) -> tuple[Integers, npt.NDArray[np.bool_]]:
    """[B, longest + 1] with PAD after each row's ids, and the mask with one place more a row, for EOS."""
    places = np.arange(int(lengths.max(initial=0)) + 1)
    padded = np.full((len(lengths), len(places)), PAD, dtype=np.int64)
    padded[places < lengths[:, None]] = values
    return padded, places <= lengths[:, None]


class Ragged:
    """Many lists of ids in a few flat arrays, each with its offsets (as Arrow keeps a list column).

    Args:
        chunks: (values, offsets) pairs; list i of a chunk is values[offsets[i]:offsets[i + 1]].
    """

    def __init__(self, chunks: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.integer]]]) -> None:
        self._chunks = list(chunks)
        counts = [len(offsets) - 1 for _, offsets in chunks]
        self._starts = np.cumsum([0, *counts])
        self.lengths: Integers = np.concatenate(
            [np.diff(offsets).astype(np.int64) for _, offsets in chunks] or [np.zeros(0, dtype=np.int64)]
        )

    def __len__(self) -> int:
        return len(self.lengths)

    def __getitem__(self, index: int) -> npt.NDArray[np.int32]:
        if not 0 <= index < len(self):
            raise IndexError(index)
        number = int(np.searchsorted(self._starts, index, side="right")) - 1
        values, offsets = self._chunks[number]
        at = index - int(self._starts[number])
        return values[offsets[at] : offsets[at + 1]]

    def take(self, indices: Integers) -> npt.NDArray[np.int32]:
        """The ids of these lists, one list after the other."""
        numbers = np.searchsorted(self._starts, indices, side="right") - 1
        parts = []
        for number, at in zip(numbers.tolist(), (indices - self._starts[numbers]).tolist()):
            values, offsets = self._chunks[number]
            parts.append(values[offsets[at] : offsets[at + 1]])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


class EncodedPairs:
    """A tokenised split without the pairs that were dropped.

    Args:
        source: ids of each source sentence, without specials.
        target: the same for the target.
        rows: [N] row number of each pair in the split.
        dropped: how many pairs were left out, by reason.
    """

    def __init__(self, source: Ragged, target: Ragged, rows: Integers, dropped: Mapping[str, int]) -> None:
        self._source = source
        self._target = target
        self.rows = rows
        self.dropped = dict(dropped)

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, index: int) -> list[int]:
        """Ids of one source sentence, without specials."""
        ids: list[int] = self._source[index].tolist()
        return ids

    def target(self, index: int) -> list[int]:
        """Ids of one target sentence, without specials."""
        ids: list[int] = self._target[index].tolist()
        return ids

    def lexicon(self, size: int) -> Lexicon:
        """The lexicon of the pairs, of as many as `nmt.text.lexicon.PLACES` allows; `size` source pieces exist."""
        order = np.random.default_rng(0).permutation(len(self))
        places = np.cumsum(self.source_lengths[order] * self.target_lengths[order])
        taken = np.sort(order[: max(1, np.searchsorted(places, PLACES))])
        return learn_lexicon(
            self._source.take(taken),
            self.source_lengths[taken],
            self._target.take(taken),
            self.target_lengths[taken],
            size,
        )

    def length_ratio(self, extra: int) -> float:
        """The least ratio from 1 on, such that 999 of 1,000 targets have no more than ratio * source + extra pieces."""
        needed = (self.target_lengths - extra) / np.maximum(self.source_lengths, 1)
        return max(1.0, math.ceil(100 * float(np.quantile(needed, 0.999))) / 100)

    @property
    def source_lengths(self) -> Integers:
        """[N] ids a source sentence, without specials."""
        return self._source.lengths

    @property
    def target_lengths(self) -> Integers:
        """[N] ids a target sentence, without specials."""
        return self._target.lengths

    def batch(self, indices: Integers) -> Batch:
        """The pairs with these indices (not row numbers), padded."""
        return _pad(
            self._source.take(indices),
            self.source_lengths[indices],
            self._target.take(indices),
            self.target_lengths[indices],
            self.rows[indices],
        )

    def dropped_note(self) -> str:
        """How many pairs were left out and why, for the user; "" where none was."""
        if not any(self.dropped.values()):
            return ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count)
        count = sum(self.dropped.values())
        return f"{count:,} of {count + len(self):,} pairs dropped: {reasons}."


#: Why a pair is dropped; each pair counts once, under the first that holds.
EMPTY, LONG_SOURCE, LONG_TARGET = "empty on a side", "source too long", "target too long"


class Block(NamedTuple):
    """Some tokenised pairs: flat ids and lengths of those kept, their rows, why others were not."""

    source: npt.NDArray[np.int32]
    source_lengths: Integers
    target: npt.NDArray[np.int32]
    target_lengths: Integers
    rows: Integers
    dropped: dict[str, int]


def filter_block(
    source: Sequence[Sequence[int]],
    target: Sequence[Sequence[int]],
    empty: npt.NDArray[np.bool_],
    first_row: int,
    max_source_length: int,
    max_target_length: int,
) -> Block:
    """Drops pairs that are `empty` or longer than the limits (in ids without specials) and counts them."""
    source_values, source_lengths = _flatten(source)
    target_values, target_lengths = _flatten(target)
    empty = empty | (source_lengths == 0) | (target_lengths == 0)
    long_source = ~empty & (source_lengths > max_source_length)
    long_target = ~empty & ~long_source & (target_lengths > max_target_length)
    kept = ~(empty | long_source | long_target)
    return Block(
        source_values[np.repeat(kept, source_lengths)],
        source_lengths[kept],
        target_values[np.repeat(kept, target_lengths)],
        target_lengths[kept],
        np.flatnonzero(kept) + first_row,
        {EMPTY: int(empty.sum()), LONG_SOURCE: int(long_source.sum()), LONG_TARGET: int(long_target.sum())},
    )


def encode_blocks(
    split: Split,
    tokenizer: Tokenizer,
    max_source_length: int,
    max_target_length: int,
    threads: int = 1,
    alpha: float = 0.0,
    seed: int = 0,
) -> Iterator[Block]:
    """Tokenises a split, a block of sentences at a time; with `alpha`, by subword sampling."""
    for number, first in enumerate(range(0, len(split.source), BLOCK)):
        source = split.source[first : first + BLOCK]
        target = split.target[first : first + BLOCK]
        if alpha > 0:
            seeds = np.random.SeedSequence((seed, number)).generate_state(2).tolist()
            source_ids = tokenizer.source.sample(source, alpha, seeds[0])
            target_ids = tokenizer.target.sample(target, alpha, seeds[1])
        else:
            source_ids = tokenizer.source.encode(source, threads)
            target_ids = tokenizer.target.encode(target, threads)
        empty = np.fromiter((_blank(s) or _blank(t) for s, t in zip(source, target, strict=True)), dtype=bool)
        yield filter_block(source_ids, target_ids, empty, first, max_source_length, max_target_length)


def _blank(sentence: str) -> bool:
    return not sentence or sentence.isspace()


def gather(blocks: Sequence[Block]) -> EncodedPairs:
    """The pairs of some blocks, in memory."""
    dropped = dict.fromkeys((EMPTY, LONG_SOURCE, LONG_TARGET), 0)
    for block in blocks:
        for reason, count in block.dropped.items():
            dropped[reason] += count
    return EncodedPairs(
        Ragged([(block.source, _offsets(block.source_lengths)) for block in blocks]),
        Ragged([(block.target, _offsets(block.target_lengths)) for block in blocks]),
        np.concatenate([block.rows for block in blocks] or [np.zeros(0, dtype=np.int64)]),
        dropped,
    )


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


def encode_in_memory(
    split: Split, tokenizer: Tokenizer, *, max_source_length: int, max_target_length: int, threads: int = 1
) -> EncodedPairs:
    """What `nmt.data.cache.prepare` returns, without a cache: for splits of moderate size."""
    return gather(list(encode_blocks(split, tokenizer, max_source_length, max_target_length, threads)))


class Pairs(Protocol):
    """Where `TokenBatches` takes its pairs from: the same every epoch, or new ones."""

    def for_epoch(self, epoch: int) -> EncodedPairs:
        """The pairs of this epoch, the same for the same number."""
        ...


class FixedPairs:
    """The same pairs in every epoch."""

    def __init__(self, pairs: EncodedPairs) -> None:
        self._pairs = pairs

    def for_epoch(self, epoch: int) -> EncodedPairs:
        """The pairs."""
        return self._pairs


class SampledPairs:
    """Subword sampling: every epoch cuts every sentence anew (`Vocabulary.sample` says what `alpha` is).

    The pairs of an epoch depend on `seed` and its number only.  They are held in memory, some 250 bytes a
    pair.
    """

    def __init__(
        self,
        split: Split,
        tokenizer: Tokenizer,
        *,
        alpha: float,
        seed: int,
        max_source_length: int,
        max_target_length: int,
    ) -> None:
        self._split = split
        self._tokenizer = tokenizer
        self._alpha = alpha
        self._seed = seed
        self._limits = (max_source_length, max_target_length)

    def for_epoch(self, epoch: int) -> EncodedPairs:
        """The split, tokenised for this epoch."""
        seed = int(np.random.SeedSequence((self._seed, epoch)).generate_state(1)[0])
        blocks = encode_blocks(self._split, self._tokenizer, *self._limits, alpha=self._alpha, seed=seed)
        return gather(list(blocks))


class TokenBatches:
    """Batches of similar lengths, filled to a token budget.

    A batch of B pairs takes B x S source places and B x T target places, padding and EOS included, and
    neither is more than `tokens_per_batch`; a single pair that is longer is a batch of its own.

    Args:
        pairs: a tokenised split, or `SampledPairs`.
        tokens_per_batch: the budget.
        seed: of the order; epoch n is the same for the same seed, whatever was read before.
        sentences_per_batch: the most pairs a batch, if there is to be such a limit.
        shuffle: whether an epoch's batches are composed and ordered at random; false gives the same batches,
            sorted by length, every time.
        guide: adds word links to a batch, where they guide the training.
    """

    def __init__(
        self,
        pairs: EncodedPairs | Pairs,
        *,
        tokens_per_batch: int,
        seed: int = 0,
        sentences_per_batch: int | None = None,
        shuffle: bool = True,
        guide: Callable[[Batch], Batch] | None = None,
    ) -> None:
        self._pairs: Pairs = FixedPairs(pairs) if isinstance(pairs, EncodedPairs) else pairs
        self._tokens = tokens_per_batch
        self._sentences = sentences_per_batch
        self._seed = seed
        self._shuffle = shuffle
        self._guide = guide
        self._held: tuple[int, EncodedPairs, list[Integers]] | None = None

    def plan(self, epoch: int) -> list[Integers]:
        """The batches of an epoch, each as the indices of its pairs; `collate` makes a `Batch` of one."""
        return self._open(epoch)[1]

    def collate(self, indices: Integers, epoch: int = 0) -> Batch:
        """The batch of these indices of `plan(epoch)`; the epoch matters to sampled pairs only."""
        return self._batch(self._open(epoch)[0], indices)

    def epoch(self, epoch: int, start: int = 0) -> Iterator[Batch]:
        """The batches of an epoch, from number `start` on (to go on in the middle of one)."""
        pairs, plan = self._open(epoch)
        for indices in plan[start:]:
            yield self._batch(pairs, indices)

    def _batch(self, pairs: EncodedPairs, indices: Integers) -> Batch:
        batch = pairs.batch(indices)
        return batch if self._guide is None else self._guide(batch)

    @property
    def padding(self) -> tuple[float, float]:
        """Share of the source places and of the target places that are padding, in the last plan."""
        pairs, plan = self._open(0 if self._held is None else self._held[0])
        return _padding(pairs.source_lengths + 1, plan), _padding(pairs.target_lengths + 1, plan)

    def _open(self, epoch: int) -> tuple[EncodedPairs, list[Integers]]:
        if self._held is None or self._held[0] != epoch:
            pairs = self._pairs.for_epoch(epoch)
            generator = np.random.default_rng((self._seed, epoch)) if self._shuffle else None
            plan = plan_batches(
                pairs.source_lengths + 1, pairs.target_lengths + 1, self._tokens, self._sentences, generator
            )
            self._held = (epoch, pairs, plan)
        return self._held[1], self._held[2]


def plan_batches(
    source_lengths: Integers,
    target_lengths: Integers,
    tokens_per_batch: int,
    sentences_per_batch: int | None = None,
    generator: np.random.Generator | None = None,
) -> list[Integers]:
    """Cuts pairs of these lengths (with specials) into batches; in random order, if there is a `generator`.

    Batches are filled to the budget.  Where that leaves more than 9 % of either side to padding, as it does
    when the pairs are few, batches that would hold much padding end earlier, though not before a quarter of
    the budget.
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
    """Sorts pairs so that those near each other are alike in both lengths.

    The pairs are halved at the median of the source or of the target length, whichever saves more padding,
    and the halves again, down to a part of a batch (a k-d tree; sorting by one length and then the other pads
    twice as much).
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
    """Runs of `order`, each as long as the budget and `limit`, the most padding a batch, allow."""
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


def _padding(lengths: Integers, plan: list[Integers]) -> float:
    places = sum(int(lengths[indices].max()) * len(indices) for indices in plan)
    return 1.0 - int(lengths[np.concatenate(plan)].sum()) / places if places else 0.0
