"""Batches: every pair once, padded as a list would be, within the budget, with little padding, the same for a seed."""

from collections.abc import Sequence

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batch import make_batch
from nmt.data.dataset import Split
from nmt.data.pairs import EncodedPairs, Ragged, SampledPairs, encode_blocks, held, length_ratio
from nmt.data.token_batches import TokenBatches, plan_batches
from nmt.text.tokenizer import BOS, EOS, PAD, Tokenizer, Vocabulary
from nmt.text.tokenizer_trainer import TokenizerTrainer

TOKENS = st.lists(st.integers(4, 99), max_size=7)
PAIRS = st.lists(st.tuples(TOKENS, TOKENS), min_size=1, max_size=6)


def encoded(source: list[list[int]], target: list[list[int]], chunk: int = 5) -> EncodedPairs:
    """Pairs in memory, in several chunks; row numbers are 10, 20, 30 ..."""

    def ragged(lists: list[list[int]]) -> Ragged:
        return Ragged(
            [
                (
                    np.array([token for tokens in part for token in tokens], dtype=np.int32),
                    np.cumsum([0, *map(len, part)]),
                )
                for part in (lists[first : first + chunk] for first in range(0, len(lists), chunk))
            ]
        )

    return EncodedPairs(ragged(source), ragged(target), 10 * np.arange(1, len(source) + 1), {})


def lengths(count: int, seed: int = 1) -> tuple["np.ndarray[tuple[int], np.dtype[np.int64]]", ...]:
    """Lengths like those of Multi30k: 5 to 45 pieces, the two sides alike but not equal."""
    generator = np.random.default_rng(seed)
    source = np.clip(generator.normal(16, 5.5, count), 4, 45)
    target = np.clip(source * generator.normal(1.0, 0.17, count), 4, 45)
    return source.astype(np.int64), target.astype(np.int64)


@given(PAIRS)
def test_a_batch_by_the_book(pairs: list[tuple[list[int], list[int]]]) -> None:
    source, target = [list(a) for a, _ in pairs], [list(b) for _, b in pairs]
    batch = make_batch(source, target, [7 * row for row in range(len(pairs))])
    source_size, target_size = max(map(len, source)) + 1, max(map(len, target)) + 1

    def padded(lists: list[list[int]], size: int) -> list[list[int]]:
        return [[*tokens, *[PAD] * (size - len(tokens))] for tokens in lists]

    assert batch.source.tolist() == padded([[*s, EOS] for s in source], source_size)
    assert batch.target_in.tolist() == [row[:target_size] for row in padded([[BOS, *t] for t in target], target_size)]
    assert batch.target_out.tolist() == padded([[*t, EOS] for t in target], target_size)
    assert batch.source_lengths.tolist() == [len(s) + 1 for s in source] == batch.source_mask.sum(1).tolist()
    assert batch.target_mask.sum(1).tolist() == [len(t) + 1 for t in target]
    # A mask is true from the start to the end of the sentence and nowhere else.
    for mask in (batch.source_mask, batch.target_mask):
        assert (mask.long().diff(dim=1) <= 0).all()
        assert mask[:, 0].all()
    assert batch.rows.tolist() == [7 * row for row in range(len(pairs))]
    assert batch.links.shape == (len(pairs), 0, 0)  # nothing guides
    dtypes = [tensor.dtype for tensor in batch[:7]]
    assert dtypes == [torch.int64, torch.bool, torch.int64, torch.int64, torch.int64, torch.bool, torch.int64]


def test_a_batch_without_targets() -> None:
    batch = make_batch([[5, 6], []])
    assert batch.source.tolist() == [[5, 6, EOS], [EOS, PAD, PAD]]
    assert batch.target_in.shape == batch.target_out.shape == batch.target_mask.shape == (2, 0)
    assert batch.rows.tolist() == [0, 1]
    assert make_batch([]).source.shape == (0, 1)


def test_moving_leaves_lengths_and_rows_on_the_cpu() -> None:
    batch = make_batch([[5, 6]], [[7]]).to("meta")
    devices = [tensor.device.type for tensor in batch[:8]]
    assert devices == ["meta", "meta", "cpu", "meta", "meta", "meta", "cpu", "meta"]


@given(st.lists(st.tuples(TOKENS, TOKENS), max_size=17), st.integers(1, 6))
def test_pairs_come_back_from_flat_arrays(pairs: list[tuple[list[int], list[int]]], chunk: int) -> None:
    source, target = [list(a) for a, _ in pairs], [list(b) for _, b in pairs]
    stored = encoded(source, target, chunk)
    assert len(stored) == len(pairs)
    assert [stored.source(i) for i in range(len(pairs))] == source
    assert [stored.target(i) for i in range(len(pairs))] == target
    order = np.random.default_rng(0).permutation(len(pairs))
    if len(pairs):
        one = stored.batch(order)
        other = make_batch([source[i] for i in order], [target[i] for i in order], stored.rows[order])
        assert all(torch.equal(a, b) for a, b in zip(one, other, strict=True))
    with pytest.raises(IndexError):
        stored.source(len(pairs))


@given(
    st.lists(st.tuples(st.integers(1, 60), st.integers(1, 60)), max_size=80),
    st.integers(1, 200),
    st.none() | st.integers(1, 9),
    st.none() | st.integers(0, 3),
)
def test_a_plan_holds_every_pair_once_within_the_budget(
    sizes: list[tuple[int, int]], tokens: int, sentences: int | None, seed: int | None
) -> None:
    source, target = (np.array([pair[side] for pair in sizes], dtype=np.int64) for side in (0, 1))

    def plan() -> list[list[int]]:
        generator = None if seed is None else np.random.default_rng(seed)
        return [indices.tolist() for indices in plan_batches(source, target, tokens, sentences, generator)]

    made = plan()
    assert sorted(index for indices in made for index in indices) == list(range(len(sizes)))
    for indices in made:
        assert len(indices) <= (sentences or len(sizes))
        for side in (source, target):
            assert len(indices) == 1 or len(indices) * side[indices].max() <= tokens
    assert made == plan()
    if seed is None:
        longest = [target[indices].max() for indices in made]
        assert longest == sorted(longest)


# Of few pairs, a handful of batches cannot be both full and even.
@pytest.mark.parametrize(("count", "tokens"), [(2_000, 1_000), (29_000, 1_000), (29_000, 4_000), (29_000, 8_000)])
@pytest.mark.parametrize("shuffled", [True, False])
def test_less_than_a_tenth_is_padding(count: int, tokens: int, shuffled: bool) -> None:
    source, target = lengths(count)
    plan = plan_batches(source, target, tokens, None, np.random.default_rng(1) if shuffled else None)
    for side in (source, target):
        places = sum(int(side[indices].max()) * len(indices) for indices in plan)
        assert 1 - side.sum() / places < 0.1
    # And the batches are worth their name.
    fill = max(source.sum(), target.sum()) / len(plan) / tokens
    assert fill > (0.75 if count == 29_000 else 0.5)


@pytest.fixture(scope="module")
def numbered() -> EncodedPairs:
    """Pairs of many lengths; the first token of each names it."""
    source, target = lengths(400)
    return encoded(
        [[4 + row, *[4] * (int(size) - 1)] for row, size in enumerate(source)],
        [[4 + row, *[5] * (int(size) - 1)] for row, size in enumerate(target)],
    )


def test_an_epoch_is_a_function_of_seed_and_number(numbered: EncodedPairs) -> None:
    def order(seed: int, epoch: int, start: int = 0) -> list[list[int]]:
        batches = TokenBatches(numbered, tokens_per_batch=300, seed=seed)
        return [batch.rows.tolist() for batch in batches.epoch(epoch, start)]

    assert order(1, 0) == order(1, 0)
    assert order(1, 0) != order(1, 1)
    assert order(1, 0) != order(2, 0)
    assert order(1, 3, start=4) == order(1, 3)[4:]
    assert sorted(row for rows in order(1, 5) for row in rows) == numbered.rows.tolist()
    # Batches are composed anew too, not only put into another order.
    assert {frozenset(rows) for rows in order(1, 0)} != {frozenset(rows) for rows in order(1, 1)}
    # What was read before makes no difference.
    batches = TokenBatches(numbered, tokens_per_batch=300, seed=1)
    list(batches.epoch(7))
    assert [batch.rows.tolist() for batch in batches.epoch(3)] == order(1, 3)


def test_plan_collate_and_epoch_agree(numbered: EncodedPairs) -> None:
    batches = TokenBatches(numbered, tokens_per_batch=300, seed=1, sentences_per_batch=8)
    for indices, batch in zip(batches.plan(2), batches.epoch(2), strict=True):
        again = batches.collate(indices, 2)
        assert all(torch.equal(a, b) for a, b in zip(again, batch, strict=True))
        assert len(indices) <= 8
        assert batch.source[:, 0].tolist() == [4 + int(index) for index in indices]
        assert torch.equal(batch.source[:, 0], batch.target_out[:, 0])  # the sides stay together
        assert batch.rows.tolist() == numbered.rows[indices].tolist()


def test_a_pair_longer_than_the_budget_is_a_batch_of_its_own() -> None:
    pairs = encoded([[5] * 50, [5], [6]], [[5], [5], [6]])
    plan = TokenBatches(pairs, tokens_per_batch=10).plan(0)
    assert sorted(sorted(indices.tolist()) for indices in plan) == [[0], [1, 2]]


def test_no_pairs_no_batches() -> None:
    batches = TokenBatches(encoded([], []), tokens_per_batch=10)
    assert list(batches.epoch(0)) == []
    assert batches.padding == (0.0, 0.0)


class TestSampledPairs:
    """Subword sampling: other pieces every epoch, the same text."""

    SPLIT = Split(
        "train", ["the red house and the dog", "", "a cat under the house"] * 20, ["das rote Haus und der Hund"] * 60
    )

    def pairs(self, seed: int = 1, longest: int = 60) -> SampledPairs:
        """The split, sampled."""
        if not _made:
            trainer = TokenizerTrainer("bpe", vocabulary_size=330)
            _made.append(trainer.train(self.SPLIT.source, self.SPLIT.target)[0])
        return SampledPairs(
            self.SPLIT, _made[0], alpha=0.3, seed=seed, max_source_length=longest, max_target_length=longest
        )

    def test_every_epoch_cuts_anew(self) -> None:
        def ids(pairs: EncodedPairs) -> list[list[int]]:
            return [pairs.source(i) for i in range(len(pairs))]

        assert ids(self.pairs().for_epoch(0)) == ids(self.pairs().for_epoch(0))
        assert ids(self.pairs().for_epoch(0)) != ids(self.pairs().for_epoch(1))
        assert ids(self.pairs().for_epoch(0)) != ids(self.pairs(seed=2).for_epoch(0))
        pairs = self.pairs().for_epoch(3)
        assert pairs.dropped["empty on a side"] == 20
        assert [_made[0].source.decode(tokens) for tokens in ids(pairs)] == [text for text in self.SPLIT.source if text]

    def test_what_became_too_long_is_cut_as_always(self) -> None:
        whole = held(encode_blocks(self.SPLIT, _made[0], max_source_length=99, max_target_length=99))
        longest = int(max(whole.source_lengths.max(), whole.target_lengths.max()))
        pairs = self.pairs(longest=longest + 4).for_epoch(0)
        assert len(pairs) == len(whole)
        assert longest < max(pairs.source_lengths.max(), pairs.target_lengths.max()) <= longest + 4

    def test_what_cannot_fit_is_not_cut_at_all(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.pairs()
        sampled: list[str] = []
        sample = Vocabulary.sample

        def recorded(self: Vocabulary, sentences: Sequence[str], alpha: float, seed: int) -> list[list[int]]:
            sampled.extend(sentences)
            return sample(self, sentences, alpha, seed)

        monkeypatch.setattr(Vocabulary, "sample", recorded)
        endless = "the red house " * 100
        split = Split("train", ["the dog", endless, "a cat"], ["der Hund", "ein Haus", "eine Katze"])
        pairs = SampledPairs(split, _made[0], alpha=0.3, seed=1, max_source_length=20, max_target_length=20)
        assert pairs.for_epoch(0).rows.tolist() == [0, 2]
        assert sampled == ["the dog", "", "a cat", *split.target]

    def test_batches_of_sampled_pairs(self) -> None:
        batches = TokenBatches(self.pairs(), tokens_per_batch=200, seed=3)
        for epoch in (0, 1):
            rows = [row for batch in batches.epoch(epoch) for row in batch.rows.tolist()]
            assert sorted(rows) == [row for row, text in enumerate(self.SPLIT.source) if text]
        resumed = TokenBatches(self.pairs(), tokens_per_batch=200, seed=3)
        for one, other in zip(batches.epoch(1, start=2), resumed.epoch(1, start=2), strict=True):
            assert torch.equal(one.source, other.source)


_made: list[Tokenizer] = []


def test_how_long_a_target_can_be() -> None:
    """By hand: of 2,000 pairs of 10 pieces, two have 35 in the target and one 80; (35 - 5) / 10 = 3."""
    source = [[4] * 10] * 2000
    target = [[4] * 10] * 1997 + [[4] * 35] * 2 + [[4] * 80]
    assert length_ratio(encoded(source, target), 5) == 3
    assert length_ratio(encoded(source[:3], target[:3]), 5) == 1, "never less than the source"
    assert length_ratio(encoded([[]], [[4] * 7]), 5) == 2
