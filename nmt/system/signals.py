"""Signals: those that ask a program to end, and temporary signal handlers."""

import contextlib
import signal
from collections.abc import Callable, Iterable, Iterator
from types import FrameType

#: Ctrl-C, the system, a closed terminal, Ctrl-Break on Windows, and signals of clusters before a job's time limit.
#: SIGQUIT (Ctrl-\\) is not handled, so that it ends a program at once.
_STOP = ("SIGINT", "SIGTERM", "SIGHUP", "SIGBREAK", "SIGXCPU", "SIGUSR1", "SIGUSR2")


def stop_signals() -> list[signal.Signals]:
    """The signals of this system that ask a program to end.

    Ignored signals are left out, such as SIGHUP under nohup, but not SIGINT and SIGTERM: shells ignore SIGINT for
    background jobs, and `kill -INT` must still end them.
    """
    numbers = [signal.Signals[name] for name in _STOP if name in signal.Signals.__members__]
    return numbers[:2] + [number for number in numbers[2:] if signal.getsignal(number) is not signal.SIG_IGN]


@contextlib.contextmanager
def handling(numbers: Iterable[int], handler: Callable[[int, FrameType | None], object]) -> Iterator[None]:
    """Call `handler` for these signals while the context is open.

    Outside the main thread this does nothing, since only the main thread can set handlers.
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
