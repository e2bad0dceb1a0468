"""HTML: what is translated, and that the rest stays as it is."""

import html
import random
import re
from collections.abc import Callable
from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.tag_projection import LinkedText
from nmt.serve.passages import join_passages, split_passages
from nmt.text.html_text import split_markup

SIGNS = st.lists(
    st.sampled_from(
        ["<", ">", "</", "/>", "<!--", "-->", "<!", "<?", "<p", "<b>", "</b>", "<code>", "</code>", "<script>", "=",
         '"', "</script", "'", " class=", "mention", " translate=no", "&", "&amp;", "&#", "9", ";", "<![CDATA[", "]]>",
         "a", " ", "\n", "<br>", "<i>", "</i>", "</p>"]
    ),
    max_size=40,
).map("".join)  # fmt: skip
#: A mention and a link, as Mastodon writes them.
POST = (
    '<p><span class="h-card"><a href="https://m.example/@ann" class="u-url mention">@<span>ann</span></a></span> {} '
    '<a href="https://x.example/y"><span class="invisible">https://</span><span class="">{}</span></a></p>'
)


def in_order(text: str) -> LinkedText:
    """A translation of the same words in upper case."""
    return LinkedText.same(text)._replace(target=text.upper())


def turned(text: str) -> LinkedText:
    """A translation with the words in the other order."""
    words = text.split()
    source = [match.span() for match in re.finditer(r"\S+", text)]
    target = " ".join(words[::-1]).upper()
    links = [(at, len(words) - 1 - at) for at in range(len(words))]
    return LinkedText.of_words(text, target, source, [match.span() for match in re.finditer(r"\S+", target)], links)


def translated(text: str, markup: bool = True, translate: Callable[[str], LinkedText] = in_order) -> str:
    """The text, with a translation of each sentence."""
    blocks = split_passages(text, "", markup, lines_only=False)
    sentences = [each.text for block in blocks for each in block.passages if each.translated]
    return join_passages(blocks, map(translate, sentences), markup)


@given(st.one_of(SIGNS, st.text(max_size=60)))
def test_the_parts_of_any_text_add_up_to_it(text: str) -> None:
    assert "".join(part.written for part in split_markup(text)) == text


def tags_of(text: str) -> list[str]:
    return sorted(part.written for part in split_markup(text) if part.kind != "text")


@given(st.one_of(SIGNS, st.text(max_size=60)))
def test_tags_stay_byte_for_byte_and_translations_add_none(text: str) -> None:
    def hostile(sentence: str) -> LinkedText:
        return LinkedText.of_words(sentence, "<script>&", [], [], None)

    for translate in (turned, hostile):
        assert tags_of(translated(text, translate=translate)) == tags_of(text)


@given(st.one_of(SIGNS, st.text(max_size=60)))
def test_a_translation_that_is_its_source_gives_the_markup_back(text: str) -> None:
    plain = "".join(html.unescape(translated(text, translate=LinkedText.same)).split())
    assert plain == "".join(html.unescape(text).split())


class Strict(HTMLParser):
    """Reads markup whose inline tags must be well nested within each block; `log` has the tags and their depth."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.around: list[str] = []
        self.pairs: list[tuple[str, ...]] = []
        self.feed(text)
        self.close()
        assert self.around == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        name = " ".join([tag, *(f"{key}={value}" for key, value in attrs)])
        self.pairs.append((*self.around, name))
        if tag not in ("br", "img", "wbr"):
            self.around.append(name)

    def handle_endtag(self, tag: str) -> None:
        assert self.around.pop().split()[0] == tag


def random_html(generator: random.Random, depth: int = 0) -> str:
    """Well-formed HTML: words, signs, blocks, pairs and lone tags, each with a number of its own."""
    parts = []
    for _ in range(generator.randint(0, 5)):
        number = generator.randint(0, 10**9)
        kind = generator.random()
        space = generator.choice(["", "", " ", "\n "])
        if kind < 0.55 or depth > 3:
            parts.append(generator.choice(["ein", "Hund", "x1", "schläft.", "&amp;", "&lt;b&gt;", ",", "(so)", "H2O"]))
        elif kind < 0.7:
            parts.append(generator.choice([f"<br id={number}>", f"<img src='{number}'>", f"<wbr id={number}>"]))
        else:
            name = generator.choice(["b", "i", "a", "span", "code", "sub", "p", "div", "x-y"])
            inside = random_html(generator, depth + 1)
            parts.append(f"<{name} id={number}>{inside}</{name}>")
        parts.append(space)
    return "".join(parts)


@given(st.integers(0, 10**9))
def test_html_comes_back_well_formed_with_every_tag_in_its_pair(seed: int) -> None:
    text = random_html(random.Random(seed))
    for translate in (in_order, turned):
        assert sorted(Strict(translated(text, translate=translate)).pairs) == sorted(Strict(text).pairs)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<p>one</p>", "<p>ONE</p>"),
        ("<p>One. two <b>three</b>, four.</p>\n<p>Five</p>", "<p>ONE. TWO <b>THREE</b>, FOUR.</p>\n<p>FIVE</p>"),
        ('<a title="x > y" href=\'b">\'>link</a>', '<a title="x > y" href=\'b">\'>LINK</a>'),
        ("<p title=it's>text</p>", "<p title=it's>TEXT</p>"),
        ("<P\nCLASS=x >a<BR/>b</P>", "<P\nCLASS=x >A<BR/>B</P>"),
        ("a<!-- one <b> -->b", "A<!-- one <b> -->B"),
        ("<!DOCTYPE html><?php one ?>a", "<!DOCTYPE html><?php one ?>A"),
        ("<script>if (a<b) '<p>one</p>'</script>a", "<script>if (a<b) '<p>one</p>'</script>A"),
        ("<style>p > a {}</style>a", "<style>p > a {}</style>A"),
        ("<code>one <b>two</b></code> a <kbd>x</kbd>", "<code>one <b>two</b></code> A <kbd>x</kbd>"),
        ('<p translate="no">one<p>two</p></p>a', '<p translate="no">one<p>two</p></p>A'),
        ("<span class='x notranslate'>one</span>a", "<span class='x notranslate'>one</span>A"),
        ('<img class="mention">a', '<img class="mention">A'),
        ("one &amp; two &lt;b&gt;", "ONE &amp; TWO &lt;B&gt;"),
        ("<li>&nbsp;•&nbsp;</li>", "<li>&nbsp;•&nbsp;</li>"),
        ("&copy; &mdash;<hr>", "&copy; &mdash;<hr>"),
        ("1 < 2", "1 &lt; 2"),
        ("caf&eacute;", "CAFÉ"),
        ("a <b unclosed", "A <b unclosed"),
        ("one</p>", "ONE</p>"),
        (POST.format("hi", "x.example"), POST.format("HI", "X.EXAMPLE")),
    ],
)
def test_what_is_translated(given: str, expected: str) -> None:
    assert translated(given) == expected


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("<p>one <b>two</b> three</p>", "<p>THREE <b>TWO</b> ONE</p>"),
        ("one <a href=x>two <i>three</i></a> four", "FOUR <a href=x><i>THREE</i> TWO</a> ONE"),
        ("<b>one two</b>", "<b>TWO ONE</b>"),  # around all of the text
        ("one <b>two<div>three four</div></b>", "ONE <b>TWO<div>FOUR THREE</div></b>"),  # no pair in one sentence
        ("one <b>two <i>three</b> four</i> five", "ONE <b>TWO <i>THREE</b> FOUR</i> FIVE"),  # not nested
        ("one <code>x()</code> two <img src=x>three four", "FOUR <img src=x>THREE <code>x()</code> TWO ONE"),
        ("one two<br>three", "THREE TWO<br>ONE"),  # a small letter goes on
        ("one two<br>Three four", "TWO ONE<br>FOUR THREE"),
        ("one two<br><br>three", "TWO ONE<br><br>THREE"),
        ("one <b>two.</b> <i>Three</i> four", "<b>TWO.</b> ONE FOUR <i>THREE</i>"),
        ("one <b>two. Three</b> four", "<b>TWO. ONE FOUR THREE</b>"),
        ("<g id='1'>one</g> two<x id='2'/>", "TWO <g id='1'>ONE</g><x id='2'/>"),
        ("one <!-- two --> three four", "ONE <!-- two --> FOUR THREE"),
        ("caf&eacute; <b>&lt;x&gt;</b> one", "ONE <b>&lt;X&gt;</b> CAFÉ"),
        ("one <i> </i> two three", "THREE <i> </i> TWO ONE"),
    ],
)
def test_tags_follow_their_words(given: str, expected: str) -> None:
    assert translated(given, translate=turned) == expected


def test_white_space_of_html_is_one_space_but_in_pre() -> None:
    markup = "<p>\n eins <b>zwei\n drei</b>\nvier </p> <pre>eins\n  zwei</pre>\n<p>fünf\tsechs</p>"
    markup += "<pre translate=no>x</pre>a\nb"
    blocks = split_passages(markup, "de", True, False)
    texts = [each.text for block in blocks for each in block.passages if each.translated]
    assert texts == ["eins zwei drei vier", "eins", "zwei", "fünf sechs", "a b"]


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_plain_text_is_not_read_as_markup(text: str) -> None:
    plain = translated(html.escape(text), markup=False)
    assert plain.replace(" ", "") == html.escape(text).upper().replace(" ", "")


@pytest.mark.parametrize(
    "unit",
    ["<", "<a", "<a ", "<a='", "<a=\"<b='x\" y'", "<!--", "<![CDATA[", "<?", "</", "&", "<code>", "<b>x", "<br>", "<b>",
     "</b>", "x<br>y", "<b>x</b> ", "<b></b>"],
)  # fmt: skip
def test_long_markup_takes_linear_time(unit: str) -> None:
    """A quadratic step would take hours."""
    text = unit * 100_000
    assert sum(len(part.written) for part in split_markup(text)) == len(text)


@pytest.mark.long
@pytest.mark.parametrize("unit", ["<b>x</b> ", "<b>x", "x<br>y", "<b><img></b> x", "x. <b>y.</b> ", "<b><i>x</i> "])
def test_many_tags_take_linear_time(unit: str) -> None:
    """A quadratic step would take an hour."""
    text = unit * 20_000
    assert len(translated(text, translate=LinkedText.same)) >= len(text)
