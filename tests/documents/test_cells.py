"""Tables as text: cells with words are translated, in quotation marks where they need them."""

import csv
import io
from pathlib import Path

import pytest

from nmt.system.errors import UserError
from tests.documents.trips import round_trip, swapped, translate


@pytest.mark.parametrize(("name", "delimiter"), [("a.csv", ","), ("a.csv", ";"), ("a.tsv", "\t"), ("a.csv", "\t")])
def test_cells(tmp_path: Path, name: str, delimiter: str) -> None:
    rows = ['Kopf,"Wert, neu"', " Haus ,12", ',"Er sagt ""ja"".', 'Zweite Zeile",http://a.b', ""]
    data = "\r\n".join(rows).replace(",", delimiter).replace(f"Wert{delimiter}", "Wert,").encode()
    seen, written = translate(tmp_path / name, data, swapped)
    assert seen == ["Kopf", "Wert, neu", "Haus", 'Er sagt "ja".', "Zweite Zeile"]
    assert written.decode() == swapped(data.decode()).replace("HTTP://A.B", "http://a.b")


def test_a_translation_with_a_separator_is_quoted(tmp_path: Path) -> None:
    _, written = translate(tmp_path / "a.csv", b"Haus;1,2;x\n", lambda text: f'{text}; "ja"')
    assert list(csv.reader(io.StringIO(written.decode()), delimiter=";")) == [['Haus; "ja"', "1,2", 'x; "ja"']]


def test_a_cell_that_does_not_end(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="line 2: a cell in quotation marks does not end"):
        translate(tmp_path / "a.csv", b'a,b\nc,"d\ne\n', str)


def test_round_trip(tmp_path: Path) -> None:
    def table(texts: list[str], number: int) -> bytes:
        text = io.StringIO(newline="")
        writer = csv.writer(text, delimiter=";", quoting=(csv.QUOTE_ALL, csv.QUOTE_MINIMAL)[number % 2])
        writer.writerows(texts[at : at + 2] for at in range(0, len(texts), 2))
        return text.getvalue().encode()

    round_trip(tmp_path / "a.csv", table, ("Haus", "rotes; Haus", 'so "genannt"', "12", "Zeile\nzwei", "", " rand "))
