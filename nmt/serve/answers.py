"""The results of rows as they are computed, with a deadline, for clients that may disconnect."""

import asyncio
import contextlib
import functools
from collections.abc import AsyncIterator, Sequence
from concurrent.futures import Future
from typing import Any

from starlette.requests import Request

from nmt.serve.problems import ProblemError, of_user
from nmt.serve.rows import Measured, Row, RowQueue
from nmt.system.errors import UserError


class Answers:
    """The pending results of a request's rows. The constructor queues the rows; call it in the event loop.

    Raises:
        ProblemError: the queue is full or closed.
    """

    def __init__(self, rows: Sequence[Row], queue: RowQueue, seconds: float, live: bool = False) -> None:
        """The deadline is in `seconds` seconds; with `live`, a single row reports its beginning during the search."""
        self._rows, self._seconds = rows, seconds
        self._loop = asyncio.get_running_loop()
        self._deadline = self._loop.time() + seconds
        self._events: asyncio.Queue[tuple[int, Any]] = asyncio.Queue()
        if live and len(rows) == 1:
            rows[0].work = rows[0].work._replace(report_beginning=functools.partial(self._note, 0))
        queue.put(rows)
        for at, row in enumerate(rows):
            row.result.add_done_callback(functools.partial(self._note, at))

    def _note(self, at: int, event: "str | Future[Any]") -> None:
        with contextlib.suppress(RuntimeError):  # the loop has ended
            self._loop.call_soon_threadsafe(self._events.put_nowait, (at, event))

    async def events(self) -> AsyncIterator[tuple[int, str | tuple[Measured, Any]]]:
        """Yield the index of a row with its beginning so far, or with its times and result.

        Waiting rows are dropped when the caller stops for any reason.

        Raises:
            ProblemError: a row failed, or the deadline has passed.
        """
        missing = len(self._rows)
        try:
            while missing:
                left = max(0.0, self._deadline - self._loop.time())
                try:
                    at, event = await asyncio.wait_for(self._events.get(), left)
                except TimeoutError as error:
                    detail, cure = f"No answer within {self._seconds:g} s.", "Send fewer texts, or try again later."
                    raise ProblemError(504, detail, limit=self._seconds, cure=cure) from error
                missing -= not isinstance(event, str)
                yield at, event if isinstance(event, str) else _result(event)
        finally:
            for row in self._rows:
                row.leave()

    async def all(self) -> tuple[list[Any], dict[str, Any]]:
        """All results in order, and `timing`: the longest wait and computing time (ms) and the largest batch."""
        results: list[Any] = [None] * len(self._rows)
        times = [Measured(0.0, 0.0, 0)]
        async for at, event in self.events():
            if not isinstance(event, str):
                measured, results[at] = event
                times.append(measured)
        queue_ms, model_ms, batch_size = map(max, zip(*times, strict=True))
        return results, {"queue_ms": round(queue_ms, 1), "model_ms": round(model_ms, 1), "batch_size": batch_size}

    async def unless_gone(self, request: Request) -> tuple[list[Any], dict[str, Any]]:
        """Like `all`, but stop if the client disconnects (ProblemError 499)."""
        task, gone = asyncio.ensure_future(self.all()), asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({task, gone}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                raise ProblemError(499, "The client has left.")
            return task.result()
        finally:
            for each in (task, gone):
                each.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await task


def _result(future: "Future[Any]") -> tuple[Measured, Any]:
    """The times and result of a finished row (ProblemError if the row failed)."""
    try:
        measured, result = future.result()
    except UserError as error:
        raise of_user(error) from error
    except Exception as error:
        cure = "Send the other texts without it. The server's log has the kind of error."
        raise ProblemError(500, "The model failed on a text.", cure=cure) from error
    return measured, result


async def _gone(request: Request) -> None:
    """Wait until the client disconnects."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
