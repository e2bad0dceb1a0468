"""Terms, corrections, the memory and files on the page; run by hand with `-m browser`."""

import shutil
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.viewer.conftest import SIZES, TIMEOUT, Visit, barriers, begin, said

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def folder(runs: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of a run, because corrections are kept in it."""
    return Path(shutil.copytree(runs / "learnt", tmp_path_factory.mktemp("kept") / "learnt"))


@pytest.fixture(scope="module")
def office(folder: Path) -> Iterator[str]:
    """The address of a server whose memory is what the page keeps."""
    program, address = begin(folder, folder, "memory=corrections.tmx")
    with program:
        yield address
        program.send_signal(signal.SIGTERM)
        assert program.wait(TIMEOUT) == 0


def test_a_correction_is_kept_by_a_click_and_answers(visit: Visit, office: str, folder: Path) -> None:
    shows = "#yours:not([hidden])"
    page = visit(f"{office}#text=drei rot haus", shows=shows)
    own = said(page)
    box = page.get_by_label("Correct the translation")
    assert box.input_value() == own
    box.fill("THREE <b> & red")
    box.press("Tab")
    assert not (folder / "corrections.tmx").exists(), "nothing is kept without a click"
    page.keyboard.press("Enter")
    page.locator("#yours .status", has_text="Kept in").wait_for()
    assert "THREE &lt;b&gt; &amp; red" in (folder / "corrections.tmx").read_text("utf-8")
    page.reload()
    page.locator("#yours .lead", has_text="comes from the memory").wait_for()
    assert said(page) == "THREE <b> & red"
    assert page.locator("#whatif").is_hidden(), "its baseline would be another translation"
    page.get_by_role("button", name="Show the model’s own").press("Enter")
    page.locator("#yours .lead", has_text="is not asked").wait_for()
    page.locator("#sentence").get_by_role("button", name=own.split()[0], exact=True).wait_for()
    assert said(page) == own
    page = visit(f"{office}#text=vier rot haus", shows=shows)
    page.get_by_role("button", name="Use this").click()
    assert page.get_by_label("Correct the translation").input_value() == "THREE <b> & red"
    assert page.evaluate("document.activeElement.tagName") == "TEXTAREA"


def test_terms_are_obeyed_and_listed(visit: Visit, office: str) -> None:
    page = visit(f"{office}#text=zwei blau {{0}}", shows="#yours:not([hidden])")
    page.locator("summary", has_text="Terms and what to keep").press("Enter")
    page.get_by_label("One term a line").fill("zwei = seven | eight\nfünf")
    page.get_by_role("button", name="Translate", exact=True).click()
    page.locator("#translate .problem", has_text="Terms, line 2").wait_for()
    page.get_by_label("One term a line").fill("zwei = seven | eight\n# five")
    page.get_by_label("Keep placeholders").check()
    page.get_by_role("button", name="Translate", exact=True).click()
    terms = page.get_by_role("list", name="Terms in this sentence").get_by_role("listitem")
    terms.nth(1).wait_for()
    first, second = terms.all_inner_texts()
    assert first in ("“zwei” is translated as “seven”.", "“zwei” is translated as “eight”.")
    assert second == "“{0}” stays as it is."
    assert "{0}" in said(page)
    page.reload()
    terms.nth(1).wait_for()
    assert page.get_by_label("One term a line").input_value() == "zwei = seven | eight\n# five"


def test_a_file_is_dropped_and_comes_back(visit: Visit, office: str, tmp_path: Path) -> None:
    page = visit(office, shows="#yours:not([hidden])")
    page.locator("summary", has_text="Translate a file").click()
    page.get_by_role("button", name="Translate the file").click()
    page.locator("#translate .problem", has_text="Choose one file").wait_for()
    (tmp_path / "page ü.html").write_text("<p>eins <b>zwei</b></p>", "utf-8")
    page.get_by_label("Choose a document").set_input_files(tmp_path / "page ü.html")
    page.get_by_role("button", name="Translate the file").press("Enter")
    link = page.locator("#translate .status a", has_text="page ü.en.html")
    link.wait_for()
    with page.expect_download() as waiting:
        link.press("Enter")
    assert waiting.value.suggested_filename == "page ü.en.html"
    written = Path(waiting.value.path()).read_text("utf-8")
    assert (written.count("<b>"), written.startswith("<p>"), "one" in written) == (1, True, True)
    page.evaluate(
        """() => {
          const data = new DataTransfer();
          data.items.add(new File(["<p>drei</p>"], "a.html"));
          const event = new DragEvent("drop", { dataTransfer: data, cancelable: true });
          document.querySelector(".drop").dispatchEvent(event);
        }"""
    )
    page.locator("#translate .status a", has_text="a.en.html").wait_for()


@pytest.mark.parametrize("size", SIZES)
def test_nobody_meets_a_barrier(visit: Visit, office: str, size: str) -> None:
    page = visit(f"{office}#text=drei rot&terms=drei = 3&keep=numbers", *SIZES[size], shows="#yours:not([hidden])")
    page.locator("summary", has_text="Translate a file").click()
    assert barriers(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
