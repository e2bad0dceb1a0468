"""What a lecturer shows with the page: heads that everything follows, a step at another temperature, what to distrust.

Run by hand with `-m browser`. The tests are skipped where Chromium or an extra (`browser`, `serve`) is missing.
"""

import re
from typing import Any

import pytest

from tests.viewer.conftest import Visit

pytestmark = pytest.mark.browser
LONG = "drei rot haus vier blau haus zwei rot haus eins blau haus fünf rot haus"


def captions(page: Any) -> list[str]:
    return list(page.locator("#explain figcaption").all_inner_texts())


def test_the_explanation_follows_the_chosen_head(ask: Visit, server: str) -> None:
    page = ask(server, "&model=transformer&with=none&explain=yes")
    page.locator("#explain .panels").wait_for()
    assert captions(page)[0] == "attention, mean of layer 1, in per cent of a row", "the default: the penultimate layer"
    cells = "#explain figure:first-child td.cell"
    usual = page.locator(cells).all_inner_texts()
    page.get_by_label("Head", exact=True).select_option("2.2")
    page.locator("#explain figcaption", has_text="attention, layer 2, head 2").wait_for()
    assert page.locator(cells).all_inner_texts() != usual
    others = ("gradient × input", "erasure")
    assert captions(page)[1:] == [f"{name}, in per cent of the table’s largest" for name in others]
    shown = page.locator("#alignment .matrix tbody tr").first.locator("td.cell").all_inner_texts()
    assert page.locator("#explain figure:first-child tbody tr").first.locator("td.cell").all_inner_texts() == shown[:3]
    page = ask(server, "&with=none&explain=yes")
    page.locator("#explain .panels").wait_for()
    assert captions(page)[0] == "attention, in per cent of a row", "of one head there is nothing to say"


def test_the_derivation_of_a_transformer_ends_in_its_output_projection(ask: Visit, server: str) -> None:
    page = ask(server, "&model=transformer&with=none&head=2.1&step=1")
    text = " ".join(page.locator("#why .derivation").inner_text().split())
    for made in (
        r"q_2 = W\^Q x_2 \+ b\^Q = \[",
        r"k_(\d) = W\^K h_\1 \+ b\^K = \[",
        r"v_(\d) = W\^V h_\1 \+ b\^V = \[",
    ):
        assert re.search(made, text), made
    assert "Context of layer 2, head 1: c_2^1 = Σ_j a(2,j) v_j = [" in text
    assert "layer 2, head 2: c_2^2 = [" in text
    assert "Output: c_2 = W^O [c_2^1; c_2^2] + b^O = [" in text
    assert "encoder states" not in text


def test_the_temperature_moves_the_picture_until_the_model_is_asked(ask: Visit, server: str) -> None:
    page = ask(server, "&with=none&step=1")
    box = page.locator("#why")
    assert "The slider moves the picture only" in box.inner_text()
    slider = box.get_by_label("Temperature before the normaliser")
    slider.focus()
    page.keyboard.press("End")
    box.get_by_role("button", name="What would the model write at this temperature?").click()
    line = box.locator("[role=status]", has_text="Step 2 with energies / 10.00 in all heads of all layers")
    line.wait_for()
    assert "“▁red” " in line.inner_text()
    assert len(re.findall(r"\d %? ?\(", line.inner_text())) >= 5


def test_a_hardly_trained_model_is_said_to_be_so(ask: Visit, server: str) -> None:
    page = ask(server, "&model=conv&with=none")
    note = page.locator("#about [role=note]")
    assert re.match(
        r"This model had \d+ updates and validation BLEU [\d.]+: its translations and its attention say little\.",
        note.inner_text(),
    )
    page.get_by_label("Model").select_option("learnt")
    note.wait_for(state="detached")


def test_the_bars_of_many_pieces_fit_a_phone(ask: Visit, server: str) -> None:
    page = ask(server, "&with=none", 360, text=LONG)
    page.locator("#why svg").first.wait_for()
    wide = "[...document.querySelectorAll('#why .wide')].filter(box => box.querySelector(':scope > svg'))"
    assert page.evaluate(f"{wide}.length") == 1
    assert page.evaluate(f"{wide}.every(box => box.scrollWidth <= box.clientWidth + 1)")
    assert page.locator("#why svg").first.locator("text").count() >= 5, "words where there is room"


def test_a_question_names_only_words_that_are_there(ask: Visit, server: str) -> None:
    page = ask(server, "&with=none&if=edits&iftext=vier+haus&ifstep=1&ifpiece=0")
    box = page.locator("#whatif")
    box.get_by_role("alert").wait_for()
    assert "its words are not known yet" in box.get_by_role("alert").inner_text()
    assert box.get_by_label("Pin step").locator("option").all_inner_texts() == ["none"]
    ask_button = box.get_by_role("button", name="What if?", exact=True)
    for source, weight, told in (("", "1", "The source is empty"), ("drei rot haus", "2", "from 0 to 1")):
        box.get_by_label("Source").fill(source)
        box.get_by_label("with a weight of").fill(weight)
        if source:
            box.get_by_label("Pin step").select_option(index=2)
            assert told in box.locator("p.note[role=status]").inner_text()
        else:
            ask_button.click()
            assert told in box.get_by_role("alert").inner_text()
    box.get_by_label("with a weight of").fill("1")
    box.get_by_label("Translation begins with").fill("four")
    assert not box.get_by_label("Keep the words before it").is_checked()
    ask_button.click()
    box.locator("details[open]").wait_for()
    assert "Step 2 (after “four”), looking only at" in box.locator("details[open]").inner_text()


def test_an_address_lights_its_word_everywhere(ask: Visit, server: str) -> None:
    page = ask(server, "&step=1&explain=yes")
    page.locator("#explain .panels").wait_for()
    for section in ("#alignment", "#beside", "#explain"):
        assert "red" in page.locator(f"{section} tbody th.lit").first.inner_text()
    assert page.locator("#sentence button.word.lit").inner_text() == "red"
