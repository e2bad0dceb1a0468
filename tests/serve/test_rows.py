"""The rows that wait for a model, and the worker: order, fairness, bounds, rows that fail and clients that leave."""

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serve.problems import ProblemError
from nmt.serve.rows import FIRST_SPEED, Row, RowQueue, Worker


def rows(name: str, *sizes: int, key: str = "k") -> list[Row]:
    return [Row(key, f"{name}{at}", size) for at, size in enumerate(sizes)]


def taken(queue: RowQueue) -> list[str]:
    return [row.work for row in queue.take(0) or []]


def refused(queue: RowQueue, added: list[Row]) -> ProblemError:
    with pytest.raises(ProblemError) as caught:
        queue.put(added)
    return caught.value


def test_a_long_request_shares_each_batch_with_short_ones() -> None:
    queue = RowQueue(100_000, 4, 100)
    queue.put(rows("long", *[5] * 1000))
    assert taken(queue) == ["long0", "long1", "long2", "long3"]
    queue.put(rows("b", 5))
    queue.put(rows("c", 5, 5))
    assert sorted(taken(queue)) == ["b0", "c0", "long4", "long5"]
    assert sorted(taken(queue)) == ["c1", "long6", "long7", "long8"]


@pytest.mark.parametrize(
    ("bounds", "requests", "batches"),
    [
        ((2, 100), {"a": [5, 5], "b": [5, 5], "c": [5, 5]}, [["a0", "b0"], ["c0", "a1"], ["b1", "c1"]]),
        ((2, 100), {"a": [5, 30, 6, 29]}, [["a0", "a2"], ["a3", "a1"]]),
        ((4, 100), {"a": [5, 5], "other": [5], "c": [5]}, [["a0", "c0", "a1"], ["other0"]]),
        ((4, 20), {"a": [300], "b": [10, 10, 10]}, [["a0"], ["b0", "b1"], ["b2"]]),
    ],
    ids=["requests take turns", "by length", "other settings begin the next batch", "a lone row may be too long"],
)
def test_batches_by_hand(bounds: tuple[int, int], requests: dict[str, list[int]], batches: list[list[str]]) -> None:
    queue = RowQueue(1000, *bounds)
    for name, sizes in requests.items():
        queue.put(rows(name, *sizes, key="other" if name == "other" else "k"))
    assert [taken(queue) for _ in batches] == batches


def test_the_bound_counts_pieces_and_says_when_to_come_back() -> None:
    queue = RowQueue(1000, 4, 100)
    queue.put(rows("a", 600))
    full = refused(queue, rows("b", 300, 200))
    assert (full.status, full.retry_after) == (503, round(600 / FIRST_SPEED + 0.5))
    queue.measured(6000, 1.0)
    assert queue.speed == pytest.approx(0.8 * FIRST_SPEED + 0.2 * 6000)
    assert refused(queue, rows("c", 1001)).status == 413
    assert (len(queue), queue.pieces) == (1, 600)
    assert taken(queue) == ["a0"]
    queue.put(rows("b", 300, 200))
    assert queue.pieces == 500


def test_rows_whose_client_has_left_make_room_and_are_dropped() -> None:
    queue = RowQueue(10, 4, 100)
    left, stays = rows("a", 3, 3), rows("b", 4)
    queue.put(left)
    queue.put(stays)
    assert refused(queue, rows("c", 6)).status == 503
    for row in left:
        row.leave()
    queue.put(rows("c", 6))
    assert (len(queue), queue.pieces) == (2, 10)
    stays[0].leave()
    assert taken(queue) == ["c0"]
    assert (taken(queue), queue.pieces) == ([], 0)


def test_a_closed_queue_is_emptied_and_takes_nothing() -> None:
    queue = RowQueue(1000, 4, 100)
    queue.put(rows("a", 5))
    queue.close()
    assert refused(queue, rows("b", 5)).status == 503
    assert taken(queue) == ["a0"]
    assert queue.take() is None


REQUESTS = st.lists(st.tuples(st.lists(st.integers(1, 30), min_size=1, max_size=9), st.sampled_from("kl")), max_size=9)


@given(REQUESTS)
def test_every_row_is_served_once_and_pieces_add_up(requests: list[tuple[list[int], str]]) -> None:
    queue = RowQueue(10**6, 3, 40)
    expected = set()
    for number, (sizes, key) in enumerate(requests):
        added = rows(f"{number}-", *sizes, key=key)
        expected |= {row.work for row in added}
        queue.put(added)
    assert queue.pieces == sum(sum(sizes) for sizes, _ in requests)
    served: list[str] = []
    while batch := queue.take(0):
        assert len({row.key for row in batch}) == 1
        assert len(batch) <= 3
        assert len(batch) == 1 or max(row.pieces for row in batch) * len(batch) <= 40
        served += [row.work for row in batch]
    assert sorted(served) == sorted(expected)
    assert queue.pieces == len(queue) == 0


@given(REQUESTS, st.integers(1, 30))
def test_a_request_waits_for_one_batch_of_each_earlier_one_at_most(
    requests: list[tuple[list[int], str]], size: int
) -> None:
    queue = RowQueue(10**6, 3, 40)
    for number, (sizes, key) in enumerate(requests):
        queue.put(rows(f"{number}-", *sizes, key=key))
    queue.put(rows("last", size))
    assert "last0" in [name for _ in range(len(requests) + 1) for name in taken(queue)]


def test_one_bad_row_in_a_batch(capfd: pytest.CaptureFixture[str]) -> None:
    batches = []

    def compute(key: Hashable, works: Sequence[Any]) -> list[str]:
        batches.append(list(works))
        if "bad" in works:
            raise RuntimeError("a secret text")
        return [work.upper() for work in works]

    queue = RowQueue(1000, 10, 1000)
    added = [Row("k", work, 3) for work in ("a", "bad", "b")]
    queue.put(added)
    worker = Worker(queue, compute, "m")
    worker.start()
    assert worker.stop(600)
    assert batches == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]
    for row, expected in ((added[0], "A"), (added[2], "B")):
        measured, result = row.result.result(0)
        assert result == expected
        assert measured.batch_size == 1
    with pytest.raises(RuntimeError):
        added[1].result.result(0)
    said = capfd.readouterr().err
    assert "RuntimeError" in said
    assert "secret" not in said


def test_a_computation_stops_between_steps_when_nobody_waits() -> None:
    """One row that is left does not stop a batch; all do, and the worker goes on with the next one."""
    started, steps = threading.Event(), []

    def compute(key: Hashable, works: Sequence[Any]) -> list[str]:
        while works != ["short"]:
            steps.append(len(works))
            started.set()
            worker.check()
        return list(works)

    queue = RowQueue(1000, 10, 1000)
    worker = Worker(queue, compute, "m")
    endless, short = [Row("k", "a", 3), Row("k", "b", 3)], Row("other", "short", 3)
    queue.put(endless)
    queue.put([short])
    worker.start()
    assert started.wait(600)
    endless[0].leave()
    seen = len(steps)
    while len(steps) < seen + 10:
        assert worker.alive
    endless[1].leave()
    assert short.result.result(600)[1] == "short"
    assert worker.stop(600)
    assert steps[0] == 2
    assert 1 not in steps, "no row was computed again"
