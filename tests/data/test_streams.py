"""A text is the same from a file, a pipe or standard input, however it is packed; what is no text is named."""

import bz2
import contextlib
import gzip
import io
import lzma
import os
import sys
import tarfile
import threading
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data import stored, streams
from nmt.data.lines import open_lines, read_lines, read_parallel_lines
from nmt.data.parallel import read_parallel
from nmt.data.stored import StoredLines, text_lines
from nmt.system.errors import UserError
from nmt.system.files import STANDARD

# Zeros at the beginning of UTF-16 make its mark that of UTF-32.
AWKWARD = ["a\tb", "  ", "q\u2028r\u2029s", "a\rb", "x\u0085y", "\x0b\x0c\x1c\x1d\x1e", "\u00a0z\u200b", "é 数据 😀"]
LINE = st.text(st.characters(codec="utf-8", exclude_characters="\n\r\ufeff\x00"), max_size=8) | st.sampled_from(AWKWARD)
PACKERS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "bzip2": bz2.compress,
    "two gzip parts": lambda data: gzip.compress(data[:3]) + gzip.compress(data[3:]),
    "two xz parts": lambda data: lzma.compress(data[:3]) + lzma.compress(data[3:]),
}
MARKS = {"utf8": b"", "utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}
MARKS |= {"utf-32-le": b"\xff\xfe\0\0", "utf-32-be": b"\0\0\xfe\xff"}


@contextlib.contextmanager
def pipe_of(data: bytes, piece: int = 1 << 20) -> Iterator[Path]:
    """A pipe as a path, into which another thread writes."""
    reader, writer = os.pipe()

    def write() -> None:
        with os.fdopen(writer, "wb", buffering=0) as stream, contextlib.suppress(BrokenPipeError):
            for first in range(0, len(data), piece):
                stream.write(data[first : first + piece])

    thread = threading.Thread(target=write)
    thread.start()
    try:
        yield Path(f"/dev/fd/{reader}")
    finally:
        os.close(reader)
        thread.join(timeout=600)


def one_by_one(path: Path) -> list[str]:
    """The lines of a file as they come."""
    with open_lines(path) as lines:
        return list(lines)


@given(
    st.lists(LINE, max_size=20),
    st.sampled_from(["\n", "\r\n"]),
    st.booleans(),
    st.sampled_from([*PACKERS]),
    st.sampled_from([*MARKS]),
    st.sampled_from([1, 3, 1000]),
    st.sampled_from([1, 40, 10_000]),
)
def test_the_same_lines_from_a_file_and_from_a_pipe(
    tmp_path_factory: pytest.TempPathFactory,
    lines: list[str],
    end: str,
    ended: bool,
    packer: str,
    encoding: str,
    piece: int,
    size: int,
) -> None:
    folder = tmp_path_factory.mktemp("streams")
    text = end.join(lines) + (end if ended and lines else "")
    data = PACKERS[packer](MARKS[encoding] + text.encode(encoding))
    (folder / "text").write_bytes(data)
    expected = lines if ended or not lines or lines[-1] else lines[:-1]
    assert read_lines(folder / "text") == one_by_one(folder / "text") == expected
    for read in (read_lines, one_by_one):
        with pipe_of(data, piece) as path:
            assert read(path) == expected
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(stored, "LARGE", size)
        assert [*text_lines(folder / "text", folder / "known")] == expected
        for _ in range(2):  # what is known of it is known of the same text in another pipe
            with pipe_of(data, piece) as path:
                found = text_lines(path, folder / "known")
            assert [*found] == expected
            assert found[1:3] == expected[1:3]
        if isinstance(found, StoredLines):
            with pipe_of(PACKERS[packer](b"other\n" * 10)) as path:
                other = text_lines(path, folder / "known")
            assert isinstance(other, StoredLines) or len(other) == 10
            assert [*other] == ["other"] * 10


def test_two_pipes_side_by_side() -> None:
    with pipe_of(b"eins\nzwei\n" * 5000) as source, pipe_of(b"one\ntwo\n" * 5000) as target:
        first, second = read_parallel(source, target)
        assert [*zip(first, second, strict=True)][:2] == [("eins", "one"), ("zwei", "two")]
        assert len(first) == 10_000
    for read in (read_parallel, read_parallel_lines):
        with pipe_of(b"a\n") as path, pytest.raises(UserError, match="can be read only once"):
            read(path, path)
    with pytest.raises(UserError, match="standard input can be read only once"):
        read_parallel_lines(Path("/dev/stdin"), STANDARD)


def test_a_minus_is_standard_input_from_where_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "text").write_bytes(b"read before\neins\nzwei\n")
    with (tmp_path / "text").open(encoding="utf-8") as stream:
        os.lseek(stream.fileno(), len(b"read before\n"), os.SEEK_SET)
        monkeypatch.setattr(sys, "stdin", stream)
        assert one_by_one(STANDARD) == ["eins", "zwei"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(gzip.compress(b"a\r\nb"))))
    assert [*text_lines(STANDARD)] == ["a", "b"]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"a\n\xff\n")))
    with pytest.raises(UserError, match="standard input, line 2: not valid UTF-8"):
        text_lines(STANDARD)


def test_a_line_is_not_held_back_by_the_look_at_the_first_bytes() -> None:
    reader, writer = os.pipe()
    with os.fdopen(writer, "wb", buffering=0) as stream:
        stream.write(b"B\n")
        with open_lines(Path(f"/dev/fd/{reader}")) as lines:
            assert next(lines) == "B"
            stream.write(b"Z")
            stream.write(b"h\n")
            assert next(lines) == "Zh"
            stream.write(b"eins\n\xff\n")
            assert next(lines) == "eins"
            with pytest.raises(UserError, match="line 4: not valid UTF-8"):
                next(lines)
    os.close(reader)


def test_a_pipe_without_text_is_waited_for_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(streams, "PATIENCE", 0.01)
    os.mkfifo(tmp_path / "pipe")
    said = threading.Event()

    def say(text: str) -> None:
        print(text, file=sys.stderr)
        said.set()

    def write() -> None:
        assert said.wait(600)
        (tmp_path / "pipe").write_bytes(b"a\n")

    monkeypatch.setattr(streams, "print_message", say)
    thread = threading.Thread(target=write)
    thread.start()
    assert read_lines(tmp_path / "pipe") == ["a"]
    thread.join(timeout=600)
    assert capfd.readouterr().err.startswith(f"Waiting for text from {tmp_path / 'pipe'}: a pipe")


def archive(kind: str) -> bytes:
    """An archive with one text file."""
    held = io.BytesIO()
    if kind == "zip":
        with zipfile.ZipFile(held, "w") as file:
            file.writestr("a.txt", "eins\nzwei\n")
    else:
        with tarfile.open(fileobj=held, mode="w") as tar:
            tar.addfile(tarfile.TarInfo("a.txt"), io.BytesIO())
    return held.getvalue()


@pytest.mark.parametrize("piped", [False, True])
@pytest.mark.parametrize(
    ("data", "message"),
    [
        (archive("zip"), r"is a zip archive, as \.docx, \.xlsx and \.odt are\. Unpack it"),
        (archive("tar"), r"is a tar archive\. Unpack it"),
        (gzip.compress(archive("tar")), r"is a tar archive\. Unpack it"),
        (lzma.compress(archive("zip")), "is a zip archive"),
        (gzip.compress(gzip.compress(b"a\n")), "is packed twice"),
        (b"%PDF-1.7\n%\xe2\xe3\n", "is a PDF file. Save its text as plain text"),
        (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(500), "is an old Word or Excel file"),
        (b"{\\rtf1\\ansi eins}\n", "is an RTF document"),
        (b"\x28\xb5\x2f\xfd\x04\x58eins", "is packed with zstd"),
        (b"7z\xbc\xaf\x27\x1c\x00\x04", "is a 7z archive"),
        (b"\x89PNG\r\n\x1a\n\x00\x00", "is a picture"),
        (b"\x04\x22\x4d\x18eins", "is packed with lz4"),
        (b"LZIP\x01eins", "is packed with lzip"),
        (b"\x1f\x9deins", "is packed with compress"),
        (b"SQLite format 3\x00", "is a database"),
        (b"PAR1\x15\x04\x15", "is a Parquet table"),
        ("zwei eins\n".encode("utf-16-le"), r"is UTF-16LE without a byte-order mark\. Convert it: iconv -f UTF-16LE"),
        ("zwei eins\n".encode("utf-16-be"), "is UTF-16BE without a byte-order mark"),
        (b"\xff\xfe\x00", "is broken UTF-16"),
        (lzma.compress(b"a\n", filters=[{"id": lzma.FILTER_LZMA2, "dict_size": 1 << 29}]), "more than 256 MiB"),
        *(
            (damaged, f"is a broken {kind} file")
            for kind in ("gzip", "xz", "bzip2")
            for packed in [PACKERS[kind](bytes(range(10, 128)) * 50)]
            for damaged in (packed[:-9], packed[:30] + b"\x00\xff\x13" + packed[33:])
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_what_is_not_text_is_named(data: bytes, message: str, piped: bool, tmp_path: Path) -> None:
    (tmp_path / "text.de").write_bytes(data)
    for read in (read_lines, one_by_one, text_lines):
        with pipe_of(data) if piped else contextlib.nullcontext(tmp_path / "text.de") as path:
            with pytest.raises(UserError, match=message) as caught:
                read(path)
            assert str(path) in str(caught.value)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "Er sagte „dr\u00fcben“".encode("cp1252"),
            r"\(ANSI\): iconv -f WINDOWS-1252 -t UTF-8 '.*my text' > utf8\.txt",
        ),
        ("drüben".encode("latin-1"), "iconv -f WINDOWS-1252"),
        ("наука".encode("cp1251"), "iconv -f ENCODING"),
        ("数据处理".encode("gb18030"), "iconv -f ENCODING"),
        ("日本語".encode("shift-jis"), "iconv -f ENCODING"),
        ("drüben".encode() + b"\xe2\x80", r"The rest of the line is valid\. Fix the line\.$"),
        (b"\x00\x01\xff\xfe", "another kind of file"),
    ],
)
def test_what_is_not_utf8_has_a_cure_that_fits(line: bytes, message: str, tmp_path: Path) -> None:
    (tmp_path / "my text").write_bytes(b"eins\n" + line + b"\nzwei\n")
    for read in (read_lines, one_by_one, text_lines):
        with pytest.raises(UserError, match=rf"my text, line 2: not valid UTF-8\..*{message}"):
            read(tmp_path / "my text")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("https://example.org/a.de", r"https:/example\.org/a\.de is an address, not a file\. Download it first\."),
        ("*.de", "One file is needed here: cat FILE FILE > BOTH"),
        ("a.de,b.de", "One file is needed here"),
        ("[a.de,b.de]", "One file is needed here"),
        ("/dev/fd/987", r"There is no pipe /dev/fd/987: one made by the shell"),
    ],
)
def test_what_is_no_path_has_a_cure(name: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        text_lines(Path(name))
