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

#: The most bytes of a line: a longer line is not a sentence, and may come from a packed file that fills the memory.
LONGEST = 16 << 20
#: Bytes that are read at a time.
_BLOCK = 1 << 20

#: How to treat a line that is not UTF-8: raise an error, replace invalid bytes by U+FFFD, or take it as empty.
Invalid = Literal["stop", "replace", "empty"]


class LineDecoder:
    """Decodes lines as UTF-8. Warns of the first line that is not UTF-8; `close` warns with their number."""

    def __init__(self, invalid: Invalid = "stop", warn: Callable[[str], None] | None = None) -> None:
        self.invalid, self.warn = invalid, warn or (lambda _: None)
        self.count = 0  # lines that were not UTF-8

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
        """Warn with the number of lines that were not UTF-8, if there was more than one."""
        if self.count > 1:
            self.warn(f"{self.count:,} lines are not valid UTF-8 (invalid={self.invalid}).")


def iterate_lines(stream: BinaryIO, name: str, decoder: LineDecoder | None = None) -> Iterator[str]:
    """Yield the lines of a binary stream, each as soon as it arrives; `name` is for messages.

    Raises:
        UserError: a line is too long or not UTF-8 and no `decoder` replaces it, or the stream is broken.
    """
    decoder = decoder or LineDecoder()
    for number, data in _whole_lines(stream, name):
        data = data.replace(b"\r\n", b"\n").removesuffix(b"\n")
        lines: Iterable[str]
        try:
            lines = data.decode("utf-8").split("\n")
        except UnicodeDecodeError:
            lines = (decoder.decode(line, name, at) for at, line in enumerate(data.split(b"\n"), number))
        yield from lines


def _whole_lines(stream: BinaryIO, name: str) -> Iterator[tuple[int, bytes]]:
    """Yield complete lines in blocks as they arrive, each block with the number of its first line, from 1."""
    number, rest = 1, b""
    while True:
        with _readable(name):
            block: bytes = stream.read1(_BLOCK)  # type: ignore[attr-defined]
        end = block.rfind(b"\n") + 1
        lines, rest = (rest + block[:end], block[end:]) if end or not block else (b"", rest + block)
        for line, length in ((number, lines.find(b"\n")), (number + lines.count(b"\n"), len(rest))):
            if length > LONGEST:
                raise UserError(
                    f"{name}, line {line}: longer than {LONGEST >> 20} MiB. A text has one sentence per line: is this "
                    "another kind of file?"
                )
        count = lines.count(b"\n")
        if lines := lines.removeprefix(_BYTE_ORDER_MARK) if number == 1 else lines:
            yield number, lines
            number += count
        if not block:
            return


@contextlib.contextmanager
def open_lines(path: Path, decoder: LineDecoder | None = None, *, tables: bool = True) -> Iterator[Iterator[str]]:
    """Open a file and iterate over its lines; memory does not grow with the file. For `tables`, see `open_binary`.

    Raises:
        UserError: the file is missing, cannot be read or is broken; or as `iterate_lines`.
    """
    with open_binary(path, tables=tables) as stream:
        yield iterate_lines(stream, name_of(path), decoder)


def count_lines(path: Path) -> int:
    """The number of lines of a file (UserError as `open_lines`; UTF-8 is not checked)."""
    count, last = 0, b"\n"
    with open_binary(path, tables=False) as stream, _readable(str(path)):
        while block := stream.read(_BLOCK):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def read_lines(path: Path) -> list[str]:
    """All lines of a file (UserError as `open_lines`)."""
    with open_lines(path) as lines:
        return list(lines)


def read_parallel_lines(*paths: Path) -> list[list[str]]:
    """All lines of parallel files: line n of each belongs to the same sentence.

    Raises:
        UserError: the numbers of lines differ, or a pipe is given twice; or as `read_lines`.
    """
    check_once(paths)
    sides = [read_lines(path) for path in paths]
    check_parallel({str(path): len(lines) for path, lines in zip(paths, sides, strict=True)})
    return sides


def check_once(paths: Iterable[Path]) -> None:
    """Raise UserError if a pipe or standard input is given twice."""
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
        return UserError(f"{wrong} The rest of the line is valid. Fix the line.")
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
