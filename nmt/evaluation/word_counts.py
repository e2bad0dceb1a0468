"""Splitting of text into words, and counts in the training text, for analyses of single words.

Links and gold files use other words (`nmt.alignment.splitters`).
"""

import functools
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from nmt.text.scripts import lengths

WORDS_FILE = "words.json"  # the words of a split, with their counts and pieces
_MANY = 100_000  # number of training sentences that are counted at a time


class Word(NamedTuple):
    """A word, and the position of its first character in its sentence."""

    text: str
    begin: int


def places(sentence: str, characters: bool = False) -> list[Word]:
    """Split a sentence at white space; punctuation and symbols at the ends of a word become separate words.

    With `characters`, each character except white space is a word, as for Chinese.
    """
    if characters:
        return [Word(character, at) for at, character in enumerate(sentence) if not character.isspace()]
    words: list[Word] = []
    begin = 0
    for token in sentence.split():
        begin = sentence.index(token, begin)
        words += [Word(text, begin + at) for text, at in _peeled(token)]
        begin += len(token)
    return words


def split_words(sentence: str, characters: bool = False) -> list[str]:
    """The words of `places` without their positions."""
    return [word.text for word in places(sentence, characters)]


def without_spaces(sentences: Sequence[str]) -> bool:
    """Whether a text is split into characters, because its script has no spaces between words."""
    return lengths(sentences).unit == "characters"


@functools.lru_cache(1 << 16)
def _peeled(token: str) -> list[Word]:
    """Split a token into the marks at its beginning, the word, and the marks at its end."""
    first, last = 0, len(token)
    while first < last and _is_mark(token[first]):
        first += 1
    while first < last and _is_mark(token[last - 1]):
        last -= 1
    word = [Word(token[first:last], first)] if first < last else []
    before, after = ([Word(token[at], at) for at in part] for part in (range(first), range(last, len(token))))
    return [*before, *word, *after]


def _is_mark(character: str) -> bool:
    return unicodedata.category(character)[0] in "PS"


def count(sentences: Iterable[str], wanted: Collection[str], characters: bool = False) -> dict[str, int]:
    """The count of each wanted word in a text; 0 for words that do not occur."""
    counts = dict.fromkeys(wanted, 0)
    split: Callable[[str], Iterable[str]] = (lambda line: line) if characters else str.split
    lines = iter(sentences)
    while block := list(islice(lines, _MANY)):
        # Count tokens first, so that each distinct token is split only once.
        for token, times in Counter(token for line in block for token in split(line)).items():
            for word in split_words(token, characters):
                if word in counts:
                    counts[word] += times
    return counts
