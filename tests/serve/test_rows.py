"""The queue, with a clock of its own: order, fairness, bounds, and rows that nobody waits for."""

import threading
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serve.rows import FIRST_SPEED, PATIENCE, TURNS, ClosedError, QueueFullError, Row, RowQueue


def rows(name: str, *sizes: int, key: str = "k", low: bool = False) -> list[Row]:
    return [Row(key, f"{name}{at}", size, low) for at, size in enumerate(sizes)]


def queue(most: int = 1000, batch_rows: int = 4, batch_pieces: int = 100) -> RowQueue:
    ticks = count()
    return RowQueue(most, batch_rows, batch_pieces, clock=lambda: float(next(ticks)))


def taken(made: RowQueue) -> list[str]:
    return [row.work for row in made.take(0) or []]


def test_a_single_row_is_a_batch_at_once() -> None:
    made = queue()
    made.put(rows("a", 5))
    assert taken(made) == ["a0"]
    assert made.take(0) == []


def test_a_long_request_shares_each_batch_with_a_short_one() -> None:
    made = queue(most=100_000)
    made.put(rows("long", *[5] * 1000))
    assert taken(made) == ["long0", "long1", "long2", "long3"]
    made.put(rows("b", 5))
    made.put(rows("c", 5, 5))
    assert sorted(taken(made)) == ["b0", "c0", "long4", "long5"]
    assert sorted(taken(made)) == ["c1", "long6", "long7", "long8"]


def test_batches_are_dealt_round_robin_and_the_next_round_begins_with_those_left_out() -> None:
    made = queue(batch_rows=2)
    for name in "abc":
        made.put(rows(name, 5, 5))
    assert [taken(made) for _ in range(3)] == [["a0", "b0"], ["c0", "a1"], ["b1", "c1"]]


def test_rows_of_similar_length_share_a_batch() -> None:
    made = queue(batch_rows=3)
    made.put(rows("a", 5))
    made.put(rows("b", 30))
    made.put(rows("c", 29, 6, 7))
    made.put(rows("d", 8))
    assert sorted(taken(made)) == ["a0", "c1", "d0"]
    assert sorted(taken(made)) == ["b0", "c0", "c2"]


@given(st.lists(st.integers(1, 30), min_size=60, max_size=60), st.integers(1, 30))
def test_no_row_waits_for_many_batches_of_other_lengths(sizes: list[int], size: int) -> None:
    made = queue(most=100_000, batch_rows=4, batch_pieces=1000)
    arriving = iter(sizes)

    def arrive(several: int) -> None:
        for _ in range(several):
            made.put(rows("other", next(arriving)))

    arrive(4)
    made.put(rows("waiting", size))
    for _ in range(PATIENCE + 1):
        arrive(4)
        if "waiting0" in taken(made):
            return
    pytest.fail("the row still waits")


def test_rows_of_other_settings_wait_for_their_own_batch() -> None:
    made = queue()
    made.put(rows("a", 5, 5))
    made.put(rows("b", 5, key="other"))
    made.put(rows("c", 5))
    assert taken(made) == ["a0", "c0", "a1"]
    assert taken(made) == ["b0"]


def test_a_batch_is_bounded_by_its_longest_row_but_a_lone_row_is_not() -> None:
    made = queue(batch_pieces=20)
    made.put(rows("a", 300))
    made.put(rows("b", 10, 10, 10))
    assert taken(made) == ["a0"]
    assert taken(made) == ["b0", "b1"]
    assert taken(made) == ["b2"]


def test_the_bound_counts_pieces_and_says_when_to_come_back() -> None:
    made = queue(most=1000)
    made.put(rows("a", 600))
    assert made.pieces == 600
    with pytest.raises(QueueFullError) as full:
        made.put(rows("b", 300, 200))
    assert full.value.retry_after == round(600 / FIRST_SPEED + 0.5)
    made.measured(6000, 1.0)
    assert made.speed == pytest.approx(0.8 * FIRST_SPEED + 0.2 * 6000)
    with pytest.raises(QueueFullError) as never:
        made.put(rows("c", 1001))
    assert never.value.retry_after == 0
    assert len(made) == 1
    assert taken(made) == ["a0"]
    made.put(rows("b", 300, 200))
    assert made.pieces == 500


def test_rows_that_nobody_waits_for_are_dropped() -> None:
    made = queue()
    left, stays = rows("a", 5, 5, 5), rows("b", 5)
    made.put(left)
    made.put(stays)
    for row in left:
        row.result.cancel()
    assert taken(made) == ["b0"]
    assert made.take(0) == []
    assert made.pieces == 0


def test_the_lower_queue_waits_but_does_not_starve() -> None:
    made = queue(most=100_000, batch_rows=1)
    made.put(rows("low", 5, low=True))
    made.put(rows("a", *[5] * 20))
    order = [taken(made)[0] for _ in range(TURNS + 2)]
    assert order.index("low0") == TURNS
    made.put(rows("last", 5, low=True))
    assert "last0" in [taken(made)[0] for _ in range(TURNS + 1)]


def test_a_closed_queue_is_emptied_and_takes_nothing() -> None:
    made = queue()
    made.put(rows("a", 5))
    made.close()
    with pytest.raises(ClosedError):
        made.put(rows("b", 5))
    assert taken(made) == ["a0"]
    assert made.take() is None


def test_whoever_waits_is_woken() -> None:
    made = queue()
    seen: list[list[Row] | None] = []
    thread = threading.Thread(target=lambda: seen.append(made.take()))
    thread.start()
    made.put(rows("a", 5))
    thread.join(600)
    assert seen[0] is not None
    assert [row.work for row in seen[0]] == ["a0"]


@given(
    st.lists(
        st.tuples(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.sampled_from("kl"), st.booleans()),
        max_size=9,
    )
)
def test_every_row_is_served_once_and_pieces_add_up(requests: list[tuple[list[int], str, bool]]) -> None:
    made = queue(most=10**6, batch_rows=3, batch_pieces=40)
    expected = set()
    for number, (sizes, key, low) in enumerate(requests):
        put = rows(f"{number}-", *sizes, key=key, low=low)
        expected |= {row.work for row in put}
        made.put(put)
    assert made.pieces == sum(sum(sizes) for sizes, _, _ in requests)
    served: list[str] = []
    while batch := made.take(0):
        assert len({row.key for row in batch}) == 1
        assert len(batch) <= 3
        assert len(batch) == 1 or max(row.pieces for row in batch) * len(batch) <= 40
        served += [row.work for row in batch]
    assert sorted(served) == sorted(expected)
    assert made.pieces == len(made) == 0
