"""The worker: a row that fails is computed alone, and spoils no neighbour."""

from collections.abc import Hashable, Sequence
from typing import Any

import pytest

from nmt.serving.queueing import Row, RowQueue
from nmt.serving.worker import Worker


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
