"""A text or HTML of a client -> sentences to translate and what stays between them -> text again.

A translator needs no tree: tags are found as HTML's tokenizer does, in linear time, stay byte for byte, and nothing is
corrected. So well-formed markup stays well-formed.
"""

import html
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.text.sentence_split import FULL_STOPS, split_sentences

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


@dataclass(frozen=True)
class Passage:
    """A sentence to translate, or white space, tags and signs that stay as they are."""

    text: str
    translated: bool = False
    ends_document: bool = False


def split_passages(text: str, language: str, markup: bool, lines_only: bool) -> list[Passage]:
    """The passages of a text in a language; `markup` if it is HTML, `lines_only` if lines are not split into sentences.

    Raises:
        ValueError: a character reference is too long.
    """
    passages = []
    for written, is_text in split_markup(text) if markup else [(text, True)]:
        plain = html.unescape(written) if markup and is_text else written
        if not is_text or (markup and not any(map(str.isalnum, plain))):
            passages.append(Passage(written))
            continue
        for sentence, space in split_sentences(plain, language, lines_only):
            passages.append(Passage(sentence, _is_language(sentence)))
            passages.append(Passage(space, ends_document=len(space.splitlines()) > 1))
    return [each for each in passages if each.text]


def _is_language(text: str) -> bool:
    """Whether a model has something to say: not of emoji, rules and bullets. It leaves invisible characters out."""
    return any(map(str.isalnum, text)) or not any(unicodedata.category(character)[0] in "PS" for character in text)


def detectable(text: str, markup: bool) -> str:
    """The part of a text whose script is its language's."""
    return "".join(part for part, is_text in split_markup(text) if is_text) if markup else text


def join_passages(passages: Sequence[Passage], translations: Iterator[str], markup: bool) -> str:
    """The text again, with a translation for each sentence."""
    parts: list[str] = []
    after_sentence = False
    for passage in passages:
        part = next(translations) if passage.translated else passage.text
        # Only scripts without spaces have none between sentences.
        if passage.translated and after_sentence and not parts[-1].endswith(tuple(FULL_STOPS)):
            parts.append(" ")
        is_tag = not passage.translated and not passage.text.isspace()
        parts.append(part if is_tag or not markup else html.escape(part, quote=False))
        after_sentence = passage.translated
    return "".join(parts)
