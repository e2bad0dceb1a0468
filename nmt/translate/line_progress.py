"""Progress of a command that goes through the lines of an input."""

import threading
import time
from pathlib import Path
from typing import Self

from nmt.data.lines import count_lines
from nmt.progress import Progress, clock
from nmt.search import SearchState, Step
from nmt.terminal import print_message
from nmt.translation.translator import Watch

QUIET_SECONDS = 2  # a quick command shows nothing


class LineProgress:
    """Shows how many lines are done, a context that removes its bar. Other messages go through `say`."""

    def __init__(self, path: Path | None, done: int, shown: bool = True) -> None:
        """`path` is the input, None for standard input; `done` lines of it are done before."""
        self._path, self._first, self._done, self._shown = path, done, done, shown
        self._total: int | None = None
        self._progress: Progress | None = None
        self._started = time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._progress is not None:
            self._progress.close()

    def say(self, line: str) -> None:
        """Print a line on standard error."""
        if self._progress is not None:
            self._progress.say(line)
        else:
            print_message(line)

    def watch(self, lines: int, batches: int) -> Watch:
        """A watch of the searches of the next `lines`, which are translated in about so many batches."""
        begun, one_at_a_time = 0, threading.Lock()

        def watch(step: Step, state: SearchState) -> tuple[Step, SearchState]:
            nonlocal begun
            with one_at_a_time:
                self._show(self._done + int(lines * min(1.0, begun / batches)))
                begun += 1
            return step, state

        return watch

    def add(self, lines: int) -> None:
        """Count lines that are done."""
        self._done += lines
        self._show(self._done)

    def _show(self, done: int) -> None:
        seconds = time.monotonic() - self._started
        if not self._shown or seconds < QUIET_SECONDS:
            return
        if self._progress is None:
            self._progress = Progress(lambda _: None)
            if self._path is not None and self._path.is_file():
                self._total = count_lines(self._path)
        speed = (done - self._first) / seconds
        if not self._total:
            self._progress.update(None, f"{done:,} lines | {speed:,.1f} lines/s")
            return
        left = (self._total - done) / speed if speed else 0.0
        text = f"{done:,} of {self._total:,} lines | {speed:,.1f} lines/s | {clock(left)} left"
        self._progress.update(min(1.0, done / self._total), text)
