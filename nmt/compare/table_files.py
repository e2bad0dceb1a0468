"""Tables of a report as CSV, JSON and LaTeX files.

pandas is not used: it escapes neither spreadsheet formulas nor ligatures and brackets in LaTeX.
"""

import csv
import io
import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import accumulate, chain, count

from nmt.compare.results import TESTED
from nmt.compare.variants import Comparison
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
#: Cells of figures: as a spreadsheet formula, they are harmless.
_FIGURES = re.compile(r"[-+±\d.,%() to]*")


def named(blocks: Iterable[Block]) -> Mapping[str, Table]:
    """All tables of a report by file name: the words of the heading.

    If a name is taken, the words of the table's first header cell are appended, then a number.
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
    """The table as CSV (RFC 4180, but with LF line ends).

    Text that a spreadsheet would read as a formula gets an apostrophe in front, as OWASP recommends: names and
    sentences may come from untrusted sources. The JSON has the unchanged text.
    """
    text = io.StringIO()
    rows = ([_no_formula(cell) for cell in row] for row in (table.header, *table.rows))
    csv.writer(text, lineterminator="\n").writerows(rows)
    return text.getvalue()


def _no_formula(cell: str) -> str:
    return f"'{cell}" if cell.startswith(("=", "@", "+", "-", "\t", "\r")) and not _FIGURES.fullmatch(cell) else cell


def as_json(table: Table) -> str:
    """The table as a JSON object: header, rows, and the line numbers of cells that link to sentences."""
    lines = {
        f"{row},{column}": list(cell_lines)
        for row, cells in enumerate(table.rows)
        for column, cell in enumerate(cells)
        if (cell_lines := getattr(cell, "lines", ()))
    }
    return json.dumps({"header": table.header, "rows": table.rows, "lines": lines}, ensure_ascii=False, indent=1) + "\n"


def as_latex(table: Table) -> str:
    """The table as a LaTeX `tabular` with booktabs rules; non-Latin scripts need XeLaTeX or LuaLaTeX."""

    def row(cells: Sequence[str], number: int = -1) -> str:
        kinds = (_latex, *([_latex if table.text else _latex_figure] * (len(cells) - 1)))
        written = [kind(cell) for kind, cell in zip(kinds, cells, strict=True)]
        bold = (_bold(cell) if (number, at) in table.best else cell for at, cell in enumerate(written))
        return " & ".join(bold) + r" \\"

    columns = "l" + ("l" if table.text else "r") * (len(table.header) - 1)
    parts = [r"% Needs \usepackage{booktabs}.", f"\\begin{{tabular}}{{{columns}}}", r"\toprule", row(table.header)]
    return "\n".join([*parts, r"\midrule", *map(row, table.rows, count()), r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """Escape a cell; braces protect a leading "[" or "*", which LaTeX would read as an option of the row end."""
    text = re.sub(r"([-',])(?=\1)", "\\1\0", visible(re.sub(r"\s", " ", text)))  # no ligatures
    escaped = "".join(_LATEX.get(char, char) for char in text).replace("\0", "{}")
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def _latex_figure(text: str) -> str:
    """A LaTeX cell of figures: minus signs in math mode, and a dash for a missing value."""
    return "--" if text == "-" else re.sub(r"(?<![\w.])-(?=\d)", "$-$", _latex(text)).replace("±", r"$\pm$")


def _bold(cell: str) -> str:
    """A LaTeX cell with its first figure in bold."""
    return re.sub(r"^(\$-\$)?[\d.,]+", lambda figure: rf"\textbf{{{figure[0]}}}", cell)


def with_best(table: Table, best: Mapping[str, Callable[[Iterable[float]], float]], among: int | None = None) -> Table:
    """Mark the best figures of some columns; figures that are printed equally are all marked.

    Args:
        table: a table with a row for each variant.
        best: {column header: `max` or `min`}.
        among: compare only the first `among` rows; None compares all.
    """
    cells: list[tuple[int, int]] = []
    for column, head in enumerate(table.header):
        figures = {
            at: float(figure[0].replace(",", ""))
            for at, row in enumerate(table.rows[:among])
            if head in best and (figure := re.match(r"-?[\d,]*\.?\d+", row[column]))
        }
        if len(figures) > 1:
            cells += [(at, column) for at, figure in figures.items() if figure == best[head](figures.values())]
    return table._replace(best=cells)


#: Columns of `learning_curves`: keys of a run's history; `tokens` is the number of target tokens trained on.
_COURSE = ("step", "epoch", "minutes", "tokens", "train_loss", "valid_perplexity", "valid_bleu", "valid_chrf")


def learning_curves(comparison: Comparison) -> Table:
    """A table with a row for each validation of each run; figures that a run lacks are empty cells."""
    rows: list[list[str]] = []
    for variant in comparison.variants:
        for run in variant.runs:
            so_far = accumulate(entry.get("train_tokens", math.nan) for entry in run.history)  # absent in older runs
            for entry, tokens in zip(run.history, so_far, strict=True):
                known = {**entry, "tokens": tokens}
                cells = (known.get(key, math.nan) for key in _COURSE)
                figures = ("" if math.isnan(cell) else f"{cell:.10g}" for cell in cells)
                rows.append([variant.label, run.name, str(run.seed), *figures])
    return Table(["variant", "run", "seed", *_COURSE], rows)


def of_segments(comparison: Comparison) -> Table:
    """A table with the value of each external metric (`metrics=`) for each run and line."""
    rows: list[list[str]] = []
    for split in comparison.splits:
        further = [metric for metric in split.contrasts if metric not in TESTED]
        for variant in comparison.variants if further else ():
            for run in variant.runs:
                known = run.splits[split.name].counts
                rows += [
                    [split.name, str(line), variant.label, run.name, str(run.seed), metric, f"{value / weight:.10g}"]
                    for metric in further
                    for line, (value, weight) in enumerate(known[metric].tolist(), 1)
                ]
    return Table(["split", "line", "variant", "run", "seed", "metric", "value"], rows)


#: File name suffixes and the functions that write them.
FORMS = {".csv": as_csv, ".json": as_json, ".tex": as_latex}
