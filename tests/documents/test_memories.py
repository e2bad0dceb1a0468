"""Pairs for training in files of translators and in workbooks."""

from pathlib import Path

import openpyxl
import pytest

from nmt.data.lines import open_lines
from nmt.system.errors import UserError
from tests.documents.test_catalogues import PO
from tests.documents.test_markup_documents import TMX, XLIFF

ROWS = {
    "a.tmx": (TMX, ["de\ten", "Ein Haus\t", "Eins\tOne"]),
    "a.xlf": (XLIFF, ["de\ttarget", "Alt & neu\tOld", "Fertig\tDone", "Neu\tNeu"]),
    "a.po": (PO, ["source\ttarget", "Fertig\tDone"]),
}


@pytest.mark.parametrize("name", ROWS)
def test_pairs_are_lines_of_a_table(tmp_path: Path, name: str) -> None:
    content, rows = ROWS[name]
    (tmp_path / name).write_text(content, encoding="utf-8")
    with open_lines(tmp_path / name) as lines:
        assert list(lines) == rows


def test_the_first_sheet_of_a_workbook(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Nummer", "German", "English"], [1, "Ein\nHaus", "A house"], [2, None, "nothing"], [3]):
        sheet.append(row)
    book.save(tmp_path / "a.xlsx")
    with open_lines(tmp_path / "a.xlsx") as lines:
        assert list(lines) == ["Nummer\tGerman\tEnglish", "1\tEin Haus\tA house", "2\t\tnothing", "3\t\t"]


@pytest.mark.parametrize(
    ("name", "content"),
    [("a.tmx", "<tmx/>"), ("a.tmx", "<tmx>"), ("a.xlsx", "PK"), ("a.po", "Text"), ("a.po", ""), ("a.xlf", "<a/>")],
)
def test_a_file_without_pairs(tmp_path: Path, name: str, content: str) -> None:
    (tmp_path / name).write_text(content, encoding="utf-8")
    with pytest.raises(UserError, match=name), open_lines(tmp_path / name):
        pass
