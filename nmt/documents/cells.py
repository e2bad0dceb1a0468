"""Tables as text (.csv, .tsv): the cells with words."""

import re
from functools import partial

from nmt.documents.document_slots import Slots, is_language, marked
from nmt.text.tags import Segment

_DELIMITERS = ",;\t|"


def read_csv(text: str, slots: Slots) -> str:
    """The text of a table with marks. The separator is the most frequent candidate in the first row.

    Raises:
        ValueError: a quoted cell has no closing quote.
    """
    first = re.match(r'(?:"(?:[^"]|"")*+"|[^"\r\n])*+', text)
    outside = re.sub(r'"[^"]*"', "", first[0] if first else "")
    return _read(text, slots, max(_DELIMITERS, key=outside.count))


def read_tsv(text: str, slots: Slots) -> str:
    """The text of a tab-separated table with marks."""
    return _read(text, slots, "\t")


def _spelled(delimiter: str, quoted: bool, segment: Segment) -> str:
    if quoted or any(mark in segment.text for mark in f'{delimiter}"\r\n'):
        doubled = segment.text.replace('"', '""')
        return f'"{doubled}"'
    return segment.text


def _read(text: str, slots: Slots, delimiter: str) -> str:
    ends = re.escape(delimiter) + r"\r\n"
    cells = re.compile(rf'(?:\A|(?<=[{ends}]))(?:("(?:[^"]|"")*+")(?=[{ends}]|\Z)|([^{ends}]*+))')
    marks = list[tuple[int, int, str]]()
    for cell in cells.finditer(text):
        if cell[2] is not None and cell[2].startswith('"') and cell[2].count('"') % 2 and delimiter != "\t":
            raise ValueError(f"line {text.count(chr(10), 0, cell.start()) + 1}: a cell in quotation marks does not end")
        value = cell[1][1:-1].replace('""', '"') if cell[1] else cell[2].strip()
        if is_language(value):
            start = cell.start() if cell[1] else text.index(value, cell.start())
            end = cell.end() if cell[1] else start + len(value)
            write = partial(_spelled, delimiter, bool(cell[1]))
            marks.append((start, end, slots.add(Segment(value), text[start:end], write)))
    return marked(text, marks)
