"""Tables as files: CSV, JSON and LaTeX."""

import csv
import io
import json
import re
from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.table_files import as_csv, as_json, as_latex, learning_curves, named, with_best
from nmt.compare.variants import compare
from nmt.system.terminal import visible
from nmt.viewer.blocks import (
    Block,
    Heading,
    Lines,
    Linked,
    Table,
)
from tests.compare.runs import NEW, OLD, result

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


def test_json_has_the_lines_behind_a_cell() -> None:
    table = Table(["a", "b"], [["x", Linked("2 %", [3, 5])]])
    assert json.loads(as_json(table)) == {"header": ["a", "b"], "rows": [["x", "2 %"]], "lines": {"0,1": [3, 5]}}


def test_latex_by_hand() -> None:
    table = Table(["a_b", "50 %"], [["x & y", "[1]"], ["\\ ~^{}#$<>", "*"]])
    assert as_latex(table).splitlines() == [
        r"% Needs \usepackage{booktabs}.",
        r"\begin{tabular}{lr}",
        r"\toprule",
        r"a\_b & 50 \% \\",
        r"\midrule",
        r"x \& y & {[1]} \\",
        r"\textbackslash{} \textasciitilde{}\textasciicircum{}\{\}\#\$\textless{}\textgreater{} & {*} \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]


def test_latex_has_minus_signs_in_figures_alone() -> None:
    table = Table(["a", "b"], [["run-2 -2", "-0.12 (-0.3 to 0.1)"], ["a--b", "1.2 ± 0.3"], ["-", "-"]])
    assert as_latex(table).splitlines()[5:-2] == [
        r"run-2 -2 & $-$0.12 ($-$0.3 to 0.1) \\",
        r"a-{}-b & 1.2 $\pm$ 0.3 \\",
        r"- & -- \\",
    ]


def test_the_best_figures_are_bold_in_latex_equal_ones_all_and_only_among_variants() -> None:
    rows = [["a", "36.10 ± 0.30", "1,024.5", "-", "9.0"], ["b", "36.10", "-1.0 (-2.0 to 0.0)", "-", "-"],
            ["c", "9.99", "-0.5", "", "8.0"], ["words", "99.00", "-9.0", "9.0", "9.9"]]  # fmt: skip
    header = ["variant", "BLEU", "TER", "none", "not compared"]
    table = with_best(Table(header, rows), {"BLEU": max, "TER": min, "none": max}, 3)
    assert as_latex(table).splitlines()[5:-2] == [
        r"a & \textbf{36.10} $\pm$ 0.30 & 1,024.5 & -- & 9.0 \\",
        r"b & \textbf{36.10} & \textbf{$-$1.0} ($-$2.0 to 0.0) & -- & -- \\",
        r"c & 9.99 & $-$0.5 &  & 8.0 \\",
        r"words & 99.00 & $-$9.0 & 9.0 & 9.9 \\",
    ]
    alone = with_best(Table(["variant", "BLEU"], rows[:1]), {"BLEU": max})
    assert "textbf" not in as_latex(alone), "there is nothing to be better than"


def test_learning_curves_are_a_row_a_validation_and_tokens_add_up() -> None:
    history = [
        {"step": 10, "epoch": 0.5, "minutes": 1.25, "train_tokens": 900, "train_loss": 4.5, "valid_bleu": 3.0},
        {"step": 20, "epoch": 1.0, "minutes": 2.5, "train_tokens": 800, "train_loss": 4.0, "valid_bleu": 7.5},
    ]
    older = [{"step": 10, "epoch": 0.5, "minutes": 1.0, "valid_perplexity": 12.0, "valid_chrf": 20.0}]
    runs = [result("a-1", 1, OLD, 0.7)._replace(history=history), result("b-2", 2, NEW, 0.7)._replace(history=older)]
    table = learning_curves(compare(runs, trials=20, named=True))
    assert table.header == [
        *("variant", "run", "seed", "step", "epoch", "minutes", "tokens", "train_loss", "valid_perplexity"),
        *("valid_bleu", "valid_chrf"),
    ]
    assert table.rows == [
        ["a", "a-1", "1", "10", "0.5", "1.25", "900", "4.5", "", "3", ""],
        ["a", "a-1", "1", "20", "1", "2.5", "1700", "4", "", "7.5", ""],
        ["b", "b-2", "2", "10", "0.5", "1", "", "", "12", "", "20"],
    ]


#: What LaTeX sets for a command, and nothing for a group that keeps letters apart.
SET = {
    "textbackslash": "\\", "textasciitilde": "~", "textasciicircum": "^", "textless": "<", "textgreater": ">",
    "textbar": "|", "textasciigrave": "`",
}  # fmt: skip


@given(CELLS)
def test_latex_sets_the_text_itself(text: str) -> None:
    written = as_latex(Table(["a"], [[text]], text=True)).split("\n")[5].removesuffix(r" \\")
    for pair in ("--", "''", ",,", "``"):
        assert pair not in written, "a ligature"
    read = re.sub(r"\\([a-z]+)\{\}", lambda found: SET[found[1]].replace("\\", "\0"), written)
    read = re.sub(r"\\([&%$#_{}])", lambda found: {"{": "\1", "}": "\2"}.get(found[1], found[1]), read)
    read = read.replace(r"{\char34}", '"').replace("{", "").replace("}", "")
    assert read.replace("\0", "\\").replace("\1", "{").replace("\2", "}") == visible(re.sub(r"\s", " ", text))


@given(st.lists(st.lists(CELLS, min_size=3, max_size=3), min_size=1, max_size=3))
def test_latex_keeps_its_rows_and_columns(rows: list[list[str]]) -> None:
    body = as_latex(Table(["a", "b", "c"], rows, text=True)).split("\n")[5:-3]
    assert len(body) == len(rows)
    for line in body:
        assert line.endswith(r" \\")
        assert len(re.findall(r"(?<!\\)&", line)) == 2
        assert not re.search(r"(?<!\\)[%$#_]", line)


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
    assert named(blocks) == {"scores-on-te-st": first, "scores-on-te-st-b": second, "scores-on-te-st-2": third}
