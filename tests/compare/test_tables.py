"""Tables as files: CSV."""

import csv
import io
import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.table_files import as_csv, named
from nmt.viewer.blocks import (
    Block,
    Heading,
    Lines,
    Table,
)

CELLS = st.text(
    st.one_of(
        st.sampled_from("=@+-|_$%{}<>&~^#\\'`,\"*[ 1.("), st.characters(codec="utf-8", exclude_characters="\r\0")
    ),
    max_size=8,
)


@given(st.lists(st.lists(CELLS, min_size=2, max_size=2), max_size=4))
def test_csv_is_read_back_and_no_cell_is_a_formula(rows: list[list[str]]) -> None:
    """An apostrophe alone is added, before text that a spreadsheet would compute."""
    found = list(csv.reader(io.StringIO(as_csv(Table(["a", "b,c"], rows)), newline="")))
    assert found[0] == ["a", "b,c"]
    for cell, given_cell in zip(chain(*found[1:]), chain(*rows), strict=True):
        assert cell in (given_cell, f"'{given_cell}")
        assert not re.match(r"[=@\t]|[+-](?=.*[^\W\d_to])", cell)
        assert cell == given_cell or given_cell[0] in "=@+-\t"


@pytest.mark.parametrize("cell", ["-0.12", "+3.4 (-1.2 to 8.0)", "-", "12.5 ± 0.3", "-1,024"])
def test_figures_are_no_formulas(cell: str) -> None:
    assert as_csv(Table(["a"], [[cell]])).splitlines()[1].strip('"') == cell


def test_tables_are_named_by_their_headings() -> None:
    first, second, third = (Table([name], [["x"]]) for name in "abc")
    blocks: list[Block] = [
        Heading("Scores on te/st!"),
        first,
        second,
        Lines(["x"]),
        Heading("Scores on te st 2"),
        third,
    ]
    assert named(blocks) == {
        "scores-on-te-st.1.csv": first,
        "scores-on-te-st.2.csv": second,
        "scores-on-te-st-2.1.csv": third,
    }
