"""Values that a thread computes before they are asked for, so that a GPU does not wait for its next batch."""

import contextlib
import queue
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import TypeVar

Value = TypeVar("Value")
#: How many values are ready at most.
READY = 4


@contextlib.contextmanager
def ahead(values: Iterator[Value]) -> Iterator[Iterator[Value]]:
    """The same values in the same order, and in the place of a value the error that it raises; ends with its thread."""
    ready: queue.Queue[Future[Value]] = queue.Queue(READY)
    left = threading.Event()

    def compute() -> None:
        ended = False
        while not (ended or left.is_set()):
            future = Future[Value]()
            try:
                future.set_result(next(values))
            except BaseException as error:  # StopIteration, too
                future.set_exception(error)
                ended = True
            ready.put(future)

    def taken() -> Iterator[Value]:
        while True:
            try:
                yield ready.get().result()
            except StopIteration:
                return

    thread = threading.Thread(target=compute, name="batches", daemon=True)
    thread.start()
    try:
        yield taken()
    finally:
        left.set()
        while thread.is_alive():  # it may be putting a value into a full queue
            with contextlib.suppress(queue.Empty):
                ready.get_nowait()
            thread.join(0.01)
