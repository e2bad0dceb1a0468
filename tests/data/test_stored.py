"""Stored lines are the lines of a list, whatever a file holds; values beyond the memory for them are in a file."""

import errno
import gzip
import os
import tracemalloc
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import stored
from nmt.data.lines import read_lines
from nmt.data.stored import Spilled, StoredLines, remembered, stored_lines, text_lines, without
from nmt.system.errors import UserError

LINE = st.sampled_from(["", "a", " b\tc", "q\u2028r", "a\rb", "é 数据 😀", "\x00", "x" * 50])


@given(
    st.lists(LINE, max_size=100),
    st.sampled_from(["\n", "\r\n"]),
    *(st.booleans(),) * 3,
    st.tuples(*(st.integers(-120, 120) | st.none(),) * 2, st.sampled_from([None, 1, 2, 7, -1])),
    st.sampled_from([1, 3, 1000]),
)
def test_the_same_lines_as_in_memory(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    end: str,
    ended: bool,
    mark: bool,
    packed: bool,
    part: tuple[int | None, int | None, int | None],
    block: int,
) -> None:
    folder = tmp_path_factory.mktemp("large")
    path = folder / "text"
    data = (b"\xef\xbb\xbf" if mark else b"") + (end.join(lines) + (end if ended and lines else "")).encode()
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("nmt.data.lines._BLOCK", block)
        patch.setattr(stored, "_MANY", 5)
        expected = read_lines(path)
        patch.setattr(stored, "LARGE", 1)
        for known in (folder / "known", folder / "known", None):  # made, known, and temporary
            found = text_lines(path, known) if data else stored_lines(list, "none", known)
            assert len(found) == len(expected)
            assert list(found) == expected
            assert [found[row] for row in range(-len(expected), len(expected))] == expected * 2
            assert found[slice(*part)] == expected[slice(*part)]
            with pytest.raises(IndexError):
                found[len(expected)]


@given(st.lists(LINE, max_size=60), st.data())
def test_without_some_lines(tmp_path_factory: pytest.TempPathFactory, lines: list[str], data: st.DataObject) -> None:
    path = tmp_path_factory.mktemp("without") / "text"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    dropped = sorted(data.draw(st.sets(st.integers(0, max(0, len(lines) - 1)), max_size=len(lines)))) if lines else []
    kept = [line for row, line in enumerate(lines) if row not in dropped]
    half = dropped[::2]  # in two steps
    rest = [row - sum(other < row for other in half) for row in dropped[1::2]]
    fewer = without(without(stored_lines(lambda: lines, "lines", path.parent), half), rest)
    assert without(lines, dropped) == kept
    assert len(fewer) == len(kept)
    assert list(fewer) == kept
    first, end = data.draw(st.integers(-70, 70)), data.draw(st.integers(-70, 70))
    assert fewer[first:end] == kept[first:end]
    assert [fewer[row] for row in range(len(kept))] == kept


def test_a_column_of_lines_with_tabs() -> None:
    lines = stored_lines(lambda: ["a\tb\tc", "", "é\tf"], None, None)
    assert [list(lines.column(number)) for number in (1, 2, 3)] == [["a", "", "é"], ["b", "", "f"], ["c", "", ""]]
    assert list(lines.without([1]).column(2)) == list(lines.column(2).without([1])) == ["b", "f"]


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_wrong_with_a_file_is_said_as_ever(
    packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stored, "LARGE", 1)
    monkeypatch.setattr("nmt.data.lines._BLOCK", 3)
    path = tmp_path / "text"
    text = b"one\ntwo\n\xff\nfour\n"
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(UserError, match=r"text, line 3: not valid UTF-8"):
        text_lines(path, tmp_path / "known")
    path.write_bytes(gzip.compress(b"one\n" * 1000)[:-9])
    with pytest.raises(UserError, match="broken gzip file"):
        text_lines(path, tmp_path / "known")
    with pytest.raises(UserError, match="no file"):
        text_lines(tmp_path / "missing")
    assert [*(tmp_path / "known").iterdir()] == []


def test_what_is_known_is_forgotten_with_a_change_and_mended(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LARGE", 1)
    path, known = tmp_path / "text", tmp_path / "known"
    path.write_bytes(b"one\ntwo\n")
    asked = []

    def value() -> str:
        def compute() -> str:
            asked.append(path.read_bytes())
            return f"v{len(asked)}"

        return remembered([text_lines(path, known)], "test", compute)

    assert [value(), value()] == ["v1", "v1"]
    path.write_bytes(b"one\ntoo\n")
    os.utime(path, ns=(1, 1))
    assert list(text_lines(path, known)) == ["one", "too"]
    assert [value(), value()] == ["v2", "v2"]
    path.touch()  # equal lines
    assert value() == "v2"
    for file in [file for file in known.rglob("*") if file.is_file()]:  # every file damaged: found out anew
        data = bytearray(file.read_bytes())
        data[-4] ^= 1
        file.unlink()  # the mapped file stays as it is
        file.write_bytes(data)
    assert list(text_lines(path, known)) == ["one", "too"]
    assert value() == "v3"


@pytest.mark.parametrize("packed", [False, True])
def test_large_files_only_are_stored(packed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "LARGE", 10_000)
    path = tmp_path / "text"

    def write(data: bytes) -> None:
        path.write_bytes(gzip.compress(data) if packed else data)

    write(b"one\ntwo\n")
    assert text_lines(path) == ["one", "two"]
    write(b"a\n" * 100_000)
    assert isinstance(text_lines(path), StoredLines)
    write(b"a\n" * 10_000 + bytes(1000))
    monkeypatch.setattr("nmt.data.lines.LONGEST", 500)
    with pytest.raises(UserError, match="line 10001: longer than"):
        text_lines(path)


@pytest.mark.parametrize("in_memory", [0, 2, 5, 9])
def test_spilled_values_are_a_list(in_memory: int) -> None:
    values: list[tuple[str, object]] = [("a", None), ("b", 1), ("c", [2]), ("d", {}), ("e", "f")]
    kept = Spilled(iter(values), in_memory)
    assert len(kept) == 5
    assert [kept[at] for at in (4, 0, 3, -1, -5, 2)] == [values[at] for at in (4, 0, 3, -1, -5, 2)]
    assert list(kept) == values == [one for one, _ in zip(kept, kept, strict=True)]  # two readers at a time
    assert (kept[1:4:2], kept[1:4], kept[3:1]) == (values[1:4:2], values[1:4], [])
    with pytest.raises(IndexError):
        kept[5]
    assert len(Spilled([], in_memory)) == 0


def test_spilled_values_take_no_memory() -> None:
    """3,000 arrays of 40 kB: 120 MB as a list."""

    def many() -> Iterator[np.ndarray[tuple[int, ...], np.dtype[np.float32]]]:
        for _ in range(3000):
            yield np.ones((1, 100, 100), np.float32)

    tracemalloc.start()
    kept = Spilled(many(), 10)
    assert sum(float(value.sum()) for value in kept) == 3e7
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3e6


def test_a_full_disk_ends_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("nmt.data.stored.pickle.dump", full)
    with pytest.raises(UserError, match=r"No space left on device\. Free some space.*: set TMPDIR="):
        Spilled([1, 2], 1)
