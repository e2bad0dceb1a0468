"""Lines of large files are the same as those of small ones, whatever a file holds and however it is read."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import large
from nmt.data.large import Column, FileLines, Without, remembered, text_lines, without
from nmt.data.lines import read_lines
from nmt.errors import UserError

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
        patch.setattr(large, "_BLOCK", block)
        patch.setattr(large, "_MANY", 5)
        expected = read_lines(path)
        for _ in range(2):  # found, and known
            found = FileLines(path, folder / "known")
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
    fewer = Without(FileLines(path), dropped)
    assert without(lines, dropped) == kept
    assert len(fewer) == len(kept)
    assert list(fewer) == kept
    first, end = data.draw(st.integers(-70, 70)), data.draw(st.integers(-70, 70))
    assert fewer[first:end] == kept[first:end]
    assert [fewer[row] for row in range(len(kept))] == kept


def test_a_column_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "text.tsv"
    path.write_bytes("a\tb\tc\n\né\tf\n".encode())
    assert [list(Column(FileLines(path), column)) for column in (1, 2, 3)] == [
        ["a", "", "é"],
        ["b", "", "f"],
        ["c", "", ""],
    ]


@pytest.mark.parametrize("packed", [False, True])
def test_what_is_wrong_with_a_file_is_said_as_ever(packed: bool, tmp_path: Path) -> None:
    path = tmp_path / "text"
    text = b"one\ntwo\n\xff\nfour\n"
    path.write_bytes(gzip.compress(text) if packed else text)
    with pytest.raises(UserError, match=r"text, line 3: not valid UTF-8"):
        FileLines(path)
    path.write_bytes(gzip.compress(b"one\n" * 1000)[:-9])
    with pytest.raises(UserError, match="broken gzip file"):
        FileLines(path)
    with pytest.raises(UserError, match="no file"):
        text_lines(tmp_path / "missing")


def test_a_file_that_becomes_shorter_meanwhile_is_named(tmp_path: Path) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"a line\n" * 100)
    lines = FileLines(path)
    path.write_bytes(b"a line\n" * 40)
    assert lines[3] == "a line"
    with pytest.raises(UserError, match="text has changed while it was read"):
        lines[90]


def test_what_is_known_is_forgotten_with_a_change_and_mended(tmp_path: Path) -> None:
    path, known = tmp_path / "text", tmp_path / "known"
    path.write_bytes(b"one\ntwo\n")
    asked = []

    def told() -> str:
        asked.append(path.read_bytes())
        return f"v{len(asked)}"

    def value() -> str:
        return remembered([FileLines(path, known)], "test", told)

    assert [value(), value()] == ["v1", "v1"]
    path.write_bytes(b"one\ntoo\n")
    os.utime(path, ns=(1, 1))
    assert list(FileLines(path, known)) == ["one", "too"]
    assert [value(), value()] == ["v2", "v2"]
    for file in known.iterdir():  # every file damaged: found out anew
        data = bytearray(file.read_bytes())
        data[-4] ^= 1
        file.write_bytes(data)
    assert list(FileLines(path, known)) == ["one", "too"]
    assert value() == "v3"


def test_large_files_only_stay_in_their_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "text"
    path.write_bytes(b"one\ntwo\n")
    assert text_lines(path) == ["one", "two"]
    monkeypatch.setattr(large, "LARGE", 8)
    assert isinstance(text_lines(path), FileLines)
    path.write_bytes(gzip.compress(b"one\ntwo\n"))
    assert isinstance(text_lines(path), FileLines)


def test_a_small_file_that_unpacks_to_much_is_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large, "LARGE", 10_000)
    path = tmp_path / "text.gz"
    path.write_bytes(gzip.compress(b"a\n" * 100_000))
    assert path.stat().st_size < 1000
    assert isinstance(text_lines(path), FileLines)
    path.write_bytes(gzip.compress(bytes(1000)))
    monkeypatch.setattr(large, "LONGEST", 500)
    with pytest.raises(UserError, match="line 1: longer than"):
        FileLines(path)
