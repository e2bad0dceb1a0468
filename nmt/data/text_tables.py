"""Tables as spreadsheets write them: tab-separated text or CSV, with a header, quotes and columns without text."""

import contextlib
import csv
import itertools
import re
import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from nmt.data.languages import canonical, language_code
from nmt.data.lines import open_lines
from nmt.data.stored import StoredLines, stored_lines, text_lines, without
from nmt.data.streams import MEMORIES
from nmt.data.text_formats import FIRST_LINES, format_of
from nmt.system.errors import UserError

#: A quoted cell that contains a doubled quote.
_QUOTED: Final = re.compile(r'(?:(?<=\t)|^)"(?:[^"\t]|"")*""(?:[^"\t]|"")*"(?=\t|$)')
#: A cell that begins with a quote and ends in a later line.
_OPEN: Final = re.compile(r'(?:(?<=\t)|^)"(?:[^"\t]|"")*$')
#: A first line that declares the separator of columns.
_SEPARATOR: Final = re.compile(r'"?sep=(.)"?')
_SENTENCE_END: Final = tuple('.!?…。！？।؟။"»”’)')
#: Words of headers, beside the names of languages.
_HEADER_WORDS: Final = frozenset(
    (
        *("source", "target", "src", "tgt", "trg", "text", "sentence", "segment", "translation", "original", "gloss"),
        *("id", "no", "nr", "num", "number", "index", "key", "date", "speaker", "author", "lang", "language"),
        *("reference", "note", "notes", "comment", "comments"),
    )
)
#: The most words of a column's name, and the most letters of a language code that may also be an ordinary word.
_NAME_WORDS, _CODE = 4, 3


class TextTable(NamedTuple):
    """The rows of a table.

    Attributes:
        rows: one string per row, with tabs between cells; without the header.
        header: the names of the columns; [] without a header.
        first: the number of the first row in the file, from 1.
        notes: messages for the user.
        parsed: whether a row may span several lines.
    """

    rows: Sequence[str]
    header: Sequence[str] = ()
    first: int = 1
    notes: Sequence[str] = ()
    parsed: bool = False

    def column(self, number: int) -> Sequence[str]:
        """The cells of column `number`, from 1; "" where a row is too short."""
        if isinstance(self.rows, StoredLines):
            return self.rows.column(number)
        return ["".join(row.split("\t")[number - 1 : number]) for row in self.rows]

    def place(self, row: int, path: Path) -> str:
        """The file and line of a row, for messages."""
        return f"{path}, {'row' if self.parsed else 'line'} {row + self.first}"


def read_table(path: Path, known: Path | None = None, plain: bool = False, names: Sequence[str] = ()) -> TextTable:
    """The rows of a file: tab-separated text or CSV.

    Args:
        path: the file.
        known: see `nmt.data.stored.text_lines`.
        plain: take the lines as they are: no header, no CSV, no quotes.
        names: names of columns; a first row that has all of them is a header.

    Raises:
        UserError: the file is missing, broken, not UTF-8, of another format, or its quotes do not match.
    """
    lines = text_lines(path, known)
    return TextTable(lines) if plain else _table(path, lines, known, names)


def peek(path: Path, names: Sequence[str] = ()) -> TextTable:
    """Read the first rows of a file (UserError as `read_table`)."""
    with open_lines(path) as lines:
        return _table(path, list(itertools.islice(lines, FIRST_LINES)), None, names, whole=False)


def _table(path: Path, lines: Sequence[str], known: Path | None, names: Sequence[str], whole: bool = True) -> TextTable:
    refuse_format(path, lines)
    named = _SEPARATOR.fullmatch(lines[0]) if lines else None
    delimiter, first = (named[1], 2) if named else (_delimiter(lines[:FIRST_LINES], path), 1)
    if named or delimiter != "\t":
        notes = [f"{path} is read as CSV with {delimiter!r} between columns."]
        rows = _held(lambda: _parsed(path, lines, delimiter, whole), lines, known)
    else:
        rows, notes = _without_quotes(path, lines, known, whole)
    parsed = rows is not lines
    cells = [[cell.strip() for cell in row.split("\t")] for row in rows[:FIRST_LINES]]
    header = cells[0] if cells else []
    is_named = bool(names) and all(number_of(name, header) for name in names)
    if not is_named and path.suffix.lower() not in MEMORIES[:-1] and not _is_header(header, cells[1:]):
        return TextTable(rows, [], first, notes, parsed)
    if path.suffix.lower() not in MEMORIES[:-1]:  # their header is generated, so the user has not seen it
        listed = ", ".join(name or "-" for name in header)
        notes.append(f"{path}, line {first}: a header, not a pair ({listed}). If it is a pair, give data.lines=plain.")
    return TextTable(without(rows, [0]), header, first + 1, notes, parsed)


def number_of(name: str, header: Sequence[str]) -> int | None:
    """The number, from 1, of the column with this name or with the language of this name; None if there is none."""
    folded = [each.casefold() for each in header]
    if name.strip().casefold() in folded:
        return folded.index(name.strip().casefold()) + 1
    code = language_code(name.strip())
    named = [language_of_column(each) for each in header]
    if code in named:
        return named.index(code) + 1 if code else None
    same = (at for at, each in enumerate(named, 1) if code and each and canonical(each)[0] == canonical(code)[0])
    return next(same, None)


def refuse_format(path: Path, lines: Sequence[str]) -> None:
    """Raise UserError if a file is certainly neither plain text nor a table."""
    if (file_format := format_of(lines[:FIRST_LINES])) is not None:
        raise UserError(
            f"{path} looks like {file_format.name}, not like lines of text. {file_format.cure} (data.lines=plain takes "
            "its lines as they are.)"
        )


def _delimiter(lines: Sequence[str], path: Path) -> str:
    """The column separator: a tab, or the one that gives most rows (nearly all, unless .csv) equally many cells."""
    filled, enough = [line for line in lines if line.strip()], 0.6 if ".csv" in path.suffixes else 0.95

    def regularity(delimiter: str) -> tuple[float, int]:
        with contextlib.suppress(csv.Error):
            widths = [len(row) for row in csv.reader((f"{line}\n" for line in filled), delimiter=delimiter) if row]
            width = statistics.mode(widths)
            share = widths.count(width) / len(widths)
            if width > 1 and share >= enough and (enough < 0.9 or len(widths) >= 10):
                return share, width
        return 0, 1

    tabs = sum("\t" in line for line in filled)
    return "\t" if 2 * tabs >= len(filled) else max("\t,;|", key=regularity)


def _parsed(path: Path, lines: Iterable[str], delimiter: str, whole: bool) -> Iterator[str]:
    """Yield the rows of CSV with tabs between cells; tabs and line breaks in a cell become spaces.

    Raises:
        UserError: quotes do not match, or a row has more cells than the first one.
    """
    cure = f" Put quotes around cells that have a {delimiter!r}, or save the table as tab-separated text (.tsv)."
    cure = "" if delimiter == "\t" else cure
    reader, width = csv.reader((f"{line}\n" for line in lines), delimiter=delimiter, strict=True), 0

    def wrong(reason: str) -> UserError:
        return UserError(f"{path}, line {reader.line_num}: {reason}.{cure}")

    try:
        for cells in reader:
            if reader.line_num == 1 and _SEPARATOR.fullmatch(delimiter.join(cells)):
                continue
            width = width or len(cells)
            if any(cells[width:]):
                raise wrong(f"{len(cells)} columns where {width} are expected")
            if delimiter == "\t" and any("\t" in cell for cell in cells):
                raise wrong("a quote that is not closed in its cell")
            yield "\t".join(re.sub(r"\s*[\t\r\n]\s*", " ", cell).strip() for cell in cells[:width])
    except csv.Error as error:
        if whole or "end of data" not in str(error):
            raise wrong(f"its quotes do not match ({error})") from error


def _without_quotes(
    path: Path, lines: Sequence[str], known: Path | None, whole: bool
) -> tuple[Sequence[str], list[str]]:
    """The rows of tab-separated text without the quotes of a spreadsheet, if it has any, and notes for the user."""
    suspects = [(row, line) for row, line in enumerate(lines) if '"' in line]
    quoted = [row for row, line in suspects if _QUOTED.search(line)]
    opened = [row for row, line in suspects if _OPEN.search(line)]
    if not quoted and not opened:
        return lines, []
    about = f"{path} has the quotes of a spreadsheet, such as in line {min(*quoted[:1], *opened[:1], len(lines)) + 1:,}"
    try:
        rows = _held(lambda: _parsed(path, lines, "\t", whole), lines, known)
    except UserError as error:
        # Without doubled quotes, the quotes belong to the text.
        return lines, [f"warning: {about}, but not everywhere, so they stay. {error}"] if quoted else []
    return rows, [
        f"{about}: {len(quoted):,} lines with quotes in quotes, {len(lines) - len(rows):,} line breaks in cells. The "
        "quotes around cells are removed, and line breaks become spaces (data.lines=plain keeps them)."
    ]


def quote_doubts(lines: Sequence[str], name: str, first: int) -> list[str]:
    """Warnings for the user about lines with the quotes of a spreadsheet; the lines are numbered from `first`."""
    quoted = [row for row, line in enumerate(lines, first) if '"' in line and _QUOTED.fullmatch(line)]
    return [
        f"warning: {name}: {len(quoted):,} lines have the quotes of a spreadsheet around them and double quotes inside "
        f"(line {row:,} is the first). They are taken as text. Save the table without them, or as CSV."
        for row in quoted[:1]
    ]


def _held(rows: Callable[[], Iterable[str]], lines: Sequence[str], known: Path | None) -> Sequence[str]:
    """Rows made from `lines`: a list, or `StoredLines` if `lines` are stored."""
    return stored_lines(rows, f"{lines.identity} rows", known) if isinstance(lines, StoredLines) else list(rows())


def language_of_column(name: str) -> str | None:
    """The language code that a column's name ("English", "German text", "de") refers to; None without a language."""
    words = [word for word in re.findall(r"[^\W_]+", name) if word.lower() not in _HEADER_WORDS]
    return (language_code(name.strip()) or language_code(words[0])) if len(words) == 1 else None


def _is_header(names: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether the first row has the names of the columns, and not a pair like the other rows."""
    below = list(itertools.zip_longest(*rows, fillvalue=""))[: len(names)]
    if is_header(names, below):
        return True
    if not are_names(names):
        return False
    if any(kind(column) == "numbers" and kind([name]) == "text" for name, column in zip(names, below, strict=False)):
        return True
    ends = [cell.endswith(_SENTENCE_END) for column in below[:2] for cell in column if cell]
    return len(ends) >= 20 and sum(ends) > 0.9 * len(ends)


def are_names(cells: Sequence[str]) -> bool:
    """Whether cells can be names of columns: distinct, short, and not ending like sentences."""
    filled = [cell for cell in cells if cell]
    short = all(len(cell.split()) <= _NAME_WORDS and not cell.endswith(_SENTENCE_END) for cell in filled)
    return short and len(filled) > 1 and len({cell.casefold() for cell in filled}) == len(filled)


def is_header(names: Sequence[str], below: Sequence[Sequence[str]]) -> bool:
    """Whether the words of `names` show that they are a header: two languages, or words such as source, target, ID.

    `below` has the cells of each column.
    """
    cells = [cell for column in below for cell in column if kind([cell]) == "text"]
    words_per_cell = sum(len(cell.split()) for cell in cells) / max(1, len(cells))
    # In a list of single words, "is" and "es" may be a pair, not two language codes.
    languages = {name: language_of_column(name) for name in names if words_per_cell >= 3 or len(name) > _CODE}
    usual = sum(_HEADER_WORDS.issuperset(re.findall(r"[^\W_]+", name.lower()) or [""]) for name in names)
    return bool(below) and are_names(names) and len({*languages.values()} - {None}) + usual > 1


def kind(cells: Sequence[str]) -> str:
    """The kind of a column: "nothing", "numbers" (or dates or IDs), "labels" (few distinct values) or "text"."""
    filled = [cell.strip() for cell in cells if cell.strip()]
    if 20 * len(filled) < len(cells) or not filled:
        return "nothing"
    numbers = sum(not any(map(str.isalpha, cell)) or re.fullmatch(r"\S*\d\S*", cell) is not None for cell in filled)
    if numbers >= 0.95 * len(filled):
        return "numbers"
    return "labels" if len(filled) >= 50 and 50 * len(set(filled)) <= len(filled) else "text"
