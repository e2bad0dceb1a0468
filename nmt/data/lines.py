"""Lines of files and streams.

Lines end at line feeds only. A carriage return right before a line feed belongs to it (a Windows line end), and a
byte-order mark at the start of a file is dropped; everything else (a lone CR, U+2028, tabs, no-break and zero-width
spaces) is ordinary text. Files are UTF-8, plain or gzip.
"""

import contextlib
import gzip
import io
import shlex
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import BinaryIO, Literal, cast

from nmt.errors import UserError, check_parallel, nearest

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"

#: Bytes of a line; a longer one is no sentence, and may be a packed file that fills the memory.
LONGEST = 16 << 20
_BLOCK = 1 << 20

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
        UserError: a line is not UTF-8 and no `decoder` replaces it, or the stream is a broken gzip file.
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
    """Open a file, plain or gzip, and iterate over its lines; memory does not grow with the file.

    Raises:
        UserError: the file is missing, cannot be read or is broken; or as `iterate_lines`.
    """
    with open_binary(path) as stream:
        yield iterate_lines(stream, str(path), decoder)


def count_lines(path: Path) -> int:
    """The number of lines of a file, plain or gzip (UserError as `open_lines`; UTF-8 is not checked)."""
    count, last = 0, b"\n"
    with open_binary(path) as stream, _readable(str(path)):
        while block := stream.read(1 << 20):
            count += block.count(b"\n")
            last = block[-1:]
    return count + (last != b"\n")


def read_lines(path: Path) -> list[str]:
    """All lines of a file, plain or gzip.

    Raises:
        UserError: the file is missing, cannot be read, is broken or not UTF-8.
    """
    blocks, length = list[bytes](), 0
    with open_binary(path) as stream, _readable(str(path)):
        while block := stream.read(_BLOCK):
            blocks.append(block)
            length = line_length(length, block)
            if length > LONGEST:
                raise too_long(str(path), 1 + sum(each.count(b"\n") for each in blocks))
    data = b"".join(blocks)
    data = data.removeprefix(_BYTE_ORDER_MARK).replace(b"\r\n", b"\n")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        number = data.count(b"\n", 0, error.start) + 1
        raise not_utf8(str(path), number, data) from error
    lines = text.split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def line_length(before: int, block: bytes) -> int:
    """Bytes of the line that a block ends in, of which `before` are in the blocks before."""
    end = block.rfind(b"\n")
    return before + len(block) if end < 0 else len(block) - end - 1


def too_long(name: str, number: int) -> UserError:
    """The error for a line, counted from 1, that is longer than any sentence."""
    return UserError(
        f"{name}, line {number}: longer than {LONGEST >> 20} MiB. A text has one sentence per line: is this another "
        "kind of file?"
    )


def read_parallel_lines(*paths: Path) -> list[list[str]]:
    """All lines of files whose lines n belong to the same sentence.

    Raises:
        UserError: the numbers of lines differ, or see `read_lines`.
    """
    sides = [read_lines(path) for path in paths]
    check_parallel({str(path): len(lines) for path, lines in zip(paths, sides, strict=True)})
    return sides


@contextlib.contextmanager
def open_binary(path: Path) -> Iterator[BinaryIO]:
    """Open a file for reading and unpack it if its first bytes are those of gzip, whatever its name.

    Raises:
        UserError: the file is missing, a folder, or cannot be read.
    """
    try:
        file = path.open("rb")
    except FileNotFoundError as error:
        raise missing_file(path) from error
    except IsADirectoryError as error:
        raise UserError(f"{path} is a folder, not a file.") from error
    except OSError as error:
        raise UserError(f"Cannot read {path}: {error.strerror}.") from error
    with file:
        with _readable(str(path)):
            packed = file.peek(2)[:2] == _GZIP
        if packed:
            # GzipFile without a buffer is slow for small reads.
            with gzip.GzipFile(fileobj=file) as unpacked, io.BufferedReader(unpacked) as buffered:
                yield cast("BinaryIO", buffered)
        else:
            yield file


def missing_file(path: Path) -> UserError:
    """The error for a file that does not exist, with the names nearest to it in its folder."""
    if path.parent.is_dir():
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
        return UserError(f"There is no file {path}.{nearest(path.name, names)}")
    return UserError(f"There is no file {path}: its folder does not exist either.")


def not_utf8(name: str, number: int, data: bytes) -> UserError:
    """The error for bytes that are not UTF-8, in line `number` counted from 1."""
    file = shlex.quote(name) if Path(name).is_file() and not name.endswith(".gz") else "FILE"
    if number == 1 and data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return UserError(f"{name}: UTF-16, not UTF-8. Convert it: iconv -f UTF-16 -t UTF-8 {file} > utf8.txt")
    return UserError(
        f"{name}, line {number}: not valid UTF-8. Fix the line, or convert the file: "
        f"iconv -f ISO-8859-1 -t UTF-8 {file} > utf8.txt"
    )


@contextlib.contextmanager
def _readable(name: str) -> Iterator[None]:
    """Turn the errors of reading into UserError."""
    try:
        yield
    except (gzip.BadGzipFile, EOFError, zlib.error) as error:
        raise UserError(f"{name} is a broken gzip file ({error}). Download or compress it again.") from error
    except OSError as error:
        raise UserError(f"Cannot read {name}: {error.strerror or error}.") from error
