"""The viewer of a file in a real Chromium: used by mouse, keyboard and finger; wide, on a phone, and in the dark.

Run by hand with `-m browser`. The tests are skipped where Chromium or the extra `browser` is missing.
"""

import json
from pathlib import Path
from typing import Any

import pytest

from nmt.viewer import embed
from tests.viewer import documents
from tests.viewer.conftest import SIZES, Visit, barriers, saved

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A report of two runs with every section."""
    first = documents.dogs(stages=documents.stages())
    first["beam"] = documents.beam()
    doubt = {"confidence": [0.97, 0.31], "mean": 0.64, "weakest": 1, "doubtful": [1], "unattended": []}
    first["hypotheses"][0]["doubt"] = doubt
    for at, piece in enumerate(first["hypotheses"][0]["pieces"]):
        others = [{"text": piece["text"], "log_prob": -0.1, "rank": 1}, {"text": "▁cats", "log_prob": -2.0, "rank": 2}]
        piece.update(log_prob=-0.1 * (at + 1), forced=False, alternatives=others)
    heads = [[[0.5, 0.25, 0.0, 0.25], [0.0, 0.25, 0.5, 0.25], [0.0, 0.0, 0.0, 1.0]]] * 4
    dogs = documents.dogs()
    heads[2] = [[0.05, 0.7, 0.0, 0.25], [0.1, 0.4, 0.25, 0.25], [0.0, 0.0, 0.0, 1.0]]
    second = documents.document(dogs["source"], dogs["hypotheses"][0], heads, doubt=doubt)
    sides = [{"name": "one", "translation": first}, {"name": "two <b>", "translation": second}]
    sentences = [{"line": 1, "translations": sides, "reference": "two dogs"}]
    corpus = [{"line": 1, "source": "Zwei Hunde", "translation": "two dogs", "reference": "two dogs", "chrf": 100.0}]
    for line, text in enumerate(documents.HOSTILE, 2):
        sentences.append({
            "line": line, "translations": [{"name": text, "translation": documents.hostile(text)}], "reference": text
        })  # fmt: skip
        corpus.append({"line": line, "source": text, "translation": text, "reference": text, "chrf": float(line)})
    body = f"<main><h1>Report</h1>\n{embed.viewer('v', {'sentences': sentences, 'corpus': corpus})}</main>"
    path = tmp_path_factory.mktemp("viewer") / "report.html"
    path.write_text(embed.page("Report", body), encoding="utf-8")
    return path.as_uri()


def texts(page: Any, selector: str) -> list[str]:
    found: list[str] = page.locator(selector).all_inner_texts()
    return found


def test_words_light_their_partners_by_pointer_focus_and_tap(visit: Visit, file: str) -> None:
    page = visit(file, touch=True)
    dogs = page.locator("#v-sentence .sentence").nth(1).get_by_role("button", name="dogs")
    status = page.locator("#v-sentence .status")
    for act, end in ((dogs.hover, lambda: page.mouse.move(0, 0)), (dogs.focus, dogs.blur)):
        act()
        assert "“dogs” looks at “Hunde” 63 %, “Zwei” 25 %" in status.inner_text()
        assert texts(page, "#v-sentence .partner") == ["Hunde", "Zwei"][::-1]
        end()
        assert "Point at a word" in status.inner_text()
    dogs.tap()
    page.locator("h1").tap()
    assert "“dogs” looks at" in status.inner_text(), "a tap stays"


def test_doubtful_words_are_marked_and_named(visit: Visit, file: str) -> None:
    page = visit(file)
    assert texts(page, "#v-sentence button.doubtful") == ["dogs"]
    title = page.locator("#v-sentence button.doubtful").get_attribute("title")
    assert title == "confidence 0.31: more likely wrong than right"
    assert page.locator("#v-sentence .sentences .note").inner_text() == (
        "Confidence: mean 0.64, lowest 0.31 at “dogs”. Wavy words are more likely wrong than right: “dogs”."
    )


def test_words_without_attention_are_those_of_the_chosen_head(visit: Visit, file: str) -> None:
    page = visit(f"{file}#run=1")
    note = page.locator("#v-sentence .sentences .note")
    assert "Dotted" not in note.inner_text(), "of the mean of layer 1"
    page.locator("#v-alignment").get_by_label("Head", exact=True).select_option("2.1")
    assert texts(page, "#v-sentence button.unattended") == ["Zwei"]
    dotted = "Dotted words got hardly any attention (layer 2, head 1), </s> not counted: “Zwei”."
    assert dotted in note.inner_text()
    page.locator("#v-alignment").get_by_label("Head", exact=True).select_option("mean")
    assert texts(page, "#v-sentence button.unattended") == []


def test_the_keyboard_walks_words_matrix_links_and_tree(visit: Visit, file: str) -> None:
    page = visit(file)
    page.locator("#v-sentence .sentence button").first.focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.textContent") == "Hunde"
    assert "“Hunde” is looked at by “dogs” 63 %" in page.locator("#v-sentence .status").inner_text()
    grid = page.locator("#v-alignment [role=grid]")
    assert grid.locator("td[tabindex='0']").count() == 1, "one tab stop"
    grid.locator("td[tabindex='0']").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.getAttribute('aria-label')") == "dogs from Hunde, 63 %"
    assert "“dogs” takes 63 % of its attention from “Hunde”" in page.locator("#v-alignment .status").inner_text()
    page.locator("#v-alignment").get_by_label("View").select_option("links")
    page.locator("#v-alignment svg g[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    assert "“two” looks at “Zwei” 75 %" in page.locator("#v-alignment .status").inner_text()
    page.locator("#v-search [role=treeitem][tabindex='0']").focus()
    for key in ("ArrowRight", "ArrowDown", "ArrowUp", "ArrowRight"):
        page.keyboard.press(key)
    assert "▁two ▁dogs : ▁dogs, 82 %, sum −0.30" in page.locator("#v-search .status").inner_text()


def test_a_weight_is_derived(visit: Visit, file: str) -> None:
    page = visit(file)
    why = page.locator("#v-why")
    why.get_by_label("Target piece").select_option("1")
    why.get_by_role("button", name="▁Zwei").click()
    lines = texts(page, "#v-why .derivation li")
    assert lines[0] == "Energy: e(2,1) = 0.000."
    assert lines[2].startswith("Window’s factor: 0.250 × 0.500 = 0.125.")
    assert "local_p, centre 2.00 (counted from 1), radius 1, σ 0.50" in why.inner_text()
    assert why.locator("svg polyline").count() == 1, "the Gaussian"
    assert page.evaluate("document.activeElement.tagName") == "BUTTON", "the focus stays"


def test_two_runs_and_their_difference(visit: Visit, file: str) -> None:
    page = visit(file)
    panels = page.locator("#v-beside figure")
    assert panels.count() == 3
    assert panels.nth(2).get_by_label("two from Zwei, +25 %").inner_text() == "+25"
    page.get_by_label("Shown run").select_option("1")
    page.get_by_label("Head", exact=True).select_option("2.2")
    assert page.locator("#v-alignment [aria-label='dogs from Hunde, 75 %']").count() == 1


def test_the_address_holds_what_is_chosen(visit: Visit, file: str) -> None:
    page = visit(file)
    page.get_by_label("View").select_option("list")
    page.get_by_label("Units").select_option("pieces")
    page.reload()
    assert page.get_by_label("View").input_value() == "list"
    assert texts(page, "#v-alignment .list tbody td:first-child") == ["▁two", "▁dogs", "</s>"]


def test_every_figure_is_saved(visit: Visit, file: str) -> None:
    for section in ("alignment", "why", "search", "beside", "corpus"):
        page = visit(f"{file}#view=links")  # Chromium asks before an eleventh file of one page
        svg = saved(page, f"#v-{section}", "SVG").decode()
        assert svg.startswith("<svg")
        assert 'xmlns="http://www.w3.org/2000/svg"' in svg
        assert saved(page, f"#v-{section}", "PNG").startswith(b"\x89PNG")
        json.loads(saved(page, f"#v-{section}", "JSON"))
    page = visit(file)
    assert saved(page, "#v-alignment", "Pharaoh") == b"0-0 1-1\n"
    assert len(json.loads(saved(page, "#v-corpus", "JSON"))) == 6
    page.locator("#v-corpus").get_by_role("button", name="chrF").click()
    picture = saved(page, "#v-corpus", "SVG").decode()
    assert "6 sentences, sorted by chrF, smallest first" in picture
    assert picture.index("alone") < picture.index("سلام دنیا") < picture.index("Zwei Hunde")


@pytest.mark.parametrize("line", range(2, 2 + len(documents.HOSTILE)))
def test_text_of_a_corpus_is_shown_and_never_run(visit: Visit, file: str, line: int) -> None:
    page = visit(f"{file}#line={line}")
    text = documents.HOSTILE[line - 2]
    for control, shown in (("\x1b", "␛"), ("\x07", "␇"), ("\u202e", "[U+202E]"), ("\u202c", "[U+202C]")):
        text = text.replace(control, shown)
    assert page.title() == "Report"
    assert page.locator("img").count() == 0
    assert page.locator("script").count() == 2, "the data and the viewer"
    spoken = page.locator("#v-sentence .sentence").first
    words = [word if not word.startswith("\u0301") else f"\u25cc{word}" for word in text.split()]
    assert spoken.locator("button").all_inner_texts() == words
    assert spoken.get_attribute("dir") == ("rtl" if line == 6 else "ltr")
    assert text in page.locator("#v-corpus").inner_text()


def test_the_corpus_is_sorted_filtered_and_opened(visit: Visit, file: str) -> None:
    page = visit(file)
    corpus = page.locator("#v-corpus")
    corpus.get_by_role("button", name="chrF").click()
    assert texts(page, "#v-corpus tbody td:first-child")[:2] == ["2", "3"]
    corpus.get_by_role("button", name="chrF").click()
    assert texts(page, "#v-corpus tbody td:first-child")[:2] == ["1", "6"]
    corpus.get_by_label("Find text").fill("سلام")
    page.keyboard.press("Enter")
    assert texts(page, "#v-corpus tbody td:first-child") == ["6"]
    corpus.get_by_role("button", name="Open line 6").click()
    assert page.locator("#v-sentence .sentence").first.inner_text() == "سلام دنیا"
    assert "line=6" in page.url


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("view", ["matrix", "links", "list"])
def test_nothing_is_cut_off_and_no_barrier_is_found(visit: Visit, file: str, size: str, view: str) -> None:
    width, scheme = SIZES[size]
    page = visit(f"{file}#view={view}", width, scheme)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    for box in page.locator(".wide").all():
        assert box.bounding_box()["width"] <= width
    assert barriers(page) == []


def test_all_heads_are_a_grid_that_leads_to_each(visit: Visit, file: str) -> None:
    page = visit(file)
    page.get_by_label("Shown run").select_option("1")
    alignment = page.locator("#v-alignment")
    alignment.get_by_label("View").select_option("heads")
    heads = alignment.locator("svg.heads g[data-head]")
    assert [each.get_attribute("data-head") for each in heads.all()] == ["1.1", "1.2", "2.1", "2.2"]
    assert heads.first.get_attribute("aria-label") == "layer 1, head 1: “dogs” at “Hunde” 75 %, “two” at “Zwei” 50 %"
    page.locator("#v-sentence .sentence").nth(1).get_by_role("button", name="dogs").hover()
    assert alignment.locator(".cross-row[visibility=visible]").count() == 4, "a word is framed in all of them"
    alignment.get_by_label("Heads of").select_option("2")
    assert heads.count() == 2
    page.mouse.move(0, 0)
    heads.first.focus()
    page.keyboard.press("ArrowRight")
    assert "layer 2, head 2" in alignment.locator(".status").inner_text()
    assert barriers(page) == []
    assert b"<svg" in saved(page, "#v-alignment", "SVG")
    heads.nth(1).focus()
    page.keyboard.press("Enter")
    assert alignment.get_by_label("Head", exact=True).input_value() == "2.2"
    assert alignment.get_by_role("grid").count() == 1


def test_self_attention_says_which_side_asks_and_has_it_at_the_left(visit: Visit, tmp_path: Path) -> None:
    made = documents.dogs()
    own = {"heads": ["0"], "shape": [1, 4, 4], "data": [0.25] * 16, "bytes": None}
    made["hypotheses"][0]["weights"]["encoder"] = own
    data = {"sentences": [{"line": 1, "translations": [{"name": "one", "translation": made}], "reference": None}],
            "corpus": None}  # fmt: skip
    path = tmp_path / "own.html"
    path.write_text(embed.page("Own", f"<main><h1>Own</h1>{embed.viewer('v', data)}</main>"), encoding="utf-8")
    page = visit(path.as_uri())
    alignment = page.locator("#v-alignment")
    alignment.get_by_label("View").select_option("links")
    sides = {}
    for use in ("cross", "encoder"):
        alignment.get_by_label("Attention").select_option(use)
        row, column = (alignment.locator(f"svg g[data-{side}='0'] rect").bounding_box() for side in ("row", "column"))
        sides[use] = row["x"] < column["x"]
        label = {"cross": "target, asks", "encoder": "query, asks"}[use]
        assert alignment.locator("svg.links > text").all_text_contents().count(label) == 1
    assert sides == {"cross": False, "encoder": True}
    alignment.locator("svg g[data-row='0']").focus()
    page.keyboard.press("ArrowRight")
    assert page.evaluate("document.activeElement.dataset.column") == "0", "the keys are at the right"
    alignment.get_by_label("View").select_option("matrix")
    assert "query, asks ↓" in alignment.locator(".corner").inner_text()
