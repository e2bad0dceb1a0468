"""The choice of the source and the target column of a table, and of their languages."""

import contextlib
import itertools
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from nmt.data.languages import ENDINGS, UNNAMED, language_code, language_codes
from nmt.data.text_formats import FIRST_LINES
from nmt.data.text_tables import TextTable, kind, language_of_column, number_of, peek
from nmt.system.errors import UserError, nearest
from nmt.text.scripts import script_of, script_of_language

#: Columns by number, from 1, or by name; None to choose by the contents of the table.
Wanted = Sequence[int | str] | None
Languages = tuple[str | None, str | None]

#: Names of columns that mean the source (0) or the target side (1).
_SIDES: Final = {"source": 0, "src": 0, "target": 1, "tgt": 1, "trg": 1}


def names_in(wanted: Wanted) -> list[str]:
    """The columns that are given by name."""
    return [name for name in wanted or () if isinstance(name, str) and not name.isdecimal()]


def choose_columns(
    path: Path, table: TextTable, wanted: Wanted, languages: Languages = UNNAMED
) -> tuple[tuple[int, int], list[str]]:
    """The numbers of source and target column, from 1, and notes for the user.

    Args:
        path: for messages.
        table: the table.
        wanted: the columns that the user names. None chooses columns with text: those of `languages` if the header
            names them, otherwise the only two, or the first two.
        languages: source and target language; None or a name of `UNNAMED` for an unknown one.

    Raises:
        UserError: a column does not exist, or it is ambiguous which columns have the text.
    """
    rows = [row.split("\t") for row in table.rows[:FIRST_LINES] if row.strip()]
    columns = list(itertools.zip_longest(*rows, fillvalue=""))
    kinds = [kind(cells) for cells in columns]
    if wanted is not None:
        numbers = _numbered(path, table, wanted, len(columns))
    else:
        texts = [number for number, each in enumerate(kinds, 1) if each == "text"]
        if len(texts) < 2:
            texts = [number for number, each in enumerate(kinds, 1) if each in ("text", "labels")]
        _check_languages(path, table, texts, languages)
        numbers = _text_columns(table, columns, texts, languages) or _first_two(path, table, columns, texts)
    notes = [
        f"warning: {path}, column {number}, looks like numbers, not like text ({_examples(columns[number - 1])}). To "
        "use others, give data.columns=[A,B]."
        for number in numbers
        if number <= len(columns) and kinds[number - 1] == "numbers"
    ]
    if len(columns) > 2:
        used = " and ".join(_named(table, number) for number in numbers)
        skipped = [number for number in (1, 2) if number not in numbers and kinds[number - 1] != "text"]
        why = "".join(f" Column {number} is no text ({_examples(columns[number - 1])})." for number in skipped)
        others = "" if wanted is not None else f"{why} Others: data.columns=[A,B]."
        notes.append(f"{path} has {len(columns)} columns; columns {used} are used.{others}")
    return numbers, notes


def _numbered(path: Path, table: TextTable, wanted: Sequence[int | str], width: int) -> tuple[int, int]:
    """The numbers of the columns that the user names (UserError if the table does not have them)."""
    numbers = []
    for name in wanted:
        number = int(name) if isinstance(name, int) or name.isdecimal() else number_of(name, table.header)
        if number is None:
            names = [each for each in table.header if each]
            has = f"it has {', '.join(names)}" if names else "its first line is no header"
            raise UserError(f"{path} has no column {name!r}: {has}.{nearest(str(name), names)}")
        if number < 1 or (1 < width < number):
            raise UserError(f"{path} has no column {number}: its columns are 1 to {width}. Give data.columns=[A,B].")
        numbers.append(number)
    if numbers[0] == numbers[1]:
        raise UserError(f"data.columns=[{wanted[0]},{wanted[1]}] names column {numbers[0]} twice.")
    return numbers[0], numbers[1]


def _check_languages(path: Path, table: TextTable, texts: Sequence[int], languages: Languages) -> None:
    """Raise UserError if the header names languages, but lacks a known language."""
    names = [name for number, name in enumerate(table.header, 1) if number in texts and language_of_column(name)]
    for side, code in zip(("source", "target"), languages, strict=True):
        if len(names) > 1 and code is not None and code not in UNNAMED and number_of(code, table.header) is None:
            raise UserError(
                f"{path} has no column for {code!r}: it has {', '.join(names)}. Give data.{side}= as it is called "
                "there, or data.columns=[A,B]."
            )


def _text_columns(
    table: TextTable, columns: Sequence[Sequence[str]], texts: Sequence[int], languages: Languages
) -> tuple[int, int] | None:
    """The source and the target column, or None if they are ambiguous."""
    filled = [number for number in texts if 2 * sum(map(bool, columns[number - 1])) >= len(columns[number - 1])]
    texts = filled if len(filled) > 1 else list(texts)
    names = [name if number in texts else "" for number, name in enumerate(table.header, 1)]
    known = [None if code is None or code in UNNAMED else code for code in languages]
    numbers = [code and (number_of(code, names) or number_of(code, table.header)) for code in known]
    sides = {_SIDES[name.lower()]: number for number, name in enumerate(names, 1) if name.lower() in _SIDES}
    named = [number for number, name in enumerate(names, 1) if language_of_column(name)]
    if len(named) == 2 and numbers.count(None) == 1:  # the unknown language is that of the second named column
        numbers = [number or next(each for each in named if each not in numbers) for number in numbers]
    of_languages = [number or 0 for number in numbers]
    candidates = (of_languages, [sides[at] for at in sorted(sides)], named, texts[:2] if texts[:2] == [1, 2] else texts)
    pairs = ((some[0], some[1]) for some in candidates if len(some) == 2 and all(some) and some[0] != some[1])
    return next(pairs, None)


def _first_two(path: Path, table: TextTable, columns: Sequence[Sequence[str]], texts: Sequence[int]) -> tuple[int, int]:
    """Columns 1 and 2, if the table has only these and neither counts rows (UserError otherwise)."""
    counts = [number for number, cells in enumerate(columns[:2], 1) if _counts(cells)]
    if len(columns) < 3 and not counts:
        return 1, 2
    others = [number for number in (1, 2) if number not in texts] or counts
    bad = " and ".join(f"column {number} ({_examples(columns[number - 1])})" for number in others)
    why = f" The first two are not: {bad} looks like numbers." if others else ""
    listed = ", ".join(f"{_named(table, number)}: {_examples(columns[number - 1], 1)}" for number in texts)
    pair = f"{texts[0]},{texts[1]}" if others and len(texts) > 1 else "A,B"
    raise UserError(
        f"{path}: which columns are source and target?{why} Columns with text: {listed or 'none'}. Name two: "
        f"data.columns=[{pair}]"
    )


def _counts(cells: Sequence[str]) -> bool:
    """Whether a column counts its rows: nearly every cell is a whole number, greater by 1 than the cell before."""
    numbers = [int(cell) if cell.strip().isdecimal() else -1 for cell in cells]
    steps = sum(after == before + 1 for before, after in itertools.pairwise(numbers))
    return len(numbers) > 2 and steps >= 0.9 * (len(numbers) - 1)


def _named(table: TextTable, number: int) -> str:
    name = table.header[number - 1] if number <= len(table.header) else ""
    return f"{number} ({name})" if name else str(number)


def _examples(cells: Sequence[str], count: int = 3) -> str:
    short = [cell.strip() if len(cell) < 40 else f"{cell.strip()[:37]}..." for cell in cells if cell.strip()][:count]
    return ", ".join(short) + (", ..." if count > 1 and len(cells) > count else "")


def guess_languages(
    files: Sequence[Path], columns: Wanted = None, languages: Languages = (None, None), plain: bool = False
) -> tuple[str, str]:
    """Guess language codes from two file names (corpus.de.gz, german.txt), or from a table (de-en.tsv, cmn.txt).

    Args:
        files: a source and a target file, or one table. The first lines of a table are read: a header may name
            languages, the first column of a Tatoeba file is English, and the script may show which column has the
            language in the file's name.
        columns: the source and the target column; see `choose_columns`.
        languages: languages that the user names, which help to choose the columns.
        plain: whether the table has no header.

    Returns:
        The source and the target code, or a name of `UNNAMED` for an unknown side.
    """
    parts = [[part for part in path.name.split(".") if part.lower() not in ENDINGS] for path in files]
    stems = [part[-1] if part else "" for part in parts]
    if len(files) == 2:
        source, target = map(language_code, stems)
        return (source, target) if source and target and source != target else UNNAMED
    table, numbers = TextTable([]), (1, 2)
    if columns is not None and not names_in(columns):
        numbers = int(columns[0]), int(columns[1])
    if files[0].is_file():  # a pipe can be read only once
        with contextlib.suppress(UserError):  # `DataSource.check` raises it again
            table = peek(files[0], names_in(columns))
            table = table._replace(header=[]) if plain else table
            known = languages if None in languages else language_codes((str(languages[0]), str(languages[1])))
            numbers, _ = choose_columns(files[0], table, columns, known)
    pair = [language_code(name) for name in re.split("[-_]", stems[0])]
    by_column: Mapping[int, str] = {}
    header = {number: code for number, name in enumerate(table.header, 1) if (code := language_of_column(name))}
    first = (1, 2) if columns is not None else numbers
    if header.get(numbers[0]) != header.get(numbers[1]):
        by_column = header
    elif len(pair) == 2 and pair[0] and pair[1] and pair[0] != pair[1]:
        by_column = {min(first): pair[0], max(first): pair[1]}
    elif code := language_code(stems[0]):
        fits = [column for column in first if script_of(table.column(column)) == script_of_language(code) != ""]
        tatoeba = any("tatoeba.org" in row for row in table.rows[:1])
        by_column = {1: "en", 2: code} if tatoeba else {column: code for column in fits if len(fits) == 1}
    source, target = (by_column.get(column, name) for column, name in zip(numbers, UNNAMED, strict=True))
    return source, target
