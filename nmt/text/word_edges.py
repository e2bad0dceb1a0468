"""Where words begin and end, token by token: what search must know of the text of tokens, which it never sees."""

import functools
import unicodedata
from collections.abc import Sequence

from nmt.text.tokenizer import SPACE, Vocabulary


@functools.lru_cache(maxsize=8)
def word_edges(vocabulary: Vocabulary) -> tuple[list[bool], list[bool]]:
    """Whether a word ends before each token, and whether one may begin right after it.

    It ends before a space, a mark and the end of the text; it begins after a space, a bracket, a dash, a quote.
    """
    texts = [raw.decode("utf-8", "replace").replace("\N{REPLACEMENT CHARACTER}", "x") for raw in vocabulary.shows]
    return [not text or not _in_word(text[0]) for text in texts], [bool(text) and _opens(text[-1]) for text in texts]


def _in_word(character: str) -> bool:
    """Whether a letter, a digit, or a mark on one."""
    return character.isalnum() or character == "_" or unicodedata.category(character)[0] == "M"


def _opens(character: str) -> bool:
    return character in " \"'/" or unicodedata.category(character) in ("Ps", "Pi", "Pd")


def without_space(vocabulary: Vocabulary, tokens: Sequence[int]) -> list[int]:
    """Tokens of the same text without the space before it; none if the model has none."""
    first = vocabulary.pieces(tokens[:1])[0].removeprefix(SPACE) if tokens else ""
    if not first:
        return list(tokens[1:])
    try:
        return [*vocabulary.ids([first]), *tokens[1:]]
    except KeyError:
        return []
