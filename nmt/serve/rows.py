"""Rows of many requests -> batches for one model: round-robin over requests, of similar lengths, bounded in pieces.

A batch closes when the model is free, not after a fixed wait: a single client never waits, and under load batches
fill by themselves. A row is a sentence, so that a request of a thousand lines shares the model with short ones.
"""

import math
import threading
import time
from collections import Counter, OrderedDict, deque
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

#: Batches of the upper queue between two rows of the lower one, which so never starves.
TURNS = 4
#: Batches that may prefer rows of other lengths to the first row of a request.
PATIENCE = 4
#: The first rows of a request, among which a batch chooses by length.
AHEAD = 64
#: How fast a model is taken to be before it has been measured, in pieces per second.
FIRST_SPEED = 500.0


@dataclass(eq=False)
class Row:
    """A sentence of a request.

    Attributes:
        key: rows with the same key may share a batch.
        work: what the engine gets.
        pieces: its size.
        low: whether it waits in the lower queue, one row to a batch.
        result: what the engine answers, as the second of a pair whose first is `Measured`.
        arrived: when, in seconds of a monotonic clock.
        passed: batches that have been dealt while it was the first of its request.
        left: whether nobody waits for the result any more.
    """

    key: Hashable
    work: Any
    pieces: int
    low: bool = False
    result: "Future[Any]" = field(default_factory=Future)
    arrived: float = 0.0
    passed: int = 0
    left: bool = False

    def leave(self) -> None:
        """Say that nobody waits for the result any more: it leaves the queue, or its computation stops."""
        self.left = True
        self.result.cancel()


class QueueFullError(Exception):
    """There is no room for a request; `retry_after` is in seconds. With 0 there never will be."""

    def __init__(self, retry_after: int) -> None:
        super().__init__("The queue is full.")
        self.retry_after = retry_after


class ClosedError(Exception):
    """The server is shutting down, so that no more requests are taken."""


class RowQueue:
    """The rows that wait for one model. Any thread may add or take."""

    def __init__(
        self,
        most_pieces: int,
        batch_rows: int,
        batch_pieces: int,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Make an empty queue.

        Args:
            most_pieces: that may wait in total.
            batch_rows: rows of a batch at most.
            batch_pieces: rows times the pieces of the longest row of a batch at most; a single row may have more.
            clock: in seconds.
        """
        self.most_pieces, self.batch_rows, self.batch_pieces = most_pieces, batch_rows, batch_pieces
        self.clock = clock
        self.pieces = 0  # that wait
        self.speed = FIRST_SPEED  # pieces per second
        self._requests: OrderedDict[int, deque[Row]] = OrderedDict()
        self._low: deque[Row] = deque()
        self._turns = 0
        self._next = 0
        self._closed = False
        self._changed = threading.Condition()

    def __len__(self) -> int:
        return sum(map(len, self._requests.values())) + len(self._low)

    def put(self, rows: list[Row]) -> None:
        """Add the rows of a request, all or none.

        Raises:
            QueueFullError: they do not fit.
            ClosedError: after `close`.
        """
        size = sum(row.pieces for row in rows)
        with self._changed:
            if self._closed:
                raise ClosedError
            if size > self.most_pieces:
                raise QueueFullError(0)
            if self.pieces + size > self.most_pieces:
                self._drop_left()
            if self.pieces + size > self.most_pieces:
                raise QueueFullError(max(1, math.ceil(self.pieces / self.speed)))
            for row in rows:
                row.arrived = self.clock()
            self._low.extend(row for row in rows if row.low)
            upper = deque(row for row in rows if not row.low)
            if upper:
                self._requests[self._next] = upper
                self._next += 1
            self.pieces += size
            self._changed.notify()

    def take(self, timeout: float | None = None) -> list[Row] | None:
        """The rows of the next batch, which have one key; None once the queue is closed and empty.

        Rows whose result nobody waits for any more are dropped. After `timeout` seconds without a row, an empty list.
        """
        with self._changed:
            while True:
                batch = self._low_row() or self._deal() or self._low_row(now=True)
                if batch:
                    return batch
                if self._closed:
                    return None
                if not self._changed.wait(timeout):
                    return []

    def close(self) -> None:
        """Take no more rows; those that wait are still served."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    @property
    def closed(self) -> bool:
        """Whether no more rows are taken."""
        return self._closed

    def measured(self, pieces: int, seconds: float) -> None:
        """Note that the model took so long for so many pieces."""
        if seconds > 0:
            self.speed = max(1.0, 0.8 * self.speed + 0.2 * pieces / seconds)

    def _drop_left(self) -> None:
        """Make room: drop the rows that nobody waits for."""
        self._low = deque(row for row in self._low if not row.left)
        kept = {request: deque(row for row in rows if not row.left) for request, rows in self._requests.items()}
        self._requests = OrderedDict((request, rows) for request, rows in kept.items() if rows)
        self.pieces = sum(row.pieces for rows in (self._low, *self._requests.values()) for row in rows)

    def _low_row(self, now: bool = False) -> list[Row]:
        """A row of the lower queue, if it is its turn or with `now`."""
        if self._turns < TURNS and not now:
            return []
        self._turns = 0
        while self._low:
            row = self._low.popleft()
            self.pieces -= row.pieces
            if row.result.set_running_or_notify_cancel():
                return [row]
        return []

    def _deal(self) -> list[Row]:
        """A batch of the upper queue. The request that waits longest for its turn begins it.

        Requests whose rows are similar in length are next, after those that have been passed over `PATIENCE` times.
        """
        batch: list[Row] = []
        passed: list[int] = []  # requests that have had a turn, in order
        dealt = True
        while dealt and len(batch) < self.batch_rows:
            dealt = False
            for request in self._by_length(batch[0].pieces, Counter(passed)) if batch else list(self._requests):
                row = self._candidate(request, batch)
                if row is None:
                    continue
                batch.append(row)
                dealt = True
                passed.append(request)
                if len(batch) in (1, self.batch_rows):  # the first row orders the requests
                    break
        for request in passed:  # to the end of the round
            if request in self._requests:
                self._requests.move_to_end(request)
        for rows in self._requests.values():
            rows[0].passed += bool(batch)
        self._turns += bool(batch)
        return batch

    def _by_length(self, pieces: int, turns: Counter[int]) -> list[int]:
        """The requests: those with fewer turns, of these the impatient, of these the most similar in length first."""

        def order(request: int) -> tuple[int, bool, int]:
            first = self._requests[request][0]
            return turns[request], first.passed < PATIENCE, abs(first.pieces - pieces)

        return sorted(self._requests, key=order)

    def _candidate(self, request: int, batch: list[Row]) -> Row | None:
        """A row of a request that fits into the batch, taken from the queue."""
        rows = self._requests[request]
        longest = max((row.pieces for row in batch), default=0)
        taken: Row | None = None
        while rows and taken is None:
            at = 0
            if batch and rows[0].passed < PATIENCE:
                at = min(range(min(len(rows), AHEAD)), key=lambda number: abs(rows[number].pieces - batch[0].pieces))
            row = rows[at]
            wide = max(longest, row.pieces) * (len(batch) + 1)
            if row.result.cancelled() or not batch or (row.key == batch[0].key and wide <= self.batch_pieces):
                del rows[at]
                self.pieces -= row.pieces
                taken = row if row.result.set_running_or_notify_cancel() else None
            else:
                break
        if not rows:
            del self._requests[request]
        return taken
