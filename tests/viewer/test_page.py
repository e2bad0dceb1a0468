"""The page of the server in a real Chromium, with a model that has learnt a small language.

Run by hand with `-m browser`. The tests are skipped where Chromium or an extra (`browser`, `serve`) is missing.
"""

import re
from pathlib import Path

import pytest

from tests.viewer.conftest import Visit, said, saved

pytestmark = pytest.mark.browser


def test_which_source_word_made_this_word(ask: Visit, server: str) -> None:
    page = ask(server)
    assert said(page) == "three red house"
    page.locator("#sentence").get_by_role("button", name="house").focus()
    assert "“house” looks at “" in page.locator("#sentence .status").inner_text()


def test_the_page_opens_with_a_translated_sentence(ask: Visit, server: str, runs: Path) -> None:
    """Of the validation set."""
    for model, split in (("transformer", "valid"), ("conv", "valid")):
        page = ask(server, f"model={model}", text="")
        source = page.locator("#sentence .sentence").first.inner_text()
        settings = (runs / model / "config.yaml").read_text("utf-8")
        (folder,) = re.findall(rf"^  {split}: (.*)$", settings, re.MULTILINE)
        assert source in Path(f"{folder}.de").read_text("utf-8").splitlines()


def test_what_would_the_model_say_if_it_looked_elsewhere(ask: Visit, server: str) -> None:
    page = ask(server)
    box = page.locator("#whatif")
    source = box.get_by_label("Source")
    original = source.input_value()
    source.fill("drei blau haus")
    box.get_by_role("button", name="What if?").click()
    box.locator("details").first.wait_for()
    assert box.locator("del").all_inner_texts() == ["red"]
    assert box.locator("ins").all_inner_texts() == ["blue"]
    assert box.get_by_label("Pin step").locator("option").count() == 1, "the words of that source are not known"
    box.get_by_role("button", name="Sweep the word").click()
    box.locator(".problem", has_text="A sweep is of the sentence and translation above").wait_for()
    source.fill(original)
    box.get_by_label("Pin step").select_option("0")
    box.get_by_role("button", name="Sweep the word").click()
    box.locator("details").nth(1).wait_for()
    pieces = page.locator("#why .stages tbody tr").count()
    assert box.locator("details").first.locator("tbody tr").count() == pieces
    for title in ("Probability at step 1", "Change of log-probability"):
        box.locator("details").first.evaluate("element => { element.open = true; }")
        assert title in saved(page, "#whatif", "SVG").decode()
        assert saved(page, "#whatif", "PNG").startswith(b"\x89PNG")
        box.locator("details").first.evaluate("element => element.remove()")


def test_the_address_asks_what_if_again(ask: Visit, server: str) -> None:
    """A link restores question and answer, and Back and Forward walk through what was asked."""
    page = ask(server)
    box = page.locator("#whatif")
    box.get_by_label("Source").fill("drei blau haus")
    box.get_by_role("button", name="What if?").click()
    box.locator("ins", has_text="blue").wait_for()
    first = page.url
    box.get_by_label("Source").fill("drei rot haus")
    box.get_by_label("Translation begins with").fill("two")
    box.get_by_label("Pin step").select_option("1")
    box.get_by_label("to look at").select_option("2")
    box.get_by_role("button", name="What if?").click()
    box.locator("details[open]", has_text="begins with: two, step 2, “red”, looks only at “haus”").wait_for()
    page.reload()
    box.locator("details[open]", has_text="begins with: two, step 2, “red”, looks only at “haus”").wait_for()
    labels = ("Source", "Translation begins with", "Pin step", "to look at")
    assert [box.get_by_label(name).input_value() for name in labels] == ["drei rot haus", "two", "1", "2"]
    page.go_back()
    box.locator("details[open]", has_text="source: drei blau haus").wait_for()
    assert page.url == first
    assert [box.get_by_label(name).input_value() for name in labels] == ["drei blau haus", "", "", "0"]
    page.go_forward()
    box.locator("details[open]", has_text="step 2, “red”, looks only at “haus”").wait_for()
    page.get_by_label("Text to translate").fill("rot vier")
    page.keyboard.press("Enter")
    page.locator("#sentence").get_by_role("button", name="vier").wait_for()
    assert "if" not in page.url, "a question is about one sentence"
    assert box.locator("details").count() == 0
    page = ask(server, "&if=sweep&ifstep=1")
    page.locator("#whatif details[open]", has_text="Sweep of step 2").wait_for()


def test_the_words_before_a_pin_are_kept_unless_the_search_is_to_be_free(ask: Visit, server: str) -> None:
    page = ask(server, text="drei rot haus und vier blau haus")
    box = page.locator("#whatif")
    steps = box.get_by_label("Pin step").locator("option").all_inner_texts()
    box.get_by_label("Pin step").select_option(index=len(steps) // 2)
    box.get_by_label("to look at").select_option(index=0)
    box.locator(".note", has_text="Kept before it: “").wait_for()
    box.get_by_role("button", name="What if?").click()
    answer = box.locator("details[open]", has_text="The words before it were kept: “")
    answer.wait_for()
    step = int(box.get_by_label("Pin step").input_value().split(",")[0])
    words = page.locator("#sentence .sentence").nth(1).inner_text().split()
    assert answer.locator(".sentence").inner_text().split()[: step // 2] == words[: step // 2]
    box.get_by_label("Keep the words before it").uncheck()
    box.locator(".note", has_text="The search is free from the start.").wait_for()
    box.get_by_role("button", name="What if?").click()
    answer = box.locator("details[open]", has_text="The search was not held to the words before")
    answer.wait_for()
    page.reload()
    answer.wait_for()
    assert not box.get_by_label("Keep the words before it").is_checked()
    box.get_by_label("Translation begins with").fill("blue")
    box.locator(".note", has_text="The search is free after its beginning.").wait_for()


def test_the_address_asks_for_the_explanation_again(ask: Visit, server: str) -> None:
    page = ask(server)
    button = page.get_by_role("button", name="Compare attention with gradient and erasure")
    button.click()
    page.locator("#explain .panels").wait_for()
    assert page.evaluate("document.activeElement.tagName") == "BUTTON", "the focus stays"
    page.reload()
    page.locator("#explain .panels").wait_for()
    page.go_back()
    page.locator("#explain .panels").wait_for(state="detached")
    page.go_forward()
    page.locator("#explain .panels").wait_for()


def test_a_score_is_derived_from_the_log_probability(ask: Visit, server: str) -> None:
    page = ask(server, "&nbest=3")
    rows = page.locator("#search table").last.locator("tr").all()
    header, *hypotheses = [row.locator("th, td").all_inner_texts() for row in rows]
    assert header == ["", "text", "log-probability", "pieces", "÷ length penalty", "= score", ""]
    assert len(hypotheses) == 3
    for _, text, log_prob, pieces, penalty, score, _ in hypotheses:
        assert int(pieces) > len(text.split())
        assert float(penalty) == pytest.approx((5 + int(pieces)) / 6, abs=0.006)
        signed = [float(each.replace("−", "-")) for each in (log_prob, score)]
        assert signed[0] / float(penalty) == pytest.approx(signed[1], abs=0.02)


def test_a_translation_continues_from_a_node_of_the_tree(ask: Visit, server: str) -> None:
    page = ask(server)
    tree = page.locator("#search [role=tree]")
    tree.locator("[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        page.keyboard.press(key)
    page.locator("#search tbody td", has_text="given").first.wait_for()
    prefix = page.get_by_label("Translation begins with").first.input_value()
    assert prefix
    assert said(page).startswith(prefix)


def test_questions_are_about_what_is_shown(ask: Visit, server: str) -> None:
    """What if and Explanation? follow the shown run and the beginning that was chosen, which can be taken back."""
    page = ask(server, "&with=conv&prefix=blue")
    search = page.locator("#search .problem", has_text="begins with")
    search.wait_for()
    for section in ("#whatif", "#explain"):
        assert "Model: bahdanau additive gru (learnt)" in page.locator(section).inner_text()
        assert "blue" in page.locator(section).locator("bdi").first.inner_text()
    page.get_by_role("button", name="Compare attention with gradient and erasure").click()
    page.locator("#explain .matrix tbody th", has_text="blue").first.wait_for()
    page.get_by_label("Shown run").select_option("1")
    page.locator("#whatif strong", has_text="conv").wait_for()
    assert "Model: conv additive (conv)" in page.locator("#explain").inner_text()
    search.get_by_role("button", name="Undo").click()
    search.wait_for(state="detached")
    assert "prefix=" not in page.url


def test_enter_translates_and_a_beginning_does_not_outlive_its_sentence(ask: Visit, server: str) -> None:
    page = ask(server, "&prefix=blue")
    box = page.get_by_label("Text to translate")
    box.fill("rot vier\n")
    box.press("Enter")
    page.locator("#sentence .sentence").first.get_by_role("button", name="vier").wait_for()
    assert page.get_by_label("Translation begins with").first.input_value() == ""
    box.fill("rot\nvier")
    box.press("Enter")
    page.locator("#translate .problem", has_text="Write one sentence, without a line break.").wait_for()
    page.go_back()
    page.locator("#sentence .sentence").first.get_by_role("button", name="vier").wait_for(state="detached")
    assert page.get_by_label("Translation begins with").first.input_value() == "blue"


def test_the_controls_say_what_the_address_says(ask: Visit, server: str) -> None:
    page = ask(server)
    page.get_by_label("Text to translate").fill("rot vier")
    page.get_by_label("Text to translate").press("Enter")
    model, other, beam = (page.get_by_label(name).first for name in ("Model", "Compare with", "Beam size"))
    assert other.input_value() == "conv"
    page.get_by_label("Model").first.select_option("transformer")
    page.locator("#about", has_text="transformer").wait_for()
    assert (model.input_value(), other.input_value()) == ("transformer", "learnt"), "never beside itself"
    beam.fill("2")
    beam.press("Tab")
    page.locator("#translate .status", has_text="Translated in").wait_for()
    page.locator("#whatif").get_by_label("Source").fill("vier rot")
    page.locator("#alignment").get_by_label("Head", exact=True).select_option("1.1")
    assert page.locator("#whatif").get_by_label("Source").input_value() == "vier rot", "what is not sent stays"
    page.go_back()
    page.locator("#about", has_text="learnt").wait_for()
    assert (model.input_value(), other.input_value(), beam.input_value()) == ("learnt", "conv", "")


def test_a_weight_leads_to_what_if(ask: Visit, server: str) -> None:
    """One click from a weight to what the step would say without the others, of whichever model is shown."""
    page = ask(server, "&with=transformer")
    box = page.locator("#whatif")
    page.locator("#alignment td.cell[data-row='1'][data-column='2']").click()
    page.get_by_role("button", name="What if “red” looked only at “haus”?").click()
    said = box.locator("details[open]", has_text="looking only at “haus”,")
    said.wait_for()
    assert "Model: bahdanau additive gru (learnt)" in box.inner_text()
    assert page.evaluate("document.activeElement.id") == "whatif-title"
    assert box.get_by_label("to look at").input_value() == "2"
    page.get_by_label("Shown run").select_option("1")
    box.locator("strong", has_text="transformer").wait_for()
    said.wait_for()
    page.go_back()
    box.locator("details").first.wait_for(state="detached")
    assert box.get_by_label("Pin step").input_value() == ""
    page = ask(server, "&nbest=2&hypothesis=1")
    page.locator("#why .stages, #why .note").first.wait_for()
    assert page.locator("#why").get_by_role("button", name="What if").count() == 0, "What if is of the first"


def test_a_sentence_of_the_evaluation_is_found_and_opened(ask: Visit, server: str) -> None:
    page = ask(server)
    corpus = page.locator("#corpus")
    corpus.get_by_role("button", name="entropy").focus()
    page.keyboard.press("Enter")
    shown = [float(cell) for cell in corpus.locator("tbody tr td:nth-child(5)").all_inner_texts()]
    assert shown == sorted(shown)
    assert len(set(shown)) > 1
    corpus.get_by_role("button", name="Open line 2", exact=True).click()
    page.locator("#sentence .reference").wait_for()
    source = corpus.locator("tbody tr", has=page.get_by_role("button", name="Open line 2", exact=True))
    assert page.locator("#sentence .sentence").first.inner_text() in source.inner_text()
    page.get_by_label("Shown run").select_option(label="reference, bahdanau additive gru (learnt)")
    assert said(page) in page.locator("#sentence .reference").inner_text()
    assert page.locator("#about").inner_text().startswith("bahdanau additive gru (learnt): German → English · BLEU ")
    page.get_by_label("Model").select_option("conv")
    corpus.get_by_text("has not been evaluated").wait_for()
    assert re.fullmatch(r"python -m nmt.evaluate run=/\S+/conv", corpus.locator("code").inner_text())
    assert (
        page.locator("#about")
        .inner_text()
        .startswith("conv additive (conv): German → English · not evaluated yet; valid")
    )


def test_a_link_of_the_contents_leaves_the_address(ask: Visit, server: str) -> None:
    page = ask(server, "&view=links")
    page.get_by_role("navigation").get_by_role("link", name="Search").click()
    assert page.evaluate("document.activeElement.id") == "search-title"
    assert "view=links" in page.url
