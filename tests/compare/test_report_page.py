"""The report of a comparison in Chromium: what its figures and points lead to, and that nothing is cut off."""

from pathlib import Path
from typing import Any

import pytest

from nmt.compare.report import report, title
from nmt.compare.variants import compare
from nmt.viewer.blocks import as_html
from tests.compare.runs import OLD, runs_of
from tests.compare.test_analyses import known
from tests.viewer.conftest import SIZES

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of sixteen variants, half of them with long names."""
    windows = ("global", "a_rather_long_name_of_a_window")
    runs = [
        known(run)
        for number in range(16)
        for run in runs_of({**OLD, "decoder.size": number, "attention/window": windows[number % 2]}, 0.6, seeds=1)
    ]
    comparison = compare(runs, trials=20)
    path = tmp_path_factory.mktemp("report") / "report.html"
    path.write_text(as_html(report(comparison, 1), title(comparison)), encoding="utf-8")
    return path


@pytest.mark.parametrize("size", SIZES)
def test_sixteen_variants_fit_and_have_no_barrier(browser: Any, many: Path, size: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install -e '.[browser]'")
    width, scheme = SIZES[size]
    context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page = context.new_page()
    problems: list[str] = []
    page.on("console", lambda message: problems.append(message.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("request", lambda request: problems.append(request.url) if request.url.startswith("http") else None)
    page.goto(many.as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    outside = """() => [...document.querySelectorAll("main *")].filter((each) =>
      !each.closest(".wide, svg") && each.getBoundingClientRect().right > innerWidth + 1).length"""
    assert page.evaluate(outside) == 0
    barriers = axe.Axe().run(page).response["violations"]
    assert [each["id"] for each in barriers if each["impact"] in ("serious", "critical")] == []
    for link in page.locator("nav.contents a").all():
        assert page.locator(link.get_attribute("href")).count() == 1
    assert problems == []
    context.close()


def test_a_figure_and_a_point_lead_to_their_sentence(browser: Any, many: Path) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(many.as_uri())
    figure = page.locator("td details").first
    link = figure.get_by_role("link").first
    assert not link.is_visible()
    figure.locator("summary").press("Enter")
    line = link.inner_text()
    link.press("Enter")
    assert page.url.endswith(f"#line-{line}")
    target = page.locator(":target")
    assert target.locator("td").first.inner_text() == line
    assert 0 <= target.bounding_box()["y"] <= 900
    plain = page.locator("tr[id^=line-]:not(:target) td").first
    colour = "(cell) => getComputedStyle(cell).backgroundColor"
    assert target.locator("td").first.evaluate(colour) != plain.evaluate(colour), "it is marked"
    page.goto(many.as_uri())
    point = page.locator("svg a").nth(7)
    point.scroll_into_view_if_needed()
    point.dispatch_event("click")
    assert page.url.endswith(point.get_attribute("href"))
    assert page.locator(":target").is_visible()
    context.close()


def test_a_reader_chooses_which_variants_the_points_compare(browser: Any, many: Path) -> None:
    context = browser.new_context(viewport={"width": 360, "height": 900})
    page = context.new_page()
    page.goto(many.as_uri())
    figure = page.locator("figure.scatter")
    point = figure.locator("circle").nth(7)
    places = "circle => [circle.cx.baseVal.value, circle.cy.baseVal.value]"
    before, (line, *_) = point.evaluate(places), point.locator("title").text_content().split(":")
    figure.get_by_label("Across", exact=True).select_option(index=3)
    figure.get_by_label("Up", exact=True).select_option(index=3)
    assert figure.locator("figcaption").inner_text().endswith(" is higher in 0 and lower in 0.")
    x, y = point.evaluate(places)
    assert x - 34 == pytest.approx(238 - y), "equal scores are on the diagonal"
    assert [x, y] != before
    assert point.locator("title").text_content().startswith(f"{line}: "), "a point keeps its sentence"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    context.close()


def test_tables_that_fit_are_no_tab_stops(browser: Any, many: Path) -> None:
    context = browser.new_context(viewport={"width": 1200, "height": 900})
    page = context.new_page()
    page.goto(many.as_uri())
    page.wait_for_function("document.querySelectorAll('.wide[role=group]:not([tabindex])').length > 0")
    cut = """boxes => boxes.map((box) => [box.tabIndex === 0,
      box.scrollWidth > box.clientWidth + 1 || box.scrollHeight > box.clientHeight + 1])"""
    pairs = page.locator(".wide[role=group]").evaluate_all(cut)
    assert {tuple(pair) for pair in pairs} == {(True, True), (False, False)}
    context.close()
