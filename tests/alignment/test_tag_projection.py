"""Tags put around linked words: worked by hand, and properties over random nestings, texts and links."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.alignment.tag_projection import LinkedText, project
from nmt.text.spans import Span
from nmt.text.tags import Segment, Tag, nested

WORD = st.sampled_from(["ein", "Hund", "H2O", "Hund1", "(so)", "schläft.", "–", "U.S.", "हिन्दी", "x-y", "don't,"])


def spans(text: str) -> list[Span]:
    return [match.span() for match in re.finditer(r"\S+", text)]


def linked(source: str, target: str, links: str) -> LinkedText:
    """Two texts with links in Pharaoh format, or "" for links in the order of the words."""
    pairs = [tuple(map(int, link.split("-"))) for link in links.split()]
    found = [(one, other) for one, other in pairs] if links else None
    return LinkedText.of_words(source, target, spans(source), spans(target), found)


def tagged(written: str) -> Segment:
    """A segment from a text with tags such as <b> and </b>; <br> is alone."""
    text, tags, around = "", list[Tag](), list[int]()
    for part in re.split("(<[^>]+>)", written):
        if part.startswith("</"):
            at = around.pop()
            tags[at] = tags[at]._replace(end=len(text), closing=part)
        elif part.startswith("<"):
            tags.append(Tag(len(text), len(text), part, depth=len(around)))
            around += [len(tags) - 1] * (part != "<br>")
        else:
            text += part
    return Segment(text, tags)


@pytest.mark.parametrize(
    ("source", "target", "links", "expected"),
    [
        ("Der <b>Hund</b>, x", "The dog, x", "0-0 1-1 2-2", "The <b>dog</b>, x"),
        ("<a>Der Hund</a> schläft.", "Sleeps the dog.", "0-1 1-2 2-0", "Sleeps <a>the dog</a>."),
        ("Er <b>schläft.</b>", "He sleeps.", "0-0 1-1", "He <b>sleeps.</b>"),  # with its sign
        ("Der <b>Hund</b> schläft", "A b c d", "0-0 1-1 1-3 2-2", "A <b>b c d</b>"),  # the hull
        # Two pairs whose words are mixed: each has its longest run.
        ("<b>a b c</b> <i>d</i>", "A B D C", "0-0 1-1 2-3 3-2", "<b>A B</b> <i>D</i> C"),
        ("<b>a <i>b</i> c</b> d", "B D A C", "0-2 1-0 2-3 3-1", "<b><i>B</i> D A C</b>"),
        ("a <b>b</b> c", "A C", "0-0 2-1", "A<b></b> C"),  # without links: between its neighbours' words
        ("a <b>b <i>c</i></b> d", "D B", "1-1 3-0", "D <b>B<i></i></b>"),
        ("<b>a</b> b", "", "", "<b></b>"),
        ("a<br> b c", "C B A", "0-2 1-1 2-0", "C B A<br>"),
        ("a b <br>c", "C B A", "0-2 1-1 2-0", "<br>C B A"),
        ("H<b>2</b>O x", "x H2O", "0-1 1-0", "x H<b>2</b>O"),  # spelt alike
        ("Hund<b>1</b>, x", "dog1, x", "0-0 1-1", "dog<b>1</b>, x"),
        ("Haus<b>tür</b> x", "house door x", "0-0 0-1 1-2", "<b>house door</b> x"),  # no part of a word
        ("<b>Schwarz</b><i>wald</i>", "forest", "0-0", "<b>forest</b><i></i>"),
        ("a <b><br></b> b", "B A", "0-1 1-0", "B A<b><br></b>"),
        ("<b>a<br></b><br> b", "B A", "0-1 1-0", "B <b>A<br></b><br>"),
        ("c<br> <b>a b</b>", "A C B", "0-1 1-0 2-2", "<br><b>A C B</b>"),  # C is within the pair, its <br> is not
    ],
)
def test_examples(source: str, target: str, links: str, expected: str) -> None:
    segment = tagged(source)
    assert segment.render() == source
    assert project(linked(segment.text, target, links), segment.tags).render() == expected


def test_pieces_of_a_word_are_one_word() -> None:
    """Where a text puts no spaces between words, its words are pieces, which may cut a word in Latin letters."""
    source, target = "我用Linux吧", "I use Linux"
    pieces = [(0, 1), (1, 2), (2, 4), (4, 7), (7, 8)]
    text = LinkedText.of_words(source, target, pieces, spans(target), [(0, 0), (1, 1), (3, 2)])
    assert project(text, [Tag(2, 7, "<b>", "</b>")]).render() == "I use <b>Linux</b>"
    back = LinkedText.of_words(target, source, spans(target), pieces, [(0, 0), (1, 1), (2, 2)])
    assert project(back, [Tag(6, 11, "<b>", "</b>")]).render() == "我用<b>Linux</b>吧"


def test_sentences_keep_what_stands_at_their_ends() -> None:
    parts = [linked("a b.", "B A.", "0-1 1-0"), LinkedText.same(" "), linked("c d", "D C", "0-1 1-0")]
    segment = tagged("a <i>b.</i><br> <b>c d</b>")
    assert project(LinkedText.join(parts), segment.tags).render() == "<i>B</i> A.<br> <b>D C</b>"


def test_spans_tell_which_pairs_are_around_a_tag() -> None:
    tags = tagged("<b><br>a<i>b <br>c</i></b><u>d</u><br>").tags
    assert [*nested([tag._replace(depth=-1) for tag in tags])] == tags


@st.composite
def cases(draw: st.DrawFn) -> tuple[LinkedText, list[Tag]]:
    """Words, links between them, and nested tags at any characters."""
    source, target = (" ".join(draw(st.lists(WORD, max_size=8))) for _ in range(2))
    counts = len(source.split()), len(target.split())
    link = st.tuples(*(st.integers(0, max(count - 1, 0)) for count in counts))
    links = draw(st.lists(link, max_size=12)) if all(counts) else []
    tags: list[Tag] = []

    def fill(begin: int, end: int, depth: int) -> None:
        for _ in range(draw(st.integers(0, 3 if depth < 3 else 0))):
            start = draw(st.integers(begin, end))
            stop = draw(st.integers(start, end))
            name = len(tags)
            if draw(st.booleans()):
                tags.append(Tag(start, stop, f"<{name}>", f"</{name}>", depth))
                fill(start, stop, depth + 1)
                begin = stop
            else:
                covers = start < end and source[start].isspace()
                tags.append(Tag(start, start + covers, f"<{name}/>", "", depth))
                begin = start + covers

    fill(0, len(source), 0)
    return LinkedText.of_words(source, target, spans(source), spans(target), links), tags


def around(segment: Segment) -> dict[str, list[str]]:
    """The pairs around each tag, read from the text with its tags, which must be well nested."""
    found, stack = dict[str, list[str]](), list[str]()
    for close, name, lone in re.findall("<(/?)([0-9]+)(/?)>", segment.render()):
        if close:
            assert stack.pop() == name
            continue
        assert name not in found, "every tag once"
        found[name] = [*stack]
        if not lone:
            stack.append(name)
    assert stack == []
    return found


@pytest.mark.long
@settings(max_examples=1000)
@given(cases())
def test_every_tag_is_there_once_in_its_pairs_and_no_word_is_cut(case: tuple[LinkedText, list[Tag]]) -> None:
    text, tags = case
    projected = project(text, tags)
    assert projected.text == text.target
    rendered = re.sub("<[^>]+>", "", projected.render())
    covered = [tag for tag in projected.tags if not tag.closing and tag.end > tag.start]
    assert all(text.target[tag.start : tag.end] == " " for tag in covered)
    assert rendered.replace(" ", "") == text.target.replace(" ", "")
    assert len(rendered) >= len(text.target) - len(covered)
    assert around(projected) == around(Segment(text.source, tags))
    shared = {*text.source.split()}
    for begin, end in text.target_words:
        word = text.target[begin:end]
        within = range(begin, end + 1)
        cuts = [edge for tag in projected.tags for edge in (tag.start, tag.end) if edge in within[1:-1]]
        for cut in cuts:
            before, after = word[: cut - begin], word[cut - begin :]
            signs = not any(map(str.isalnum, before)) or not any(map(str.isalpha, after))
            assert word in shared or signs, (word, cut - begin)


@settings(max_examples=300)
@given(cases())
def test_words_that_are_linked_to_a_pair_are_in_it_if_it_has_no_neighbours(case: tuple[LinkedText, list[Tag]]) -> None:
    text, tags = case
    for tag in tags:
        if not tag.closing:
            continue
        (placed,) = project(text, [tag._replace(depth=0)]).tags
        for one, other in text.links:
            (begin, end), (low, high) = text.source_words[one], text.target_words[other]
            if tag.start <= begin and end <= tag.end and any(map(str.isalnum, text.target[low:high])):
                letters = [at for at in range(low, high) if text.target[at].isalnum()]
                assert placed.start <= letters[0] <= letters[-1] < placed.end
