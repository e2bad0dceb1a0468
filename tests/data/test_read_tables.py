"""Tables as people have them: headers, ID columns, CSV and quotes are read right, or refused before training."""

import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from nmt.data import stored
from nmt.data.sources import UserFiles
from nmt.data.text_tables import read_table
from nmt.system.errors import UserError

GERMAN = [f"Das {number}. Haus steht am {word}." for number in range(40) for word in ("See", "Wald", "Weg")]
ENGLISH = [f"House {number} stands by the {word}." for number in range(40) for word in ("lake", "wood", "way")]
PAIRS = list(zip(GERMAN, ENGLISH, strict=True))


def table(path: Path, rows: Sequence[Sequence[object]], delimiter: str = "\t") -> str:
    path.write_text("".join(f"{delimiter.join(map(str, row))}\n" for row in rows), encoding="utf-8")
    return str(path)


def as_csv(rows: Sequence[Sequence[str]], delimiter: str, quoting: int = csv.QUOTE_MINIMAL) -> str:
    stream = io.StringIO()
    csv.writer(stream, delimiter=delimiter, quoting=quoting).writerows(rows)  # type: ignore[arg-type]
    return stream.getvalue()


def texts(data: UserFiles) -> tuple[set[str], set[str]]:
    """All sentences of both sides, whatever is held out."""
    splits = [data.read(name) for name in data.splits()]
    return {text for split in splits for text in split.source}, {text for split in splits for text in split.target}


WHOLE = (set(GERMAN), set(ENGLISH))


@pytest.mark.parametrize(
    ("asked", "codes"),
    [
        (("en", "fr"), ("en", "fr")),
        (("de", "it"), "'it': it has German, French, English"),
        (("en", None), ("en", "fr")),
    ],
)
def test_columns_of_the_languages_that_are_asked_for(
    asked: tuple[str, str | None], codes: tuple[str, str] | str, tmp_path: Path
) -> None:
    rows = [(german, f"le {english}", english) for german, english in PAIRS]
    path = table(tmp_path / "pairs.tsv", [("German", "French", "English"), *rows])
    if isinstance(codes, str):
        with pytest.raises(UserError, match=codes):
            UserFiles(path, *asked).check()
    else:
        assert UserFiles(path, *asked).languages == codes
    two = table(tmp_path / "two.tsv", [("German", "English"), *PAIRS])
    assert [UserFiles(two, "en").languages, UserFiles(two, None, "de").languages] == [("en", "de")] * 2
    assert [UserFiles(path).has_columns_of(pair) for pair in (("en", "de"), ("de", "it"))] == [True, False]
    assert not UserFiles(table(tmp_path / "fr-en.tsv", PAIRS)).has_columns_of(("de", "en"))


@pytest.mark.parametrize(
    ("header", "codes"),
    [
        (("German", "English"), ("de", "en")),
        (("de", "en"), ("de", "en")),
        (("source", "target"), ("source", "target")),
        (("Unsere Sprache", "Übersetzung"), ("source", "target")),
        (("Village", "English"), ("source", "en")),
    ],
)
def test_a_header_is_no_pair_and_names_languages(
    header: tuple[str, str], codes: tuple[str, str], tmp_path: Path
) -> None:
    data = UserFiles(table(tmp_path / "pairs.tsv", [header, *PAIRS]))
    assert (texts(data), data.languages) == (WHOLE, codes)
    plain = UserFiles(table(tmp_path / "pairs.tsv", [header, *PAIRS]), lines="plain")
    assert header[0] in texts(plain)[0]


@pytest.mark.parametrize(
    "first", [("is", "es"), ("German", "Deutsch"), ("no", "nein"), ("text", "Text"), ("date", "Datum")]
)
def test_the_first_words_of_a_list_are_no_header(first: tuple[str, str], tmp_path: Path) -> None:
    words = [
        ("ab" * (row % 7 + 1) + chr(97 + row % 26), "cd" * (row % 6 + 1) + chr(97 + row % 23)) for row in range(99)
    ]
    assert first[0] in texts(UserFiles(table(tmp_path / "words.tsv", [first, *words])))[0]


ROWS = list(enumerate(PAIRS, 1))
COLUMNS: dict[str, list[tuple[object, ...]]] = {
    "numbers": [(number, *pair) for number, pair in ROWS],
    "dates": [(f"2024-0{number % 9 + 1}-11", *pair) for number, pair in ROWS],
    "ids": [(f"S-{number:04}", *pair) for number, pair in ROWS],
    "codes": [("deu", source, "eng", target) for source, target in PAIRS],
    "tatoeba": [(3 * number, source, 7 * number, target) for number, (source, target) in ROWS],
    "speaker": [(("Ana", "Ben")[number % 2], *pair) for number, pair in ROWS],
    "notes": [(number, *pair, "heard twice" if number % 9 == 0 else "") for number, pair in ROWS],
}


@pytest.mark.parametrize("kind", COLUMNS)
@pytest.mark.parametrize("with_header", [False, True])
def test_columns_that_are_no_text_are_never_trained_on(kind: str, with_header: bool, tmp_path: Path) -> None:
    names = [("ID", "German", "English", "Notes")[: len(COLUMNS[kind][0])]]
    if len(COLUMNS[kind][0]) == 4 and kind != "notes":
        names = [("a", "German", "b", "English")]
    data = UserFiles(table(tmp_path / "pairs.tsv", [*(names if with_header else []), *COLUMNS[kind]]))
    assert texts(data) == WHOLE


def test_what_is_not_clear_is_refused_with_the_columns(tmp_path: Path) -> None:
    ambiguous = [(number, source, target, f"{target} {source}") for number, (source, target) in ROWS]
    with pytest.raises(UserError, match=r"column 1 \(1, 2, 3, \.\.\.\).*2 \(Village\).*data\.columns=\[2,3\]"):
        UserFiles(table(tmp_path / "a.tsv", [("ID", "Village", "French words", "Notes"), *ambiguous])).check()
    with pytest.raises(UserError, match="which columns are source and target"):
        UserFiles(table(tmp_path / "b.tsv", [(number, source) for number, (source, _) in ROWS])).check()
    # Numbers that count nothing may be what is to be translated.
    digits = UserFiles(table(tmp_path / "c.tsv", [(number * 7919 % 1009, source) for number, (source, _) in ROWS]))
    assert len(texts(digits)[0]) == len(ROWS)
    assert any("looks like numbers" in note for note in digits.notes())


def test_columns_have_names(tmp_path: Path) -> None:
    path = table(
        tmp_path / "t.tsv", [("Key", "Dorf", "English", "More"), *((n, s, t, f"{t} {s}") for n, (s, t) in ROWS)]
    )
    named: list[tuple[Any, Any]] = [("Dorf", "English"), ("dorf", "en"), (2, "English"), ("2", "3"), (2, 3)]
    for columns in named:
        assert texts(UserFiles(path, columns=columns)) == WHOLE
    assert texts(UserFiles(path, columns=("English", "Dorf"))) == WHOLE[::-1]
    with pytest.raises(UserError, match=r"no column 'Dorff': it has Key, Dorf, English, More\. Did you mean 'Dorf'"):
        UserFiles(path, columns=("Dorff", "English")).check()
    with pytest.raises(UserError, match="twice"):
        UserFiles(path, columns=("Dorf", 2)).check()
    missing: list[tuple[Any, Any]] = [("0", "1"), (1, 9)]
    for columns in missing:
        with pytest.raises(UserError, match=r"no column [09]: its columns are 1 to 4"):
            UserFiles(path, columns=columns).check()
    both = table(tmp_path / "b.tsv", [("German", "English"), *PAIRS])
    assert texts(UserFiles(both, source="en", target="de")) == WHOLE[::-1]


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("quoting", [csv.QUOTE_MINIMAL, csv.QUOTE_ALL])
@pytest.mark.parametrize("size", [stored.LARGE, 1])
@given(
    cells=st.lists(
        st.tuples(*[st.text(st.characters(codec="utf-8", exclude_characters="\t\r\0", exclude_categories=["Cs"]))] * 2),
        max_size=6,
    )
)
@settings(deadline=None, max_examples=15, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_what_a_spreadsheet_writes_is_read(
    delimiter: str,
    quoting: int,
    size: int,
    cells: list[tuple[str, str]],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Quotes, delimiters and line breaks in cells come back, whether the file is held in memory or not."""
    rows = [*PAIRS[:30], ('He said "no"', 'Er sagte "nein"'), ("two\nlines", "x"), *cells]
    path = tmp_path / ("t.tsv" if delimiter == "\t" else "t.csv")
    path.write_text(as_csv(rows, delimiter, quoting), encoding="utf-8", newline="")
    with monkeypatch.context() as patch:
        patch.setattr(stored, "LARGE", size)
        read = read_table(path, tmp_path / f"known-{len(list(tmp_path.iterdir()))}")
    assert isinstance(read.rows, list) == (size > 1)
    # A cell that is not a line becomes one, and blanks around it go.
    expected = ["\t".join(" ".join(cell.replace("\n", " ").split()) for cell in row) for row in rows]
    assert ["\t".join(" ".join(cell.split()) for cell in row.split("\t")) for row in read.rows] == expected


@pytest.mark.parametrize("delimiter", [",", ";", "|", "\t"])
@pytest.mark.parametrize("first", ["{}", "sep={}", '"sep={}"'])
def test_csv_by_another_name_and_a_separator_that_is_named(delimiter: str, first: str, tmp_path: Path) -> None:
    rows = [("German", "English"), *PAIRS, ('Er "heißt"', 'He said ""no"".')]
    text = as_csv(rows, delimiter, csv.QUOTE_ALL)
    path = tmp_path / "t.txt"
    path.write_text(text if first == "{}" else f"{first.format(delimiter)}\n{text}", encoding="utf-8")
    data = UserFiles(str(path))
    assert texts(data) == tuple(set(side) for side in zip(*rows[1:], strict=True))
    line = 1 if first == "{}" else 2
    assert any(f"t.txt, line {line}: a header, not a pair (German, English)" in note for note in data.notes())


def test_commas_of_sentences_are_no_csv(tmp_path: Path) -> None:
    rows = [(f"Ja, {source}", f"Yes, {target}") for source, target in PAIRS]
    assert texts(UserFiles(table(tmp_path / "t.txt", rows)))[0] == {source for source, _ in rows}
    (tmp_path / "de.txt").write_text(
        "".join(f"{row[0]}{', ja' * (n % 9 == 0)}\n" for n, row in enumerate(rows)), "utf-8"
    )
    with pytest.raises(UserError, match="1 column where 2 are needed"):
        UserFiles(str(tmp_path / "de.txt")).check()


def test_quotes_of_a_spreadsheet_in_two_files_are_said(tmp_path: Path) -> None:
    files = [str(tmp_path / name) for name in ("a.de", "a.en")]
    quoted = [*GERMAN[:50], '"Er sagte ""nein""."', *GERMAN[50:], '"Sie ""auch""."']
    for path, side in zip(files, (quoted, [*ENGLISH, "x", "y"]), strict=True):
        Path(path).write_text("\n".join([*side, ""]), encoding="utf-8")
    (note,) = (note for note in UserFiles(files).notes() if "the quotes of a" in note)
    assert note.startswith(f"warning: {files[0]}: 2 lines have the quotes of a spreadsheet")
    assert "(line 51 is the first). They are taken as text." in note


def test_quotes_of_the_text_stay(tmp_path: Path) -> None:
    rows = [(f'"{source}" sagte er', f'"{target}"') for source, target in PAIRS]
    assert f'"{ENGLISH[0]}"' in texts(UserFiles(table(tmp_path / "t.tsv", rows)))[1]
    mixed = UserFiles(table(tmp_path / "m.tsv", [*rows, ('"He said ""no"""', "x")]))
    assert '"He said ""no"""' in texts(mixed)[0]
    assert any("quotes of a spreadsheet" in note for note in mixed.notes())


def test_csv_that_is_not_well_formed_names_the_line(tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text(
        "English,German\n" + "".join(f"a{n},b{n}\n" for n in range(30)) + "No, sir,Nein\n", encoding="utf-8"
    )
    with pytest.raises(UserError, match=r"t\.csv, line 32: 3 columns where 2 are expected\. Put quotes"):
        UserFiles(str(path)).check()


def test_the_header_of_two_files_and_of_documents(tmp_path: Path) -> None:
    for name, header, side in (("a.txt", "German", GERMAN), ("b.txt", "English", ENGLISH)):
        (tmp_path / name).write_text("\n".join([header, *side, ""]), encoding="utf-8")
    assert texts(UserFiles([str(tmp_path / "a.txt"), str(tmp_path / "b.txt")])) == WHOLE
    rows = [("Doc", "German", "English"), *((number // 10, *pair) for number, pair in ROWS)]
    data = UserFiles(table(tmp_path / "d.tsv", rows), documents=1)
    assert (texts(data), data.read("train").documents is not None) == (WHOLE, True)
