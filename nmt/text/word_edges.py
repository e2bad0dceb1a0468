"""Word boundaries before and after each token, for search, which never sees the text of tokens."""

import functools
import unicodedata
from collections.abc import Sequence

from nmt.text.tokenizer import SPACE, Vocabulary


@functools.lru_cache(maxsize=8)
def word_edges(vocabulary: Vocabulary) -> tuple[list[bool], list[bool]]:
    """For each token, whether a word ends before it, and whether a word may begin right after it.

    A word ends before a space, a mark and the end of the text. It may begin after a space, bracket, dash, slash, quote.
    """
    texts = [raw.decode("utf-8", "replace").replace("\N{REPLACEMENT CHARACTER}", "x") for raw in vocabulary.shows]
    return [not text or not _in_word(text[0]) for text in texts], [bool(text) and _opens(text[-1]) for text in texts]


def _in_word(character: str) -> bool:
    """Whether a character is a letter, a digit, an underscore or a combining mark."""
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _opens(character: str) -> bool:
    return character in " \"'/" or unicodedata.category(character) in ("Ps", "Pi", "Pd")


def without_space(vocabulary: Vocabulary, tokens: Sequence[int]) -> list[int]:
    """Tokens of the same text without the space at its beginning; [] if the model has no piece for that."""
    first = vocabulary.pieces(tokens[:1])[0].removeprefix(SPACE) if tokens else ""
    if not first:
        return list(tokens[1:])
    try:
        return [*vocabulary.ids([first]), *tokens[1:]]
    except KeyError:
        return []
