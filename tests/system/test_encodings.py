"""Text that is not UTF-8: its encoding is named or recognised, for lines, tables and documents."""

from pathlib import Path

import pytest

from nmt.data.lines import read_lines
from nmt.data.sources import UserFiles
from nmt.data.streams import decoding
from nmt.system.errors import UserError

TEXTS = {
    "cp1252": "Jörg heißt er, und Süßes mag er. Die Frösche hörten zwölf Flöten über dem Fluss.",
    "cp1251": "Это простой текст на русском языке, который нужно распознать.",
    "koi8_r": "Это простой текст на русском языке, который нужно распознать.",
    "cp1253": "Αυτό είναι ένα απλό κείμενο στα ελληνικά που πρέπει να αναγνωριστεί.",
    "shift_jis": "これは日本語の文章です。猫が好きです。",
}


@pytest.mark.parametrize("encoding", TEXTS)
@pytest.mark.parametrize("named", [True, False])
def test_lines_of_another_encoding(
    encoding: str, named: bool, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "text"
    lines = ["ascii " * 20_000, *[TEXTS[encoding]] * 3]  # more than a block
    path.write_bytes("".join(f"{line}\n" for line in lines).encode(encoding))
    with pytest.raises(UserError, match="line 2: not valid UTF-8"):
        read_lines(path)
    with decoding(encoding if named else "auto", "encoding"):
        assert read_lines(path) == lines
    assert (f"read as {encoding}" in capfd.readouterr().err) is not named


@pytest.mark.parametrize("encoding", ["cp1252", "auto"])
def test_utf8_stays_utf8(encoding: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("a" * 65_535 + "é\nß\n", encoding="utf-8")  # a letter over two blocks
    with decoding(encoding, "encoding"):
        assert read_lines(tmp_path / "text") == ["a" * 65_535 + "é", "ß"]


@pytest.mark.parametrize("encoding", ["cp1252", "utf-16"])
def test_columns_by_name_in_another_encoding(encoding: str, tmp_path: Path) -> None:
    path = tmp_path / "pairs.csv"
    rows = [f"{number};{TEXTS['cp1252']} {number};Frogs {number}" for number in range(60)]
    path.write_bytes("\r\n".join(["Nr;German;English", *rows, ""]).encode(encoding))
    data = UserFiles(str(path), columns=("German", "English"), encoding="auto")
    assert data.languages == ("de", "en")
    assert all(source.startswith("Jörg heißt") for source in data.read("train").source)


@pytest.mark.parametrize(
    ("encoding", "message"), [("nonsense", "encoding=nonsense"), ("euc_jp", "is not valid euc_jp")]
)
def test_a_wrong_encoding(encoding: str, message: str, tmp_path: Path) -> None:
    (tmp_path / "text").write_bytes(b"Fl\xf6ten\n")
    with pytest.raises(UserError, match=message), decoding(encoding, "encoding"):
        read_lines(tmp_path / "text")
