"""The page of the server in a real Chromium, with a model that has learnt a small language.

Run by hand with `-m browser`. The tests are skipped where Chromium or an extra (`browser`, `serve`) is missing.
"""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from tests.pipeline.small import ROOT, environment
from tests.viewer.test_browser import SIZES, browser

__all__ = ["browser"]
pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        importlib.util.find_spec("nmt.serve") is None or importlib.util.find_spec("uvicorn") is None,
        reason="pip install 'nmt[serve]'",
    ),
]


class Opened:
    """The page with a sentence, and what a user would not see."""

    def __init__(
        self,
        browser: Any,
        address: str,
        chosen: str = "",
        width: int = 1200,
        scheme: str = "light",
        *,
        text: str = "drei rot haus",
    ) -> None:
        self.context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        self.page = self.context.new_page()
        self.page.set_default_timeout(120_000)
        self.problems: list[str] = []
        self.page.on("console", lambda message: self.problems.append(f"{message.type}: {message.text}"))
        self.page.on("pageerror", lambda error: self.problems.append(str(error)))
        self.page.on("request", lambda request: self._asked(request.url, address))
        self.page.goto(f"{address}#text={quote(text)}{chosen}" if text else f"{address}#{chosen}")
        self.page.wait_for_selector("#explain:not([hidden])")

    def _asked(self, url: str, address: str) -> None:
        if not url.startswith((address, "data:", "blob:")):
            self.problems.append(f"request to {url}")

    def said(self) -> str:
        return str(self.page.locator("#sentence .sentence").nth(1).inner_text())

    def close(self) -> None:
        self.context.close()
        assert self.problems == []


def downloaded(opened: Opened, section: str, form: str) -> bytes:
    """What the first button of this form saves in a section."""
    with opened.page.expect_download() as waiting:
        opened.page.locator(f"{section} .saving button", has_text=form).first.click()
    return Path(waiting.value.path()).read_bytes()


def test_which_source_word_made_this_word(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    assert opened.said() == "three red house"
    opened.page.locator("#sentence").get_by_role("button", name="house").focus()
    assert "“house” looks at “" in opened.page.locator("#sentence .status").inner_text()
    opened.close()


def test_the_page_opens_with_a_translated_sentence(browser: Any, server: str, runs: Path) -> None:
    """Of the evaluation, or of the validation set if there was no evaluation."""
    for model, split in (("transformer", "test"), ("conv", "valid")):
        opened = Opened(browser, server, f"model={model}", text="")
        source = opened.page.locator("#sentence .sentence").first.inner_text()
        settings = (runs / model / "config.yaml").read_text("utf-8")
        (folder,) = re.findall(rf"^  {split}: (.*)$", settings, re.MULTILINE)
        assert source in Path(f"{folder}.de").read_text("utf-8").splitlines()
        opened.close()


def test_a_sentence_is_written_and_translated_by_keyboard(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    opened.page.get_by_label("Text to translate").fill("eins <b> zwei")
    opened.page.keyboard.press("Control+Enter")
    opened.page.locator("#sentence .sentence").first.get_by_role("button", name="<b>").wait_for()
    assert "text=eins" in opened.page.url
    opened.close()


def test_what_would_the_model_say_if_it_looked_elsewhere(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    box = opened.page.locator("#whatif")
    source = box.get_by_label("Source")
    original = source.input_value()
    source.fill("drei blau haus")
    box.get_by_role("button", name="What if?").click()
    box.locator("details").first.wait_for()
    assert box.locator("del").all_inner_texts() == ["red"]
    assert box.locator("ins").all_inner_texts() == ["blue"]
    box.get_by_label("Pin step").select_option("0")
    box.get_by_role("button", name="Sweep the step").click()
    box.locator(".problem", has_text="A sweep is of the sentence and translation above").wait_for()
    source.fill(original)
    box.get_by_role("button", name="Sweep the step").click()
    box.locator("details").nth(1).wait_for()
    pieces = opened.page.locator("#why .stages tbody tr").count()
    assert box.locator("details").first.locator("tbody tr").count() == pieces
    for title in ("Probability at step 1", "Change of log-probability"):
        box.locator("details").first.evaluate("element => { element.open = true; }")
        assert title in downloaded(opened, "#whatif", "SVG").decode()
        assert downloaded(opened, "#whatif", "PNG").startswith(b"\x89PNG")
        box.locator("details").first.evaluate("element => element.remove()")
    opened.close()


def test_the_address_asks_what_if_again(browser: Any, server: str) -> None:
    """A link restores question and answer, and Back and Forward walk through what was asked."""
    opened = Opened(browser, server)
    page, box = opened.page, opened.page.locator("#whatif")
    box.get_by_label("Source").fill("drei blau haus")
    box.get_by_role("button", name="What if?").click()
    box.locator("ins", has_text="blue").wait_for()
    first = page.url
    box.get_by_label("Source").fill("drei rot haus")
    box.get_by_label("Translation begins with").fill("two")
    box.get_by_label("Pin step").select_option("1")
    box.get_by_label("to look only at").select_option("2")
    box.get_by_role("button", name="What if?").click()
    box.locator("details[open]", has_text="begins with: two, step 2, “red”, looks only at “haus”").wait_for()
    page.reload()
    box.locator("details[open]", has_text="begins with: two, step 2, “red”, looks only at “haus”").wait_for()
    labels = ("Source", "Translation begins with", "Pin step", "to look only at")
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
    opened.close()
    opened = Opened(browser, server, "&if=sweep&ifstep=1")
    opened.page.locator("#whatif details[open]", has_text="Sweep of step 2").wait_for()
    opened.close()


def test_the_address_asks_for_the_explanation_again(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    page = opened.page
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
    opened.close()


def test_a_score_is_derived_from_the_log_probability(browser: Any, server: str) -> None:
    opened = Opened(browser, server, "&nbest=3")
    rows = opened.page.locator("#search table").last.locator("tr").all()
    header, *hypotheses = [row.locator("th, td").all_inner_texts() for row in rows]
    assert header == ["", "text", "log-probability", "pieces", "÷ length penalty", "= score", ""]
    assert len(hypotheses) == 3
    for _, text, log_prob, pieces, penalty, score, _ in hypotheses:
        assert int(pieces) > len(text.split())
        assert float(penalty) == pytest.approx((5 + int(pieces)) / 6, abs=0.006)
        signed = [float(each.replace("−", "-")) for each in (log_prob, score)]
        assert signed[0] / float(penalty) == pytest.approx(signed[1], abs=0.02)
    opened.close()


def test_a_translation_continues_from_a_node_of_the_tree(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    tree = opened.page.locator("#search [role=tree]")
    tree.locator("[tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "Enter"):
        opened.page.keyboard.press(key)
    opened.page.locator("#search tbody td", has_text="given").first.wait_for()
    prefix = opened.page.get_by_label("Translation begins with").first.input_value()
    assert prefix
    assert opened.said().startswith(prefix)
    opened.close()


def test_questions_are_about_what_is_shown(browser: Any, server: str) -> None:
    """What if and Explanation? follow the shown run and the beginning that was chosen, which can be taken back."""
    opened = Opened(browser, server, "&with=conv&prefix=blue")
    page = opened.page
    search = page.locator("#search .problem", has_text="begins with")
    search.wait_for()
    for section in ("#whatif", "#explain"):
        assert "Model: learnt" in page.locator(section).inner_text()
        assert "blue" in page.locator(section).locator("bdi").first.inner_text()
    page.get_by_role("button", name="Compare attention with gradient and erasure").click()
    page.locator("#explain .matrix tbody th", has_text="blue").first.wait_for()
    page.get_by_label("Shown run").select_option("1")
    page.locator("#whatif strong", has_text="conv").wait_for()
    assert "Model: conv" in page.locator("#explain").inner_text()
    search.get_by_role("button", name="Undo").click()
    search.wait_for(state="detached")
    assert "prefix=" not in page.url
    opened.close()


def test_enter_translates_and_a_beginning_does_not_outlive_its_sentence(browser: Any, server: str) -> None:
    opened = Opened(browser, server, "&prefix=blue")
    box = opened.page.get_by_label("Text to translate")
    box.fill("rot vier\n")
    box.press("Enter")
    opened.page.locator("#sentence .sentence").first.get_by_role("button", name="vier").wait_for()
    assert opened.page.get_by_label("Translation begins with").first.input_value() == ""
    box.fill("rot\nvier")
    box.press("Enter")
    opened.page.locator("#translate .problem", has_text="Write one sentence, without a line break.").wait_for()
    opened.page.go_back()
    opened.page.locator("#sentence .sentence").first.get_by_role("button", name="vier").wait_for(state="detached")
    assert opened.page.get_by_label("Translation begins with").first.input_value() == "blue"
    opened.close()


def test_the_chosen_weight_is_explained(browser: Any, server: str) -> None:
    opened = Opened(browser, server, "&text=rot+vier")
    page = opened.page
    cell = page.locator("#alignment td.cell[data-row='1'][data-column='0']")
    cell.click()
    title = page.locator("#why h3").first
    name = cell.get_attribute("aria-label") or ""
    word, _, rest = name.partition(" from ")
    source = rest.partition(",")[0]
    page.wait_for_function("title => title.textContent.includes('for')", arg=title.element_handle())
    assert source[:2] in title.inner_text()
    assert word[:2] in title.inner_text()
    assert page.locator("#alignment td.cell.lit").count() >= 1, "what was chosen stays lit"
    opened.close()


def test_a_weight_leads_to_what_if(browser: Any, server: str) -> None:
    """One click from a weight to what the step would say without the others, of whichever model is shown."""
    opened = Opened(browser, server, "&with=transformer")
    page, box = opened.page, opened.page.locator("#whatif")
    page.locator("#alignment td.cell[data-row='1'][data-column='2']").click()
    page.get_by_role("button", name="What if “red” looked only at “haus”?").click()
    said = box.locator("details[open]", has_text="looking only at “haus”,")
    said.wait_for()
    assert "Model: learnt" in box.inner_text()
    assert page.evaluate("document.activeElement.id") == "whatif-title"
    assert box.get_by_label("to look only at").input_value() == "2"
    page.get_by_label("Shown run").select_option("1")
    box.locator("strong", has_text="transformer").wait_for()
    said.wait_for()
    page.go_back()
    box.locator("details").first.wait_for(state="detached")
    assert box.get_by_label("Pin step").input_value() == ""
    opened.close()
    opened = Opened(browser, server, "&nbest=2&hypothesis=1")
    opened.page.locator("#why .stages, #why .note").first.wait_for()
    assert opened.page.locator("#why").get_by_role("button", name="What if").count() == 0, "What if is of the first"
    opened.close()


def test_where_two_models_differ(browser: Any, server: str) -> None:
    opened = Opened(browser, server, "&with=conv")
    assert opened.page.locator("#beside figure").count() == 3
    assert "divergence" in opened.page.locator("#beside").inner_text()
    opened.close()


def test_attention_beside_gradients_and_erasure(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    opened.page.locator("#explain button").first.click()
    opened.page.locator("#explain .panels").wait_for()
    assert opened.page.locator("#explain [role=grid]").count() == 3
    assert "Spearman" in opened.page.locator("#explain").inner_text()
    links = downloaded(opened, "#explain", "Pharaoh").decode().split()
    assert len(links) == 3
    assert {int(link.partition("-")[0]) for link in links} <= {0, 1, 2}
    opened.close()


def test_a_sentence_of_the_evaluation_is_found_and_opened(browser: Any, server: str) -> None:
    opened = Opened(browser, server)
    corpus = opened.page.locator("#corpus")
    corpus.get_by_role("button", name="entropy").focus()
    opened.page.keyboard.press("Enter")
    shown = [float(cell) for cell in corpus.locator("tbody tr td:nth-child(5)").all_inner_texts()]
    assert shown == sorted(shown)
    assert len(set(shown)) > 1
    corpus.get_by_role("button", name="Open line 2", exact=True).click()
    opened.page.locator("#sentence .reference").wait_for()
    source = corpus.locator("tbody tr", has=opened.page.get_by_role("button", name="Open line 2", exact=True))
    assert opened.page.locator("#sentence .sentence").first.inner_text() in source.inner_text()
    opened.page.get_by_label("Shown run").select_option(label="reference, learnt")
    assert opened.said() in opened.page.locator("#sentence .reference").inner_text()
    assert opened.page.locator("#about").inner_text().startswith("learnt: German → English · BLEU ")
    opened.page.get_by_label("Model").select_option("conv")
    corpus.get_by_text("has not been evaluated").wait_for()
    assert opened.page.locator("#about").inner_text().startswith("conv: German → English · not evaluated yet; valid")
    opened.close()


def test_a_link_of_the_contents_leaves_the_address(browser: Any, server: str) -> None:
    opened = Opened(browser, server, "&view=links")
    opened.page.get_by_role("navigation").get_by_role("link", name="Search").click()
    assert opened.page.evaluate("document.activeElement.id") == "search-title"
    assert "view=links" in opened.page.url
    opened.close()


def test_the_script_takes_pictures_of_the_sections(browser: Any, server: str, tmp_path: Path) -> None:
    words = [f"folder={tmp_path}", "with=conv", f"address={server}", "text=drei rot haus"]
    command = [sys.executable, str(ROOT / "scripts" / "screenshots.py"), *words]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    names = [f"page-{name}.png" for name in ("alignment", "beside", "corpus", "sentence", "whatif", "why")]
    assert sorted(path.name for path in tmp_path.iterdir()) == names
    assert all(path.read_bytes().startswith(b"\x89PNG") for path in tmp_path.iterdir())
    command[-2] = "address=http://127.0.0.1:1/"
    nobody = subprocess.run(command, env=environment(), capture_output=True, text=True, check=False)
    assert nobody.returncode == 1
    assert nobody.stderr.count("\n") == 1, nobody.stderr


@pytest.mark.parametrize("size", SIZES)
def test_the_page_fits_and_has_no_barrier(browser: Any, server: str, size: str) -> None:
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="pip install 'nmt[browser]'")
    width, scheme = SIZES[size]
    opened = Opened(browser, server, "&with=conv", width, scheme)
    assert opened.page.evaluate("document.documentElement.scrollWidth") <= width
    found = axe.Axe().run(opened.page).response["violations"]
    assert [each["id"] for each in found if each["impact"] in ("serious", "critical")] == []
    opened.close()
