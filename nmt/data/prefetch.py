"""Values that a thread computes before they are asked for, so that a GPU does not wait for its next batch."""

import contextlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")
#: How many values are ready at most.
READY = 4


@contextlib.contextmanager
def ahead(values: Iterator[Value]) -> Iterator[Iterator[Value]]:
    """The same values in the same order, and in the place of a value the error that it raises; ends with its thread."""
    pool = ThreadPoolExecutor(max_workers=1, thread_name_prefix="batches")
    futures = deque(pool.submit(next, values) for _ in range(READY))

    def taken() -> Iterator[Value]:
        while True:
            try:
                value = futures.popleft().result()
            except StopIteration:
                return
            futures.append(pool.submit(next, values))
            yield value

    try:
        yield taken()
    finally:
        pool.shutdown(cancel_futures=True)
