"""The page and reports of Transformers and convolutional models in Chromium; run by hand with `-m browser`."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.viewer.conftest import SIZES, Visit, barriers

pytestmark = pytest.mark.browser
#: Each kind of model, its heads of attention to the source, and what is chosen at first.
HEADS = {
    "learnt": (["0"], "head 0"),
    "conv": (["mean", "1.1", "2.1", "3.1"], "layer 2, head 1"),
    "transformer": (["mean", "1.mean", "2.mean", "1.1", "1.2", "2.1", "2.2"], "mean of layer 1"),
}
OTHERS = {name: HEADS[name][0] for name in ("conv", "transformer")}


def share_of(text: str) -> float:
    """Per cent as the page writes them; "< 0.1 %" is the smallest above 0."""
    return float(text.strip().removesuffix(" %").removeprefix("< "))


def rows_of(page: Any) -> list[list[float]]:
    """The weights of the section Alignment in per cent, from the names of its cells."""
    rows = page.locator("#alignment .matrix tbody tr").all()
    names = [[cell.get_attribute("aria-label") for cell in row.locator("td.cell").all()] for row in rows]
    return [[share_of(name.rpartition(", ")[2]) for name in row] for row in names if row]


@pytest.mark.parametrize("model", OTHERS)
def test_every_head_of_the_attention_to_the_source(ask: Visit, server: str, model: str) -> None:
    page = ask(server, f"&model={model}")
    select = page.locator("#alignment").get_by_label("Head", exact=True)
    assert select.locator("option").evaluate_all("all => all.map(({value}) => value)") == HEADS[model][0]
    assert select.locator("option:checked").inner_text() == HEADS[model][1]
    seen = []
    for head in HEADS[model][0]:
        select.select_option(head)
        rows = rows_of(page)
        assert len(rows) == page.locator("#sentence .sentence").nth(1).locator("button").count() + 1
        assert all(sum(row) == pytest.approx(100, abs=3) for row in rows), "per cent"
        seen.append(rows)
    assert all(seen.count(rows) == 1 for rows in seen), "the heads differ"
    if model == "transformer":
        mean, one, two = (np.array(seen[HEADS[model][0].index(head)]) for head in ("2.mean", "2.1", "2.2"))
        assert mean == pytest.approx((one + two) / 2, abs=1.1)


def test_a_transformer_shows_three_kinds_of_weights(ask: Visit, server: str) -> None:
    page = ask(server, "&model=transformer")
    box = page.locator("#alignment")
    shapes = {"cross": (4, 4), "encoder": (4, 4), "decoder": (4, 4)}
    kinds = box.get_by_label("Attention", exact=True).locator("option").evaluate_all("all => all.map((e) => e.value)")
    assert kinds == list(shapes)
    labels = {}
    for use in shapes:
        box.get_by_label("Attention", exact=True).select_option(use)
        labels[use] = [
            box.locator(f".matrix {part}").all_inner_texts()
            for part in ("tbody th.end, tbody th[data-row]", "thead th[data-column]")
        ]
        rows = rows_of(page)
        assert (len(rows), len(rows[0])) == shapes[use]
        assert all(sum(row) == pytest.approx(100, abs=3) for row in rows)
        for view in ("links", "list", "matrix"):
            box.get_by_label("View").select_option(view)
            assert box.locator({"links": "svg", "list": ".list", "matrix": "[role=grid]"}[view]).count() == 1
    german, english = ["drei", "rot", "haus", "</s>"], ["three", "red", "house", "</s>"]
    assert labels["cross"] == [english, german]
    assert labels["encoder"] == [german, german]
    assert labels["decoder"] == [english, ["<s>", *english[:-1]]]
    assert all(weight == 0 for at, row in enumerate(rows_of(page)) for weight in row[at + 1 :]), "nothing is seen early"


@pytest.mark.parametrize("model", OTHERS)
def test_the_stages_are_those_of_the_head_that_alignment_shows(ask: Visit, server: str, model: str) -> None:
    page = ask(server, f"&model={model}&unit=pieces")
    why = page.locator("#why")
    head = HEADS[model][0][-1]
    page.locator("#alignment").get_by_label("Head", exact=True).select_option(head)
    assert why.get_by_label("Head shown here").input_value() == head
    assert why.locator(".note").count() == 0
    page.locator("#alignment td.cell[data-row='1'][data-column='2']").click()
    why.locator("h3", has_text="The weight of").wait_for()
    stages = why.locator(".stages tbody tr td:last-child").all_inner_texts()
    shares = [share_of(each) for each in stages]
    assert shares == pytest.approx(rows_of(page)[1], abs=0.06)
    weight = why.locator(".derivation li", has_text="Weight: ").inner_text()
    assert weight.endswith(f"({stages[2].strip()}).")
    page.locator("#alignment").get_by_label("Head", exact=True).select_option("mean")
    assert "alone; Alignment shows the mean of all heads." in why.locator(".note").inner_text()


@pytest.mark.parametrize("size", SIZES)
def test_the_page_of_a_transformer_fits_and_has_no_barrier(ask: Visit, server: str, size: str) -> None:
    width, scheme = SIZES[size]
    asked = "&model=transformer&with=learnt&if=sweep&ifstep=1&explain=yes&nbest=3"
    page = ask(server, asked, width, scheme)
    page.locator("#explain .panels").wait_for()
    page.locator("#whatif details[open]").wait_for()
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert barriers(page) == []


@pytest.mark.parametrize("model", ["learnt", "transformer"])
@pytest.mark.parametrize("size", SIZES)
def test_the_report_of_an_evaluation_fits_and_asks_nothing(browser: Any, runs: Path, model: str, size: str) -> None:
    width, scheme = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    address = (runs / model / "evaluation" / "test" / "report.html").as_uri()
    page.on("request", lambda request: problems.append(request.url) if request.url != address else None)
    page.goto(address)
    page.locator(".nmt-viewer [role=grid]").first.wait_for()
    page.get_by_role("combobox", name="Sentence", exact=True).select_option(index=1)
    assert page.locator("th", has_text="÷ length penalty").count() == 1
    lines = """cells => cells.map((cell) => {
      const text = document.createRange();
      text.selectNodeContents(cell);
      return new Set([...text.getClientRects()].map(({ top }) => top)).size;
    })"""
    assert page.locator("table.text").first.locator("td:nth-child(2)").evaluate_all(lines) == [1, 1, 1], "whole figures"
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    cut = """() => [...document.querySelectorAll("table, img, svg, pre, select, button")].filter((each) => {
      const inside = each.closest(".wide") ?? document.documentElement;
      return getComputedStyle(inside).overflowX === "visible" && each.getBoundingClientRect().right > innerWidth + 1;
    }).map((each) => each.outerHTML.slice(0, 80))"""
    assert page.evaluate(cut) == []
    assert barriers(page) == []
    assert problems == []
    context.close()
