"""A text or HTML of a client -> sentences to translate and what stays between them -> text again."""

import html
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from nmt.serving.markup import split_markup
from nmt.text.sentence_split import FULL_STOPS, split_sentences


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
