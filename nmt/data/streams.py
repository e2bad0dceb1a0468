"""Text as a stream of UTF-8 bytes, from a file, a pipe or standard input, plain or packed.

The first bytes of a stream determine its format, whatever its name. A pipe can be read only once: see `keeping_pipes`.
"""

import bz2
import codecs
import contextlib
import functools
import gzip
import io
import itertools
import lzma
import os
import re
import sys
import tempfile
import threading
import zlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import IO, Any, BinaryIO, cast

from nmt.system.encodings import RECOGNISE, check_encoding, recognise
from nmt.system.errors import UserError, install_command, nearest
from nmt.system.files import PACKED, STANDARD, is_regular
from nmt.system.platform import END_OF_INPUT, shell_quoted
from nmt.system.terminal import print_message

_BLOCK = 1 << 16
#: Seconds without text after which a message tells the user what the program waits for.
PATIENCE = 3.0
#: Bytes of a pipe's copy; a larger copy goes to a temporary file.
_HELD = 1 << 24
#: Copies of pipes, for each `keeping_pipes`.
_pipe_copies: list[dict[Path, IO[bytes]]] = []
#: The encoding of text that is not UTF-8, for each `decoding`.
_legacy: list[str] = []
#: The most bytes of memory for unpacking an xz file.
_XZ_MEMORY = 1 << 28
#: Bytes that are enough to recognise the format of a stream; a shorter first line is enough, too.
_ENOUGH = 16
#: Byte-order marks and their encodings; `nmt.data.lines` drops the mark of UTF-8.
_MARKS = (
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
#: Packed formats: the pattern of the first bytes, and the function that opens them.
_PACKERS: dict[str, tuple[re.Pattern[bytes], Any]] = {
    "gzip": (re.compile(rb"\x1f\x8b"), gzip.open),
    "xz": (re.compile(rb"\xfd7zXZ\x00"), lzma.open),
    "bzip2": (re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)"), bz2.open),
}
_PACK, _SAVE = "Unpack it first.", "Save its text as plain text (UTF-8)."
#: Endings of translation memories, catalogues and spreadsheets, whose pairs the extra `documents` reads as a table.
#: The first row of the table names the columns, except in some .xlsx files.
MEMORIES = (".tmx", ".xliff", ".xlf", ".po", ".xlsx")
#: Formats that are not text: first bytes, name, and what the user can do.
_KINDS = (
    (
        b"PK\x03\x04",
        "a zip archive, as .docx, .xlsx and .odt are",
        "Unpack it, save its text (UTF-8), or give a document its ending.",
    ),
    (b"\xd0\xcf\x11\xe0", "an old Word or Excel file", "Save it as .docx or .xlsx, or its text as UTF-8."),
    (b"%PDF-", "a PDF file", _SAVE),
    (b"{\\rtf", "an RTF document", _SAVE),
    (b"\x28\xb5\x2f\xfd", "packed with zstd", _PACK),
    (b"7z\xbc\xaf", "a 7z archive", _PACK),
    (b"Rar!\x1a", "a rar archive", _PACK),
    (b"\x04\x22\x4d\x18", "packed with lz4", _PACK),
    (b"LZIP\x01", "packed with lzip", _PACK),
    (b"\x1f\x9d", "packed with compress", _PACK),
    (b"ARROW1\x00", "an Arrow table", "Read its folder with data=hub data.path=FOLDER."),
    (b"SQLite format 3\x00", "a database", "Save a table of it as tab-separated text."),
    (b"\xff\xd8\xff", "a picture", "Give a file of plain text."),
    (b"PAR1", "a Parquet table", "Read it with data=hub data.path=FILE."),
    (b"\x89PNG", "a picture", "Give a file of plain text."),
)


@contextlib.contextmanager
def open_binary(path: Path, *, tables: bool = True) -> Iterator[BinaryIO]:
    """Open the text of a file, a pipe or standard input (`-`) as UTF-8; with `tables`, `MEMORIES` as tables of pairs.

    Raises:
        UserError: the file is missing, a folder, cannot be read, or holds no text.
    """
    name = name_of(path)
    with contextlib.ExitStack() as stack:
        try:
            if tables and is_regular(path) and path.suffix.lower() in MEMORIES:
                file: BinaryIO = io.BytesIO(_table_of(path))
            elif is_regular(path):
                file = stack.enter_context(path.open("rb"))
            elif _pipe_copies:
                file = _reader(_again(path, _pipe_copies[-1]))
            else:
                file = standard_input() if path == STANDARD else _reader(_of_pipe(path))
            text = unpacked(file, name)
        except FileNotFoundError as error:
            raise missing_file(path) from error
        except IsADirectoryError as error:
            raise UserError(f"{path} is a folder, not a file.") from error
        except OSError as error:
            raise UserError(f"Cannot read {name}: {error.strerror or error}.") from error
        yield text


def _table_of(path: Path) -> bytes:
    """The pairs of a file of `MEMORIES` as a table (UserError if the extra `documents` is not installed)."""
    try:
        from nmt.documents.memories import table_of
    except ModuleNotFoundError as error:
        raise UserError(f"{path} needs the extra 'documents'. Install it: {install_command('documents')}") from error
    return table_of(path)


@contextlib.contextmanager
def keeping_pipes() -> Iterator[None]:
    """Copy pipes and standard input as they are read, so that they can be read again in this context."""
    copies: dict[Path, IO[bytes]] = {}
    _pipe_copies.append(copies)
    try:
        yield
    finally:
        _pipe_copies.pop()
        for copy in copies.values():
            copy.close()


@contextlib.contextmanager
def decoding(encoding: str | None, setting: str) -> Iterator[None]:
    """Decode text that is not UTF-8 in this context; "auto" detects the encoding, None decodes nothing.

    `setting` is the key of the encoding, for messages.

    Raises:
        UserError: the encoding does not exist.
    """
    check_encoding(encoding, setting)
    if encoding is None:
        yield
        return
    _legacy.append(encoding)
    try:
        yield
    finally:
        _legacy.pop()


def _again(path: Path, copies: dict[Path, IO[bytes]]) -> Iterator[bytes]:
    """Yield the blocks of a pipe from its copy, which the first call makes."""
    if path not in copies:
        copy = tempfile.SpooledTemporaryFile(max_size=_HELD)  # noqa: SIM115  closed by `keeping_pipes`
        copies[path] = copy
        for block in _blocks(standard_input()) if path == STANDARD else _of_pipe(path):
            copy.write(block)
    at = 0
    while True:
        copies[path].seek(at)
        if not (block := copies[path].read(_BLOCK)):
            return
        yield block
        at += len(block)


def name_of(path: Path) -> str:
    """The name of a file or of standard input in messages."""
    return "standard input" if path == STANDARD else str(path)


def standard_input() -> BinaryIO:
    """Standard input with a separate reader.

    The interpreter closes its reader at exit, and crashes if a thread still waits in it for a line.
    """
    if sys.stdin is None:
        raise UserError("There is no standard input. Name a file instead of -, which input= has by default.")
    if sys.stdin.isatty():
        greet()
    try:
        return open(sys.stdin.fileno(), "rb", closefd=False)
    except (OSError, ValueError):  # not a file, for example replaced in a test
        return sys.stdin.buffer


def greet() -> None:
    """Print how to type text, and how to end it."""
    print(f"Type one sentence per line. Press {END_OF_INPUT} to end.", file=sys.stderr, flush=True)


def missing_file(path: Path) -> UserError:
    """The error for a file that does not exist, with the names nearest to it in its folder."""
    if str(path).startswith(("/dev/fd/", "/proc/")):
        return UserError(
            f"There is no pipe {path}: one made by the shell, <(COMMAND), ends with its command. Write the text to a "
            "file, and give the file."
        )
    if re.match(r"[a-z][a-z0-9]+:/", str(path)):
        return UserError(f"{path} is an address, not a file. Download it first.")
    if re.search(r"[*?]|^\[.*\]$|,", str(path)):
        return UserError(f"There is no file {path}. One file is needed here: cat FILE FILE > BOTH joins several.")
    if path.parent.is_dir():
        names = [entry.name for entry in path.parent.iterdir() if entry.is_file()]
        return UserError(f"There is no file {path}.{nearest(path.name, names)}")
    return UserError(f"There is no file {path}: its folder does not exist either.")


def unpacked(file: BinaryIO, name: str, *, inside: bool = False) -> BinaryIO:
    """The text of a stream as UTF-8, from the current position; `inside` if the stream was unpacked from another.

    Raises:
        UserError: the stream is damaged or not text. Reading the result can raise it, too.
    """
    start = file.tell() if file.seekable() else None
    head = b""
    while len(head) < _ENOUGH and b"\n" not in head and (more := file.read1(_BLOCK)):  # type: ignore[attr-defined]
        head += more
    _check_kind(head, name)
    if start is not None:
        file.seek(start)
    else:
        file = _reader(itertools.chain([head], _blocks(file)))
    for mark, encoding in _MARKS:
        if head.startswith(mark):
            return _reader(_as_utf8(file, encoding, name))
    for kind, (mark_of_kind, opener) in _PACKERS.items():
        if not mark_of_kind.match(head):
            continue
        if inside:
            raise UserError(f"{name} is packed twice. {_PACK}")
        if kind == "xz":
            _check_memory(head, name)
        return unpacked(_reader(_of_packed(opener(file), kind, name)), name, inside=True)
    return _reader(_of_legacy(_blocks(file), _legacy[-1], name)) if _legacy else file


def _of_legacy(blocks: Iterator[bytes], encoding: str, name: str) -> Iterator[bytes]:
    """Decode blocks from `encoding`, unless at least half of the first letters that are not ASCII are valid UTF-8."""
    block = b""
    for more in blocks:
        block += more
        letters = codecs.getincrementaldecoder("utf-8")("replace").decode(block)
        letters = "".join(letter for letter in letters if not letter.isascii())
        if block.isascii():
            yield block
            block = b""
        elif letters:  # at least one is complete
            break
    if not block or 2 * letters.count("\ufffd") <= len(letters):
        yield block
        yield from blocks
        return
    if encoding == RECOGNISE:
        encoding = recognise(block, name)
        _say_recognised(name, encoding)
    try:
        for text in codecs.iterdecode(itertools.chain([block], blocks), encoding):
            yield text.encode()
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is not valid {encoding} ({error.reason}). Give another encoding=.") from error


@functools.cache
def _say_recognised(name: str, encoding: str) -> None:
    """Tell the user once which encoding was recognised."""
    print_message(f"note: {name} is not UTF-8. It is read as {encoding}; if letters look wrong, give encoding=NAME.")


def _check_kind(head: bytes, name: str) -> None:
    """Raise UserError if the first bytes of a stream are not text."""
    for magic, kind, cure in _KINDS:
        if head.startswith(magic):
            raise UserError(f"{name} is {kind}. {cure}")
    if head[257:262] == b"ustar":
        raise UserError(f"{name} is a tar archive. {_PACK}")
    even, odd = head[0:32:2], head[1:32:2]
    for encoding, zeros, letters in (("UTF-16LE", odd, even), ("UTF-16BE", even, odd)):
        if len(head) >= _ENOUGH and not any(zeros) and all(letters):  # every other byte, in ASCII
            raise UserError(f"{name} is {encoding} without a byte-order mark. Convert it: {conversion(encoding, name)}")


def conversion(encoding: str, name: str) -> str:
    """Instructions to convert a file to UTF-8: a command, and a way without it on Windows."""
    file = shell_quoted(name) if is_regular(Path(name)) and not name.endswith(PACKED) else "FILE"
    return f"iconv -f {encoding} -t UTF-8 {file} > utf8.txt (on Windows: open it in Notepad, save it as UTF-8)."


def _check_memory(head: bytes, name: str) -> None:
    """Raise UserError if the header of an xz file requires too much memory."""
    try:
        lzma.LZMADecompressor(memlimit=_XZ_MEMORY).decompress(head, 1)
    except lzma.LZMAError as error:
        if "emory" in str(error):
            raise UserError(f"{name} needs more than {_XZ_MEMORY >> 20} MiB to be unpacked. {_PACK}") from error


class _Blocks(io.RawIOBase):
    """A raw stream that reads from an iterator of blocks."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self._blocks, self._rest = iter(blocks), memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        while not self._rest:
            block = next(self._blocks, None)
            if block is None:
                return 0
            self._rest = memoryview(block)
        size = min(len(buffer), len(self._rest))
        buffer[:size], self._rest = self._rest[:size], self._rest[size:]
        return size


def _reader(blocks: Iterable[bytes]) -> BinaryIO:
    return cast("BinaryIO", io.BufferedReader(_Blocks(blocks), _BLOCK))


def _blocks(file: Any) -> Iterator[bytes]:
    """Iterate over the blocks of a file, each as soon as it arrives."""
    return iter(functools.partial(file.read1, _BLOCK), b"")


def _of_pipe(path: Path) -> Iterator[bytes]:
    """Yield the blocks of a pipe; print a note if none arrives within `PATIENCE` seconds.

    The pipe is closed at its end or with this generator: a thread may still wait for a block when the command ends.
    """
    note = f"Waiting for text from {path}: a pipe to which nobody has written yet."
    timer = threading.Timer(PATIENCE, print_message, [note])
    timer.daemon = True
    timer.start()
    try:
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        try:
            while block := os.read(descriptor, _BLOCK):
                timer.cancel()
                yield block
        finally:
            os.close(descriptor)
    finally:
        timer.cancel()


def _of_packed(packed: Any, kind: str, name: str) -> Iterator[bytes]:
    """Yield the unpacked blocks (UserError if the stream is damaged)."""
    try:
        yield from _blocks(packed)
    except (EOFError, zlib.error, lzma.LZMAError, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise  # an error of reading, not of unpacking
        raise UserError(f"{name} is a broken {kind} file ({error}). Download or compress it again.") from error


def _as_utf8(file: BinaryIO, encoding: str, name: str) -> Iterator[bytes]:
    """Yield the blocks of a text in `encoding` as UTF-8; half a surrogate pair stays invalid."""
    try:
        for text in codecs.iterdecode(_blocks(file), encoding, "surrogatepass"):
            yield text.encode("utf-8", "surrogatepass")
    except UnicodeDecodeError as error:
        raise UserError(f"{name} is broken {encoding.upper()} ({error.reason}). Save it again as UTF-8.") from error
