"""Tokens of HTML and XML, and runs of tokens as segments with tags."""

import html
import re
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

from nmt.text.tags import Segment, Tag

# An unclosed comment extends to the end of the file, so that the time is linear.
_PARTS = r"""(?P<lone><!--.*?(?:-->|\Z)|<\?.*?(?:\?>|\Z)|<!DOCTYPE[^<>\[]*+(?:\[[^\]]*+(?:\]|\Z))?[^>]*+(?:>|\Z){raw})
    |<!\[CDATA\[(?P<cdata>.*?)(?:\]\]>|\Z)
    |<(?P<close>/)?(?P<name>[A-Za-z_:][^\s/>]*+)(?:[^<>"']|"[^"]*"|'[^']*')*?(?P<empty>/)?>
    |(?P<text>[^<]++|<)"""
_RAW = r"""|<(?P<raw>script|style|textarea|template)(?=[\s/>])(?:[^<>"']|"[^"]*"|'[^']*')*+>.*?(?:</(?P=raw)\s*>|\Z)"""
_XML = re.compile(_PARTS.format(raw=""), re.VERBOSE | re.DOTALL)
_HTML = re.compile(_PARTS.format(raw=_RAW), re.VERBOSE | re.DOTALL | re.IGNORECASE)
# Some libraries for messages have tags with numbers as names: <0>text</0>.
_STRING = re.compile(_PARTS.format(raw="").replace("[A-Za-z_:]", "[A-Za-z_:0-9]"), re.VERBOSE | re.DOTALL)
_BRACES = re.compile(r"(\{\\[^{}]*\}|<[^<>]*>)")
_OPEN = "?"  # the closing tag of a pair that is not closed yet
_SPACE = re.compile(r"[ \t\r\n\f]+")


class Token(NamedTuple):
    """A token of a file: text, an opening or closing tag, or a lone token, such as an empty tag or a comment.

    Attributes:
        kind: text, open, close or lone.
        raw: the characters in the file.
        name: the name of a tag.
        value: the plain text of a text; None to unescape `raw`.
    """

    kind: str
    raw: str
    name: str = ""
    value: str | None = None


class Inline(NamedTuple):
    """A run of tokens as a segment: the markup before its slot, the segment, its raw text, the markup after it."""

    before: str
    segment: Segment
    raw: str
    after: str


def tokens_of(text: str, *, void: Collection[str] = (), xml: bool = False, numbered: bool = False) -> list[Token]:
    """The tokens of a text, which together have all its characters.

    Args:
        text: HTML or XML.
        void: names of tags that are never closed.
        xml: whether the text is XML, which has no elements with raw text, such as <script> in HTML.
        numbered: whether tags may have numbers as names.
    """
    tokens = []
    for match in (_STRING if numbered else _XML if xml else _HTML).finditer(text):
        raw, name = match[0], match["name"]
        if name is not None:
            empty = match["empty"] or name.lower() in void
            tokens.append(Token("close" if match["close"] else "lone" if empty else "open", raw, name))
        elif match["cdata"] is not None:
            tokens.append(Token("text", raw, value=match["cdata"]))
        else:
            tokens.append(Token("lone" if match["lone"] else "text", raw))
    return tokens


def subtitle_tokens(text: str) -> list[Token]:
    """The tokens of a subtitle: text, tags such as <i>, and codes in braces after a backslash."""
    return [_subtitle_token(part) for part in _BRACES.split(text) if part]


def _subtitle_token(raw: str) -> Token:
    tag = re.fullmatch(r"<(/?)([a-zA-Z]+)\b[^<>]*>", raw)
    if tag is None:
        return Token("lone" if _BRACES.fullmatch(raw) else "text", raw)
    return Token("close" if tag[1] else "open", raw, tag[2])


def closed(tokens: Sequence[Token], is_opaque: Callable[[Token], bool]) -> list[Token]:
    """Join each opaque element, from its opening to its closing tag, to one lone token."""
    result, at = list[Token](), 0
    partners = matches(tokens)
    while at < len(tokens):
        token, partner = tokens[at], partners.get(at)
        if token.kind == "open" and partner is not None and is_opaque(token):
            result.append(Token("lone", "".join(each.raw for each in tokens[at : partner + 1]), token.name))
            at = partner
        else:
            result.append(token)
        at += 1
    return result


def matches(tokens: Sequence[Token]) -> dict[int, int]:
    """Opening tag -> closing tag and closing tag -> opening tag, by their numbers, if they are properly nested."""
    partners, opened = dict[int, int](), list[int]()
    for number, token in enumerate(tokens):
        if token.kind == "open":
            opened.append(number)
        elif token.kind == "close":
            depth = next((d for d in range(1, min(len(opened), 32) + 1) if tokens[opened[-d]].name == token.name), 0)
            if depth:
                partners[opened[-depth]], partners[number] = number, opened[-depth]
                del opened[-depth:]
    return partners


def inline(
    tokens: Sequence[Token], *, unescape: Callable[[str], str] = html.unescape, collapse: bool = True
) -> Inline | None:
    """A run of tokens as a segment; None if it has no text.

    White space and tags around the whole text stay outside the slot. With `collapse`, runs of white space inside become
    one space. Lone tags are joined with adjacent tags.
    """
    partners = matches(tokens)
    first, last = 0, len(tokens)
    while first < last:
        if _is_outside(tokens[first], partners.get(first)):
            first += 1
        elif _is_outside(tokens[last - 1], partners.get(last - 1)):
            last -= 1
        elif partners.get(first) == last - 1:
            first, last = first + 1, last - 1
        else:
            break
    inner = list(tokens[first:last])
    if not any(token.kind == "text" and (token.value or token.raw).strip() for token in inner):
        return None
    before, after = "".join(token.raw for token in tokens[:first]), "".join(token.raw for token in tokens[last:])
    if inner[0].kind == "text" and inner[0].value is None:
        stripped = inner[0].raw.lstrip()
        before += inner[0].raw[: len(inner[0].raw) - len(stripped)]
        inner[0] = inner[0]._replace(raw=stripped)
    if inner[-1].kind == "text" and inner[-1].value is None:
        stripped = inner[-1].raw.rstrip()
        after = inner[-1].raw[len(stripped) :] + after
        inner[-1] = inner[-1]._replace(raw=stripped)
    return Inline(before, _segment(inner, unescape, collapse), "".join(token.raw for token in inner), after)


def _is_outside(token: Token, partner: int | None) -> bool:
    """Whether a token at the beginning or the end of a run can stay outside its segment."""
    if token.kind == "text":
        return not (token.value or token.raw).strip()
    return partner is None


def _segment(tokens: Sequence[Token], unescape: Callable[[str], str], collapse: bool) -> Segment:
    partners, text = matches(tokens), ""
    tags = _Tags(tokens, partners)
    number = 0
    while number < len(tokens):
        if tokens[number].kind == "text":
            value = tokens[number].value
            if value is None:
                value = unescape(tokens[number].raw)
                value = _SPACE.sub(" ", value) if collapse else value
            # Of two spaces around a tag, the first is text; the second stays in the tag.
            if value.startswith(" ") and text[-1:].isspace() and (tags.keep_space(len(text)) or collapse):
                value = value[1:]
            text += value
            number += 1
            continue
        end = number
        while end < len(tokens) and tokens[end].kind != "text":
            end += 1
        tags.add(range(number, end), len(text))
        number = end
    # A pair that has lost its only space becomes a lone tag.
    codes = [tag if tag.start < tag.end else Tag(tag.start, tag.start, tag.opening + tag.closing) for tag in tags.tags]
    return Segment(text, tuple(_merged(codes)))


class _Tags:
    """Collects the tags of a run of tokens, group by group; a group is between two texts."""

    def __init__(self, tokens: Sequence[Token], partners: dict[int, int]) -> None:
        self.tags: list[Tag] = []
        self._tokens, self._partners = tokens, partners
        self._opened = dict[int, int]()  # number of an opening token -> number of its tag
        self._latest = -1  # the lone or closed tag at the end of the text so far

    def keep_space(self, at: int) -> bool:
        """Append a space to the tag at position `at`, the end of the text; return whether there is such a tag."""
        if self._latest < 0 or self.tags[self._latest].end != at:
            return False
        tag = self.tags[self._latest]
        is_closed = tag.closing not in ("", _OPEN)
        self.tags[self._latest] = (
            tag._replace(closing=f"{tag.closing} ") if is_closed else tag._replace(opening=f"{tag.opening} ")
        )
        return True

    def add(self, group: range, at: int) -> None:
        """Add the closing, lone and opening tags of a group of tokens between two texts."""
        single, number = "", group.start
        inside = False  # after an opening tag of this group
        self._latest = -1
        while number in group:
            token, partner = self._tokens[number], self._partners.get(number)
            if token.kind == "close" and partner is not None:
                self._latest = self._opened[partner]
                self.tags[self._latest] = self.tags[self._latest]._replace(end=at, closing=single + token.raw)
                single = ""
            elif token.kind == "open" and partner is not None and partner not in group:
                self._add_single(single, at, inside)
                self._opened[number] = len(self.tags)
                self.tags.append(Tag(at, at, token.raw, _OPEN))
                self._latest, single, inside = -1, "", True
            else:  # a lone tag, or a pair without text
                end = partner if token.kind == "open" and partner is not None else number
                single += "".join(each.raw for each in self._tokens[number : end + 1])
                number = end
            number += 1
        self._add_single(single, at, inside)

    def _add_single(self, raw: str, at: int, inside: bool) -> None:
        if raw and inside:
            self._latest = len(self.tags) - 1
            self.tags[-1] = self.tags[-1]._replace(opening=self.tags[-1].opening + raw)
        elif raw:
            self._latest = len(self.tags)
            self.tags.append(Tag(at, at, raw))


def _merged(tags: Sequence[Tag]) -> list[Tag]:
    """Join pairs of tags around the same characters."""
    merged = list[Tag]()
    for tag in tags:
        outer = merged[-1] if merged else None
        if outer is not None and tag.start < tag.end and (tag.start, tag.end) == (outer.start, outer.end):
            merged[-1] = Tag(tag.start, tag.end, outer.opening + tag.opening, tag.closing + outer.closing)
        else:
            merged.append(tag)
    return merged
