"""Dynamic batching: rows of many requests form batches for one model, which one thread computes.

A batch closes when the model is free, not after a fixed wait. So a single client never waits, and batches fill up under
load. Requests take turns row by row, so that a request of a thousand lines does not delay a short request.
"""

import math
import sys
import threading
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from nmt.serve.problems import ProblemError, too_long
from nmt.system.errors import UserError
from nmt.system.memory import give_memory_back

#: Assumed speed of a model before the first measurement, in pieces per second.
FIRST_SPEED = 500.0
#: Seconds without a row until unused memory is returned to the system.
IDLE = 0.5
#: Computes the results of rows with the same key, from the key and their works.
Compute = Callable[[Any, Sequence[Any]], Sequence[Any]]


@dataclass(eq=False)
class Row:
    """A sentence of a request.

    Attributes:
        key: rows with the same key may share a batch.
        work: input for the engine.
        pieces: size of the row, in source pieces with context.
        result: a pair of `Measured` and the engine's answer.
        arrived: arrival time in seconds, on a monotonic clock.
        left: whether the client has disconnected.
    """

    key: Any
    work: Any
    pieces: int
    result: "Future[Any]" = field(default_factory=Future)
    arrived: float = 0.0
    left: bool = False

    def leave(self) -> None:
        """Drop the row from the queue, or stop its computation."""
        self.left = True
        self.result.cancel()


class Measured(NamedTuple):
    """Measurements of a row: milliseconds in the queue, milliseconds of computing, and rows in its batch."""

    queue_ms: float
    model_ms: float
    batch_size: int


class RowQueue:
    """The rows that wait for one model; their total size in pieces is limited. Thread-safe.

    Attributes:
        pieces: total size of the waiting rows.
        speed: speed of the model, in pieces per second.
        closed: whether new rows are rejected.
    """

    def __init__(self, most_pieces: int, batch_rows: int, batch_pieces: int) -> None:
        """The queue holds at most `most_pieces`. A batch has at most `batch_rows` rows, and at most `batch_pieces` as
        rows x longest row; a batch of a single row may be larger.
        """
        self.most_pieces, self.batch_rows, self.batch_pieces = most_pieces, batch_rows, batch_pieces
        self.pieces, self.speed, self.closed = 0, FIRST_SPEED, False
        self._requests: deque[deque[Row]] = deque()  # in the order of their turns
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return sum(map(len, list(self._requests)))

    def put(self, rows: Sequence[Row]) -> None:
        """Add all rows of a request, or none.

        Raises:
            ProblemError: 413, the rows exceed the queue's size; 503, the queue is full or closed.
        """
        size = sum(row.pieces for row in rows)
        with self._changed:
            if self.closed:
                raise ProblemError(503, "The server is shutting down.", retry_after=5, cure="Try again later.")
            if size > self.most_pieces:
                raise too_long("text", "more pieces than the queue holds.", self.most_pieces, "Send several requests.")
            if self.pieces + size > self.most_pieces:
                self._drop_left()
            if self.pieces + size > self.most_pieces:
                wait = max(1, math.ceil(self.pieces / self.speed))
                raise ProblemError(503, "The queue is full.", retry_after=wait, cure="Try again later.")
            for row in rows:
                row.arrived = time.monotonic()
            if rows:  # rows of similar length are next to each other
                self._requests.append(deque(sorted(rows, key=lambda row: row.pieces)))
            self.pieces += size
            self._changed.notify()

    def take(self, timeout: float | None = None) -> list[Row] | None:
        """Remove and return the next batch of rows with the same key; None once the queue is closed and empty.

        Rows whose clients have disconnected are dropped. After `timeout` seconds without a row, return an empty list.
        """
        with self._changed:
            while True:
                if batch := self._deal():
                    return batch
                if self.closed:
                    return None
                if not self._changed.wait(timeout):
                    return []

    def close(self) -> None:
        """Reject new rows; waiting rows are still served."""
        with self._changed:
            self.closed = True
            self._changed.notify_all()

    def measured(self, pieces: int, seconds: float) -> None:
        """Update the speed: the model took `seconds` for `pieces` pieces."""
        if seconds > 0:
            self.speed = max(1.0, 0.8 * self.speed + 0.2 * pieces / seconds)

    def _drop_left(self) -> None:
        requests = (deque(row for row in rows if not row.left) for rows in self._requests)
        self._requests = deque(rows for rows in requests if rows)
        self.pieces = sum(row.pieces for rows in self._requests for row in rows)

    def _deal(self) -> list[Row]:
        """Form a batch from the rows of all requests in turn. Requests whose rows do not fit come first next time."""
        batch: list[Row] = []
        longest, waiting = 0, deque[deque[Row]]()
        while self._requests and len(batch) < self.batch_rows:
            rows = self._requests.popleft()
            row = rows[0]
            width = max(longest, row.pieces) * (len(batch) + 1)
            if batch and not row.left and (row.key != batch[0].key or width > self.batch_pieces):
                waiting.append(rows)
                continue
            rows.popleft()
            self.pieces -= row.pieces
            if row.result.set_running_or_notify_cancel():
                batch.append(row)
                longest = max(longest, row.pieces)
            if rows:
                self._requests.append(rows)
        self._requests.extendleft(reversed(waiting))
        return batch


class StoppedError(Exception):
    """All clients that wait for a computation have disconnected."""


class Worker:
    """The thread that computes the batches of one model's queue.

    If a batch fails, its rows are computed one by one. A computation stops at the next step if no client is left.

    Attributes:
        counts: numbers of `rows` and `batches`, `seconds` of computing, and rows `retried`, `stopped` and `failed`.
    """

    def __init__(self, queue: RowQueue, compute: Compute, name: str) -> None:
        self.queue, self.compute = queue, compute
        self.counts: Counter[str] = Counter()
        self._busy_since: float | None = None
        self._batch: list[Row] = []
        self._thread = threading.Thread(target=self._run, name=f"nmt {name}", daemon=True)
        self.start = self._thread.start

    def stop(self, timeout: float | None = None) -> bool:
        """Serve the waiting rows and end; return whether the thread has ended within `timeout` seconds."""
        self.queue.close()
        self._thread.join(timeout)
        return not self.alive

    @property
    def alive(self) -> bool:
        """Whether the thread is running."""
        return self._thread.is_alive()

    def busy_seconds(self) -> float:
        """Seconds since the last step of the model's computation; 0 if the model is free."""
        since = self._busy_since
        return 0.0 if since is None else time.monotonic() - since

    def check(self) -> None:
        """Note a step of a computation; call this between steps (StoppedError if all its clients have disconnected)."""
        self._busy_since = time.monotonic()
        if self._batch and all(row.left for row in self._batch):
            raise StoppedError

    def _run(self) -> None:
        timeout = None
        while (batch := self.queue.take(timeout)) is not None:
            timeout = IDLE if batch else None
            if not batch:
                give_memory_back()
                continue
            began = self._busy_since = time.monotonic()
            self._serve(batch)
            self._busy_since, self._batch = None, []
            seconds = time.monotonic() - began
            self.counts.update(rows=len(batch), batches=1)
            self.counts["seconds"] += seconds  # type: ignore[assignment]
            self.queue.measured(sum(row.pieces for row in batch), seconds)

    def _serve(self, batch: list[Row]) -> None:
        began, self._batch = time.monotonic(), batch
        try:
            results = self.compute(batch[0].key, [row.work for row in batch])
            seconds = time.monotonic() - began
            for row, result in zip(batch, results, strict=True):
                measured = Measured(1000 * (began - row.arrived), 1000 * seconds, len(batch))
                row.result.set_result((measured, result))
        except StoppedError:
            self.counts["stopped"] += len(batch)
        except Exception as error:  # any error must fail only its own request
            if len(batch) > 1:
                self.counts["retried"] += len(batch)
                for row in batch:
                    self._serve([row])
                return
            self.counts["failed"] += 1
            if not isinstance(error, UserError):  # its message could have text of the request
                print(f"nmt.serve: a row failed ({type(error).__name__}).", file=sys.stderr, flush=True)
            batch[0].result.set_exception(error)
