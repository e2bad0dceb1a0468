"""Lines of files and streams.

Lines end at line feeds only. A carriage return right before a line feed belongs to it (a Windows line end), and a
byte-order mark at the start of a file is dropped; everything else (a lone CR, U+2028, tabs, no-break and zero-width
spaces) is ordinary text. What a file may hold beside plain UTF-8 is in `nmt.data.streams`.
"""

import contextlib
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal

from nmt.data.streams import conversion, name_of, open_binary
from nmt.system.errors import UserError, check_parallel
from nmt.system.files import STANDARD, is_regular

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

#: Bytes of a line; a longer one is no sentence, and may be a packed file that fills the memory.
LONGEST = 16 << 20
#: Bytes that are decoded at a time.
_BLOCK = 4 << 20

#: What becomes of a line that is not UTF-8: an error, U+FFFD for each invalid sequence of bytes, or an empty line.
Invalid = Literal["stop", "replace", "empty"]


class LineDecoder:
    """Decodes lines as UTF-8, and says in `warn` which were not; `close` says how many."""

    def __init__(self, invalid: Invalid = "stop", warn: Callable[[str], None] | None = None) -> None:
        self.invalid, self.warn = invalid, warn or (lambda _: None)
        self.count = 0  # of lines that were not UTF-8

    def decode(self, data: bytes, name: str, number: int) -> str:
        """The text of line `number` of the stream `name` (UserError if it is not UTF-8 and `invalid` is "stop")."""
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError as error:
            if self.invalid == "stop":
                raise not_utf8(name, number, data) from error
        self.count += 1
        if self.count == 1:
            action = "taken as an empty line" if self.invalid == "empty" else "read with U+FFFD for what is invalid"
            self.warn(f"{name}, line {number}: not valid UTF-8. It is {action} (invalid={self.invalid}).")
        return "" if self.invalid == "empty" else data.decode("utf-8", "replace")

    def close(self) -> None:
        """Say how many lines were not UTF-8, if it was more than the one that `warn` was told of."""
        if self.count > 1:
            self.warn(f"{self.count:,} lines are not valid UTF-8 (invalid={self.invalid}).")


def iterate_lines(stream: BinaryIO, name: str, decoder: LineDecoder | None = None) -> Iterator[str]:
    """Yield the lines of a binary stream, each as soon as it arrives; `name` is for messages.

    Raises:
        UserError: a line is not UTF-8 and no `decoder` replaces it, or the stream is broken.
    """
    decoder = decoder or LineDecoder()
    number = 0
    with _readable(name):
        while data := stream.readline(LONGEST + 1):
            number += 1
            if len(data) > LONGEST:
                raise too_long(name, number)
            if number == 1:
                data = data.removeprefix(_BYTE_ORDER_MARK)
                if not data:  # only the mark: no line
                    break
            if data.endswith(b"\n"):
                data = data[:-1].removesuffix(b"\r")
            yield decoder.decode(data, name, number)


@contextlib.contextmanager
def open_lines(path: Path, decoder: LineDecoder | None = None) -> Iterator[Iterator[str]]:
    """Open a file and iterate over its lines; memory does not grow with the file.

    Raises:
        UserError: the file is missing, cannot be read or is broken; or as `iterate_lines`.
    """
    with open_binary(path) as stream:
        yield iterate_lines(stream, name_of(path), decoder)


def count_lines(path: Path) -> int:
    """The number of lines of a file (UserError as `open_lines`; UTF-8 is not checked)."""
    count, last = 0, b"\n"
    with open_binary(path) as stream, _readable(str(path)):
        while block := stream.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def read_lines(path: Path) -> list[str]:
    """All lines of a file.

    Raises:
        UserError: the file is missing, cannot be read, is broken or not UTF-8.
    """
    with open_binary(path) as stream:
        return [line for block in line_blocks(stream, name_of(path)) for line in block]


def line_blocks(stream: BinaryIO, name: str, head: bytes = b"") -> Iterator[list[str]]:
    """Yield the lines of a stream, some at a time; `head` is what has been read of it.

    Raises:
        UserError: a line is not UTF-8 or too long, or the stream is broken.
    """
    number = 1
    with _readable(name):
        while data := head or stream.read(_BLOCK):
            head = b""
            if not data.endswith(b"\n"):
                data += stream.readline(LONGEST + 1)
            if len(data) - data.rfind(b"\n", 0, -1) > LONGEST + 1:
                raise too_long(name, number + data.count(b"\n", 0, -1))
            yield (lines := split_lines(data, name, number))
            number += len(lines)


def split_lines(data: bytes, name: str, first: int = 1) -> list[str]:
    """The lines of a text, of which line `first` is the first, and which `name` names in messages.

    Raises:
        UserError: a line is not UTF-8.
    """
    data = (data.removeprefix(_BYTE_ORDER_MARK) if first == 1 else data).replace(b"\r\n", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number, end = data.count(b"\n", 0, error.start) + first, data.find(b"\n", error.start)
        line = data[data.rfind(b"\n", 0, error.start) + 1 : len(data) if end < 0 else end]
        raise not_utf8(name, number, line) from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def too_long(name: str, number: int) -> UserError:
    """The error for a line, counted from 1, that is longer than any sentence."""
    return UserError(
        f"{name}, line {number}: longer than {LONGEST >> 20} MiB. A text has one sentence per line: is this another "
        "kind of file?"
    )


def read_parallel_lines(*paths: Path) -> list[list[str]]:
    """All lines of files whose lines n belong to the same sentence.

    Raises:
        UserError: the numbers of lines differ, one pipe is to be both, or see `read_lines`.
    """
    check_once(paths)
    sides = [read_lines(path) for path in paths]
    check_parallel({str(path): len(lines) for path, lines in zip(paths, sides, strict=True)})
    return sides


def check_once(paths: Iterable[Path]) -> None:
    """UserError if a pipe or standard input is there twice."""
    seen = set[Path]()
    for path in paths:
        place = Path("/dev/stdin") if path == STANDARD else path
        if place in seen and not is_regular(path):
            raise UserError(f"{name_of(path)} can be read only once. Give two files.")
        seen.add(place)


def not_utf8(name: str, number: int, line: bytes) -> UserError:
    """The error for a line that is not UTF-8, with its number counted from 1."""
    wrong = f"{name}, line {number}: not valid UTF-8."
    if re.search(rb"[\x00-\x08\x0e-\x1a\x1c-\x1f]", line):
        return UserError(f"{wrong} Is this another kind of file? Give plain text.")
    letters = [letter for letter in line.decode("utf-8", "replace") if not letter.isascii()]
    if 2 * letters.count("\ufffd") <= len(letters):
        return UserError(f"{wrong} The rest of the line is. Fix the line.")
    if re.search(rb"[\x81\x8d\x8f\x90\x9d]|[\x80-\xff]{3}", line):
        return UserError(f"{wrong} Fix the line, or convert the file from its ENCODING: {conversion('ENCODING', name)}")
    ansi = conversion("WINDOWS-1252", name)
    return UserError(f"{wrong} Fix the line, or convert the file. Western European text from Windows (ANSI): {ansi}")


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn the errors of reading into UserError."""
    try:
        yield
    except OSError as error:
        raise UserError(f"Cannot read {name}: {error.strerror or error}.") from error
