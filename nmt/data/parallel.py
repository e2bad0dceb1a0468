"""Files of sentence pairs, as their lines: two files, a tab-separated file, two folders; and files of word links."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.corpus import Split
from nmt.data.documents import Documents, by_blank_lines, by_ids, read_folders
from nmt.data.large import Column, FileLines, Stored, counted, parallel_text_lines, text_lines
from nmt.errors import UserError, check_parallel
from nmt.links import check_range, format_links, is_naacl, parse_file
from nmt.text.canonical import any_text, shows_nothing

#: Lines of a large file that are checked at a time.
_MANY = 10_000


def with_links(split: Split, path: str | None, known: Path | None = None) -> Split:
    """The split with the word links of a file, checked against its sentences; unchanged without a file.

    Args:
        split: the whole split, in the order of the file.
        path: word links, counted from 0 over whitespace-separated words: Pharaoh (one line per pair) or NAACL; see
            `nmt.links`. The lines of a large file in Pharaoh form stay in the file.
        known: see `nmt.data.large.text_lines`.

    Raises:
        UserError: the file is missing, a line is malformed, a link names a missing word, or numbers of lines differ.
    """
    if path is None:
        return split
    lines = text_lines(Path(path).expanduser(), known)
    if not isinstance(lines, FileLines) or is_naacl(lines[:_MANY]):
        return split._replace(links=_checked_links(lines, split.source, split.target, path))
    check_parallel({path: len(lines), "the text": len(split.source)})
    for first in range(0, len(lines), _MANY):
        part = slice(first, first + _MANY)
        _checked_links(lines[part], split.source[part], split.target[part], path, first)
    return split._replace(links=lines)


def _checked_links(
    lines: Sequence[str], source: Sequence[str], target: Sequence[str], path: str, first: int = 0
) -> list[str]:
    """The links in Pharaoh form of pairs, of which the first has the number `first`."""
    gold = parse_file(lines, path, pairs=len(source), first=first)
    sources, targets = ([len(sentence.split()) for sentence in side] for side in (source, target))
    check_range(gold, sources, targets, path, "separated by white space", first)
    return [format_links(links.sure, links.possible) for links in gold]


def read_parallel(source: Path, target: Path, known: Path | None = None) -> tuple[Sequence[str], Sequence[str]]:
    """The lines of two files.

    Raises:
        UserError: the numbers of lines differ, no pair has text, or a file is missing, broken or not UTF-8.
    """
    lines, others = parallel_text_lines(source, target, known=known)
    if not any_text(lines, others):
        raise UserError(f"{source} and {target} are empty: no line has text in both.")
    return lines, others


def read_tab_separated(
    path: Path, source: int, target: int, known: Path | None = None
) -> tuple[Sequence[str], Sequence[str], list[str]]:
    """Two columns of a file, counted from 1, and notes for the user; blank lines give empty pairs.

    Raises:
        UserError: a line has too few columns, no pair has text, or the file is missing, broken or not UTF-8.
    """
    need = max(source, target)
    lines, widest = text_lines(path, known), 0
    first, second = list[str](), list[str]()
    for number, line in enumerate(lines, start=1):
        fields = line.split("\t")
        widest = max(widest, len(fields))
        if len(fields) < need:
            if not shows_nothing(line):
                raise UserError(
                    f"{path}, line {number}: {len(fields)} column{'s' * (len(fields) > 1)} where {need} are needed. A "
                    "single file must have a tab between source and target in every line; otherwise give two files: "
                    "data.files=[SOURCE_FILE,TARGET_FILE]."
                )
            fields = [""] * need
        if not isinstance(lines, Stored):
            first.append(fields[source - 1])
            second.append(fields[target - 1])
    sides = (Column(lines, source), Column(lines, target)) if isinstance(lines, Stored) else (first, second)
    if not any_text(*sides):
        raise UserError(f"{path} is empty: no line has text in both columns.")
    notes = []
    if widest > 2:
        notes.append(
            f"{path} has up to {widest} columns: {source} and {target} are used (data.columns=[1,2] says which)."
        )
    return *sides, notes


class ParallelLines(NamedTuple):
    """The lines of both sides, the document of each line if there are documents, and notes for the user."""

    source: Sequence[str]
    target: Sequence[str]
    documents: Sequence[int] | None
    notes: list[str]


def read_files(
    files: Sequence[Path],
    columns: Sequence[int],
    documents: Documents | int | None,
    endings: tuple[str, str] = ("", ""),
    known: Path | None = None,
) -> ParallelLines:
    """Two files, two folders with one file a document, or one tab-separated file.

    Args:
        files: one or two paths.
        columns: source and target column of a tab-separated file, counted from 1.
        documents: "blank", "files", or the column with the id of a line's document; None without documents.
        endings: of the files in two folders; see `nmt.data.documents.read_folders`.
        known: see `nmt.data.large.text_lines`.

    Raises:
        UserError: a file is missing, malformed or not UTF-8, or the two sides are not parallel.
    """
    if documents == "files":
        if len(files) != 2:
            raise UserError(f"data.documents=files needs two folders, not {len(files)}: [SOURCE_FOLDER,TARGET_FOLDER].")
        return ParallelLines(*read_folders(files[0], files[1], endings), [])
    if isinstance(documents, int) and len(files) != 1:
        raise UserError(
            f"data.documents={documents} is a column of a tab-separated file, but there are {len(files)} files. Give "
            "data.documents=blank for documents that empty lines separate."
        )
    notes: list[str] = []
    if len(files) == 2:
        source, target = read_parallel(files[0], files[1], known)
        names = [str(path) for path in files]
    else:
        source, target, notes = read_tab_separated(files[0], columns[0], columns[1], known)
        names = [f"{files[0]} (column {column})" for column in columns]
    if documents is None:
        return ParallelLines(source, target, None, notes)
    if documents == "blank":
        numbers = by_blank_lines(source, target, names=names)
    else:
        numbers = by_ids(read_column(files[0], documents), str(files[0]))
    return ParallelLines(source, target, counted(numbers, len(source), known), notes)


def read_column(path: Path, column: int) -> Iterator[str]:
    """A column of a tab-separated file, counted from 1; a blank line repeats the entry before it.

    Raises:
        UserError: a line does not have the column.
    """
    entry = ""
    for number, line in enumerate(text_lines(path), start=1):
        fields = line.split("\t")
        if len(fields) < column and not shows_nothing(line):
            raise UserError(
                f"{path}, line {number}: no column {column} with the document's id (data.documents={column})."
            )
        entry = fields[column - 1] if len(fields) >= column else entry
        yield entry
