"""Formats of text that are not plain lines: subtitles, markup, translation memories, records of linguists."""

import json
import re
from collections.abc import Sequence
from typing import Final, NamedTuple

#: Lines of a text that tell its format.
FIRST_LINES: Final = 1000


class TextFormat(NamedTuple):
    """A format: its name, and how to get plain lines from it."""

    name: str
    cure: str


_EXPORT: Final = "Export two text files or a table (.tsv, .csv) from the program that made it."
_STRIP: Final = "Take the text out of it first, one sentence per line."
_TIMES: Final = "Take the text out of it first: without numbers and time codes, one sentence per line."

#: What the first lines contain, as one string that begins with their first character.
_SIGNS: Final = (
    (r"(?is).{0,3000}?<tmx\b", TextFormat("a translation memory (TMX)", _EXPORT)),
    (r"(?is).{0,3000}?<xliff\b", TextFormat("XLIFF", _EXPORT)),
    (r"(?is).{0,3000}?<TS [^>]*language", TextFormat("a translation file of Qt (.ts)", _EXPORT)),
    (r"(?s).{0,3000}?<ANNOTATION_DOCUMENT\b", TextFormat("an ELAN file", "Export it from ELAN as tab-delimited text.")),
    (r"(?i)(<!doctype html|<html\b|<(head|body|div|p|span|table)\b[^>]*>)", TextFormat("HTML", _STRIP)),
    (r"(?i)<(srcset|refset|tstset|mteval|dataset|doc)\b", TextFormat("SGML", _STRIP)),
    (r"<\?xml\b|<!DOCTYPE\b|<([A-Za-z][\w:.-]*)(\s[^<>]*)?>\s*\n(?s:.*)</\1>\s*\Z", TextFormat("XML", _STRIP)),
    (
        r"(?ms).*^msgid \".*^msgstr",
        TextFormat("a gettext catalogue (.po)", "Convert it to a table: po2csv FILE.po FILE.csv"),
    ),
    (r"WEBVTT\b", TextFormat("WebVTT subtitles", _TIMES)),
    (r"\[Script Info\]", TextFormat("SubStation subtitles", _TIMES)),
    (r"(\d+\n)?\d+:\d\d:\d\d[,.]\d{3} +-->", TextFormat("SRT subtitles", _TIMES)),
    (r"(\[[a-z]+:.*\]\n)*\[\d\d:\d\d[.:]\d\d\]", TextFormat("LRC lyrics", _TIMES)),
    (r"(?s).{0,60}ooTextFile", TextFormat("a Praat TextGrid", "Export its tiers as a table.")),
    (r"@(UTF8|Begin)\s*\n", TextFormat("a CHAT transcript", _STRIP)),
    (r"(?s)(%.*?\n)*\s*\\(documentclass|documentstyle)\b", TextFormat("LaTeX", _STRIP)),
    (r"\{\\rtf", TextFormat("rich text (RTF)", "Save it as plain text (UTF-8), one sentence per line.")),
    (
        r"(?m)(\\\w+( .*)?\s*\n){3}",
        TextFormat(
            "a Toolbox file (\\tx, \\ft)",
            "Export it as a table, with the text (\\tx) and its free translation (\\ft) in two columns.",
        ),
    ),
    (r"(?m)# (sent_id|newdoc|text)\b.*\n(.*\n){0,3}1\t", TextFormat("a CoNLL-U file", _STRIP)),
    (r"(?m)(/\*(?s:.*?)\*/\s*)*(\"[^\"\n]+\" = \"[^\"\n]*\";\s*\n?){2}", TextFormat("a .strings file", _EXPORT)),
)

#: A line that is no text of a sentence: a time code, a tag alone, a marker of a field.
_MARKUP: Final = re.compile(r"\s*(\d+:\d\d:\d\d[,.]\d+ +-->.*|</?[A-Za-z!?][^<>]*>.*|msg(id|str)\b.*\".*\")\s*")


def format_of(lines: Sequence[str]) -> TextFormat | None:
    """The format that the first lines of a text are certainly of; None for plain lines."""
    text = "\n".join(line.rstrip() for line in lines[:FIRST_LINES]).lstrip("\ufeff \n")
    found = next((known for sign, known in _SIGNS if re.match(sign, text)), None)
    return found or (TextFormat("JSON", "Write its texts as a table (.tsv).") if _is_json(text) else None)


def _is_json(text: str) -> bool:
    """Whether a text begins with an object, or a list of objects or strings, of JSON."""
    if not re.match(r"\{\s*(\"|\})|\[\s*[{\[\"]", text):
        return False
    first = text.partition("\n")[0]
    try:
        return isinstance(json.loads(first), dict | list)
    except ValueError:
        return re.match(r"[\[{]\s*(\{\s*)*(\"[^\"\n]*\"\s*[:,])", text) is not None


def is_markup(line: str) -> bool:
    """Whether a line is a time code, or begins with a tag or a field of a catalogue."""
    return _MARKUP.fullmatch(line) is not None
