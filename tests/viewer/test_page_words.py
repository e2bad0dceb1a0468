"""A chosen word on the page: where it leads, that it stays chosen, and that it is pinned whole.

Run by hand with `-m browser`.
"""

import re
from typing import Any

import pytest

from tests.viewer.conftest import Visit
from tests.viewer.test_page_keyboard import tab_to

pytestmark = pytest.mark.browser


def choose(page: Any, word: str) -> None:
    """Choose a word of the translation."""
    page.locator("#sentence .sentence").nth(1).get_by_role("button", name=word, exact=True).click()


def focused(page: Any) -> str:
    return str(page.evaluate("document.activeElement.id"))


def test_a_chosen_word_leads_to_what_is_known_of_it(ask: Visit, server: str) -> None:
    page = ask(server)
    ways = page.locator("#sentence .ways")
    assert ways.inner_text() == ""
    choose(page, "house")
    assert ways.inner_text() == "“house”: Why this weight · What if · Explanation?"
    assert page.locator("#alignment .ways").inner_text() == ways.inner_text()
    page.locator("#why").get_by_label("Target piece").select_option("0")
    ways.get_by_role("link", name="Why this weight").click()
    page.locator("#why h3", has_text="for “▁house”").wait_for()
    assert focused(page) == "why-title"
    ways.get_by_role("link", name="Explanation?").click()
    page.locator("#explain .panels").wait_for()
    assert focused(page) == "explain-title"
    assert page.locator("#explain tbody th.lit").all_inner_texts() == ["house"] * 3
    assert page.locator("#explain tr.lit td").first.inner_text() == "house"
    ways.get_by_role("link", name="What if").click()
    page.locator("#whatif details[open] summary", has_text="Sweep of step 3").wait_for()
    assert focused(page) == "whatif-title"


def test_the_links_are_reached_by_keyboard(ask: Visit, server: str) -> None:
    page = ask(server)
    word = page.locator("#sentence .sentence").nth(1).get_by_role("button", name="three")
    word.focus()
    page.keyboard.press("Enter")
    link = page.locator("#sentence .ways").get_by_role("link", name="Why this weight")
    tab_to(page, link, most=1)
    page.keyboard.press("Enter")
    assert focused(page) == "why-title"
    word.focus()
    page.keyboard.press("Escape")
    link.wait_for(state="detached")


def test_a_second_model_keeps_the_chosen_word(ask: Visit, server: str) -> None:
    page = ask(server, "&with=none")
    choose(page, "house")
    page.mouse.move(0, 0)  # what the pointer is over is lit, too
    page.get_by_label("Compare with").select_option("transformer")
    page.locator("#beside figure").first.wait_for()
    lit = page.locator("#sentence .word.lit")
    assert lit.all_inner_texts() == ["house"]
    assert page.locator("#beside tbody th.lit").all_inner_texts() == ["house"] * 3
    page.get_by_label("Shown run").select_option("1")
    assert lit.all_inner_texts() == ["house"], "the other translation has it, too"
    page.get_by_label("Text to translate").fill("vier haus")
    page.keyboard.press("Enter")
    page.locator("#sentence .sentence").first.get_by_role("button", name="vier").wait_for()
    assert lit.count() == 0, "another sentence"


def test_a_word_of_several_pieces_is_pinned_whole(ask: Visit, server: str) -> None:
    """In pieces the same form has single pieces; the address keeps either."""
    page = ask(server, text="drei rothaus")
    box = page.locator("#whatif")
    pieces = page.locator("#why .stages button").all_inner_texts()
    count = len(pieces) - 2  # of the second word
    assert count > 1
    box.get_by_label("Pin step").select_option(index=1)
    box.get_by_label("to look at").select_option(label="rothaus")
    phrase = f"look only at “rothaus” ({count} pieces)"
    shown = box.locator(".note", has_text="What if? pins: ")
    assert phrase in shown.inner_text().replace("looks", "look")
    box.get_by_role("button", name="What if?").click()
    summary = box.locator("details[open] summary", has_text=re.compile(re.escape(phrase[5:])))
    summary.wait_for()
    page.reload()
    summary.wait_for()
    page.get_by_label("Units").select_option("pieces")
    listed = box.get_by_label("to look at").locator("option").all_inner_texts()
    assert listed == pieces
    assert box.get_by_label("to look at").input_value() == "1", "its first piece"
    page.get_by_label("Units").select_option("words")
    assert box.get_by_label("to look at").input_value() == ",".join(map(str, range(1, count + 1)))
