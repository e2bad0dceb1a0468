"""Lines of an input in chunks: full ones from a file, those that have arrived from a pipe, each one that is typed."""

import contextlib
import itertools
import queue
import threading
from collections.abc import Iterator

from nmt.data.lines import LineDecoder
from nmt.data.streams import greet

CHARACTERS = 500_000  # about as many are in memory at most


def typed(prompt: str, decoder: LineDecoder) -> Iterator[list[str]]:
    """Each line that is typed into a terminal after a prompt, until Ctrl-D or Ctrl-C. Arrow keys bring back others.

    Raises:
        UserError: a line is not UTF-8, and `decoder` does not replace it.
    """
    with contextlib.suppress(ImportError):  # not on every system
        import readline  # noqa: F401  for `input`
    greet()
    for number in itertools.count(1):
        try:
            line = input(prompt)
        except (EOFError, KeyboardInterrupt):
            print()
            return
        yield [decoder.decode(line.encode("utf-8", "surrogateescape"), "standard input", number)]


def full(lines: Iterator[str], most: int) -> Iterator[list[str]]:
    """Lists of `most` lines, or fewer if they are long."""
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
    """Lists of the lines that have arrived: at least one, at most `most`."""
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
