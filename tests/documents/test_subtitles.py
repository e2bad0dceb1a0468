"""Subtitles: a sentence over several cues is translated whole and cut again."""

import re
from pathlib import Path

import pytest

from nmt.documents.formats import read_document
from nmt.system.errors import UserError
from tests.documents.trips import round_trip, translate
from tests.system.test_encodings import TEXTS

SRT = """1
00:00:01,000 --> 00:00:02,000
{\\an8}<i>Das ist ein langer Satz,</i>

2
00:00:02,100 --> 00:00:04,000
der über zwei <b>Zeilen</b>
und Cues geht. Ja.

3
00:00:05,000 --> 00:00:06,000
- Wer bist du?
- Niemand.

4
00:00:06,500 --> 00:00:08,000
(12)
"""


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_a_sentence_over_two_cues_is_one(tmp_path: Path, ending: str, mark: str) -> None:
    data = (mark + SRT.replace("\n", ending)).encode()
    seen, written = translate(tmp_path / "a.srt", data, str.upper)
    assert seen == ["Das ist ein langer Satz, der über zwei Zeilen und Cues geht.", "Ja.", "Wer bist du?", "Niemand."]
    expected = SRT.replace("zwei <b>Zeilen</b>\nund", "zwei <b>Zeilen</b> und")
    words = ("Das ist ein langer Satz", "der über zwei", "Zeilen", "und Cues geht. Ja", "Wer bist du", "Niemand")
    for word in words:
        expected = expected.replace(word, word.upper())
    assert written.decode() == (mark + expected.replace("\n", ending))


def test_long_cues_are_wrapped_and_reported(tmp_path: Path) -> None:
    _, written = translate(tmp_path / "a.srt", SRT.encode(), lambda text: f"{text} " + "wort " * 40)
    cue = written.decode().split("\n\n")[1].splitlines()[2:]
    assert len(cue) > 2
    assert all(len(re.sub("<.*?>", "", line)) <= 42 for line in cue)


def test_text_outside_of_cues_is_reported(tmp_path: Path) -> None:
    (tmp_path / "a.srt").write_text("1\n00:00:01,000 --> 00:00:02,000\n\neins.\n\n12\n", encoding="utf-8")
    assert read_document(tmp_path / "a.srt", "de", "en").notes == [
        "lines outside of cues, which are not translated: 1."
    ]


def test_a_tag_over_a_cut_is_closed_and_opened_again(tmp_path: Path) -> None:
    cue = "00:00:0{0},000 --> 00:00:0{0},900\n{1}\n\n".format
    data = (cue(1, "eins <i>zwei") + cue(2, "drei</i> vier.")).encode()
    _, written = translate(tmp_path / "a.srt", data, lambda text: text + " a b c d e f")
    for part in written.decode().split("\n\n"):
        assert part.count("<i>") == part.count("</i>")


def test_vtt_keeps_its_notes_styles_and_entities(tmp_path: Path) -> None:
    data = (
        b"WEBVTT - Titel\n\nNOTE Das bleibt.\n\nSTYLE\n::cue { color: red }\n\nid 1\n00:01.000 --> 00:02.000 line:0\n"
    )
    data += "<v Anna>Äpfel &amp; <c.rot>Birnen</c>!\n".encode()
    seen, written = translate(tmp_path / "a.vtt", data, str.upper)
    assert seen == ["Äpfel & Birnen!"]
    assert written == data.replace("Äpfel".encode(), "ÄPFEL".encode()).replace(b"Birnen", b"BIRNEN")


@pytest.mark.parametrize("name", ["a.srt", "a.vtt"])
@pytest.mark.parametrize("data", [b"Hallo Welt", b"PK\x03\x04\0\0", "Größe".encode("latin-1"), b"{}"])
def test_a_file_that_is_no_subtitles_is_refused(tmp_path: Path, name: str, data: bytes) -> None:
    with pytest.raises(UserError, match=re.escape(name)):
        translate(tmp_path / name, data, str)


def test_round_trip(tmp_path: Path) -> None:
    def document(words: list[str], number: int) -> bytes:
        cues = [
            f"{at + 1}\n00:0{at % 10}:01,000 --> 00:0{at % 10}:0{number % 3 + 2},500\n{word}\n"
            for at, word in enumerate(words)
        ]
        return "\n".join(cues).encode()

    round_trip(
        tmp_path / "a.srt",
        document,
        texts=("Guten Tag", "- Ja.\n- Nein.", "<i>so</i> geht es.", "♪ la ♪", "{\\an8}Oben…"),
    )


def test_a_document_keeps_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "film.srt"
    text = f"1\r\n00:00:01,000 --> 00:00:09,000\r\n{TEXTS['cp1252']}\r\n"
    path.write_bytes(text.encode("cp1252"))
    document = read_document(path)
    assert document.segments[0].text == TEXTS["cp1252"]
    assert document.write([None]) == path.read_bytes()
    assert "in cp1252, as the input seems to be" in document.notes[0]
    assert read_document(path, encoding="latin-1").notes == []
