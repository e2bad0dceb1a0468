"""Lines of an input in chunks, and the progress of their translation.

A file gives full chunks; a pipe gives chunks of the lines that have arrived; a terminal gives single lines.
"""

import contextlib
import itertools
import queue
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

from nmt.data.lines import LineDecoder, count_lines
from nmt.data.streams import greet
from nmt.system.progress import Progress, clock
from nmt.system.terminal import print_message
from nmt.translation.types import Translation

QUIET_SECONDS = 2  # shorter commands show no progress
CHARACTERS = 500_000  # approximate maximum of characters in memory


def typed(prompt: str, decoder: LineDecoder) -> Iterator[list[str]]:
    """Yield each line typed into a terminal, until Ctrl-D or Ctrl-C. Arrow keys recall earlier lines.

    Raises:
        UserError: a line is not UTF-8, and `decoder` does not replace it.
    """
    with contextlib.suppress(ImportError):  # not on every system
        import readline  # noqa: F401  gives `input` line editing and history
    greet()
    for number in itertools.count(1):
        try:
            line = input(prompt)
        except (EOFError, KeyboardInterrupt):
            print()
            return
        yield [decoder.decode(line.encode("utf-8", "surrogateescape"), "standard input", number)]


def full(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Yield lists of `most` lines, or fewer if the lines are long."""
    chunk: list[str] = []
    characters = 0
    for line in lines:
        chunk.append(line)
        characters += len(line)
        if len(chunk) == most or characters >= CHARACTERS:
            yield chunk
            chunk, characters = [], 0
    if chunk:
        yield chunk


def arriving(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Yield lists of the lines that have arrived so far: at least one line, at most `most`."""
    waiting: queue.Queue[str | BaseException | None] = queue.Queue(maxsize=most)

    def read() -> None:
        try:
            for line in lines:
                waiting.put(line)
            waiting.put(None)
        except BaseException as error:  # passed on to the reader of the queue
            waiting.put(error)

    threading.Thread(target=read, daemon=True).start()
    while True:
        chunk: list[str] = []
        characters = 0
        item = waiting.get()
        while isinstance(item, str):
            chunk.append(item)
            characters += len(item)
            if len(chunk) == most or characters >= CHARACTERS:
                break
            try:
                item = waiting.get_nowait()
            except queue.Empty:
                break
        if chunk:
            yield chunk
        if item is None:
            return
        if isinstance(item, BaseException):
            raise item


class LineProgress:
    """A context that shows the number of translated lines in a progress bar. Other messages must go through `say`."""

    def __init__(self, path: Path | None, done: int, has_bar: bool = True, sentences: int | None = None) -> None:
        """`path` is the input, or None for standard input; its first `done` lines are already translated.

        `sentences` is the number of sentences of a document; None counts lines.
        """
        self._path, self._first, self._done, self._has_bar = path, done, done, has_bar
        self._total, self._unit = sentences, "lines" if sentences is None else "sentences"
        self._progress: Progress | None = None
        self._started = time.monotonic()
        self._remembered = 0

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

    def count_remembered(self, translation: Translation) -> None:
        """Count a translation if it comes from the translation memory."""
        self._remembered += translation.remembered

    def say_remembered(self) -> None:
        """Print how many translations come from the translation memory."""
        if self._remembered:
            self.say(f"note: translations from memory=, as they stand there: {self._remembered:,}.")

    def counter(self, lines: int, batches: int) -> Callable[[], None]:
        """Return a function to call at the start of each of about `batches` searches for the next `lines` lines."""
        begun, one_at_a_time = 0, threading.Lock()

        def begins() -> None:
            nonlocal begun
            with one_at_a_time:
                self._show(self._done + int(lines * min(1.0, begun / batches)))
                begun += 1

        return begins

    def add(self, lines: int) -> None:
        """Count translated lines."""
        self._done += lines
        self._show(self._done)

    def _show(self, done: int) -> None:
        seconds = time.monotonic() - self._started
        if not self._has_bar or seconds < QUIET_SECONDS:
            return
        if self._progress is None:
            self._progress = Progress(lambda _: None)
            if self._path is not None and self._path.is_file():
                self._total = count_lines(self._path)
        speed = (done - self._first) / seconds
        if not self._total:
            self._progress.update(None, f"{done:,} {self._unit} | {speed:,.1f} {self._unit}/s")
            return
        left = (self._total - done) / speed if speed else 0.0
        text = f"{done:,} of {self._total:,} {self._unit} | {speed:,.1f} {self._unit}/s | {clock(left)} left"
        self._progress.update(min(1.0, done / self._total), text)
