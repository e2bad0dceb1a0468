"""A split as token ids: tokenised, filtered and held in a few flat arrays.

`nmt.data.cache` memory-maps the same arrays from a file; `nmt.data.token_batches` cuts pairs into batches.
"""

import functools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, Integers, flatten, pad
from nmt.data.dataset import Split
from nmt.data.stored import MANY, gathered
from nmt.system.facts import MOST_LENGTH_RATIO
from nmt.text.canonical import shows_nothing
from nmt.text.lexicon import PLACES, Lexicon, learn_lexicon
from nmt.text.tokenizer import Tokenizer, Vocabulary

#: Sentences in a `Block`.
BLOCK = 20_000


class Ragged:
    """Many lists of ids in a few flat arrays with offsets, as Arrow stores a list column.

    Args:
        chunks: (values, offsets) pairs; list i of a chunk is values[offsets[i]:offsets[i + 1]].
        folder: stores the lengths of very many lists; None for the system's temporary folder.
    """

    def __init__(
        self,
        chunks: Sequence[tuple[npt.NDArray[np.int32], npt.NDArray[np.integer]]],
        folder: Path | None = None,
    ) -> None:
        self._chunks = list(chunks)
        counts = [len(offsets) - 1 for _, offsets in chunks]
        self._starts = np.cumsum([0, *counts])
        self.lengths: Integers = gathered((np.diff(offsets) for _, offsets in chunks), sum(counts), folder)

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
        """The ids of the lists with these indices, concatenated."""
        numbers = np.searchsorted(self._starts, indices, side="right") - 1
        parts = []
        for number, at in zip(numbers.tolist(), (indices - self._starts[numbers]).tolist()):
            values, offsets = self._chunks[number]
            parts.append(values[offsets[at] : offsets[at + 1]])
        return np.concatenate(parts) if parts else np.zeros(0, dtype=np.int32)


class EncodedPairs:
    """A tokenised split without its dropped pairs; ids and lengths [N] exclude special tokens.

    Args:
        source: ids of each source sentence.
        target: the same for the target.
        rows: [N] row number of each pair in the split.
        dropped: number of dropped pairs by reason.
    """

    def __init__(self, source: Ragged, target: Ragged, rows: Integers, dropped: Mapping[str, int]) -> None:
        self._source, self._target, self.rows, self.dropped = source, target, rows, dict(dropped)
        self.source_lengths, self.target_lengths = source.lengths, target.lengths

    def __len__(self) -> int:
        return len(self.rows)

    def source(self, index: int) -> list[int]:
        """Ids of one source sentence."""
        return list(map(int, self._source[index]))

    def target(self, index: int) -> list[int]:
        """Ids of one target sentence."""
        return list(map(int, self._target[index]))

    def batch(self, indices: Integers) -> Batch:
        """The pairs with these indices (not row numbers), padded."""
        return pad(*self.take(indices), self.rows[indices])

    def take(self, indices: Integers) -> tuple[npt.NDArray[np.int32], Integers, npt.NDArray[np.int32], Integers]:
        """Concatenated source ids of these pairs, their lengths, and the same for the targets."""
        source, target = self._source.take(indices), self._target.take(indices)
        return source, self.source_lengths[indices], target, self.target_lengths[indices]

    def for_epoch(self, epoch: int) -> "EncodedPairs":
        """The same pairs in every epoch."""
        return self

    def dropped_note(self) -> str:
        """A message that says how many pairs were dropped and why; "" for none."""
        if not any(self.dropped.values()):
            return ""
        reasons = ", ".join(f"{count:,} {reason}" for reason, count in self.dropped.items() if count)
        count = sum(self.dropped.values())
        return f"{count:,} of {count + len(self):,} pairs dropped: {reasons}."


#: Why a pair is dropped; each pair counts once, under the first reason that applies.
REASONS = EMPTY, LONG_SOURCE, LONG_TARGET = "empty on a side", "source too long", "target too long"


class Block(NamedTuple):
    """Part of a tokenised split: flat ids, lengths and rows, and the number of dropped pairs by reason."""

    source: npt.NDArray[np.int32]
    source_lengths: Integers
    target: npt.NDArray[np.int32]
    target_lengths: Integers
    rows: Integers
    dropped: dict[str, int]


def encode_blocks(
    split: Split,
    tokenizer: Tokenizer,
    max_source_length: int,
    max_target_length: int,
    threads: int = 1,
    alpha: float = 0.0,
    seed: int = 0,
) -> Iterator[Block]:
    """Tokenise a split, a block of sentences at a time; with `alpha`, by subword sampling.

    Pairs that are empty or longer than the limits (in ids without specials) are dropped and counted.
    """
    vocabularies, limits = (tokenizer.source, tokenizer.target), (max_source_length, max_target_length)
    for number, first in enumerate(range(0, len(split.source), BLOCK)):
        texts = [side[first : first + BLOCK] for side in (split.source, split.target)]
        seeds = np.random.SeedSequence((seed, number)).generate_state(2).tolist() if alpha > 0 else (0, 0)
        (source, source_lengths), (target, target_lengths) = (
            flatten(_sampled(*side, alpha) if alpha > 0 else side[0].encode(side[1], threads))
            for side in zip(vocabularies, texts, limits, seeds, strict=True)
        )
        empty = np.fromiter((any(map(shows_nothing, pair)) for pair in zip(*texts, strict=True)), dtype=bool)
        empty |= (source_lengths == 0) | (target_lengths == 0)
        long_source = ~empty & (source_lengths > max_source_length)
        long_target = ~empty & ~long_source & (target_lengths > max_target_length)
        fits = ~(empty | long_source | long_target)
        yield Block(
            source[np.repeat(fits, source_lengths)],
            source_lengths[fits],
            target[np.repeat(fits, target_lengths)],
            target_lengths[fits],
            np.flatnonzero(fits) + first,
            {EMPTY: int(empty.sum()), LONG_SOURCE: int(long_source.sum()), LONG_TARGET: int(long_target.sum())},
        )


def _sampled(vocabulary: Vocabulary, texts: Sequence[str], most: int, seed: int, alpha: float) -> list[list[int]]:
    """Segment texts at random; a text that gets more than `most` pieces has its usual segmentation instead.

    A text that has more than `most` pieces in any segmentation is taken as empty.
    """
    possible = [text if len(text) <= most * vocabulary.longest else "" for text in texts]
    sampled = vocabulary.sample(possible, alpha, seed)
    long = [at for at, ids in enumerate(sampled) if len(ids) > most]
    for at, ids in zip(long, vocabulary.encode([possible[at] for at in long]), strict=True):
        sampled[at] = ids
    return sampled


def held(encoded: Iterator[Block]) -> EncodedPairs:
    """Join blocks in memory."""
    blocks = list(encoded)
    dropped = {reason: sum(block.dropped[reason] for block in blocks) for reason in REASONS}
    return EncodedPairs(
        Ragged([(block.source, _offsets(block.source_lengths)) for block in blocks]),
        Ragged([(block.target, _offsets(block.target_lengths)) for block in blocks]),
        np.concatenate([block.rows for block in blocks] or [np.zeros(0, dtype=np.int64)]),
        dropped,
    )


def _offsets(lengths: Integers) -> Integers:
    return np.concatenate([np.zeros(1, dtype=np.int64), np.cumsum(lengths)])


class SampledPairs:
    """Subword sampling: every epoch segments every sentence anew (`Vocabulary.sample` defines `alpha`).

    The pairs of an epoch depend only on `seed` and its number. `hold` stores them; `held` stores them in memory, with
    some 250 bytes a pair.
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
        hold: Callable[[Iterator[Block]], EncodedPairs] = held,
    ) -> None:
        self._seed, self._hold = seed, hold
        self._encode = functools.partial(
            encode_blocks, split, tokenizer, max_source_length, max_target_length, alpha=alpha
        )

    def for_epoch(self, epoch: int) -> EncodedPairs:
        """The split, tokenised for this epoch."""
        seed = int(np.random.SeedSequence((self._seed, epoch)).generate_state(1)[0])
        return self._hold(self._encode(seed=seed))


def lexicon_of(pairs: EncodedPairs, source_pieces: int) -> Lexicon:
    """Learn a lexicon from the training pairs, or from a sample of the size that `nmt.text.lexicon.PLACES` allows."""
    generator = np.random.default_rng(0)
    if len(pairs) <= MANY:
        order = generator.permutation(len(pairs))
    else:
        order = generator.permutation(np.unique(generator.integers(len(pairs), size=MANY)))
    places = np.cumsum(pairs.source_lengths[order] * pairs.target_lengths[order])
    sample = np.sort(order[: max(1, np.searchsorted(places, PLACES))])
    return learn_lexicon(*pairs.take(sample), source_pieces)


def length_ratio(pairs: EncodedPairs, extra: int) -> float:
    """The smallest ratio of 1 to 50 such that 999 of 1,000 targets have at most ratio * source + extra pieces.

    Of very many pairs, only every second, third ... is considered.
    """
    some = slice(None, None, len(pairs) // MANY + 1)
    needed = (pairs.target_lengths[some] - extra) / np.maximum(pairs.source_lengths[some], 1)
    return min(max(1.0, math.ceil(100 * float(np.quantile(needed, 0.999))) / 100), MOST_LENGTH_RATIO)
