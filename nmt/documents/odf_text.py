"""Text of OpenDocument (.odt): paragraphs and headings with mixed content."""

import html
from collections.abc import Collection

from nmt.documents.document_slots import Slots, is_language
from nmt.documents.markup import Token, closed, inline, matches
from nmt.documents.xml_text import check_xml, prefix_of
from nmt.text.tags import Segment

_TEXT = "urn:oasis:names:tc:opendocument:xmlns:text:1.0"
#: Elements in a paragraph whose contents are computed or belong elsewhere.
_OPAQUE = ("note", "ruby", "page-number", "page-count", "date", "time", "bookmark-ref", "reference-ref", "sequence")
_OPAQUE_ELSEWHERE = ("office:annotation", "draw:frame", "draw:custom-shape", "draw:g")


def read_odf(text: str, slots: Slots, fixed_texts: Collection[str] = ()) -> str:
    """The XML text of a member with marks for its paragraphs. Tracked changes are kept.

    Raises:
        ValueError: the XML is damaged.
    """
    del fixed_texts
    tokens = check_xml(text)
    prefix = prefix_of(text, _TEXT)
    tokens = closed(tokens, lambda token: token.name == f"{prefix}tracked-changes")
    opaque = {*(prefix + name for name in _OPAQUE), *_OPAQUE_ELSEWHERE}
    stack: list[list[Token]] = [[]]
    partners = matches(tokens)
    for number, token in enumerate(tokens):
        if token.name in (f"{prefix}p", f"{prefix}h") and number in partners:
            if token.kind == "open":
                stack.append([token])
            else:
                opening, *inner = stack.pop()
                inner = closed(inner, lambda each: each.name in opaque)
                stack[-1].append(Token("lone", opening.raw + _paragraph(inner, prefix, slots) + token.raw, token.name))
        else:
            stack[-1].append(token)
    return "".join(token.raw for token in stack[0])


def _paragraph(tokens: list[Token], prefix: str, slots: Slots) -> str:
    characters = {f"{prefix}line-break": "\n", f"{prefix}tab": "\t", f"{prefix}s": " "}
    built = inline(
        [
            Token("text", token.raw, value=characters[token.name]) if token.name in characters else token
            for token in tokens
        ]
    )
    if built is None or not is_language(built.segment.text):
        return "".join(token.raw for token in tokens)

    def escape(text: str) -> str:
        escaped = html.escape(text, quote=False)
        return escaped.replace("\n", f"<{prefix}line-break/>").replace("\t", f"<{prefix}tab/>")

    def write(segment: Segment) -> str:
        return segment.render(escape)

    return built.before + slots.add(built.segment, built.raw, write) + built.after
