"""The sections of the page by keyboard alone: Tab, Enter, the space bar and arrows; run by hand with `-m browser`."""

from typing import Any

import pytest

from tests.viewer.conftest import Visit, barriers, saved

pytestmark = pytest.mark.browser
FOCUSED = "element => element === document.activeElement"


def tab_to(page: Any, target: Any, most: int = 60) -> None:
    """Press Tab until an element has the focus."""
    element = target.element_handle()
    for _ in range(most):
        page.keyboard.press("Tab")
        if page.evaluate(FOCUSED, element):
            return
    raise AssertionError(f"Tab does not reach {target}: {page.evaluate('document.activeElement.outerHTML')}")


def go_to(page: Any, name: str) -> None:
    """Follow a link of the contents, from the beginning of the page."""
    page.evaluate("document.activeElement.blur()")
    tab_to(page, page.get_by_role("navigation").get_by_role("link", name=name), most=200)
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.textContent") == name


def test_a_weight_is_explained_by_keyboard(ask: Visit, server: str) -> None:
    page = ask(server)
    why = page.locator("#why")
    go_to(page, "Why this weight")
    tab_to(page, why.get_by_label("Target piece"), most=1)
    page.keyboard.press("ArrowDown")
    why.locator("h3", has_text="for “▁red”").wait_for()
    assert page.evaluate(FOCUSED, why.get_by_label("Target piece").element_handle()), "the focus stays"
    buttons = why.locator(".stages button")
    assert buttons.count() == 4
    tab_to(page, why.locator(".stages button[tabindex='0']"), most=3)
    page.keyboard.press("Home")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    why.locator("h3", has_text="The weight of “▁haus” for “▁red”").wait_for()
    assert page.evaluate("document.activeElement.textContent") == "▁haus", "the focus stays"
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Space")
    why.locator("h3", has_text="The weight of “▁rot” for “▁red”").wait_for()
    tab_to(page, why.get_by_role("button", name="What if “red” looked only at “rot”?"), most=1)
    page.keyboard.press("Enter")
    page.locator("#whatif details[open]", has_text="looking only at “rot”,").wait_for()
    assert page.evaluate("document.activeElement.id") == "whatif-title"


def test_what_if_is_asked_by_keyboard(ask: Visit, server: str) -> None:
    page = ask(server)
    box = page.locator("#whatif")
    go_to(page, "What if")
    tab_to(page, box.get_by_label("Source"), most=2)
    page.keyboard.press("Control+a")
    page.keyboard.type("drei blau haus")
    page.keyboard.press("Enter")
    box.locator("ins", has_text="blue").wait_for()
    assert page.evaluate(FOCUSED, box.get_by_label("Source").element_handle()), "the focus stays"
    page.keyboard.press("Control+a")
    page.keyboard.type("drei rot haus")
    tab_to(page, box.get_by_label("Pin step"), most=2)
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    tab_to(page, box.get_by_label("to look at"), most=1)
    page.keyboard.press("End")
    tab_to(page, box.get_by_label("with a weight of"), most=1)
    page.keyboard.press("Control+a")
    page.keyboard.type("0.5")
    page.keyboard.press("Enter")
    box.locator("summary", has_text="step 2, “red”, looks at “</s>” with 50 % of the weight").wait_for()
    page.keyboard.press("Control+a")
    page.keyboard.type("1")
    tab_to(page, box.get_by_label("Keep the words before it"), most=1)
    tab_to(page, box.get_by_role("button", name="What if?"), most=1)
    page.keyboard.press("Enter")
    box.locator("summary", has_text="step 2, “red”, looks only at “</s>”").wait_for()
    tab_to(page, box.get_by_role("button", name="Sweep the word"), most=1)
    page.keyboard.press("Space")
    box.locator("summary", has_text="Sweep of step 2").wait_for()
    assert box.locator("details[open] tbody tr").count() == 4
    tab_to(page, box.locator("summary").first, most=1)
    page.keyboard.press("Enter")
    assert box.locator("details[open]").count() == 0


def test_two_models_are_compared_by_keyboard(ask: Visit, server: str) -> None:
    page = ask(server, "&with=transformer")
    beside = page.locator("#beside")
    assert "Of all words, their attention differs most for “" in beside.inner_text()
    go_to(page, "Side by side")
    cell = "td.cell[tabindex='0']"
    for panel in range(3):
        tab_to(page, beside.locator("figure").nth(panel).locator(cell), most=6)
        page.keyboard.press("ArrowDown")
        page.keyboard.press("End")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("red from </s>, ")
        said = beside.locator(".status").inner_text()
        assert said.startswith("“red” takes ")
        assert said.endswith(" in B.")
        assert beside.locator("td.cell.lit").count() == 3, "in each panel"
        page.keyboard.press("Enter")
        page.keyboard.press("Escape")


def test_attention_is_compared_with_gradients_by_keyboard(ask: Visit, server: str) -> None:
    page = ask(server)
    explain = page.locator("#explain")
    go_to(page, "Explanation?")
    button = explain.get_by_role("button", name="Compare attention with gradient and erasure")
    tab_to(page, button, most=1)
    page.keyboard.press("Enter")
    explain.locator(".panels").wait_for()
    assert page.evaluate(FOCUSED, button.element_handle()), "the focus stays"
    for panel in range(3):
        tab_to(page, explain.locator("figure").nth(panel).locator("td.cell[tabindex='0']"), most=6)
        page.keyboard.press("ArrowRight")
        assert page.evaluate("document.activeElement.getAttribute('aria-label')").startswith("three from rot, ")
    assert "Spearman" in explain.inner_text()
    assert len(saved(page, "#explain", "Pharaoh").split()) == 3


def test_only_boxes_that_scroll_are_stops(ask: Visit, server: str) -> None:
    """A table that fits is no stop of the Tab key; on a narrow screen it is one, before and after a resize."""
    page = ask(server, "&with=transformer&explain=yes&if=sweep&ifstep=1")
    page.locator("#explain .panels").wait_for()
    page.locator("#whatif details[open] table").wait_for()
    boxes = "boxes => boxes.filter(box => box.getClientRects().length).map(box => "
    scrolls = f"{boxes}box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1)"
    seen = set()
    for width in (1200, 320, 360, 1200):
        page.set_viewport_size({"width": width, "height": 900})
        page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        regions = page.locator("main .wide[role=region]")
        stops = regions.evaluate_all(f"{boxes}box.tabIndex === 0)")
        assert stops == regions.evaluate_all(scrolls)
        seen |= set(stops)
        rules = {"runOnly": {"type": "rule", "values": ["scrollable-region-focusable"]}}
        assert barriers(page, options=rules) == []
    assert seen == {True, False}
