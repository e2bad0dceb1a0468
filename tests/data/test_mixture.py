"""Batches of two texts: every pair of the first one once an epoch, and a share of the second one in each batch."""

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from nmt.data.dataset import Split
from nmt.data.mixture import Chain, MixedBatches, joined
from nmt.data.pairs import EncodedPairs, Ragged


def encoded(lengths: list[int], dropped: int = 0) -> EncodedPairs:
    """Pairs with these lengths on both sides; the first `dropped` rows of the split are not there."""
    offsets = np.cumsum([0, *lengths])
    side = Ragged([(np.arange(offsets[-1], dtype=np.int32), offsets)])
    return EncodedPairs(side, side, np.arange(dropped, len(lengths) + dropped), {})


@given(
    first=st.lists(st.integers(1, 20), min_size=1, max_size=60),
    second=st.lists(st.integers(1, 40), min_size=1, max_size=200),
    share=st.sampled_from([0.1, 0.5, 0.8]),
    epoch=st.integers(0, 3),
)
@example(first=[1], second=[7], share=0.8, epoch=0)
def test_an_epoch_has_the_first_text_once(first: list[int], second: list[int], share: float, epoch: int) -> None:
    pairs = encoded([*first, *second])
    batches = MixedBatches(pairs, len(first), share, tokens_per_batch=100, seed=5)
    plan = batches.plan(epoch)
    rows = np.concatenate([plan[at] for at in range(len(plan))])
    assert sorted(rows[rows < len(first)].tolist()) == list(range(len(first)))
    again = MixedBatches(pairs, len(first), share, tokens_per_batch=100, seed=5).plan(epoch)
    assert [plan[at].tolist() for at in range(len(plan))] == [again[at].tolist() for at in range(len(again))]
    # Up to the last draw, which may be longer than what was wanted.
    tokens = 2 * (np.array([*first, *second]) + 1)
    wanted = tokens[: len(first)].sum() * share / (1 - share)
    # A product in floating point may be a little more than a whole number.
    assert wanted - 1e-6 <= tokens[rows[rows >= len(first)]].sum() < wanted + 1e-6 + tokens[len(first) :].max()
    places = [int(tokens[plan[at]].max() // 2) * len(plan[at]) for at in range(len(plan))]
    alone = [sum(plan[at] < len(first)) < 2 for at in range(len(plan))]
    assert all(count <= 100 or one for count, one in zip(places, alone, strict=True))


def test_each_batch_has_its_share_and_each_epoch_other_pairs() -> None:
    generator = np.random.default_rng(1)
    pairs = encoded(generator.integers(3, 20, 3000).tolist())
    batches = MixedBatches(pairs, 500, 0.5, tokens_per_batch=500, seed=1)
    drawn = []
    for epoch in (0, 1):
        plan = batches.plan(epoch)
        tokens = pairs.source_lengths + 1
        of_batches = [plan[at] for at in range(len(plan)) if tokens[plan[at]].sum() > 200]  # others are rests
        shares = [tokens[rows[rows >= 500]].sum() / tokens[rows].sum() for rows in of_batches]
        assert len(shares) > 10
        assert 0.4 < min(shares) < max(shares) < 0.6
        assert max(plan.padding) < 0.25
        drawn.append({row for at in range(len(plan)) for row in plan[at].tolist() if row >= 500})
    assert drawn[0] != drawn[1]
    assert batches.collate(batches.plan(0)[0]).source.shape[0] == len(batches.plan(0)[0])


def test_a_dropped_pair_moves_no_other() -> None:
    """Rows are those of the split: the first text has 4 rows, of which one was dropped."""
    plan = MixedBatches(encoded([5] * 9, dropped=1), 4, 0.5, tokens_per_batch=1000).plan(0)
    assert sorted(plan[0][plan[0] < 3].tolist()) == [0, 1, 2]
    assert len(plan[0]) == 6, "as many of the second text, which has the same length"


@given(st.lists(st.integers()), st.lists(st.integers()), st.slices(12))
def test_a_chain_is_one_list(first: list[int], second: list[int], some: slice) -> None:
    chain = Chain(first, second)
    assert [*chain] == [*first, *second]
    assert chain[some] == [*first, *second][some]


@pytest.mark.parametrize("documents", [None, [0, 0, 1]])
def test_links_and_documents_of_two_texts(documents: list[int] | None) -> None:
    first = Split("train", ["a", "b"], ["A", "B"], ["0-0", "0-0"], [3, 3])
    second = Split("train", ["c", "d", "e"], ["C", "D", "E"], documents=documents)
    both = joined(first, second, "both")
    assert ([*both.source], [*both.target]) == (["a", "b", "c", "d", "e"], ["A", "B", "C", "D", "E"])
    assert both.links is not None
    assert [*both.links] == ["0-0", "0-0", "", "", ""]
    assert both.documents == ([3, 3, 4, 5, 6] if documents is None else [3, 3, 4, 4, 5])
    assert joined(second, first, "both").links is None
