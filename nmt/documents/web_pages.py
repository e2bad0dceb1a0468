"""Web pages (.html): text between block elements, with inline tags, and attributes that people read."""

import html
import re
from functools import partial

from nmt.documents.document_slots import Slots, is_language
from nmt.documents.markup import Token, closed, inline, tokens_of
from nmt.text.tags import Segment

#: The declaration of the encoding in a page.
HTML_DECLARED = r"""<meta[^>]*?charset\s*=\s*["']?([\w.-]+)|^\s*<\?xml[^>]*?encoding\s*=\s*["']([\w.-]+)"""
_INLINE = frozenset(
    """
    a abbr acronym b bdi bdo big cite data del dfn em font i img ins label mark nobr q ruby rb rt rp s small span
    strike strong sub sup time tt u wbr code kbd samp var svg math input button select audio video picture
    """.split()  # noqa: SIM905
)
_OPAQUE = frozenset(
    "code kbd samp var svg math select audio video picture pre object iframe noscript ruby".split()  # noqa: SIM905
)
VOID = frozenset("area base br col embed hr img input link meta source track wbr".split())  # noqa: SIM905
_READ = re.compile(r"""(\s(?:alt|title|placeholder|aria-label)\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE)
_META = re.compile(r"""(\scontent\s*=\s*)("[^"]*"|'[^']*')""", re.IGNORECASE)
_DESCRIBES = re.compile(
    r"""\s(?:name|property)\s*=\s*["']?(?:description|keywords|(?:og|twitter):(?:title|description))["'\s/>]""",
    re.IGNORECASE,
)
_KEPT = re.compile(r"""\stranslate\s*=\s*["']?no\b|\sclass\s*=\s*(?:"[^"]*|'[^']*)\bnotranslate\b""", re.IGNORECASE)


def read_html(text: str, slots: Slots) -> str:
    """The text of a page with marks for its text and the attributes that people read.

    Elements with `translate="no"`, code, scripts and preformatted text are kept.
    """
    tokens = tokens_of(text, void=VOID)
    tokens = closed(tokens, is_kept)
    pieces, run = list[str](), list[Token]()
    for token in tokens:
        if token.kind in ("open", "lone") and token.name and not _KEPT.search(token.raw):
            token = _with_attributes(token, slots)
        if token.name and token.name.lower() not in _INLINE | {"br"}:
            pieces += [_run(run, slots), token.raw]
            run = []
        else:
            run.append(token)
    return "".join([*pieces, _run(run, slots)])


def is_kept(token: Token) -> bool:
    """Whether an element is kept unchanged: code, or marked as untranslated."""
    return token.name.lower() in _OPAQUE or _KEPT.search(token.raw) is not None


def _with_attributes(token: Token, slots: Slots) -> Token:
    """A tag with marks for the attributes that people read."""

    def mark(attribute: re.Match[str]) -> str:
        quote, value = attribute[2][0], html.unescape(attribute[2][1:-1])
        if not is_language(value):
            return attribute[0]

        def write(segment: Segment) -> str:
            escaped = html.escape(segment.text, quote=False)
            return escaped.replace('"', "&quot;") if quote == '"' else escaped.replace("'", "&#39;")

        return f"{attribute[1]}{quote}{slots.add(Segment(value), attribute[2][1:-1], write)}{quote}"

    if token.name.lower() == "meta":
        return token._replace(raw=_META.sub(mark, token.raw)) if _DESCRIBES.search(token.raw) else token
    return token._replace(raw=_READ.sub(mark, token.raw)) if len(token.raw) > len(token.name) + 3 else token


def _run(tokens: list[Token], slots: Slots) -> str:
    """The text of a run of inline tokens, with a mark if it has words; `<br>` is a line break in the segment."""
    breaks = [token.raw for token in tokens if token.name.lower() == "br"]
    built = inline([Token("text", each.raw, value="\n") if each.name.lower() == "br" else each for each in tokens])
    if built is None or not is_language(built.segment.text):
        return "".join(token.raw for token in tokens)
    write = partial(_escaped, breaks[0] if breaks else "\n")
    mark = slots.add(built.segment, built.raw, lambda segment: segment.render(write))
    return built.before + mark + built.after


def _escaped(line_break: str, text: str) -> str:
    return html.escape(text, quote=False).replace("\n", line_break)
