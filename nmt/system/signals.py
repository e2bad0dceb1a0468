"""Signals: which ask a program to end, and handlers that are set for a while."""

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

#: Ctrl-C, the system, a closed terminal, Ctrl-Break of Windows, and what clusters send before the time of a job ends.
#: SIGQUIT (Ctrl-\\) is left to end a program at once.
_STOP = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGXCPU", "SIGUSR1", "SIGUSR2")


def stop_signals() -> list[signal.Signals]:
    """The signals of this system that ask a program to end.

    Those that are ignored stay so, as SIGHUP under nohup, but not the first two: shells ignore SIGINT for a job in the
    background, which `kill -INT` ends all the same.
    """
    numbers = [signal.Signals[name] for name in _STOP if name in signal.Signals.__members__]
    return numbers[:2] + [number for number in numbers[2:] if signal.getsignal(number) is not signal.SIG_IGN]


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
