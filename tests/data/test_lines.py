"""Lines are what stands between line feeds, whatever else a file holds, and what cannot be read is named."""

import bz2
import gzip
import io
import lzma
import tracemalloc
from pathlib import Path
from typing import Any

import pytest

from nmt.data.lines import Invalid, LineDecoder, iterate_lines, read_lines
from nmt.system.errors import UserError


@pytest.mark.parametrize(
    ("data", "lines"),
    [
        (b"", []),
        (b"\n", [""]),
        (b"\n\n", ["", ""]),
        (b"a", ["a"]),
        (b"a\r\nb\r\n", ["a", "b"]),
        (b"a\r\r\n", ["a\r"]),  # one carriage return belongs to the line end, the other to the text
        (b"a\r", ["a\r"]),  # none before a line feed
        (b"\xef\xbb\xbf", []),
        (b"\xef\xbb\xbf\n", [""]),
        (b"\xef\xbb\xbf\xef\xbb\xbfa\n", ["\ufeffa"]),  # one mark is a mark, the second is text
        (b"a\n\xef\xbb\xbfb\n", ["a", "\ufeffb"]),
    ],
)
def test_by_hand(data: bytes, lines: list[str], tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(data)
    assert read_lines(tmp_path / "text") == lines


def test_a_missing_file_is_named_with_its_neighbours(tmp_path: Path) -> None:
    (tmp_path / "german.txt").touch()
    with pytest.raises(UserError, match=r"no file .*germn\.txt\. Did you mean 'german\.txt'"):
        read_lines(tmp_path / "germn.txt")
    with pytest.raises(UserError, match="its folder does not exist"):
        read_lines(tmp_path / "nowhere" / "german.txt")
    with pytest.raises(UserError, match="is a folder"):
        read_lines(tmp_path)


@pytest.mark.parametrize(
    ("invalid", "lines"),
    [
        ("replace", ["a", "\ufffd", "f\ufffdnf", "\ufffd\ufffd\x00x", "last"]),
        ("empty", ["a", "", "", "", "last"]),
    ],
)
def test_lines_that_are_not_utf8_are_replaced_one_for_one(invalid: Invalid, lines: list[str]) -> None:
    warnings: list[str] = []
    decoder = LineDecoder(invalid, warnings.append)
    data = b"a\n\xff\nf\xfcnf\r\n\xfe\xff\x00x\nlast"
    assert list(iterate_lines(io.BytesIO(data), "standard input", decoder)) == lines
    assert len(warnings) == 1
    assert warnings[0].startswith("standard input, line 2: not valid UTF-8.")
    decoder.close()
    assert warnings[1:] == [f"3 lines are not valid UTF-8 (invalid={invalid})."]


def test_valid_lines_are_left_alone_and_one_warning_is_enough() -> None:
    warnings: list[str] = []
    decoder = LineDecoder("empty", warnings.append)
    assert list(iterate_lines(io.BytesIO("ü\n\ufffd\n".encode()), "x", decoder)) == ["ü", "\ufffd"]
    decoder.close()
    assert warnings == []
    assert list(iterate_lines(io.BytesIO(b"\xff\nb"), "x", decoder)) == ["", "b"]
    decoder.close()
    assert len(warnings) == 1


@pytest.mark.parametrize("opener", [gzip.open, lzma.open, bz2.open])
def test_a_line_that_is_no_sentence_is_refused_before_it_fills_the_memory(opener: Any, tmp_path: Path) -> None:
    bomb = tmp_path / "bomb"
    with opener(bomb, "wb") as file:
        file.write(b"a line\n")
        for _ in range(64):
            file.write(bytes(1 << 20))
    tracemalloc.start()
    with pytest.raises(UserError, match="line 2: longer than 16 MiB"):
        read_lines(bomb)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 50 << 20
