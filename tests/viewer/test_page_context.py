"""The page with the sentences before a text, in a real Chromium; run by hand with `-m browser`."""

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.small import SMALL, call
from tests.viewer.conftest import TIMEOUT, Visit, begin

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An untrained run that sees two sentences before the source, and its evaluation."""
    folder = tmp_path_factory.mktemp("context")
    line = [*SMALL, "data=documents", "context.sentences=2", "name=x", f"checkpoints={folder}", "trainer.steps=1"]
    line += [f"cache={folder / 'cache'}", "data.train_documents=26", "data.valid_documents=2", "data.test_documents=2"]
    assert call("train", *line) == 0
    assert call("evaluate", f"run={folder / 'x'}", "pictures=0", "device=cpu", "threads=1") == 0
    return Path(folder / "x")


@pytest.fixture(scope="module")
def address(run: Path, request: pytest.FixtureRequest) -> Iterator[str]:
    """A server with the page of this kind."""
    program, found = begin(run, run.parent, f"page={request.param}")
    with program:
        yield found
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0


@pytest.mark.parametrize("address", ["plain"], indirect=True)
def test_the_lines_of_the_plain_page_are_one_document(visit: Visit, address: str) -> None:
    page = visit(f"{address}#text=12 feet%0A1 metre", shows="main form")
    with page.expect_request("**/v1/translate") as asked:
        page.get_by_role("button", name="Translate").click()
    assert asked.value.post_data_json["documents"] == "one"
    page.locator(".line").nth(1).wait_for()


@pytest.mark.parametrize("address", ["full"], indirect=True)
def test_the_sentences_before_a_text(ask: Visit, address: str) -> None:
    page = ask(address)
    assert page.locator("#alignment").get_by_label("Attention", exact=True).count() == 0
    page.get_by_label("Sentences before it, a line each").fill("12 feet\n\n1 metre")
    page.get_by_label("Text to translate").fill("9′")
    page.keyboard.press("Control+Enter")
    page.locator("#sentence .sentence", has_text="1 metre").wait_for()
    before = page.locator("#sentence .sentence").all_inner_texts()
    assert before[:3] == ["12 feet", "1 metre", "9′"]
    page.locator("#alignment").get_by_label("Attention", exact=True).select_option("context")
    page.locator("#alignment thead th", has_text="feet").wait_for()
    headers = page.locator("#alignment thead th").all_inner_texts()
    assert [text for text in headers if text in ("12", "feet", "1", "metre")] == ["12", "feet", "1", "metre"]
    whatif = page.locator("#whatif")
    whatif.get_by_label("What was said before, a line each").fill("3 hours")
    whatif.get_by_role("button", name="What if?").click()
    whatif.locator("summary", has_text="sentences before: 3 hours").wait_for()
    page.get_by_label("Units").select_option("pieces")
    whatif.get_by_label("Pin step").select_option("0")
    pinned = whatif.get_by_label("to look at").locator("option").count()
    assert pinned == page.locator("#why .stages tbody tr").count() > 6, "the pieces before are slots, too"
    last = whatif.get_by_label("to look at").locator("option").last.get_attribute("value")
    whatif.get_by_label("to look at").select_option(last)
    assert "while they are changed" in whatif.locator(".note[role=status]").inner_text()
    whatif.get_by_role("button", name="What if?").click()
    whatif.locator(".problem", has_text="while they are changed").wait_for()
    whatif.get_by_label("What was said before, a line each").fill("12 feet\n1 metre")
    assert "What if? pins" in whatif.locator(".note[role=status]").inner_text()
    whatif.get_by_role("button", name="Sweep the word").click()
    whatif.locator("td", has_text="(2 before)").first.wait_for()
    page.get_by_role("button", name="Compare attention with gradient and erasure").click()
    page.locator("#explain th", has_text="12 feet").wait_for()
    shown = page.locator("#why .stages tbody tr").count()
    page.get_by_label("Sentences before it, a line each").fill("")
    page.get_by_role("button", name="Translate", exact=True).click()
    page.locator("#sentence .sentence", has_text="1 metre").wait_for(state="detached")
    assert page.locator("#why .stages tbody tr").count() < shown, "the pieces before are rows of the stages, too"


@pytest.mark.parametrize("address", ["full"], indirect=True)
def test_a_sentence_of_the_evaluation_opens_with_those_before_it(ask: Visit, address: str) -> None:
    """So its translation is that of the evaluation."""
    page = ask(address)
    page.locator("#corpus").get_by_role("button", name="Open line 3", exact=True).click()
    page.locator("#sentence .reference").wait_for()
    lines = page.locator("#sentence .sentence").all_inner_texts()
    assert page.get_by_label("Sentences before it, a line each").input_value().split("\n") == lines[:2]
    assert page.get_by_label("Text to translate").input_value() == lines[2]
    page.get_by_role("button", name="Compare attention with gradient and erasure").click()
    page.locator("#explain th", has_text=lines[0]).first.wait_for()
    page.locator("#corpus").get_by_role("button", name="Open line 1", exact=True).click()
    page.locator("#sentence .dim.sentence").first.wait_for(state="detached")
    assert page.get_by_label("Sentences before it, a line each").input_value() == ""
