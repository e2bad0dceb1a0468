"""Blocks of a page: any text shows itself, and cells and points lead to sentences."""

import re
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.terminal import printable
from nmt.viewer.blocks import (
    Block,
    Heading,
    Lines,
    Linked,
    Picture,
    Scatter,
    Sentence,
    Sentences,
    Table,
    as_html,
    as_markdown,
)

CELLS = st.text(
    st.one_of(
        st.sampled_from("=@+-|_$%{}<>&~^#\\'`,\"*[ 1.("), st.characters(codec="utf-8", exclude_characters="\r\0")
    ),
    max_size=8,
)


@given(CELLS)
def test_html_shows_the_text_itself(text: str) -> None:
    page = as_html([Heading(text), Lines([text]), Table([text], [[text]]), Picture("p", b"", text)], text)
    shown: list[str] = []
    parser = HTMLParser()
    parser.handle_data = shown.append  # type: ignore[method-assign, assignment]
    parser.feed(page)
    wanted = printable(text).strip()
    read = "".join(shown)
    assert read.count(wanted) >= 5  # title, heading, paragraph, head and cell


def test_cells_and_points_lead_to_the_sentences_that_are_there() -> None:
    blocks: list[Block] = [
        Table(["a", "b"], [["x", Linked("12.5", [1, 2])], ["y", Linked("2", [2])], ["z", Linked("3", [9])]]),
        Scatter("chrF", ["<a>", "b"], [1, 9], [[0, 50], [100, 50]], (0, 1)),
        Sentences([Sentence(1, [("source", "<i>", "")]), Sentence(2, [("source", "b", "")])]),
    ]
    page = as_html(blocks, "t")
    assert '<details><summary>12.5</summary>line <a href="#line-1">1</a> <a href="#line-2">2</a></details>' in page
    assert '<td dir="auto"><a href="#line-2">2</a></td>' in page
    assert "#line-9" not in page, "no link leads nowhere"
    anchors = set(re.findall(r'href="#(line-\d+)"', page))
    assert anchors == set(re.findall(r'id="(line-\d+)"', page)) == {"line-1", "line-2"}
    assert page.count("<circle") == 2
    assert "application/json" not in page, "of two, there is nothing to choose"
    assert 'cx="34.0" cy="8.0"' in page, "0 is at the left, 100 at the top"
    assert "<i>" not in page
    assert "&lt;i&gt;" in page
    assert "<a>" not in page
    text = as_markdown(blocks, "t")
    assert "12.5" in text
    assert "circle" not in text


@pytest.mark.parametrize("columns", [3, 4])
def test_text_of_many_columns_breaks_at_words_only(columns: int) -> None:
    page = as_html([Table(["x"] * columns, [["y"] * columns], text=True)], "t")
    assert ('<table class="text texts">' in page) == (columns == 4)


def test_markdown_of_any_text_shows_the_text() -> None:
    table = Table(["a", "b"], [["![x](http://e/x.png) &lt; <b> a|b", "*one* _two_ local_p\rthree"]], text=True)
    written = as_markdown([table], "t").splitlines()[-1]
    assert written == r"| \!\[x\](http://e/x.png) &amp;lt; &lt;b> a\|b | \*one\* \_two\_ local_p three |"
