"""Splits a client's text or HTML into sentences and unchanged parts, and joins their translations again."""

import unicodedata
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from nmt.alignment.tag_projection import LinkedText, project
from nmt.text.html_text import escape, read_html, split_markup
from nmt.text.sentence_split import FULL_STOPS, split_sentences
from nmt.text.tags import Segment, Tag


class Passage(NamedTuple):
    """A sentence to translate, or white space and symbols that stay unchanged."""

    text: str
    translated: bool = False
    ends_document: bool = False


class TextBlock(NamedTuple):
    """The passages of a text with their inline tags; or `markup`, which stays unchanged."""

    passages: Sequence[Passage] = ()
    tags: Sequence[Tag] = ()
    markup: str = ""


def split_passages(text: str, language: str, markup: bool, lines_only: bool) -> list[TextBlock]:
    """Split a text into passages. With `markup` the text is HTML; with `lines_only` lines are not split into sentences.

    Raises:
        ValueError: a character reference is too long.
    """
    return [
        TextBlock(markup=each)
        if isinstance(each, str)
        else TextBlock(_passages(each.text, language, lines_only), each.tags)
        for each in (read_html(text) if markup else [Segment(text)])
    ]


def _passages(text: str, language: str, lines_only: bool) -> list[Passage]:
    passages = []
    for sentence, space in split_sentences(text, language, lines_only):
        passages.append(Passage(sentence, _is_language(sentence)))
        passages.append(Passage(space, ends_document=len(space.splitlines()) > 1))
    return [each for each in passages if each.text]


def _is_language(text: str) -> bool:
    """Whether a text needs translation: it has letters or digits, or at least no punctuation or symbols."""
    return any(map(str.isalnum, text)) or not any(unicodedata.category(character)[0] in "PS" for character in text)


def detectable(text: str, markup: bool) -> str:
    """The text without markup, whose script tells the language."""
    return "".join(part.written for part in split_markup(text) if part.kind == "text") if markup else text


def join_passages(blocks: Sequence[TextBlock], translations: Iterator[LinkedText], markup: bool) -> str:
    """Join the translated text: each sentence is replaced by its translation, and tags are moved along word links."""
    texts = []
    for block in blocks:
        parts: list[LinkedText] = []
        after_sentence = False
        for passage in block.passages:
            part = next(translations) if passage.translated else LinkedText.same(passage.text)
            # Sentences without a space between them are in a script without spaces: the translation may need a space.
            if passage.translated and after_sentence and not parts[-1].target.endswith(tuple(FULL_STOPS)):
                parts.append(LinkedText.same(" ")._replace(source="", sentences=[]))
            parts.append(part)
            after_sentence = passage.translated
        segment = project(LinkedText.join(parts), block.tags)
        texts.append(block.markup + (segment.render(escape) if markup else segment.text))
    return "".join(texts)
