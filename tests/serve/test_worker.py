"""The worker: a row that fails is computed alone, and spoils no neighbour."""

import threading
from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from nmt.serve.rows import QueueFullError, Row, RowQueue
from nmt.serve.worker import Worker


def test_one_bad_row_in_a_batch(capfd: pytest.CaptureFixture[str]) -> None:
    batches = []

    def compute(key: Hashable, works: Sequence[Any]) -> list[str]:
        batches.append(list(works))
        if "bad" in works:
            raise RuntimeError("a secret text")
        return [work.upper() for work in works]

    queue = RowQueue(1000, 10, 1000)
    rows = [Row("k", work, 3) for work in ("a", "bad", "b")]
    queue.put(rows)
    worker = Worker(queue, compute, "m")
    worker.start()
    assert worker.stop(600)
    assert batches == [["a", "bad", "b"], ["a"], ["bad"], ["b"]]
    for row, expected in ((rows[0], "A"), (rows[2], "B")):
        measured, result = row.result.result(0)
        assert result == expected
        assert measured.batch_size == 1
    with pytest.raises(RuntimeError):
        rows[1].result.result(0)
    assert (worker.counts.retries, worker.counts.failures) == (3, 1)
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
    assert (worker.counts.stopped, worker.counts.failures, worker.counts.retries) == (2, 0, 0)


def test_rows_that_are_left_make_room() -> None:
    queue = RowQueue(10, 10, 1000)
    left, low = Row("k", "a", 6), Row("k", "b", 4, low=True)
    queue.put([left, low])
    with pytest.raises(QueueFullError):
        queue.put([Row("k", "c", 6)])
    left.leave()
    kept = Row("k", "c", 6)
    queue.put([kept])
    assert (len(queue), queue.pieces) == (2, 10)
    assert [queue.take(0), queue.take(0)] == [[kept], [low]]
