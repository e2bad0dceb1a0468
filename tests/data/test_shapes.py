"""A few shapes for all batches of a training: they hold every pair, stay within the budget and pad little."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.batch import make_batch
from nmt.data.shapes import MOST_SHAPES, Shape, choose_shapes, plan_in_shapes
from nmt.data.token_batches import TokenBatches
from tests.data.test_batches import encoded

LENGTHS = st.lists(st.tuples(st.integers(2, 300), st.integers(2, 90)), min_size=1, max_size=150)


def sentences(count: int, seed: int = 3) -> tuple[np.ndarray, np.ndarray]:
    """Lengths of pairs like those of captions: targets are about as long as sources."""
    generator = np.random.default_rng(seed)
    source = np.maximum(2, generator.gamma(8.0, 2.2, count)).astype(int) + 1
    target = np.maximum(2, source * generator.normal(0.95, 0.17, count)).astype(int) + 1
    return source, target


@pytest.mark.long
@given(LENGTHS, st.integers(1, 400), st.one_of(st.none(), st.integers(1, 9)), st.integers(0, 3))
def test_every_pair_is_in_one_batch_that_its_shape_holds(
    lengths: list[tuple[int, int]], tokens: int, most: int | None, seed: int
) -> None:
    source, target = np.array(lengths).T
    shapes = choose_shapes(source, target, tokens, most)
    assert 1 <= len(shapes) <= MOST_SHAPES
    for shape in shapes:
        assert shape.rows == 1 or shape.rows * max(shape.source, shape.target) <= tokens
        assert most is None or shape.rows <= most
    plan, rest = plan_in_shapes(source, target, shapes, np.random.default_rng(seed))
    assert len(rest) == 0
    assert sorted(index for _, batch in plan for index in batch) == list(range(len(source)))
    for shape, batch in plan:
        assert shape.holds(Shape(len(batch), source[batch].max(), target[batch].max()))


@given(LENGTHS)
def test_pairs_that_no_shape_holds_are_named(lengths: list[tuple[int, int]]) -> None:
    source, target = np.array(lengths).T
    plan, rest = plan_in_shapes(source, target, [Shape(4, 40, 30), Shape(2, 60, 50)])
    assert rest.tolist() == [at for at, pair in enumerate(lengths) if pair[0] > 60 or pair[1] > 50]
    assert Counter(index for _, batch in plan for index in batch).total() == len(lengths) - len(rest)


@pytest.mark.parametrize("tokens", [1250, 6000])
def test_sixteen_shapes_pad_at_most_twelve_percent(tokens: int) -> None:
    source, target = sentences(20_000)
    plan, _ = plan_in_shapes(source, target, choose_shapes(source, target, tokens), np.random.default_rng(1))
    for side, lengths in ((1, source), (2, target)):
        assert 1 - lengths.sum() / sum(shape.rows * shape[side] for shape, _ in plan) <= 0.12


def test_a_pair_meets_others_in_every_epoch() -> None:
    """Also where there are few batches, for which fewer shapes are chosen."""
    source, target = sentences(300)
    shapes = choose_shapes(source, target, 400)
    assert 1 < len(shapes) < MOST_SHAPES
    companions = [
        {frozenset(batch) for _, batch in plan_in_shapes(source, target, shapes, np.random.default_rng(seed))[0]}
        for seed in (1, 2)
    ]
    assert len(companions[0] & companions[1]) <= len(companions[0]) // 4


def batches(shaped: bool) -> TokenBatches:
    generator = np.random.default_rng(5)
    source, target = ([[7] * length for length in generator.integers(1, 20, 200)] for _ in range(2))
    made = TokenBatches(encoded(source, target), tokens_per_batch=90, seed=3)
    if shaped:
        made.fix_shapes()
    return made


def test_the_plan_of_an_epoch_depends_on_nothing_else() -> None:
    """A resumed training and every process have the same batches, which are others in each epoch."""
    one, other = batches(True), batches(True)
    list(one.epoch(0))
    plans = [[batch.tolist() for batch in made.plan(epoch)] for made in (one, other) for epoch in (1, 2)]
    assert plans[:2] == plans[2:]
    assert plans[0] != plans[1]
    assert sorted(index for batch in plans[0] for index in batch) == list(range(200))
    assert all(0 < share < 0.5 for share in one.padding)
    for batch in one.epoch(1):
        assert any(shape.holds(Shape.of(batch)) for shape in one.shapes(1))


@pytest.mark.parametrize("shaped", [False, True], ids=["to shapes", "from shapes"])
def test_a_resumed_epoch_keeps_the_batches_with_which_it_began(shaped: bool) -> None:
    """Where a CPU's training goes on with shapes, or the other way round; the next epoch has those of its device."""
    before, after = batches(shaped), batches(not shaped)
    after.keep_shapes(1, before.shapes(1))
    for epoch, expected in ((1, before), (2, batches(not shaped))):
        assert [batch.tolist() for batch in after.plan(epoch)] == [batch.tolist() for batch in expected.plan(epoch)]
        assert after.shapes(epoch) == expected.shapes(epoch)


def test_the_smallest_shape_of_a_batch() -> None:
    batch = make_batch([[5, 6, 7], [8]], [[5], [6, 7]])
    assert Shape.of(batch) == (2, 4, 3)
    assert Shape.of(batch, 4, 8) == (4, 8, 8)
