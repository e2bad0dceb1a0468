"""HTML: what is translated, and that the rest stays as it is."""

import html

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.serve.passages import join_passages, split_markup, split_passages

SIGNS = st.lists(
    st.sampled_from(
        ["<", ">", "</", "/>", "<!--", "-->", "<!", "<?", "<p", "<b>", "</b>", "<code>", "</code>", "<script>", "=",
         '"', "</script", "'", " class=", "mention", " translate=no", "&", "&amp;", "&#", "9", ";", "<![CDATA[", "]]>",
         "a", " ", "\n"]
    ),
    max_size=40,
).map("".join)  # fmt: skip
#: A mention and a link, as Mastodon writes them.
POST = (
    '<p><span class="h-card"><a href="https://m.example/@ann" class="u-url mention">@<span>ann</span></a></span> {} '
    '<a href="https://x.example/y"><span class="invisible">https://</span><span class="">{}</span></a></p>'
)


def upper(text: str, markup: bool = True) -> str:
    """The text, with upper-cased sentences for translations."""
    passages = split_passages(text, "", markup, lines_only=False)
    return join_passages(passages, iter([each.text.upper() for each in passages if each.translated]), markup)


@given(st.one_of(SIGNS, st.text(max_size=60)))
def test_the_parts_of_any_text_add_up_to_it(text: str) -> None:
    assert "".join(part for part, _ in split_markup(text)) == text


@given(st.one_of(SIGNS, st.text(max_size=60)))
def test_tags_stay_byte_for_byte_and_translations_add_none(text: str) -> None:
    kept = [part for part, is_text in split_markup(text) if part and not is_text]
    rest = upper(text)
    for part in kept:
        assert part in rest
        rest = rest.partition(part)[2]
    passages = split_passages(text, "", markup=True, lines_only=False)
    hostile = join_passages(passages, iter(["<script>&" for each in passages if each.translated]), markup=True)
    assert hostile.count("<script>") == sum(each.text.count("<script>") for each in passages if not each.translated)


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
def test_text_between_tags_is_translated(given: str, expected: str) -> None:
    assert upper(given) == expected


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=40))
def test_plain_text_is_not_read_as_markup(text: str) -> None:
    assert upper(html.escape(text), markup=False).replace(" ", "") == html.escape(text).upper().replace(" ", "")


@pytest.mark.parametrize(
    "unit", ["<", "<a", "<a ", "<a='", "<a=\"<b='x\" y'", "<!--", "<![CDATA[", "<?", "</", "&", "<code>"]
)
def test_long_markup_takes_linear_time(unit: str) -> None:
    """A quadratic step would take hours."""
    text = unit * 100_000
    assert sum(len(part) for part, _ in split_markup(text)) == len(text)
