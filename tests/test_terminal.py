"""What a terminal gets: nothing that it obeys, and words with the numbers of their links."""

import html
import io
import re

import markdown as reader  # type: ignore[import-untyped]
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.links import has_colours, linked
from nmt.system.terminal import markdown, visible


class Terminal(io.TextIOWrapper):
    """A terminal of an encoding."""

    def __init__(self, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _of_colours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)


@given(st.text())
def test_nothing_is_obeyed(text: str) -> None:
    shown = visible(text)
    assert not any(ord(character) < 32 and character != "\t" for character in shown)
    assert not {*shown} & {*"\x1b\x7f\x9b\u202e\u2066"}
    assert visible(shown) == shown


def test_text_is_left_alone_and_escapes_are_seen() -> None:
    assert visible("a\té 数据 👩‍👩‍👧 שלום") == "a\té 数据 👩‍👩‍👧 שלום"
    assert visible("\x1b[2J\x9b\n\u202e") == "\\x1b[2J\\x9b\\n\\u202e"


def test_words_have_the_numbers_of_their_links() -> None:
    words = ["der", "rote", "Hund"], ["the", "red", "red", "dog", "!"]
    links = [(0, 0), (1, 1), (1, 2), (2, 3), (1, 3)]
    assert linked(*words, links, io.StringIO()) == ["der[1] rote[2] Hund[3]", "the[1] red[2] red[2] dog[2,3] !"]
    assert linked(["a\x1b"], ["b"], [], io.StringIO()) == ["a\\x1b", "b"]
    assert linked([], [], [], io.StringIO()) == ["", ""]


def test_a_terminal_gets_colours_unless_it_wants_none(monkeypatch: pytest.MonkeyPatch) -> None:
    words = ["a", "b"], ["c"]
    assert linked(*words, [(1, 0)], Terminal()) == ["a \x1b[33mb²\x1b[0m", "\x1b[33mc²\x1b[0m"]
    assert linked(*words, [(1, 0)], Terminal("ascii")) == ["a \x1b[33mb[2]\x1b[0m", "\x1b[33mc[2]\x1b[0m"]
    assert not has_colours(io.StringIO())
    monkeypatch.setenv("NO_COLOR", "1")
    assert linked(*words, [(1, 0)], Terminal()) == ["a b²", "c²"]
    monkeypatch.delenv("NO_COLOR")
    monkeypatch.setenv("TERM", "dumb")
    assert not has_colours(Terminal())


MARKDOWN = st.text(
    st.one_of(st.sampled_from("_*`$%{}<>|[]()#+-.!~\\&=1 a\"':@^/"), st.characters(codec="utf-8")), max_size=12
)


@given(MARKDOWN)
def test_markdown_shows_the_text_itself(text: str) -> None:
    """In a paragraph and in a cell of a table."""

    def shown(page: str) -> str:
        return " ".join(html.unescape(re.sub("<[^>]+>", "", page)).split())

    wanted = " ".join(visible(re.sub(r"\s", " ", text).strip()).split())
    assert shown(reader.markdown(markdown(text), extensions=["tables"])) == wanted
    table = reader.markdown(f"| a | b |\n|---|---|\n| x | {markdown(text)} |\n", extensions=["tables"])
    cells = re.findall("<td[^>]*>(.*?)</td>", table, re.DOTALL)
    assert [shown(cell) for cell in cells] == ["x", wanted]


def test_words_stay_readable_in_markdown() -> None:
    assert markdown("valid_bleu of a-b is 12.5, -0.3") == "valid_bleu of a-b is 12.5, -0.3"
