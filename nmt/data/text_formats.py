"""Formats of text that are not plain lines: subtitles, markup, translation memories, records of linguists."""

import re
from collections.abc import Sequence
from typing import Final, NamedTuple

#: The number of lines at the beginning of a text that show its format.
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
    (r"(?is).{0,3000}?<tmx\b", "a translation memory (TMX)", _EXPORT),
    (r"(?is).{0,3000}?<xliff\b", "XLIFF", _EXPORT),
    (r"(?is).{0,3000}?<TS [^>]*language", "a translation file of Qt (.ts)", _EXPORT),
    (r"(?s).{0,3000}?<ANNOTATION_DOCUMENT\b", "an ELAN file", "Export it from ELAN as tab-delimited text."),
    (r"(?i)(<!doctype html|<html\b|<(head|body|div|p|span|table)\b[^>]*>)", "HTML", _STRIP),
    (r"(?i)<(srcset|refset|tstset|mteval|dataset|doc)\b", "SGML", _STRIP),
    (r"<\?xml\b|<!DOCTYPE\b|<([A-Za-z][\w:.-]*)(\s[^<>]*)?>\s*\n(?s:.*)</\1>\s*\Z", "XML", _STRIP),
    (r"(?ms).*^msgid \".*^msgstr", "a gettext catalogue (.po)", "Convert it to a table: po2csv FILE.po FILE.csv"),
    (r"WEBVTT\b", "WebVTT subtitles", _TIMES),
    (r"\[Script Info\]", "SubStation subtitles", _TIMES),
    (r"(\d+\n)?\d+:\d\d:\d\d[,.]\d{3} +-->", "SRT subtitles", _TIMES),
    (r"(\[[a-z]+:.*\]\n)*\[\d\d:\d\d[.:]\d\d\]", "LRC lyrics", _TIMES),
    (r"(?s).{0,60}ooTextFile", "a Praat TextGrid", "Export its tiers as a table."),
    (r"@(UTF8|Begin)\s*\n", "a CHAT transcript", _STRIP),
    (r"(%.*\n|\s)*\\(documentclass|documentstyle)\b", "LaTeX", _STRIP),
    (r"\{\\rtf", "rich text (RTF)", "Save it as plain text (UTF-8), one sentence per line."),
    (r"(?m)(\\\w+( .*)?\s*\n){3}", "a Toolbox file", "Export \\tx and \\ft as the columns of a table."),
    (r"(?m)# (sent_id|newdoc|text)\b.*\n(.*\n){0,3}1\t", "a CoNLL-U file", _STRIP),
    (r"(/\*([^*]|\*(?!/))*\*/\s*)*(\"[^\"\n]+\" = \"[^\"\n]*\";\s*\n?){2}", "a .strings file", _EXPORT),
    (
        r"(?m)\[?\s*\{\s*(\"[^\"\n]*\"\s*:|\},?$)|\[\s*\[?\s*\"[^\"\n]*\"\s*(,|\],?$)",
        "JSON",
        "Write its texts as a table (.tsv).",
    ),
)

#: A line without the text of a sentence: a time code, a lone tag, or a field of a catalogue.
_MARKUP: Final = re.compile(r"\s*(\d+:\d\d:\d\d[,.]\d+ +-->.*|</?[A-Za-z!?][^<>]*>.*|msg(id|str)\b.*\".*\")\s*")


def format_of(lines: Sequence[str]) -> TextFormat | None:
    """The format of a text if its first lines show it with certainty; None for plain lines."""
    text = "\n".join(line.rstrip() for line in lines[:FIRST_LINES]).lstrip("\ufeff \n")
    return next((TextFormat(name, cure) for sign, name, cure in _SIGNS if re.match(sign, text)), None)


def is_markup(line: str) -> bool:
    """Whether a line is a time code, or begins with a tag or a field of a catalogue."""
    return _MARKUP.fullmatch(line) is not None
