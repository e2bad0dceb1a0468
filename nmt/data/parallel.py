"""Lines of parallel text from two files, a table or two folders; and files of word links."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.columns import Wanted, choose_columns, names_in
from nmt.data.dataset import Split
from nmt.data.document_lines import Documents, by_blank_lines
from nmt.data.languages import UNNAMED
from nmt.data.lines import check_once, read_parallel_lines
from nmt.data.misalignment import doubts_about
from nmt.data.stored import StoredLines, counted, text_lines, without
from nmt.data.text_formats import FIRST_LINES
from nmt.data.text_tables import TextTable, is_header, read_table, refuse_format
from nmt.links import check_range, format_links, is_naacl, parse_file
from nmt.system.errors import UserError, check_parallel
from nmt.system.files import PACKED
from nmt.text.canonical import any_text, shows_nothing

#: Lines of a large file that are checked at a time.
_MANY = 10_000


def with_links(split: Split, path: str | None, known: Path | None = None) -> Split:
    """The split with the word links of a file, checked against its sentences; unchanged without a file.

    Args:
        split: the whole split, in the order of the file.
        path: word links, counted from 0 over whitespace-separated words: Pharaoh (one line per pair) or NAACL; see
            `nmt.links`. The lines of a large file in Pharaoh form stay in the file.
        known: see `nmt.data.stored.text_lines`.

    Raises:
        UserError: the file is missing, a line is malformed, a link names a missing word, or numbers of lines differ.
    """
    if path is None:
        return split
    lines = text_lines(Path(path).expanduser(), known)
    if not isinstance(lines, StoredLines) or is_naacl(lines[:_MANY]):
        return split._replace(links=_checked_links(lines, split.source, split.target, path))
    check_parallel({path: len(lines), "the text": len(split.source)})
    for first in range(0, len(lines), _MANY):
        part = slice(first, first + _MANY)
        _checked_links(lines[part], split.source[part], split.target[part], path, first)
    return split._replace(links=lines)


def _checked_links(
    lines: Sequence[str], source: Sequence[str], target: Sequence[str], path: str, first: int = 0
) -> list[str]:
    """Check the links of pairs, which are numbered from `first`, and return them in Pharaoh form."""
    gold = parse_file(lines, path, pairs=len(source), first=first)
    sources, targets = ([len(sentence.split()) for sentence in side] for side in (source, target))
    check_range(gold, sources, targets, path, "separated by white space", first)
    return [format_links(links.sure, links.possible) for links in gold]


def read_parallel(source: Path, target: Path, known: Path | None = None) -> tuple[Sequence[str], Sequence[str]]:
    """The lines of two files.

    Raises:
        UserError: the numbers of lines differ, no pair has text, or a file is missing, broken or not UTF-8.
    """
    check_once((source, target))
    lines, others = (text_lines(path, known) for path in (source, target))
    check_parallel({str(source): len(lines), str(target): len(others)})
    if not any_text(lines, others):
        raise UserError(f"{source} and {target} are empty: no line has text in both.")
    return lines, others


def read_columns(path: Path, table: TextTable, columns: tuple[int, int]) -> tuple[Sequence[str], Sequence[str]]:
    """Two columns of a table, counted from 1; blank rows give empty pairs.

    Raises:
        UserError: a row has too few columns, or no pair has text.
    """
    need = max(columns)
    for number, row in enumerate(table.rows):
        if row.count("\t") + 1 < need and not shows_nothing(row):
            width = row.count("\t") + 1
            raise UserError(
                f"{table.place(number, path)}: {width} column{'s' * (width > 1)} where {need} are needed. A single "
                "file must have a tab between source and target in every line, or be CSV; otherwise give two files: "
                "data.files=[SOURCE_FILE,TARGET_FILE]."
            )
    source, target = (table.column(column) for column in columns)
    if not any_text(source, target):
        raise UserError(f"{path} is empty: no line has text in both columns.")
    return source, target


class ParallelLines(NamedTuple):
    """The lines of both sides of a parallel text.

    Attributes:
        source, target: line n of the target translates line n of the source.
        documents: the document number of each line; None without documents.
        notes: messages for the user.
        names: names of the two sides, for messages.
        first: the number of the first line in its file.
    """

    source: Sequence[str]
    target: Sequence[str]
    documents: Sequence[int] | None
    notes: list[str]
    names: Sequence[str]
    first: int = 1

    def doubts(self) -> list[str]:
        """Warnings of `doubts_about` (reads all lines, which takes some seconds)."""
        return doubts_about((self.source, self.target), self.names, self.first)


def read_files(
    files: Sequence[Path],
    columns: Wanted = None,
    documents: Documents | int | None = None,
    known: Path | None = None,
    languages: tuple[str, str] = UNNAMED,
    plain: bool = False,
    endings: tuple[str, str] = ("", ""),
) -> ParallelLines:
    """Read two files, two folders with one file per document, or one table.

    Args:
        files: one or two paths.
        columns: the columns of a table; see `choose_columns`.
        documents: "blank", "files", or the column with the id of a row's document; None without documents.
        known: see `nmt.data.stored.text_lines`.
        languages: source and target code, to choose the columns of a table.
        plain: take the lines as they are: no headers, CSV or quotes, and a warning instead of an error for another
            format.
        endings: endings of file names in two folders; see `_read_folders`.

    Raises:
        UserError: a file is missing, malformed, of another format or not UTF-8, or the two sides are not parallel.
    """
    if documents == "files":
        return _read_folders(files, endings)
    if isinstance(documents, int) and len(files) != 1:
        raise UserError(
            f"data.documents={documents} is a column of a tab-separated file, but there are {len(files)} files. Give "
            "data.documents=blank for documents that empty lines separate."
        )
    table = TextTable([])
    if len(files) == 2:
        names, notes, first = [str(path) for path in files], list[str](), 1
        source, target = read_parallel(files[0], files[1], known)
        header = [] if plain else _header(files, (source, target))
        if header:
            listed = ", ".join(header)
            notes = [
                f"Line 1 of both files is a header, not a pair ({listed}). If it is a pair, give data.lines=plain."
            ]
            source, target, first = without(source, [0]), without(target, [0]), 2
    else:
        table = read_table(files[0], known, plain, names_in(columns))
        column_pair, notes = choose_columns(files[0], table, columns if columns or not plain else (1, 2), languages)
        source, target = read_columns(files[0], table, column_pair)
        notes, first = [*table.notes, *notes], table.first
        names = [f"{files[0]} (column {column})" for column in column_pair]
    if documents is None:
        return ParallelLines(source, target, None, notes, names, first)
    if documents == "blank":
        numbers = by_blank_lines(source, target, names=names)
    else:
        numbers = _by_ids(files[0], table, documents)
    return ParallelLines(source, target, counted(numbers, len(source), known), notes, names, first)


def _header(files: Sequence[Path], sides: tuple[Sequence[str], Sequence[str]]) -> list[str]:
    """The first lines if they are a header of both files, otherwise [] (UserError if a file is not plain text)."""
    for path, side in zip(files, sides, strict=True):
        refuse_format(path, side)
    names = [side[0].strip() for side in sides]
    return names if is_header(names, [side[1:FIRST_LINES] for side in sides]) else []


def _by_ids(path: Path, table: TextTable, column: int) -> Iterator[int]:
    """Yield the document number of each row, from 0, by the ids in a column; blank rows continue a document.

    Raises:
        UserError: a row does not have the column, or an id returns after another one.
    """
    last, name = dict[str, int](), ""  # the last row of each document
    for row, text in enumerate(table.rows):
        if not shows_nothing(text):
            cells = text.split("\t")
            if len(cells) < column:
                raise UserError(
                    f"{table.place(row, path)}: no column {column} with the document's id (data.documents={column})."
                )
            name = cells[column - 1]
        if last.get(name, row - 1) < row - 1:
            raise UserError(
                f"{table.place(row, path)}: document '{name}' returns; its last line was line "
                f"{last[name] + table.first}. Sort the file so that the lines of a document are neighbours."
            )
        last[name] = row
        yield len(last) - 1


def find_folder(path: Path) -> Path:
    """Return the folder (UserError if it is missing)."""
    if not path.is_dir():
        raise UserError(f"There is no folder {path}. With data.documents=files it holds one file a document.")
    return path


def _read_folders(folders: Sequence[Path], endings: tuple[str, str]) -> ParallelLines:
    """Read two folders with one file per document, in the order of the file names.

    Files with the same name belong together; if there are `endings` ("de", "en"), names are compared without them.

    Raises:
        UserError: a folder or a document is missing on a side, its numbers of lines differ, or there is no text.
    """
    if len(folders) != 2:
        raise UserError("data.documents=files needs two folders, not 1: [SOURCE_FOLDER,TARGET_FOLDER].")
    files = []
    for folder, ending in zip(folders, endings, strict=True):
        tail = f".{ending}" if ending else ""
        paths = [path for path in find_folder(folder).iterdir() if path.is_file() and not path.name.startswith(".")]
        named = [(path.stem if path.suffix in PACKED else path.name, path) for path in paths]
        files.append({name.removesuffix(tail): path for name, path in named if name.endswith(tail)})
    for name in sorted(files[0].keys() ^ files[1].keys()):
        at = 0 if name in files[0] else 1
        raise UserError(
            f"{files[at][name]} has no translation in {folders[1 - at]}: a document needs a file on both sides."
        )
    parts = [read_parallel_lines(files[0][name], files[1][name]) for name in sorted(files[0])]
    source, target = ([line for part in parts for line in part[at]] for at in (0, 1))
    if not any_text(source, target):
        raise UserError(f"{folders[0]} and {folders[1]} are empty: no line has text in both.")
    numbers = [number for number, part in enumerate(parts) for _ in part[0]]
    return ParallelLines(source, target, numbers, [], [str(folder) for folder in folders])
