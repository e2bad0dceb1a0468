"""The thread that computes for one model: batches from the queue, results to those who wait.

A row that fails spoils nothing: if a batch fails, each of its rows is computed alone. A computation whose rows nobody
waits for stops between two steps.
"""

import sys
import threading
import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, NamedTuple

from nmt.errors import UserError
from nmt.memory import give_memory_back
from nmt.serve.rows import Row, RowQueue

#: Seconds without a row, after which the memory of the last ones is given back.
IDLE = 0.5
#: Computes the results of rows with one key.
Compute = Callable[[Hashable, Sequence[Any]], Sequence[Any]]


class Measured(NamedTuple):
    """How a row was served: milliseconds of waiting and of computing, rows in its batch."""

    queue_ms: float
    model_ms: float
    batch_size: int


class StoppedError(Exception):
    """Nobody waits for the rows at hand."""


class Counts:
    """What a worker has done since it began."""

    def __init__(self) -> None:
        self.rows = self.batches = self.retries = self.failures = self.stopped = 0
        self.seconds = 0.0


class Worker:
    """One thread for one model. Results are pairs of `Measured` and what the model computed."""

    def __init__(self, queue: RowQueue, compute: Compute, name: str) -> None:
        self.queue, self.compute = queue, compute
        self.counts = Counts()
        self._busy_since: float | None = None
        self._batch: list[Row] = []
        self._thread = threading.Thread(target=self._run, name=f"nmt {name}", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self, timeout: float | None = None) -> bool:
        """Finish what waits and end; whether the thread has ended."""
        self.queue.close()
        self._thread.join(timeout)
        return not self._thread.is_alive()

    @property
    def alive(self) -> bool:
        """Whether the thread runs."""
        return self._thread.is_alive()

    def busy_seconds(self) -> float:
        """How long the model has been computing since its last step; 0 if it is free."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def check(self) -> None:
        """To be called between the steps of a computation (StoppedError if nobody waits for it)."""
        self._busy_since = time.monotonic()
        if self._batch and all(row.left for row in self._batch):
            raise StoppedError

    def _run(self) -> None:
        timeout = None
        while (batch := self.queue.take(timeout)) is not None:
            if batch:
                self._serve(batch)
            else:
                give_memory_back()
            timeout = IDLE if batch else None

    def _serve(self, batch: list[Row]) -> None:
        began = time.monotonic()
        self._busy_since, self._batch = began, batch
        try:
            self._answer(batch, self.compute(batch[0].key, [row.work for row in batch]), began)
        except StoppedError:
            self.counts.stopped += len(batch)
        except Exception as error:  # whatever it is, it belongs to a request, and the others go on
            if len(batch) == 1:
                self._fail(batch[0], error)
            else:
                self.counts.retries += len(batch)
                for row in batch:
                    self._serve_alone(row)
        finally:
            self._busy_since, self._batch = None, []
        seconds = time.monotonic() - began
        self.counts.rows += len(batch)
        self.counts.batches += 1
        self.counts.seconds += seconds
        self.queue.measured(sum(row.pieces for row in batch), seconds)

    def _serve_alone(self, row: Row) -> None:
        began = time.monotonic()
        self._batch = [row]
        try:
            self._answer([row], self.compute(row.key, [row.work]), began)
        except StoppedError:
            self.counts.stopped += 1
        except Exception as error:  # as above
            self._fail(row, error)

    def _answer(self, batch: Sequence[Row], results: Sequence[Any], began: float) -> None:
        now = time.monotonic()
        for row, result in zip(batch, results, strict=True):
            measured = Measured(1000 * (began - row.arrived), 1000 * (now - began), len(batch))
            row.result.set_result((measured, result))

    def _fail(self, row: Row, error: Exception) -> None:
        self.counts.failures += 1
        if not isinstance(error, UserError):  # its message could have text of the request
            print(f"nmt.serve: a row failed ({type(error).__name__}).", file=sys.stderr, flush=True)
        row.result.set_exception(error)
