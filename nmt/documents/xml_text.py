"""Checks of XML from untrusted sources: well-formed, without entities, of limited depth."""

import re
from xml.parsers import expat

from nmt.documents.document_slots import is_no_text
from nmt.documents.markup import Token, tokens_of

#: The deepest nesting of elements. Office documents have 30 or 40.
MOST_DEPTH = 256
#: The most characters. A book has a million.
MOST_TEXT = 1 << 26
#: The most tags; each takes some hundred bytes of memory.
MOST_TAGS = 4_000_000
#: The declaration of the encoding in an XML file.
XML_DECLARED = r"""^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)"""


def check_xml(text: str) -> list[Token]:
    """Check XML text and return its tokens.

    Raises:
        ValueError: the text is too large, not well-formed, nested too deeply, or declares entities.
    """
    if len(text) > MOST_TEXT or is_no_text(text):
        raise ValueError(f"its XML has more than {MOST_TEXT >> 20} Mi characters, or characters that no text has")
    if text.count("<") > MOST_TAGS:
        raise ValueError(f"its XML has more than {MOST_TAGS:,} tags")
    parser = expat.ParserCreate("utf-8")
    depth = 0

    def start(*_: object) -> None:
        nonlocal depth
        depth += 1
        if depth > MOST_DEPTH:
            raise ValueError(f"its elements are nested more than {MOST_DEPTH} deep")

    def end(*_: object) -> None:
        nonlocal depth
        depth -= 1

    def entity(*_: object) -> None:
        raise ValueError("it declares entities, which documents never need")

    parser.StartElementHandler, parser.EndElementHandler, parser.EntityDeclHandler = start, end, entity
    try:
        parser.Parse(text.encode("utf-8"), True)
    except expat.ExpatError as error:
        raise ValueError(f"its XML is damaged: {error}") from error
    return tokens_of(text, xml=True)


def prefix_of(text: str, *names: str) -> str:
    """The prefix, with its colon, of the first declared namespace among `names`; "" for the default namespace.

    Raises:
        ValueError: none of the namespaces is declared.
    """
    for match in re.finditer(r"""\sxmlns(:[\w.-]+)?\s*=\s*["']([^"']*)["']""", text):
        if match[2] in names:
            return f"{match[1][1:]}:" if match[1] else ""
    raise ValueError(f"it has no content of the kind that its ending says ({names[0]})")


def attribute(token: Token, name: str) -> str:
    """The value of an attribute of a tag; "" if the tag does not have it."""
    match = re.search(rf"""\s{re.escape(name)}\s*=\s*(?:"([^"]*)"|'([^']*)')""", token.raw)
    return (match[1] or match[2] or "") if match else ""
