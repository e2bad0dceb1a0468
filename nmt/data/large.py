"""Lines that stay in their file, for text that is larger than the memory for it, and what is known of such files.

A file of ordinary size is a list of lines (`nmt.data.lines`). A large one is read where it is needed, and memory does
not grow with it.
"""

import codecs
import contextlib
import hashlib
import io
import itertools
import os
import shutil
import tempfile
import weakref
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, BinaryIO, Final, NoReturn, cast, overload

import numpy as np
import numpy.typing as npt

from nmt import system
from nmt.data.lines import LONGEST, check_once, iterate_lines, line_length, split_lines, too_long
from nmt.data.streams import name_of, open_binary
from nmt.errors import UserError, check_parallel
from nmt.files import is_regular, replace_atomically, unwritable, write_text

#: Bytes of a file, packed or not, whose lines are not held in memory.
LARGE: int = 16 << 20
#: Lines between two places in the file that are kept.
_EVERY: Final = 32
#: Lines that are read at a time by who reads them all.
_MANY: Final = 16 * 1024
#: Lines that are too many for a second look at each: they are drawn by chance, or planned in parts.
MANY: int = 1 << 20
#: Numbers of an array that is held in memory.
HELD: int = 1 << 18
#: Bytes that are searched for line feeds at a time.
_BLOCK: Final = 4 << 20
_BYTE_ORDER_MARK = b"\xef\xbb\xbf"

Places = npt.NDArray[np.int64]


def text_lines(path: Path, known: Path | None = None) -> Sequence[str]:
    """The lines of a file or a pipe: a list, or `FileLines` if it is large. A pipe is read once, and kept.

    Args:
        path: the file.
        known: folder for what is found out about large files, so that it is found out once; None keeps nothing.

    Raises:
        UserError: the file is missing, cannot be read, is broken or not UTF-8.
    """
    with open_binary(path) as file:
        head = file.read(LARGE)
        if len(head) < LARGE:
            return split_lines(head, name_of(path))
        if is_regular(path):
            return FileLines(path, known)
        with scratch(known) as kept:
            kept.write(head)
            shutil.copyfileobj(file, kept, _BLOCK)
            return FileLines(path, known, kept)


def parallel_text_lines(*paths: Path, known: Path | None = None) -> list[Sequence[str]]:
    """The lines of files whose lines n belong to the same sentence, each as from `text_lines`.

    Raises:
        UserError: the numbers of lines differ, or see `text_lines`.
    """
    check_once(paths)
    sides = [text_lines(path, known) for path in paths]
    check_parallel({str(path): len(lines) for path, lines in zip(paths, sides, strict=True)})
    return sides


class Stored(Sequence[str]):
    """Lines that are not in memory; slices of them are lists.

    Attributes:
        identity: the same for the same lines, as far as files tell; see `remembered`.
        known: the folder for what is known of these lines; None if nothing is kept.
    """

    identity: str
    known: Path | None

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: int | slice) -> str | list[str]:
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            if step == 1:
                return self.between(first, max(first, end))
            return [self[row] for row in range(first, end, step)]
        row = range(len(self))[index]  # IndexError, and from the end
        return self.between(row, row + 1)[0]

    def __iter__(self) -> Iterator[str]:
        for first in range(0, len(self), _MANY):
            yield from self.between(first, min(first + _MANY, len(self)))

    @abstractmethod
    def between(self, first: int, end: int) -> list[str]:
        """The lines from number `first` to before `end`."""


class FileLines(Stored):
    """The lines of a file, the same as `read_lines` gives; some 0.25 bytes a line are in memory.

    A packed file is unpacked into the folder `known` until the program ends. Whoever changes the file meanwhile gets a
    UserError, or lines that are cut elsewhere.
    """

    def __init__(self, path: Path, known: Path | None = None, kept: BinaryIO | None = None) -> None:
        """See `text_lines`; `kept` is a copy of the text of what cannot be read twice."""
        self.path, self.known = path, known
        self._descriptor = None if kept is None else self._own(kept)
        if kept is None:
            about = path.stat()
            changed = (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev)
            of = f"{path.resolve()} {changed}".encode("utf-8", "surrogateescape")
            self.identity = hashlib.sha256(of).hexdigest()
        else:
            kept.seek(0)
            self.identity = hashlib.file_digest(cast("Any", kept), "sha256").hexdigest()
        # The number of lines; the place of the first line, of each 32nd after it, and of the end.
        self._count, self._places = self._indexed()

    def __len__(self) -> int:
        return self._count

    def between(self, first: int, end: int) -> list[str]:
        """The lines from number `first` to before `end`.

        Raises:
            UserError: the file has become shorter, or another file.
        """
        if end <= first:
            return []
        begin, stop = self._places[first // _EVERY], self._places[min(-(-end // _EVERY), len(self._places) - 1)]
        data = self._read(int(begin), int(stop))
        try:
            lines = data.replace(b"\r\n", b"\n").decode("utf-8").split("\n")
        except UnicodeDecodeError as error:
            raise self._has_changed() from error
        skipped = first % _EVERY
        found = lines[skipped : skipped + end - first]
        if len(found) < end - first:
            raise self._has_changed()
        return found

    def _has_changed(self) -> UserError:
        return UserError(f"{self.path} has changed while it was read. Start again when it is complete.")

    def _read(self, begin: int, end: int) -> bytes:
        if self._descriptor is None:
            self._descriptor = self._opened()
        parts = []
        while begin < end:
            part = system.read_at(self._descriptor, end - begin, begin)
            if not part:
                raise self._has_changed()
            parts.append(part)
            begin += len(part)
        return b"".join(parts)

    def _opened(self) -> int:
        """A descriptor of the plain text."""
        with self._text() as file:
            if isinstance(getattr(file, "raw", None), io.FileIO):
                return self._own(file)
            with scratch(self.known) as unpacked:
                shutil.copyfileobj(file, unpacked, _BLOCK)
                return self._own(unpacked)

    def _own(self, file: BinaryIO) -> int:
        """A descriptor of a file, to be closed with these lines."""
        file.flush()
        descriptor = os.dup(file.fileno())
        weakref.finalize(self, os.close, descriptor)
        return descriptor

    @contextlib.contextmanager
    def _text(self) -> Iterator[BinaryIO]:
        """The plain text from its beginning."""
        if self._descriptor is None:
            with open_binary(self.path) as file:
                yield file
        else:
            os.lseek(self._descriptor, 0, os.SEEK_SET)
            with open(self._descriptor, "rb", closefd=False) as file:
                yield file

    def _indexed(self) -> tuple[int, Places]:
        """The number of lines and their places, from the folder of what is known if they are there."""
        if self.known is None:
            return self._index()
        stored = self.known / f"{self.identity[:40]}.lines"
        with contextlib.suppress(OSError, ValueError):
            data = stored.read_bytes()
            if hashlib.sha256(data[32:]).digest() == data[:32]:
                count, *_ = places = np.frombuffer(data[32:], dtype=np.int64)
                return int(count), places[1:]
        count, places = self._index()
        data = np.concatenate([[count], places]).astype(np.int64).tobytes()
        with replace_atomically(stored) as temporary:
            temporary.write_bytes(hashlib.sha256(data).digest() + data)
        return count, places

    def _index(self) -> tuple[int, Places]:
        """Read the whole file: count its lines, and check that it is UTF-8."""
        decoder = codecs.getincrementaldecoder("utf-8")()
        count, at, last, length = 0, 0, b"\n", 0
        parts: list[Places] = []
        with self._text() as file:
            try:
                data = file.read(len(_BYTE_ORDER_MARK))
                begin = len(data) if data == _BYTE_ORDER_MARK else 0
                while data:
                    decoder.decode(data)
                    length = line_length(length, data)
                    if length > LONGEST:
                        raise too_long(name_of(self.path), count + data.count(b"\n") + 1)
                    ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == 0x0A) + at + 1
                    parts.append(ends[(_EVERY - 1 - count) % _EVERY :: _EVERY])
                    count, at, last = count + len(ends), at + len(data), data[-1:]
                    data = file.read(_BLOCK)
                decoder.decode(b"", final=True)
            except (UnicodeDecodeError, OSError) as error:
                self._complain(error)
        if at > begin and last != b"\n":
            count += 1
        starts = np.concatenate([[begin], *parts])
        return count, np.append(starts[starts < at], at)

    def _complain(self, error: Exception) -> NoReturn:
        """Raise what reading line by line says of a file that cannot be read."""
        with self._text() as file:
            for _ in iterate_lines(file, name_of(self.path)):
                pass
        raise self._has_changed() from error


class Column(Stored):
    """A column of lines with tabs; a line that is too short has nothing there."""

    def __init__(self, lines: Stored, column: int) -> None:
        """Take the column of this number, counted from 1."""
        self._lines, self._column = lines, column
        self.known, self.identity = lines.known, f"{lines.identity} column {column}"

    def __len__(self) -> int:
        return len(self._lines)

    def between(self, first: int, end: int) -> list[str]:
        """The lines from number `first` to before `end`."""
        fields = (line.split("\t") for line in self._lines.between(first, end))
        return [entries[self._column - 1] if len(entries) >= self._column else "" for entries in fields]


class Without(Stored):
    """The lines of another sequence without some of them."""

    def __init__(self, lines: Stored, dropped: npt.ArrayLike) -> None:
        """Leave out the lines of these numbers, in ascending order."""
        self._lines = lines
        self._dropped = np.asarray(dropped, dtype=np.int64)
        self._before = self._dropped - np.arange(len(self._dropped))  # lines that stay before each
        digest = hashlib.sha256(self._dropped.tobytes()).hexdigest()
        self.known, self.identity = lines.known, f"{lines.identity} without {digest}"

    def __len__(self) -> int:
        return len(self._lines) - len(self._dropped)

    def between(self, first: int, end: int) -> list[str]:
        """The lines from number `first` to before `end`."""
        if end <= first:
            return []
        begin, stop = (row + int(np.searchsorted(self._before, row, side="right")) for row in (first, end - 1))
        left, right = np.searchsorted(self._dropped, [begin, stop])
        found = self._lines.between(begin, stop + 1)
        gone = set((self._dropped[left:right] - begin).tolist())
        return [line for at, line in enumerate(found) if at not in gone]


def without(lines: Sequence[str], dropped: Sequence[int]) -> Sequence[str]:
    """The lines without those of these numbers, in ascending order."""
    if not len(dropped):
        return lines
    if isinstance(lines, Stored):
        return Without(lines, dropped)
    gone = set(dropped)
    return [line for row, line in enumerate(lines) if row not in gone]


def remembered(sides: Sequence[Sequence[str]], what: str, compute: Callable[[], str]) -> str:
    """What `compute` says of lines in large files, once for as long as these do not change; of others, every time.

    A file counts as unchanged while its path, inode, size and times of change are the same.
    """
    files = [side for side in sides if isinstance(side, Stored)]
    known = files[0].known if files else None
    if known is None or len(files) < len(sides):
        return compute()
    name = hashlib.sha256(" ".join([what, *(file.identity for file in files)]).encode()).hexdigest()
    stored = known / f"{name[:40]}.txt"
    with contextlib.suppress(OSError, ValueError):
        value, check = stored.read_text("utf-8").split()
        if check == hashlib.sha256(value.encode()).hexdigest():
            return value
    value = compute()
    write_text(stored, f"{value} {hashlib.sha256(value.encode()).hexdigest()}\n")
    return value


def gathered(parts: Iterable[npt.ArrayLike], count: int, folder: Path | None = None) -> Places:
    """The numbers of all parts, `count` of them, in one array; a large one is in a file without a name.

    Raises:
        UserError: `folder` cannot be written.
    """
    if count <= HELD:
        return np.concatenate([np.zeros(0, dtype=np.int64), *map(np.asarray, parts)])
    with scratch(folder) as file:
        array: Places = np.memmap(cast("Any", file), dtype=np.int64, mode="w+", shape=(count,))
    at = 0
    for part in map(np.asarray, parts):
        array[at : at + len(part)] = part
        at += len(part)
    return array


def counted(numbers: Iterable[int], count: int, folder: Path | None = None) -> Sequence[int]:
    """The numbers, `count` of them: a list, or an array in a file without a name if they are many.

    Raises:
        UserError: `folder` cannot be written.
    """
    if count <= HELD:
        return list(numbers)
    rest = iter(numbers)
    parts = (np.fromiter(itertools.islice(rest, _MANY), dtype=np.int64) for _ in range(-(-count // _MANY)))
    return cast("Sequence[int]", gathered(parts, count, folder))


@contextlib.contextmanager
def scratch(folder: Path | None) -> Iterator[BinaryIO]:
    """A file without a name in a folder, or where temporary files go.

    Raises:
        UserError: it cannot be written.
    """
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            yield cast("BinaryIO", file)
    except OSError as error:
        raise unwritable(folder or Path(tempfile.gettempdir()), error, "cache=FOLDER") from error
