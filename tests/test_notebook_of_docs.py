"""The notebook that teaches attention runs from the first cell to the last, with whatever run it is given."""

import ast
import json
from pathlib import Path
from typing import Any

import pytest

from tests.small import ROOT

NOTEBOOK = ROOT / "docs" / "attention.ipynb"


def cells(kind: str) -> list[str]:
    """The sources of the cells of a kind, "code" or "markdown"."""
    notebook = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert (notebook["nbformat"], notebook["nbformat_minor"]) == (4, 5)
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    return ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == kind]


def test_its_outputs_are_stored() -> None:
    for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]:
        last = ast.parse("".join(cell["source"])).body[-1] if cell["cell_type"] == "code" else None
        shows = isinstance(last, ast.Expr) or "print(" in "".join(cell["source"])
        assert bool(cell.get("outputs")) == (last is not None and shows)


def displayed(cell: str, names: dict[str, Any]) -> object:
    """Run a cell as a notebook does; the value of its last line if that is an expression."""
    tree = ast.parse(cell)
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, str(NOTEBOOK), "exec"), names)
    if not isinstance(last, ast.Expr):
        return None
    return eval(compile(ast.Expression(last.value), str(NOTEBOOK), "eval"), names)


def test_it_runs_from_top_to_bottom(trained: Path, here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NMT_RUN", str(trained))
    names: dict[str, Any] = {"__name__": "__main__"}
    html, pictures = [], []
    for cell in cells("code"):
        value = displayed(cell, names)
        if value is None:
            continue
        as_html, as_png = (getattr(value, f"_repr_{kind}_", lambda: None)() for kind in ("html", "png"))
        assert as_html or as_png, cell
        html += [as_html] if as_html else []
        pictures += [as_png] if as_png and not as_html else []
    assert len(html) == 4
    assert len(pictures) == 1
    assert all(picture.startswith(b"\x89PNG") for picture in pictures)
    assert len(names["swept"].sweep) == len(names["translation"].source_pieces)
