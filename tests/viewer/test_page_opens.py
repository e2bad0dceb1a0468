"""What the page shows before anybody asks, and the page for readers, in a real Chromium.

Run by hand with `-m browser`. The tests are skipped where Chromium or an extra (`browser`, `serve`) is missing.
"""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.viewer.conftest import SIZES, TIMEOUT, Visit, barriers, begin

pytestmark = pytest.mark.browser
LAID_OUT = "#explain:not([hidden])"


@pytest.fixture(scope="module")
def alone(runs: Path) -> Iterator[str]:
    """The address of a server with one model."""
    program, address = begin(runs / "learnt", runs)
    with program:
        yield address
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0


@pytest.fixture(scope="module")
def plain(runs: Path) -> Iterator[str]:
    """The address of a server with two models and the page for readers."""
    program, address = begin(f"[{runs / 'learnt'},{runs / 'transformer'}]", runs, "page=plain")
    with program:
        yield address
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0


def test_the_page_opens_with_a_word_whose_weight_says_something(visit: Visit, alone: str) -> None:
    page = visit(alone, shows=LAID_OUT)
    source = page.locator("#sentence .sentence").first.inner_text()
    assert 3 <= len(source.split()) <= 9
    (word,) = page.locator("#sentence .sentence").nth(1).locator(".word.lit").all_inner_texts()
    assert f"“{word}” looks at “" in page.locator("#sentence .status").inner_text()
    title = page.locator("#why h3").inner_text()
    assert title.endswith(f"for “▁{word}”")
    assert "“▁”" not in title
    assert page.locator("#beside").is_hidden(), "never the model beside itself"
    examples = page.locator(".tried button")
    assert page.locator(".tried").inner_text().startswith("Trained on 300 pairs")
    assert examples.count() == 3
    assert examples.first.inner_text() == source
    examples.nth(1).click()
    page.locator("#sentence .sentence", has_text=examples.nth(1).inner_text()).wait_for()
    assert page.get_by_label("Text to translate").input_value() == examples.nth(1).inner_text()
    (word,) = page.locator("#sentence .sentence").nth(1).locator(".word.lit").all_inner_texts()
    assert page.locator("#why h3").inner_text().endswith(f"for “▁{word}”")


def test_a_second_model_is_beside_the_first_at_once(visit: Visit, server: str) -> None:
    page = visit(server, shows="#beside:not([hidden])")
    titles = page.locator("#beside h3").all_inner_texts()
    assert titles == ["A: bahdanau additive gru (learnt)", "B: conv additive (conv)"]
    page.get_by_label("Compare with").select_option("none")
    page.locator("#beside").wait_for(state="hidden")
    page.reload()
    page.wait_for_selector(LAID_OUT)
    assert page.locator("#beside").is_hidden()


def test_words_that_training_never_had_are_named_on_the_page(ask: Visit, alone: str) -> None:
    page = ask(alone, text="drei Katzen haus")
    note = "Not in the training text: “Katzen”. The model guesses this word from its parts."
    assert page.locator("#sentence .unseen").inner_text() == note
    assert page.locator("#sentence .unlike").count() == 0
    page = ask(alone, text="drei. Eins zwei. Haus.")
    assert "several sentences" in page.locator("#sentence .unlike").inner_text()
    page = ask(alone)
    assert page.locator("#sentence .unseen").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_phone_shows_the_translation_first(visit: Visit, alone: str, scheme: str) -> None:
    page = visit(alone, 360, scheme, shows=LAID_OUT)
    box = page.locator("#sentence .sentence").nth(1).bounding_box()
    assert box["y"] + box["height"] < 640, "a small phone's height"
    assert page.evaluate("document.documentElement.scrollWidth") <= 360
    assert barriers(page) == []


def test_a_phone_shows_the_translation_of_one_of_several_models_first(visit: Visit, server: str) -> None:
    page = visit(server, 360, shows=LAID_OUT)
    box = page.locator("#sentence .sentence").nth(1).bounding_box()
    assert box["y"] + box["height"] < 640
    assert page.evaluate("document.documentElement.scrollWidth") <= 360


def test_half_a_weight_is_pinned_and_kept_in_the_address(ask: Visit, alone: str) -> None:
    page = ask(alone)
    box = page.locator("#whatif")
    box.get_by_label("Pin step").select_option(index=2)
    box.get_by_label("with a weight of").fill("0.5")
    box.get_by_role("button", name="What if?").click()
    answer = box.locator("details[open]", has_text="looks at “drei” with 50 % of the weight")
    answer.wait_for()
    page.reload()
    answer.wait_for()
    assert box.get_by_label("with a weight of").input_value() == "0.5"
    for wrong in ("1.5", "-1", ""):
        box.get_by_label("with a weight of").fill(wrong)
        box.get_by_label("with a weight of").evaluate("input => input.form.noValidate = true")
        box.get_by_role("button", name="What if?").click()
        box.locator(".problem", has_text="The weight must be a number from 0 to 1.").wait_for()
        box.locator(".problem").evaluate("element => element.remove()")


def test_the_sweep_that_shows_most_is_one_click(ask: Visit, alone: str) -> None:
    page = ask(alone)
    box = page.locator("#whatif")
    box.locator(".offer button").click()
    box.locator("details[open] summary", has_text="Sweep of step").wait_for()
    rows = box.locator("details[open] tbody td:first-child").all_inner_texts()
    assert rows == ["drei", "rot", "haus", "</s>"], "words, not pieces"


@pytest.mark.parametrize(("width", "scheme"), SIZES.values(), ids=SIZES)
def test_the_plain_page_has_a_box_the_translation_and_links(visit: Visit, plain: str, width: int, scheme: str) -> None:
    page = visit(f"{plain}#text=drei rot haus", width, scheme, shows=".pair")
    lines = page.locator(".pair .sentence")
    assert lines.all_inner_texts() == ["drei rot haus", "three red house"]
    lines.nth(1).get_by_role("button", name="house").focus()
    assert page.locator(".pair .partner").count() >= 1
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert barriers(page) == []
    text = page.locator("body").inner_text()
    assert "German → English" in text
    for word in ("BLEU", "Beam", "Terms", "Alignment", "What if", "attention", "API", "Hypotheses"):
        assert word not in text
    page.get_by_label("Text").fill("rot vier\n\nKatzen drei")
    page.get_by_role("button", name="Translate").click()
    page.locator(".pair .unseen", has_text="Not in the training text: “Katzen”.").wait_for()
    assert page.locator(".pair").count() == 2
    page.go_back()
    page.locator(".pair").nth(1).wait_for(state="detached")
    page.get_by_label("Languages").select_option(index=1)
    page.locator(".pair").first.wait_for()
    assert "model=transformer" in page.url
