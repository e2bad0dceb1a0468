"""Signals: handlers that are set for a while."""

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType


@contextlib.contextmanager
def handling(numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Call `handler` for these signals while the context is open; do nothing outside the main thread.

    Only the main thread can set handlers, and decides what a signal means to the others.
    """
    earlier = {}
    try:
        with contextlib.suppress(ValueError):
            for number in numbers:
                earlier[number] = signal.signal(number, handler)
        yield
    finally:
        for number, handler_before in earlier.items():
            signal.signal(number, handler_before)
