"""Prefetching: a thread computes values in advance, so that a GPU does not wait for its next batch."""

import contextlib
from collections import deque
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Value = TypeVar("Value")
#: The most values that are computed in advance.
READY = 4


@contextlib.contextmanager
def ahead(values: Iterator[Value]) -> Iterator[Iterator[Value]]:
    """Iterate over `values` in order, computed in advance by a thread; an error is raised in place of its value."""
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
