"""The tables of a page -> files for other programs: CSV, JSON and LaTeX.

pandas would write none of them as needed: it escapes neither formulas nor the ligatures and brackets of LaTeX.
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
        f"{row},{column}": list(cell_lines)
        for row, cells in enumerate(table.rows)
        for column, cell in enumerate(cells)
        if (cell_lines := getattr(cell, "lines", ()))
    }
    return json.dumps({"header": table.header, "rows": table.rows, "lines": lines}, ensure_ascii=False, indent=1) + "\n"


def as_latex(table: Table) -> str:
    """A `tabular` with the rules of booktabs; text in other scripts needs XeLaTeX or LuaLaTeX."""

    def row(cells: Sequence[str], number: int = -1) -> str:
        kinds = (_latex, *([_latex if table.text else _latex_figure] * (len(cells) - 1)))
        written = [kind(cell) for kind, cell in zip(kinds, cells, strict=True)]
        bold = (_bold(cell) if (number, at) in table.best else cell for at, cell in enumerate(written))
        return " & ".join(bold) + r" \\"

    columns = "l" + ("l" if table.text else "r") * (len(table.header) - 1)
    parts = [r"% Needs \usepackage{booktabs}.", f"\\begin{{tabular}}{{{columns}}}", r"\toprule", row(table.header)]
    return "\n".join([*parts, r"\midrule", *map(row, table.rows, count()), r"\bottomrule", r"\end{tabular}"]) + "\n"


def _latex(text: str) -> str:
    """A cell in braces where LaTeX could take its beginning for an option of the row's end."""
    text = re.sub(r"([-',])(?=\1)", "\\1\0", visible(re.sub(r"\s", " ", text)))  # no ligatures
    escaped = "".join(_LATEX.get(char, char) for char in text).replace("\0", "{}")
    return f"{{{escaped}}}" if escaped.startswith(("[", "*")) else escaped


def _latex_figure(text: str) -> str:
    """A cell of figures: a minus before digits, a dash for no value."""
    return "--" if text == "-" else re.sub(r"(?<![\w.])-(?=\d)", "$-$", _latex(text)).replace("±", r"$\pm$")


def _bold(cell: str) -> str:
    """A cell of LaTeX whose first figure is bold."""
    return re.sub(r"^(\$-\$)?[\d.,]+", lambda figure: rf"\textbf{{{figure[0]}}}", cell)


def with_best(table: Table, best: Mapping[str, Callable[[Iterable[float]], float]], among: int | None = None) -> Table:
    """The table with the best figures of some columns marked; equal ones, as printed, are equally good.

    Args:
        table: with a row for each variant.
        best: `max` or `min` for each of the columns, by its head.
        among: the number of rows that compete, the first ones; None for all.
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


#: The columns of `learning_curves`: entries of a run's history, `tokens` being the target tokens learnt from so far.
_COURSE = ("step", "epoch", "minutes", "tokens", "train_loss", "valid_perplexity", "valid_bleu", "valid_chrf")


def learning_curves(comparison: Comparison) -> Table:
    """A row for each validation of each run; empty cells where a run has no such figure."""
    rows: list[list[str]] = []
    for variant in comparison.variants:
        for run in variant.runs:
            so_far = accumulate(entry.get("train_tokens", math.nan) for entry in run.history)  # older runs have none
            for entry, tokens in zip(run.history, so_far, strict=True):
                known = {**entry, "tokens": tokens}
                cells = (known.get(key, math.nan) for key in _COURSE)
                figures = ("" if math.isnan(cell) else f"{cell:.10g}" for cell in cells)
                rows.append([variant.label, run.name, str(run.seed), *figures])
    return Table(["variant", "run", "seed", *_COURSE], rows)


def of_segments(comparison: Comparison) -> Table:
    """A row for each line, run and further metric (`metrics=`) with its value."""
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


#: The ends of the names of a table's files, with their forms.
FORMS = {".csv": as_csv, ".json": as_json, ".tex": as_latex}
