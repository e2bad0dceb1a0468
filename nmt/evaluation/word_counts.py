"""Text -> words, and their counts in the training text, for analyses of single words.

Links and gold files count words at white space instead (`nmt.alignment.splitters`).
"""

import functools
import unicodedata
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import islice
from typing import NamedTuple

from nmt.text.scripts import lengths

WORDS_FILE = "words.json"  # the words of a split, with their counts and pieces
_MANY = 100_000  # training sentences that are counted at a time


class Word(NamedTuple):
    """A word, and the position of its first character in its sentence."""

    text: str
    begin: int


def places(sentence: str, characters: bool = False) -> list[Word]:
    """The words of a sentence: at white space, with punctuation and symbols before and after them apart.

    With `characters`, each character that is not white space is a word, as in Chinese.
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
    """Whether the words of a text are its characters, because its script has no spaces between words."""
    return lengths(sentences).unit == "characters"


@functools.lru_cache(1 << 16)
def _peeled(token: str) -> list[Word]:
    """A token without white space: marks at its beginning, the word, marks at its end."""
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
    """The count of each wanted word in a text, 0 included."""
    counts = dict.fromkeys(wanted, 0)
    split: Callable[[str], Iterable[str]] = (lambda line: line) if characters else str.split
    lines = iter(sentences)
    while block := list(islice(lines, _MANY)):
        # Tokens first: a text has far fewer of them than it has words.
        for token, times in Counter(token for line in block for token in split(line)).items():
            for word in split_words(token, characters):
                if word in counts:
                    counts[word] += times
    return counts
