"""Text of Office Open XML (.docx, .pptx, .xlsx): paragraphs of runs, each with its own properties.

The most common properties of a paragraph are its usual properties. A run with other properties, a link or a picture
becomes a tag, which ends the usual run before it and begins a new one after it.
"""

import html
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import partial
from itertools import accumulate
from typing import NamedTuple

from nmt.documents.document_slots import Slots, is_language
from nmt.documents.markup import Token, closed, inline, matches
from nmt.documents.xml_text import attribute, check_xml, prefix_of
from nmt.text.tags import Segment


class Names(NamedTuple):
    """The names of elements in a format, without prefix.

    Attributes:
        namespaces: the usual and the strict namespace.
        paragraphs: elements that contain runs.
        run, properties, text: a run, its properties, and its text.
        space: the attribute that preserves spaces at the ends of a text.
        breaks: (element, character) for elements in a run, or between runs, that stand for a character.
        dropped: elements about the source text, which are removed from a translation.
    """

    namespaces: tuple[str, str]
    paragraphs: tuple[str, ...]
    run: str = "r"
    properties: str = "rPr"
    text: str = "t"
    space: str = ' xml:space="preserve"'
    breaks: tuple[tuple[str, str], ...] = ()
    dropped: tuple[str, ...] = ()


_OLD, _STRICT = "http://schemas.openxmlformats.org", "http://purl.oclc.org/ooxml"
WORD = Names(
    (f"{_OLD}/wordprocessingml/2006/main", f"{_STRICT}/wordprocessingml/main"),
    ("p",),
    breaks=(("br", "\n"), ("tab", "\t")),
    dropped=("proofErr", "lastRenderedPageBreak"),
)
DRAWING = Names((f"{_OLD}/drawingml/2006/main", f"{_STRICT}/drawingml/main"), ("p",), space="", breaks=(("br", "\n"),))
SHEET = Names((f"{_OLD}/spreadsheetml/2006/main", f"{_STRICT}/spreadsheetml/main"), ("si", "is"), dropped=("rPh",))


def column_names(tables: Iterable[str]) -> set[str]:
    """The names of columns in the tables of a workbook: cells repeat them, so they cannot be translated."""
    return {
        html.unescape(name)
        for text in tables
        for name in re.findall(r'<(?:\w+:)?tableColumn\s[^>]*?\bname="([^"]*)"', text)
    }


def read_runs(text: str, slots: Slots, fixed_texts: Iterable[str], *, names: Names) -> str:
    """The XML text of a member with marks for its paragraphs, except for texts in `fixed_texts`.

    Raises:
        ValueError: the XML is damaged.
    """
    tokens = check_xml(text)
    try:
        prefix = prefix_of(text, *names.namespaces)
    except ValueError:
        return text  # a member without such text
    paragraphs = {prefix + name for name in names.paragraphs}
    reader = _Paragraphs(slots, names, prefix, frozenset(fixed_texts))
    partners = matches(tokens)
    stack: list[list[Token]] = [[]]
    for number, token in enumerate(tokens):
        if token.kind == "open" and token.name in paragraphs and number in partners:
            stack.append([token])
        elif token.kind == "close" and token.name in paragraphs and number in partners:
            inner = stack.pop()
            stack[-1].append(Token("lone", reader.read(inner) + token.raw, token.name))
        else:
            stack[-1].append(token)
    return "".join(token.raw for token in stack[0])


class _Paragraphs:
    """Reads the paragraphs of a member."""

    def __init__(self, slots: Slots, names: Names, prefix: str, fixed_texts: frozenset[str]) -> None:
        self._slots, self._names, self._prefix, self._fixed_texts = slots, names, prefix, fixed_texts
        self._run, self._text = f"{prefix}{names.run}", f"{prefix}{names.text}"
        self._properties = f"{prefix}{names.properties}"
        self._breaks = {prefix + name: character for name, character in names.breaks}
        self._dropped = {prefix + name for name in names.dropped}
        self._open_text, self._close_text = f"<{self._text}{names.space}>", f"</{self._text}>"

    def read(self, tokens: Sequence[Token]) -> str:
        """The XML of a paragraph from its opening tag on, without the closing tag, with a mark if it has words."""
        raw = "".join(token.raw for token in tokens[1:])
        partners = matches(tokens)
        runs = [
            at for at, token in enumerate(tokens) if token.name == self._run and at in partners and at < partners[at]
        ]
        if not runs:
            return tokens[0].raw + self._plain(tokens[1:])
        weights = Counter[str]()
        for run in runs:
            weights[self._properties_of(tokens, run, partners)] += self._length(tokens[run : partners[run]])
        base = max(weights, key=lambda properties: weights[properties])
        usual = f"<{self._run}>{base}{self._open_text}"
        built = inline(self._tokens(tokens, partners, base), collapse=False)
        if built is None or not is_language(built.segment.text) or built.segment.text in self._fixed_texts:
            return tokens[0].raw + raw
        end = f"{self._close_text}</{self._run}>"
        escape = partial(self._escape, base)

        def write(segment: Segment) -> str:
            whole = usual + built.before + segment.render(escape) + built.after + end
            empty = f"{self._open_text}{self._close_text}"
            return whole.replace(f"{usual}{self._close_text}</{self._run}>", "").replace(empty, "")

        return tokens[0].raw + self._slots.add(built.segment, raw, write)

    def _plain(self, tokens: Sequence[Token]) -> str:
        """The XML of a paragraph without runs, such as a cell with a single text."""
        pieces, tokens = list[str](), closed(tokens, lambda token: token.name in self._dropped)
        is_marked = False
        for number, token in enumerate(tokens):
            value = html.unescape(token.raw)
            inside = number > 0 and tokens[number - 1].name == self._text and tokens[number - 1].kind == "open"
            if token.kind == "text" and inside and is_language(value) and value not in self._fixed_texts:
                pieces.append(self._slots.add(Segment(value), token.raw, lambda segment: _escaped(segment.text)))
                is_marked = True
            elif is_marked and token.name in self._dropped:
                pieces.append(self._slots.also(token.raw, lambda _: ""))
            else:
                pieces.append(token.raw)
        return "".join(pieces)

    def _properties_of(self, tokens: Sequence[Token], run: int, partners: dict[int, int]) -> str:
        at = run + 1
        while at < partners[run] and tokens[at].kind == "text" and not tokens[at].raw.strip():
            at += 1
        if tokens[at].name != self._properties:
            return ""
        return "".join(token.raw for token in tokens[at : partners.get(at, at) + 1])

    def _length(self, tokens: Sequence[Token]) -> int:
        return sum(len(token.raw) for token in tokens if token.kind == "text")

    def _escape(self, base: str, text: str) -> str:
        escaped = _escaped(text)
        for name, character in self._breaks.items():
            element = f"<{name}/>"
            if self._names.space:  # in a run
                whole = f"{self._close_text}{element}{self._open_text}"
            else:
                end, usual = f"{self._close_text}</{self._run}>", f"<{self._run}>{base}{self._open_text}"
                whole = f"{end}{element}{usual}"
            escaped = escaped.replace(character, whole)
        return escaped

    def _tokens(self, tokens: Sequence[Token], partners: dict[int, int], base: str) -> list[Token]:
        """The paragraph as text in runs with the usual properties, and tags that end such a run and begin another."""
        end, usual = f"{self._close_text}</{self._run}>", f"<{self._run}>{base}{self._open_text}"
        result, at = list[Token](), 1
        fields = self._fields(tokens, partners)
        runs = list(accumulate(token.name == self._run for token in tokens))
        wrappers = {start for start, close in partners.items() if start < close and runs[start] < runs[close]}
        while at < len(tokens):
            token, partner = tokens[at], partners.get(at, at)
            if token.name in self._dropped:
                at = partner
            elif token.kind == "text":
                pass  # white space between elements
            elif at in fields:
                raw = "".join(each.raw for each in tokens[at : fields[at] + 1])
                result.append(Token("lone", end + raw + usual))
                at = fields[at]
            elif token.name == self._run and at < partner:
                self._add_run(result, tokens[at : partner + 1], base)
                at = partner
            elif at in wrappers or (token.kind == "close" and partners.get(at) in wrappers):
                result.append(Token(token.kind, end + token.raw + usual, token.name))
            elif token.name in self._breaks:
                raw = "".join(each.raw for each in tokens[at : max(at, partner) + 1])
                result.append(Token("text", end + raw + usual, value=self._breaks[token.name]))
                at = max(at, partner)
            else:
                raw = "".join(each.raw for each in tokens[at : max(at, partner) + 1])
                result.append(Token("lone", end + raw + usual))
                at = max(at, partner)
            at += 1
        return result

    def _fields(self, tokens: Sequence[Token], partners: dict[int, int]) -> dict[int, int]:
        """First token of a field, such as a page number -> last token of its last run, by their numbers."""
        fields, start, depth, at = dict[int, int](), 0, 0, 1
        while at < len(tokens):
            token, partner = tokens[at], partners.get(at, 0)
            if token.name == self._run and partner > at:
                kinds = [attribute(each, f"{self._prefix}fldCharType") for each in tokens[at:partner]]
                start = at if not depth else start
                depth += kinds.count("begin") - kinds.count("end")
                if depth <= 0:
                    if start < at or "begin" in kinds:
                        fields[start] = partner
                    depth = 0
                at = partner
            elif token.kind in ("open", "close"):
                depth = 0  # a field that spans other elements is not recognised
            at += 1
        return fields

    def _add_run(self, result: list[Token], run: Sequence[Token], base: str) -> None:
        """Add the text of a run, with tags around it unless it has the usual properties."""
        partners = matches(run)
        properties = self._properties_of(run, 0, partners)
        end, usual = f"{self._close_text}</{self._run}>", f"<{self._run}>{base}{self._open_text}"
        opening = Token("open", f"{end}<{self._run}>{properties}{self._open_text}", properties or "-")
        closing = Token("close", end + usual, properties or "-")
        inner, at = list[Token](), 1
        while at < len(run) - 1:
            token, partner = run[at], max(at, partners.get(at, at))
            raw = "".join(each.raw for each in run[at : partner + 1])
            if token.name == self._text:
                value = "".join(html.unescape(each.raw) for each in run[at + 1 : partner])
                inner.append(Token("text", _escaped(value), value=value))
            elif token.name in self._breaks and token.raw == f"<{token.name}/>":
                whole = f"{self._close_text}{raw}{self._open_text}"
                inner.append(Token("text", whole, value=self._breaks[token.name]))
            elif token.kind != "text" and token.name not in {self._properties, *self._dropped}:
                inner.append(Token("lone", f"{self._close_text}{raw}{self._open_text}"))
            at = partner + 1
        if properties == base:
            result.extend(inner)
        elif result and result[-1] == closing and inner:
            result[-1:] = [*inner, closing]
        elif inner:
            result += [opening, *inner, closing]


def _escaped(text: str) -> str:
    return html.escape(text, quote=False)
