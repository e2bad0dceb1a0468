"""The tables of a page -> files for other programs: CSV, JSON and LaTeX."""

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping

from nmt.terminal import visible
from nmt.viewer.blocks import Block, Heading, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}


def named(blocks: Iterable[Block]) -> Mapping[str, Table]:
    """Every table of a page, by the name of its file: its heading's words, and a number from the second on."""
    tables: dict[str, Table] = {}
    numbers: Counter[str] = Counter()
    heading = "table"
    for block in blocks:
        if isinstance(block, Heading):
            heading = "-".join(re.findall(r"\w+", block.text.lower()))[:80] or "table"
        elif isinstance(block, Table):
            name = heading
            while name in tables:
                numbers[heading] += 1
                name = f"{heading}-{numbers[heading] + 1}"
            tables[name] = block
    return tables


def as_csv(table: Table) -> str:
    """The header and the rows, as RFC 4180 has them but for the ends of lines."""
    written = io.StringIO()
    writer = csv.writer(written, lineterminator="\n")
    writer.writerows([table.header, *table.rows])
    return written.getvalue()


def as_json(table: Table) -> str:
    """An object with the header, the rows, and for each cell that leads to sentences their lines."""
    lines = {
        f"{row},{column}": list(found)
        for row, cells in enumerate(table.rows)
        for column, cell in enumerate(cells)
        if (found := getattr(cell, "lines", ()))
    }
    return json.dumps({"header": table.header, "rows": table.rows, "lines": lines}, ensure_ascii=False, indent=1) + "\n"


def as_latex(table: Table) -> str:
    """A `tabular`, which needs no package; text in other scripts needs XeLaTeX or LuaLaTeX."""

    def row(cells: Iterable[str]) -> str:
        return " & ".join(map(_latex, cells)) + r" \\"

    columns = "l" + ("l" if table.text else "r") * (len(table.header) - 1)
    parts = [f"\\begin{{tabular}}{{{columns}}}", r"\hline", row(table.header), r"\hline", *map(row, table.rows)]
    return "\n".join([*parts, r"\hline", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """A cell in braces where LaTeX could take its beginning for an option of the row's end."""
    escaped = "".join(_LATEX.get(char, char) for char in visible(re.sub(r"\s", " ", text)))
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped
