"""HTML -> its tags, which stay as they are byte for byte, and the text between them.

A translator needs no tree: tags are found as HTML's tokenizer does, in linear time, and nothing is corrected. So
well-formed markup stays well-formed.
"""

import re
from collections.abc import Iterator

#: Tags, comments and declarations. What is not closed reaches to the end, so that nothing is read twice.
_TOKEN = re.compile(
    r"""<!--(?:.*?-->|.*) | <!\[CDATA\[(?:.*?\]\]>|.*) | <[!?][^>]*+>?
    | </?[a-z](?:[^>=]|=\s*+(?:"[^"]*+"?|'[^']*+'?|[^\s>]++)?)*+>?""",
    re.VERBOSE | re.DOTALL | re.IGNORECASE,
)
_NAME = re.compile(r"</?([a-z][^\s/>]*)", re.IGNORECASE)
#: Elements whose text is no markup.
_RAW = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style")}
_KEPT = frozenset({"script", "style", "code", "kbd", "samp", "var", "svg", "math"})
_VOID = frozenset(
    {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
)
#: HTML's attribute, the class that other translators know, and Mastodon's mentions, hashtags and parts of links.
_UNTRANSLATED = re.compile(
    r"""\s(?:translate\s*=\s*["']?no\b
    | class\s*=\s*(?:"[^"]*|'[^']*)(?<![\w-])(?:notranslate|mention|invisible|ellipsis)(?![\w-]))""",
    re.VERBOSE | re.IGNORECASE,
)


def split_markup(markup: str) -> Iterator[tuple[str, bool]]:
    """Yield the parts of markup, which add up to it, and whether each is text to translate, in HTML's spelling."""
    position, inside, depth = 0, "", 0
    while match := _TOKEN.search(markup, position):
        yield markup[position : match.start()], not depth
        tag, position = match[0], match.end()
        yield tag, False
        if (named := _NAME.match(tag)) is None:
            continue
        name, opens = named[1].lower(), tag[1] != "/"
        if name in _RAW and opens:
            end = _RAW[name].search(markup, position)
            yield markup[position : (position := end.start() if end else len(markup))], False
        if name in _VOID or tag.endswith("/>"):
            continue
        if depth:
            depth += (name == inside) * (1 if opens else -1)
        elif opens and (name in _KEPT or _UNTRANSLATED.search(tag)):
            inside, depth = name, 1
    yield markup[position:], not depth
