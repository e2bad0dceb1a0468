"""The tables of a page -> files for other programs: CSV, JSON and LaTeX.

pandas would write none of them as needed: it escapes neither formulas nor the ligatures and brackets of LaTeX.
"""

import csv
import io
import json
import re
from collections.abc import Iterable, Mapping, Sequence
from itertools import chain, count

from nmt.system.terminal import visible
from nmt.viewer.blocks import Block, Heading, Table

_LATEX = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    "`": r"\textasciigrave{}",
    '"': r"{\char34}",
    **{char: f"\\{char}" for char in "&%$#_{}"},
}
#: Signs and digits, which a spreadsheet computes without harm.
_FIGURES = re.compile(r"[-+±\d.,%() to]*")


def named(blocks: Iterable[Block]) -> Mapping[str, Table]:
    """Every table of a page, by the name of its file: its heading's words, from the second on those of its first cell.

    A number follows where that is taken too.
    """
    tables: dict[str, Table] = {}
    heading = "table"
    for block in blocks:
        if isinstance(block, Heading):
            heading = _words(block.text) or "table"
        elif isinstance(block, Table):
            stem = f"{heading}-{_words(block.header[0])}".rstrip("-")
            names = chain([heading, stem], (f"{stem}-{number}" for number in count(2)))
            tables[next(name for name in names if name not in tables)] = block
    return tables


def _words(text: str) -> str:
    return "-".join(re.findall(r"\w+", text.lower()))[:80]


def as_csv(table: Table) -> str:
    """The header and the rows, as RFC 4180 has them but for the ends of lines.

    A cell of text that a spreadsheet would take for a formula begins with an apostrophe, as OWASP recommends: names and
    sentences may be a stranger's. The JSON has it as it is.
    """
    text = io.StringIO()
    rows = ([_no_formula(cell) for cell in row] for row in (table.header, *table.rows))
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(("=", "@", "+", "-", "\t", "\r")) and not _FIGURES.fullmatch(cell) else cell


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
    """A `tabular` with the rules of booktabs; text in other scripts needs XeLaTeX or LuaLaTeX."""

    def row(cells: Sequence[str]) -> str:
        kinds = (_latex, *([_latex if table.text else _latex_figure] * (len(cells) - 1)))
        return " & ".join(kind(cell) for kind, cell in zip(kinds, cells, strict=True)) + r" \\"

    columns = "l" + ("l" if table.text else "r") * (len(table.header) - 1)
    parts = [r"% Needs \usepackage{booktabs}.", f"\\begin{{tabular}}{{{columns}}}", r"\toprule", row(table.header)]
    return "\n".join([*parts, r"\midrule", *map(row, table.rows), r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """A cell in braces where LaTeX could take its beginning for an option of the row's end."""
    text = re.sub(r"([-',])(?=\1)", "\\1\0", visible(re.sub(r"\s", " ", text)))  # no ligatures
    escaped = "".join(_LATEX.get(char, char) for char in text).replace("\0", "{}")
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def _latex_figure(text: str) -> str:
    """A cell of figures: a minus before digits, a dash for no value."""
    return "--" if text == "-" else re.sub(r"(?<![\w.])-(?=\d)", "$-$", _latex(text)).replace("±", r"$\pm$")


#: The ends of the names of a table's files, with their forms.
FORMS = {".csv": as_csv, ".json": as_json, ".tex": as_latex}
