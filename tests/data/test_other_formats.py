"""Files that are not lines of text are named for what they are; lines of text never are."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.habits import LineWatch, habits
from nmt.data.sources import TextFiles, UserFiles
from nmt.data.text_formats import format_of, is_markup
from nmt.system.errors import UserError

FORMATS = {
    "TMX": '<?xml version="1.0"?>\n<tmx version="1.4">\n<body>\n<tu><tuv><seg>a</seg></tuv></tu></body></tmx>',
    "XLIFF": '<?xml version="1.0"?>\n<xliff version="1.2"><file/></xliff>',
    "ELAN": '<?xml version="1.0" encoding="UTF-8"?>\n<ANNOTATION_DOCUMENT AUTHOR="">',
    "HTML": "<!DOCTYPE html>\n<html><body>Hallo</body></html>",
    "XML": "<book>\n<line>Hallo</line>\n</book>\n",
    "po": 'msgid ""\nmsgstr ""\n"Language: de\\n"\n\nmsgid "a"\nmsgstr "b"\n',
    "SRT": "1\n00:00:02,000 --> 00:00:03,000\nHallo\n\n2\n",
    "WebVTT": "WEBVTT\n\n00:02.000 --> 00:03.000\nHallo\n",
    "Toolbox": "\\_sh v3.0  400  Text\n\\tx foo\n\\ft bar\n\n\\tx foo\n",
    "Qt": '<?xml version="1.0"?>\n<!DOCTYPE TS>\n<TS version="2.1" language="de_DE">\n</TS>\n',
    "SubStation": "[Script Info]\nTitle: film\n",
    "LRC": "[ar: Somebody]\n[ti: A song]\n[00:12.00] Hallo\n",
    "TextGrid": 'File type = "ooTextFile"\nObject class = "TextGrid"\n',
    "CHAT": "@UTF8\n@Begin\n*CHI:\tHallo .\n",
    "LaTeX": "% a comment\n\\documentclass{article}\n",
    "RTF": "{\\rtf1\\ansi Hallo}\n",
    "CoNLL-U": "# sent_id = 1\n# text = Hallo\n1\tHallo\thallo\tINTJ\n",
    "strings": '/* A menu */\n"File" = "Datei";\n"Edit" = "Bearbeiten";\n',
    "SGML": '<srcset setid="x" srclang="any">\n<seg id="1">a</seg>\n',
    "JSON": '[\n  {"de": "a", "en": "b"}\n]\n',
    "JSON lines": '{"translation": {"de": "a", "en": "b"}}\n',
}


@pytest.mark.parametrize("name", FORMATS)
def test_a_format_is_refused_for_training_unless_the_user_insists(name: str, tmp_path: Path) -> None:
    for ending in ("de", "en"):
        (tmp_path / f"train.{ending}").write_text(f"\ufeff{FORMATS[name]}\n" * 9, encoding="utf-8")
    files = [str(tmp_path / "train.de"), str(tmp_path / "train.en")]
    for given_files in (files, files[:1]):
        with pytest.raises(UserError, match=rf"train\.de looks like .*{name.split()[0]}.*data\.lines=plain"):
            UserFiles(given_files).check()
    assert UserFiles(files, lines="plain", valid=files, test_pairs=0).read("train").source
    prefix = str(tmp_path / "train")
    assert any("looks like" in note for note in TextFiles("de", "en", prefix, prefix).notes())


@settings(deadline=None)
@given(
    lines=st.lists(
        st.from_regex(r"[\[({\"<-]?[A-Za-zäß0-9][a-z ,.:'0-9]{0,30}[\])}\">]?[.!?]?", fullmatch=True), max_size=30
    )
)
def test_lines_of_text_are_no_format(lines: list[str]) -> None:
    assert all(format_of([line]) is None for line in ("{} files are copied.", '["No"] he said', "{name} is gone"))
    tagged = any(is_markup(line) for line in lines)
    assert tagged or format_of(lines) is None


FACTS = {"source_lines": habits(["Er liest ein Buch.", "Das Haus ist neu."] * 50, "de"), "languages": ["de", "en"]}


@pytest.mark.parametrize(
    ("line", "word"),
    [
        ("Er liest. Sie schläft. Wo ist das Buch?", "several sentences"),
        ("Er liest ein " + "sehr " * 40 + "altes Buch.", "characters"),
        ("<b>Er liest ein Buch.</b>", "tags"),
        ("00:00:02,000 --> 00:00:03,000", "time codes"),
        ("Er liest.\tHe reads.", "tabs"),
    ],
)
def test_unusual_lines_are_counted_once_with_the_first(line: str, word: str) -> None:
    watch = LineWatch("in.txt", FACTS)
    assert watch.add(["Er liest ein Buch.", line]) == []
    watch.add(["", line, "Er kam am 3. Mai."])
    (note,) = watch.notes()
    assert "2 lines have" in note
    assert "line 2 is the first" in note
    assert word in note
    assert watch.notes() == []
    assert word in str(watch.unlike(line))
    assert watch.unlike("Er kam am 3. Mai.") is None


def test_what_the_training_text_has_is_usual() -> None:
    lines = ["<b>Er liest.</b> Sie schläft. " * 9]
    watch = LineWatch("in.txt", {"source_lines": habits(lines * 9, "de")})
    assert watch.add(lines) == []
    assert watch.notes() == []


@pytest.mark.parametrize("facts", [{}, {"source_lines": None}, {"source_lines": {"several": "x", "longest": -1}}])
def test_runs_without_these_facts_are_not_judged_by_them(facts: dict[str, object]) -> None:
    watch = LineWatch("in.txt", facts)
    watch.add(["One. Two. Three.", "x" * 5000])
    assert watch.notes() == []


def test_another_format_is_named_at_its_beginning() -> None:
    watch = LineWatch("film.srt", FACTS)
    (note,) = watch.add(FORMATS["SRT"].split("\n"))
    assert "film.srt looks like SRT" in note
    assert watch.notes() == []


@pytest.mark.parametrize("line", ["% a comment", "/* a comment */", "[ar: Somebody]"])
def test_many_lines_that_may_begin_a_format_are_read_once(line: str) -> None:
    """They end at once, and not in all ways to part them."""
    assert format_of([line] * 900) is None
