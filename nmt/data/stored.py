"""Sequences that stay in a file, for text that does not fit into memory.

A file of ordinary size is read as a list of lines (`nmt.data.lines`). The lines of a large file are copied into an
Arrow table in the cache folder, so that memory does not grow with the file.
"""

import contextlib
import hashlib
import itertools
import pickle
import tempfile
import weakref
from abc import abstractmethod
from array import array
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, TypeVar, cast, overload

import numpy as np
import numpy.typing as npt

from nmt.data.lines import open_lines
from nmt.system.files import is_regular, unwritable, write_text

#: A text of this size (in characters, unpacked) or larger is not held in memory.
LARGE: int = 16 << 20
#: Lines that are read at a time.
_MANY: Final = 16 * 1024
#: The most lines or pairs that are processed at once: more are sampled, or planned in parts.
MANY: int = 1 << 20
#: The most numbers of an array that is held in memory.
HELD: int = 1 << 18

Numbers = npt.NDArray[np.int64]
Value = TypeVar("Value")


class Stored(Sequence[Value]):
    """A sequence that is not in memory; slices of it are lists."""

    @overload
    def __getitem__(self, index: int) -> Value: ...
    @overload
    def __getitem__(self, index: slice) -> list[Value]: ...
    def __getitem__(self, index: int | slice) -> Value | list[Value]:
        if isinstance(index, slice):
            first, end, step = index.indices(len(self))
            if step == 1:
                return self.between(first, max(first, end))
            return [self[row] for row in range(first, end, step)]
        row = range(len(self))[index]  # raises IndexError, and resolves negative indices
        return self.between(row, row + 1)[0]

    def __iter__(self) -> Iterator[Value]:
        for first in range(0, len(self), _MANY):
            yield from self.between(first, min(first + _MANY, len(self)))

    @abstractmethod
    def between(self, first: int, end: int) -> list[Value]:
        """The values from number `first` to before `end`."""


class StoredLines(Stored[str]):
    """Lines in an Arrow table, or one of the columns that tabs separate in them.

    Args:
        column: the column of the table.
        identity: equal for equal lines; see `remembered`.
        known: the folder of the table; None for a temporary table, which is deleted with these lines.
        dropped: the numbers of rows to leave out, in ascending order.
        number: the tab-separated column, from 1; 0 for whole lines. Lines that are too short have "" there.
    """

    def __init__(
        self, column: Any, identity: str, known: Path | None, dropped: npt.ArrayLike = (), number: int = 0
    ) -> None:
        self._column, self.identity, self.known, self._number = column, identity, known, number
        self._dropped = np.asarray(dropped, dtype=np.int64)
        self._before = self._dropped - np.arange(len(self._dropped))  # remaining lines before each

    def __len__(self) -> int:
        return len(self._column) - len(self._dropped)

    def between(self, first: int, end: int) -> list[str]:
        """The lines from number `first` to before `end`."""
        if end <= first:
            return []
        begin, stop = self._rows(np.array([first, end - 1])).tolist()
        lines: list[str] = self._column.slice(begin, stop + 1 - begin).to_pylist()
        left, right = np.searchsorted(self._dropped, [begin, stop])
        gone = set((self._dropped[left:right] - begin).tolist())
        if gone:
            lines = [line for at, line in enumerate(lines) if at not in gone]
        if self._number:
            return ["".join(line.split("\t")[self._number - 1 : self._number]) for line in lines]
        return lines

    def _rows(self, numbers: Numbers) -> Numbers:
        """The table rows of the lines with these numbers."""
        rows: Numbers = numbers + np.searchsorted(self._before, numbers, side="right")
        return rows

    def without(self, dropped: Sequence[int]) -> "StoredLines":
        """These lines without the lines with the numbers `dropped` (ascending)."""
        rows = np.union1d(self._dropped, self._rows(np.asarray(dropped, dtype=np.int64)))
        digest = hashlib.sha256(np.asarray(dropped, dtype=np.int64).tobytes()).hexdigest()
        return StoredLines(self._column, f"{self.identity} without {digest}", self.known, rows, self._number)

    def column(self, number: int) -> "StoredLines":
        """The tab-separated column with this number, from 1."""
        return StoredLines(self._column, f"{self.identity} column {number}", self.known, self._dropped, number)


def text_lines(path: Path, known: Path | None = None) -> Sequence[str]:
    """The lines of a file or a pipe: a list, or `StoredLines` if it is large.

    `known` is the folder that caches the lines of large files, so that they are read only once; None caches nothing.

    Raises:
        UserError: the file is missing, cannot be read, is broken or not UTF-8.
    """
    with open_lines(path) as lines:
        first, size = list[str](), 0
        while size < LARGE:
            if (line := next(lines, None)) is None:
                return first
            first.append(line)
            size += len(line) + 1
        if not is_regular(path):  # can be read only once
            return stored_lines(lambda: itertools.chain(first, lines), None, known)
    first.clear()

    def again() -> Iterator[str]:
        with open_lines(path) as lines:
            yield from lines

    about = path.stat()
    changed = (about.st_size, about.st_mtime_ns, about.st_ctime_ns, about.st_ino, about.st_dev)
    return stored_lines(again, f"{path.resolve()} {changed}", known)


def stored_lines(lines: Callable[[], Iterable[str]], key: str | None, known: Path | None) -> StoredLines:
    """Lines in a table of the folder `known`, copied there unless a table with this key exists.

    Args:
        lines: returns an iterator over the lines.
        key: identifies the origin of the lines; None if they can be read only once, for a temporary table.
        known: see `text_lines`.

    Raises:
        UserError: the folder cannot be written; or raised by `lines`.
    """
    import pyarrow as pa  # type: ignore[import-untyped]  # slow to import

    from nmt.data.arrow import cached_table, temporary_table

    schema = pa.schema([("line", pa.string())])

    def batches(facts: dict[str, Any]) -> Iterator[Any]:
        digest = hashlib.sha256()
        for block in _in_blocks(lines()):
            digest.update("".join(f"{line}\n" for line in block).encode())
            yield pa.RecordBatch.from_arrays([pa.array(block, pa.string())], schema=schema)
        facts["digest"] = digest.hexdigest()

    if known is None or key is None:
        table, facts = temporary_table(known, schema, batches)
    else:
        name = hashlib.sha256(key.encode("utf-8", "surrogateescape")).hexdigest()
        table, facts = cached_table(known / f"{name[:40]}.lines", schema, batches)
    return StoredLines(table.column("line"), str(facts["digest"]), known)


def _in_blocks(values: Iterable[Value]) -> Iterator[list[Value]]:
    rest = iter(values)
    while block := list(itertools.islice(rest, _MANY)):
        yield block


def without(lines: Sequence[str], dropped: Sequence[int]) -> Sequence[str]:
    """The lines without the lines with the numbers `dropped` (ascending)."""
    if not len(dropped):
        return lines
    if isinstance(lines, StoredLines):
        return lines.without(dropped)
    gone = set(dropped)
    return [line for row, line in enumerate(lines) if row not in gone]


def remembered(sides: Sequence[Sequence[str]], what: str, compute: Callable[[], str]) -> str:
    """The result of `compute`, called `what`; if all sides are stored lines, it is cached in their folder."""
    known = next((side.known for side in sides if isinstance(side, StoredLines)), None)
    if known is None or not all(isinstance(side, StoredLines) for side in sides):
        return compute()
    identities = (side.identity for side in sides if isinstance(side, StoredLines))
    stored = known / f"{hashlib.sha256(' '.join([what, *identities]).encode()).hexdigest()[:40]}.txt"
    with contextlib.suppress(OSError, ValueError):
        value, check = stored.read_text("utf-8").split()
        if check == hashlib.sha256(value.encode()).hexdigest():
            return value
    value = compute()
    write_text(stored, f"{value} {hashlib.sha256(value.encode()).hexdigest()}\n")
    return value


def gathered(parts: Iterable[npt.ArrayLike], count: int, folder: Path | None = None) -> Numbers:
    """Concatenate parts with `count` numbers in total; a large array is mapped to an anonymous temporary file.

    Raises:
        UserError: `folder` cannot be written.
    """
    if count <= HELD:
        return np.concatenate([np.zeros(0, dtype=np.int64), *map(np.asarray, parts)])
    try:
        if folder is not None:
            folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder) as file:
            numbers: Numbers = np.memmap(cast("Any", file), dtype=np.int64, mode="w+", shape=(count,))
    except OSError as error:
        raise unwritable(folder or Path(tempfile.gettempdir()), error, "cache=FOLDER") from error
    at = 0
    for part in map(np.asarray, parts):
        numbers[at : at + len(part)] = part
        at += len(part)
    return numbers


def counted(numbers: Iterable[int], count: int, folder: Path | None = None) -> Sequence[int]:
    """The `count` numbers as a list, or as an array of `gathered` if there are more than `HELD`."""
    return list(numbers) if count <= HELD else cast("Sequence[int]", gathered(_in_blocks(numbers), count, folder))


class Spilled(Stored[Value]):
    """A sequence with the first `most` values in memory and the others in a temporary file.

    Raises:
        UserError: the temporary folder is full.
    """

    def __init__(self, values: Iterable[Value], most: int) -> None:
        self._first: list[Value] = []
        self._places = array("Q")
        self._file = tempfile.TemporaryFile()  # noqa: SIM115  closed, and so removed, with this object
        weakref.finalize(self, self._file.close)
        try:
            for value in values:
                if len(self._first) < most:
                    self._first.append(value)
                else:
                    self._places.append(self._file.tell())
                    pickle.dump(value, self._file, pickle.HIGHEST_PROTOCOL)
            self._file.flush()
        except OSError as error:
            raise unwritable(Path(tempfile.gettempdir()), error, "set TMPDIR=FOLDER") from error

    def __len__(self) -> int:
        return len(self._first) + len(self._places)

    def __iter__(self) -> Iterator[Value]:
        return (self[at] for at in range(len(self)))

    def between(self, first: int, end: int) -> list[Value]:
        """The values from number `first` to before `end`."""
        values = self._first[first:end]
        for at in range(max(first, len(self._first)), end):
            self._file.seek(self._places[at - len(self._first)])
            values.append(pickle.load(self._file))  # safe: this process has written it
        return values
