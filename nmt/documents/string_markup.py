"""HTML in the strings of catalogues (.po, .json, .yaml): tags are kept; text that only looks like a tag is text."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import NamedTuple

from nmt.documents.document_slots import is_language
from nmt.documents.markup import Token, closed, inline, matches, tokens_of
from nmt.documents.web_pages import VOID, is_kept
from nmt.text.tags import Segment

_REFERENCE = re.compile(r"&(?:[A-Za-z][A-Za-z0-9]*|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});")
_BARE = re.compile(r"&(?!#?\w+;)")


#: Tags that separate sentences.
_BLOCKS = frozenset(
    """
    address article aside blockquote br dd div dl dt figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr li main
    nav ol p section table tbody td tfoot th thead tr ul
    """.split()  # noqa: SIM905
)


class CatalogueString(NamedTuple):
    """A string as a segment, and the function that spells a translated segment."""

    segment: Segment
    spell: Callable[[Segment], str]


def read_string(value: str) -> CatalogueString | None:
    """A string of a catalogue as a segment; None without words.

    The string is HTML if it has a pair of tags, or a tag that is never closed, such as `<br>`. Block tags are line
    breaks in the segment. Characters that were written as references, such as `&amp;`, are written as references again.
    """
    tokens = tokens_of(value, void=VOID, numbered=True) if "<" in value else []
    partners = matches(tokens)
    if not any(token.name and (token.kind == "lone" or at in partners) for at, token in enumerate(tokens)):
        return CatalogueString(Segment(value), lambda segment: segment.text) if is_language(value) else None
    built = inline(_split(tokens), unescape=partial(_REFERENCE.sub, lambda each: html.unescape(each[0])))
    if built is None or not is_language(built.segment.text):
        return None
    inner = _split(tokens_of(built.raw, void=VOID, numbered=True))
    breaks = [token.raw for token in inner if token.value == "\n"]
    escapes = _escape([token.raw for token in inner if token.kind == "text" and token.value is None])

    def spell(segment: Segment) -> str:
        left = iter(breaks)

        def written(text: str) -> str:
            return re.sub("\n", lambda _: next(left, "\n"), escapes(text))

        return built.before + segment.render(written) + built.after

    return CatalogueString(built.segment, spell)


def _split(tokens: Sequence[Token]) -> list[Token]:
    return [part for token in closed(tokens, is_kept) for part in _parts(token)]


def _parts(token: Token) -> Iterator[Token]:
    """Yield the parts of a token; line breaks, and tags that separate sentences, become texts of one line break."""
    if token.name.lower() in _BLOCKS:
        yield Token("text", token.raw, value="\n")
    elif token.kind == "text" and token.value is None:
        yield from (
            Token("text", part, value="\n" if part == "\n" else None) for part in re.split("(\n)", token.raw) if part
        )
    else:
        yield token


def _escape(texts: Sequence[str]) -> Callable[[str], str]:
    """A function that writes `&`, `<` and `>` as references, unless the string has only the bare characters."""
    signs = {
        sign: f"&{name};"
        for sign, name in (("<", "lt"), (">", "gt"))
        if any(f"&{name};" in text for text in texts) or not any(sign in text for text in texts)
    }
    signs |= {"\xa0": "&nbsp;"} if any("&nbsp;" in text for text in texts) else {}
    has_bare = any(map(_BARE.search, texts)) and not any("&amp;" in text for text in texts)

    def written(text: str) -> str:
        text = text if has_bare else text.replace("&", "&amp;")
        for sign, reference in signs.items():
            text = text.replace(sign, reference)
        return text

    return written
