"""Exchange formats of translators: XLIFF 1.2 and 2.x, and TMX. Missing targets are filled."""

import html
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial

from nmt.documents.document_slots import Slots, is_language
from nmt.documents.markup import Inline, Token, closed, inline, matches
from nmt.documents.xml_text import attribute, check_xml, prefix_of
from nmt.text.scripts import base_language
from nmt.text.tags import Segment

#: Inline elements whose content is code.
CODES = ("bpt", "ept", "ph", "it", "sub")
_OPEN_STATES = ("", "new", "initial", "needs-translation", "needs-adaptation", "needs-l10n")
_XLIFF = ("urn:oasis:names:tc:xliff:document:1.2", "urn:oasis:names:tc:xliff:document:1.1")
_XLIFF_2 = tuple(f"urn:oasis:names:tc:xliff:document:2.{minor}" for minor in range(3))

Element = tuple[int, int]  # the numbers of the opening and the closing tag


def read_xliff(text: str, slots: Slots) -> str:
    """The text of XLIFF with marks for targets that are missing, empty, or in a state that needs translation.

    Raises:
        ValueError: the text is not XLIFF.
    """
    tokens = check_xml(text)
    prefix = prefix_of(text, *_XLIFF, *_XLIFF_2)
    is_2 = any(f'"{name}"' in text or f"'{name}'" in text for name in _XLIFF_2)
    unit = prefix + ("segment" if is_2 else "trans-unit")
    partners, pieces, at = matches(tokens), list[str](), 0
    while at < len(tokens):
        token, end = tokens[at], partners.get(at)
        if token.kind == "open" and attribute(token, "translate") == "no" and end is not None:
            pieces.append("".join(each.raw for each in tokens[at : end + 1]))
            at = end
        elif token.kind == "open" and token.name == unit and end is not None:
            pieces.append(_unit(tokens[at : end + 1], prefix, is_2, slots))
            at = end
        else:
            pieces.append(token.raw)
        at += 1
    return "".join(pieces)


def _unit(tokens: Sequence[Token], prefix: str, is_2: bool, slots: Slots) -> str:
    """The text of a unit, with marks if it needs a translation."""
    raw = "".join(token.raw for token in tokens)
    partners = matches(tokens)
    elements = list(_children(tokens, partners))
    source = next((each for each in elements if tokens[each[0]].name == f"{prefix}source"), None)
    target = next((each for each in elements if tokens[each[0]].name == f"{prefix}target"), None)
    built = None if source is None else _content(tokens[source[0] + 1 : source[1]], prefix)
    states = attribute(tokens[0] if is_2 or target is None else tokens[target[0]], "state")
    filled = target is not None and any(
        token.kind != "text" or token.raw.strip() for token in tokens[target[0] + 1 : target[1]]
    )
    if source is None or built is None or attribute(tokens[0], "approved") == "yes":
        return raw
    if states not in _OPEN_STATES or (filled and (is_2 or not states)):
        return raw
    write = partial(_written, built)
    state = "" if is_2 else ' state="needs-review-translation" state-qualifier="leveraged-mt"'
    segmented = next((end for start, end in elements if tokens[start].name == f"{prefix}seg-source"), source[1])
    first, last = target or (segmented + 1, segmented)
    before = "".join(token.raw for token in tokens[1:first])
    opening = tokens[first].raw if target else f"<{prefix}target>"
    opening = re.sub(r"""\s(?:state|state-qualifier)\s*=\s*(?:"[^"]*"|'[^']*')""", "", opening)
    opening = re.sub(r"\s*/?>\Z", f"{state}>", opening)
    body = "".join(token.raw for token in tokens[first : last + 1])
    mark = slots.add(built.segment, body, lambda segment: f"{opening}{write(segment)}</{prefix}target>")
    start = tokens[0].raw
    if is_2:
        stateless = re.sub(r"""\sstate\s*=\s*(?:"[^"]*"|'[^']*')""", "", start)
        start = slots.also(start, lambda _: f'{stateless[:-1]} state="translated">')
    return start + before + mark + "".join(token.raw for token in tokens[last + 1 :])


def _children(tokens: Sequence[Token], partners: dict[int, int]) -> Iterator[Element]:
    """Yield the child elements of an element; the tag of an empty element is also its closing tag."""
    at = 1
    while at < len(tokens) - 1:
        end = partners.get(at, at)
        if tokens[at].name and tokens[at].kind in ("open", "lone"):
            yield at, end
        at = end + 1


def _content(tokens: Sequence[Token], prefix: str) -> Inline | None:
    """The contents of a source element as a segment; None without words."""
    codes = {prefix + name for name in CODES}

    def is_opaque(token: Token) -> bool:
        is_protected = attribute(token, "translate") == "no" or attribute(token, "mtype") == "protected"
        return token.name in codes or is_protected

    built = inline(closed(tokens, is_opaque), collapse=False)
    return built if built is not None and is_language(built.segment.text) else None


def _written(built: Inline, segment: Segment) -> str:
    return built.before + segment.render(partial(html.escape, quote=False)) + built.after


#: Maps a code to its language and its script ("" if unknown), which are equal for all codes of one language.
Canonical = Callable[[str], tuple[str, str]]


def plain_code(code: str) -> tuple[str, str]:
    """The first part of a code, without a script: "de-AT" -> ("de", "")."""
    return base_language(code), ""


def read_tmx(text: str, slots: Slots, source: str = "", target: str = "", canonical: Canonical = plain_code) -> str:
    """The text of a translation memory with marks for units that have no text in the target language.

    Args:
        text: the memory.
        slots: receives the slots of its units.
        source: the code of the language to translate from.
        target: the code of the language to translate into.
        canonical: makes codes comparable, such as de, deu_Latn and de-AT.

    Raises:
        ValueError: the text is not TMX, or a language is "".
    """
    tokens = check_xml(text)
    partners, pieces = matches(tokens), list[str]()
    if next((token.name for token in tokens if token.kind in ("open", "lone") and token.name), "") != "tmx":
        raise ValueError("it does not begin with <tmx>")
    if not source or not target:
        raise ValueError("the run does not know its languages, and a translation memory has several")
    at = 0
    while at < len(tokens):
        token, end = tokens[at], partners.get(at)
        if token.kind == "open" and token.name == "tu" and end is not None:
            pieces.append(_memory_unit(tokens[at : end + 1], source, target, slots, canonical))
            at = end
        else:
            pieces.append(token.raw)
        at += 1
    return "".join(pieces)


def _memory_unit(tokens: Sequence[Token], source: str, target: str, slots: Slots, canonical: Canonical) -> str:
    raw = "".join(token.raw for token in tokens)
    partners = matches(tokens)
    variants = {
        (attribute(tokens[start], "xml:lang") or attribute(tokens[start], "lang")).lower(): (start, end)
        for start, end in _children(tokens, partners)
        if tokens[start].name == "tuv"
    }
    place = next((variants[code] for code in variants if _same(code, source, canonical)), None)
    if place is None or any(_same(code, target, canonical) for code in variants):
        return raw
    segment = [number for number in range(*place) if tokens[number].name == "seg" and number in partners]
    built = _content(tokens[segment[0] + 1 : segment[1]], "") if segment else None
    if built is None:
        return raw
    write = partial(_written, built)
    space = tokens[place[0] - 1].raw if tokens[place[0] - 1].kind == "text" else ""
    tag = html.escape(target.replace("_", "-"))
    mark = slots.add(
        built.segment,
        "",
        lambda each: f'{space}<tuv xml:lang="{tag}" creationid="MT"><seg>{write(each)}</seg></tuv>',
    )
    end = place[1] + 1
    return "".join(token.raw for token in tokens[:end]) + mark + "".join(token.raw for token in tokens[end:])


def _same(code: str, language: str, canonical: Canonical) -> bool:
    """Whether a code, such as de-AT, means a language, such as de; scripts must agree if both are known."""
    (one, script), (other, written) = canonical(code), canonical(language)
    return one == other and (script == written or not (script and written))
