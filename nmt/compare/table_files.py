"""The tables of a report -> CSV files for other programs."""

import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from nmt.viewer.blocks import Block, Heading, Table

#: The names of the files. A number follows each name, so that files of other people stay.
TABLES = "*.[0-9]*.csv"
#: Signs and digits, which a spreadsheet computes without harm.
_FIGURES = re.compile(r"[-+±\d.,%() to]*")


def named(blocks: Iterable[Block]) -> Mapping[str, Table]:
    """Every table of a report by the name of its file: the words of its heading, and its number below this heading."""
    tables: dict[str, Table] = {}
    heading, numbers = "table", Counter[str]()
    for block in blocks:
        if isinstance(block, Heading):
            heading = "-".join(re.findall(r"\w+", block.text.lower()))[:80] or "table"
        elif isinstance(block, Table):
            numbers[heading] += 1
            tables[f"{heading}.{numbers[heading]}.csv"] = block
    return tables


def as_csv(table: Table) -> str:
    """The header and the rows, as RFC 4180 has them but for the ends of lines.

    A cell of text that a spreadsheet would take for a formula begins with an apostrophe, as OWASP recommends: names and
    sentences may be a stranger's.
    """
    text = io.StringIO()
    rows = ([_no_formula(cell) for cell in row] for row in (table.header, *table.rows))
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(("=", "@", "+", "-", "\t", "\r")) and not _FIGURES.fullmatch(cell) else cell
