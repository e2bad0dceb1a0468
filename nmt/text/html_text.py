"""HTML -> segments of text to translate with their inline tags, and the markup between them.

A translator needs no tree: tags are found as in the tokenizer of HTML, in linear time. They stay byte for byte, and
nothing is corrected, so that well-formed markup stays well-formed.
"""

import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Literal, NamedTuple

from nmt.text.tags import Segment, Tag

#: Tags, comments and declarations. An unclosed match reaches to the end, so that nothing is read twice.
_TOKEN = re.compile(
    r"""<!--(?:.*?-->|.*) | <!\[CDATA\[(?:.*?\]\]>|.*) | <[!?][^>]*+>?
    | </?[a-z](?:[^>=]|=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]++)?)*+>?""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"</?([a-z][^\s/>]*)", re.IGNORECASE)
#: Elements whose contents are not parsed as markup.
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_KEPT = frozenset({"script", "style", "code", "kbd", "samp", "var", "svg", "math", "rt", "rp"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
#: Elements that end a sentence. All others are inline, as unknown elements are in browsers.
_BLOCKS = frozenset({
    "address", "area", "article", "aside", "audio", "base", "blockquote", "body", "button", "canvas", "caption",
    "center", "col", "colgroup", "dd", "details", "dialog", "dir", "div", "dl", "dt", "embed", "fieldset",
    "figcaption", "figure", "footer", "form", "frame", "frameset", "h1", "h2", "h3", "h4", "h5", "h6", "head",
    "header", "hgroup", "hr", "html", "iframe", "input", "label", "legend", "li", "link", "main", "map", "menu",
    "meta", "nav", "noscript", "object", "ol", "optgroup", "option", "p", "param", "picture", "pre", "script",
    "search", "section", "select", "source", "style", "summary", "table", "tbody", "td", "template", "textarea",
    "tfoot", "th", "thead", "title", "tr", "track", "ul", "video",
})  # fmt: skip
#: Elements whose white space is preserved; elsewhere, a run of white space counts as one space.
_PREFORMATTED = frozenset({"pre", "textarea"})
_SPACE = " \t\r\n\f"
#: Marks of untranslated text: HTML's attribute, a common class, Mastodon's mentions, hashtags and parts of links.
_UNTRANSLATED = re.compile(
    r"""\s(?:translate\s*=\s*["']?no\b
    | class\s*=\s*(?:"[^"]*|'[^']*)(?<![\w-])(?:notranslate|mention|invisible|ellipsis)(?![\w-]))""",
    re.VERBOSE | re.IGNORECASE,
)
#: The most nested pairs of inline tags; markup that is nested deeper ends a sentence.
_DEEPEST = 50


def escape(text: str) -> str:
    """Escape text for HTML, for use between tags."""
    return html.escape(text, quote=False)


class MarkupPart(NamedTuple):
    """A part of markup: text, an opening or closing inline tag, a lone inline tag or element, or markup that stays.

    `name` is the name of the tag; for text, the name of the element that preserves its white space, if any.
    """

    written: str
    kind: Literal["text", "opens", "closes", "lone", "stays"]
    name: str = ""

    @property
    def text(self) -> str:
        """The plain text of a text; "" for other parts."""
        return html.unescape(self.written) if self.kind == "text" else ""


def split_markup(markup: str) -> Iterator[MarkupPart]:
    """Yield the parts of markup, without a loss. An element that is not translated is one part."""
    position, begin, inside, depth = 0, 0, "", 0
    while match := _TOKEN.search(markup, position):
        if not depth:
            begin = match.start()
            if begin > position:
                yield MarkupPart(markup[position:begin], "text")
        tag, position = match[0], match.end()
        named = _NAME.match(tag)
        name, opens = named[1].lower() if named else "", tag[1] != "/"
        if name in _RAW and opens:
            end = _RAW[name].search(markup, position)
            position = end.start() if end else len(markup)
        void = not name or name in _VOID or tag.endswith("/>")
        if depth:
            depth += (name == inside and not void) * (1 if opens else -1)
        elif opens and not void and (name in _KEPT or _UNTRANSLATED.search(tag)):
            inside, depth = name, 1
        elif not name or name in _BLOCKS:
            yield MarkupPart(markup[begin:position], "stays")
            continue
        else:
            yield MarkupPart(tag, "lone" if void else "opens" if opens else "closes", name)
            continue
        if not depth:
            yield MarkupPart(markup[begin:position], "stays" if inside in _BLOCKS else "lone", inside)
    if depth:
        yield MarkupPart(markup[begin:], "stays")
    elif position < len(markup):
        yield MarkupPart(markup[position:], "text")


def read_html(markup: str) -> Iterator[str | Segment]:
    """Yield segments with text to translate, and the unchanged markup between them.

    Block elements, comments and unpaired tags end a segment. So does `<br>`, unless a lower-case letter follows.

    Raises:
        ValueError: a character reference is too long.
    """
    run: list[MarkupPart] = []
    around = ""
    for part in split_markup(markup):
        if part.kind == "stays":
            yield from filter(None, _segments(run))
            yield part.written
            run = []
            if not part.name and (named := _NAME.match(part.written)):  # a tag, not a whole element
                around = named[1].lower() if part.written[1] != "/" else ""
        else:
            run.append(part._replace(name=around) if part.kind == "text" and around in _PREFORMATTED else part)
    yield from filter(None, _segments(run))


def _segments(run: Sequence[MarkupPart]) -> Iterator[str | Segment]:
    """Yield the segments of inline parts, which end at unpaired tags and at line breaks."""
    partner = _partners(run)
    first = 0
    for at, part in enumerate([*run, MarkupPart("", "stays")]):
        alone = part.kind in ("stays", "opens", "closes") and at not in partner
        if alone or _is_break(run, at):
            yield from _segment(run, partner, first, at)
            yield part.written
            first = at + 1


def _partners(run: Sequence[MarkupPart]) -> dict[int, int]:
    """Tag index -> index of its partner, for pairs that are well nested and contain no line break."""
    partner: dict[int, int] = {}
    around: list[int] = []
    for at, part in enumerate(run):
        if part.kind == "opens" and len(around) < _DEEPEST:
            around.append(at)
        elif part.kind == "closes" and around and run[around[-1]].name == part.name:
            partner[at] = around.pop()
            partner[partner[at]] = at
        elif part.kind in ("opens", "closes") or _is_break(run, at):
            around.clear()
    return partner


def _is_break(run: Sequence[MarkupPart], at: int) -> bool:
    """Whether a part is a `<br>` after which another sentence may begin."""
    if at >= len(run) or run[at].name != "br":
        return False
    for part in (run[later] for later in range(at + 1, len(run))):
        if part.name == "br" or part.text.strip():
            return not part.text.lstrip()[:1].islower()
    return True


def _segment(run: Sequence[MarkupPart], partner: Mapping[int, int], first: int, last: int) -> Iterator[str | Segment]:
    """Yield the parts [first, last) as a segment, and before and after it the tags that are outside its text."""
    texts = [at for at in range(first, last) if run[at].text.strip()]
    if not any(any(map(str.isalnum, run[at].text)) for at in texts):
        yield "".join(part.written for part in run[first:last])
        return
    # Tags before the text that close within it, and tags after the text that open within it, belong to the segment.
    within = range(texts[0], texts[-1] + 1)
    begin = next((at for at in range(first, within.start) if partner.get(at, last) in within), within.start)
    end = next((at + 1 for at in reversed(range(within.stop, last)) if partner.get(at, last) in within), within.stop)
    yield "".join(part.written for part in run[first:begin])
    yield _joined(run[begin:end])
    yield "".join(part.written for part in run[end:last])


def _joined(parts: Sequence[MarkupPart]) -> Segment:
    """The text of well-nested parts with their tags, without double white space; a `<br>` still separates words.

    Leading and trailing white space stays as it is.
    """
    words = [at for at, part in enumerate(parts) if part.text.strip()]
    text = ""
    tags: list[Tag] = []
    around: list[int] = []
    latest: int | None = None  # the tag at the end of the previous text
    for at, part in enumerate(parts):
        match part.kind:
            case "text":
                plain = part.text if part.name else _one_space(part.text, at > words[0], at < words[-1])
                blank = not text or text[-1].isspace()
                if latest is not None and blank and plain[:1].isspace():
                    space, tag = plain[: len(plain) - len(plain.lstrip())], tags[latest]
                    if tag.closing:
                        tags[latest] = tag._replace(closing=tag.closing + space)
                    else:
                        tags[latest] = tag._replace(opening=tag.opening + space)
                    plain = plain.lstrip()
                elif latest is not None and not blank and plain and not plain[0].isspace() and _is_br(tags[-1], text):
                    tags[-1] = tags[-1]._replace(end=len(text) + 1)
                    plain = f" {plain}"
                text += plain
            case "closes":
                latest = around.pop()
                tags[latest] = tags[latest]._replace(end=len(text), closing=part.written)
            case _:
                latest = len(tags)
                tags.append(Tag(len(text), len(text), part.written, depth=len(around)))
                if part.kind == "opens":
                    around.append(latest)
    return Segment(text, tags)


def _one_space(text: str, before: bool, after: bool) -> str:
    """Replace runs of white space by one space: between words, and if `before` and `after`, at the two ends."""
    words = text.strip(_SPACE)
    at = text.index(words)
    left, right = text[:at], text[at + len(words) :]
    inner = re.sub(f"[{_SPACE}]+", " ", words)
    return (" " if before and left else left) + inner + (" " if after and right else right)


def _is_br(tag: Tag, text: str) -> bool:
    """Whether a tag is a `<br>` at the end of a text."""
    return tag.start == len(text) and tag.opening[1:3].lower() == "br" and not tag.closing
