"""The units of alignments and pictures: the words of a sentence, with the subword pieces that spell them.

Pictures use the words between the spaces of the text (`source_units`, `target_units`). Gold links may use other words
(`splitters`); `spelled` finds the pieces of these words by their letters.
"""

import difflib
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.system.errors import UserError
from nmt.text.scripts import unspaced
from nmt.text.spans import Span, words_of
from nmt.translation.types import Translation


class Units(NamedTuple):
    """The units of the rows or the columns of word-level weights.

    Attributes:
        labels: [U] the words; subword pieces if the text has no spaces between words.
        members: [P, U] the share of each subword piece in each unit: zeros for a piece in no unit, a single 1
            for a piece within a unit, shares that sum to 1 for a piece that spans several units.
        are_words: whether the units are words.
    """

    labels: list[str]
    members: npt.NDArray[np.float32]
    are_words: bool


def _units(labels: list[str], of_piece: Sequence[int], are_words: bool) -> Units:
    """`Units` from the index of each piece's unit; -1 for a piece in no unit."""
    members = np.array(of_piece, dtype=np.int64)[:, None] == np.arange(len(labels))[None, :]
    return Units(labels, members.astype(np.float32), are_words)


def units(text: str, spans: Sequence[Span | None]) -> Units:
    """The units of a text: its words, or its pieces if the text has no spaces between words.

    `spans`: the character spans of the P pieces.
    """
    if unspaced(text):
        return _piece_units(text, spans)
    words = words_of(text, spans)
    # The model may have seen less than the text (a truncated line).
    return _units(text.split()[: max(words, default=-1) + 1], words, are_words=True)


def source_units(translation: Translation) -> Units:
    """The source units of a translation."""
    return units(translation.source, translation.source_spans)


def target_units(translation: Translation) -> Units:
    """The target units of a translation."""
    return units(translation.text, translation.spans)


def unit_spans(text: str, spans: Sequence[Span | None]) -> list[Span]:
    """The character span of each unit: of words, or of pieces if the text has no spaces between words."""
    of_text = units(text, spans)
    if of_text.are_words:
        return [match.span() for match in re.finditer(r"\S+", text)]
    members = [
        [span for span, row in zip(spans, of_text.members) if span and row[at]] for at in range(len(of_text.labels))
    ]
    return [(min(span[0] for span in word), max(max(span[1], span[0] + 1) for span in word)) for word in members]


def word_number(labels: Sequence[str], word: int | str, field: str) -> int:
    """The number, from 0, of a word given by its number or its spelling; `field` is its name in messages.

    Raises:
        UserError: the word does not exist, or several words have this spelling.
    """
    numbers = [at for at, label in enumerate(labels) if label == word or at == word]
    if not numbers:
        raise UserError(f"{field}: there is no such word. Give its spelling, or a number from 0 to {len(labels) - 1}.")
    if len(numbers) > 1:
        raise UserError(f"{field}: several words are spelled so. Give a number: {', '.join(map(str, numbers))}.")
    return numbers[0]


def _places(text: str, spans: Sequence[Span | None]) -> Iterator[tuple[int, int, int]]:
    """Yield (piece, begin, end) for pieces with text or before text; an empty piece gets the next character."""
    for piece, span in enumerate(spans):
        if span is not None:
            begin, end = span[0], max(span[1], span[0] + 1)
            if not text[begin:end].isspace() and begin < len(text):
                yield piece, begin, end


def _piece_units(text: str, spans: Sequence[Span | None]) -> Units:
    """Units of pieces; pieces that share characters form one unit."""
    unit_of = [-1] * len(spans)
    edges: list[list[int]] = []
    for piece, begin, end in _places(text, spans):
        if not edges or begin >= edges[-1][1]:
            edges.append([begin, end])
        edges[-1][1] = max(end, edges[-1][1])
        unit_of[piece] = len(edges) - 1
    return _units([text[begin:end] for begin, end in edges], unit_of, are_words=False)


def spelled(text: str, spans: Sequence[Span | None], words: list[str]) -> Units:
    """The units for given words of a text; the pieces that spell each word are found by their letters.

    White space and case are ignored. If words and text are spelled differently (Moses normalises quotation marks, for
    example), the longest equal runs are matched, and the letters between two runs are assigned in proportion.

    Args:
        text: the source or the target of a translation.
        spans: the character spans of the P pieces.
        words: the words of the same sentence.

    Returns:
        One unit for each word. A piece without text (a single word mark) belongs to the following word.
    """
    letters = [(char.lower(), at) for at, char in enumerate(text) if not char.isspace()]
    spelling = [(char.lower(), unit) for unit, word in enumerate(words) for char in word]
    unit_at = np.full(len(text) + 1, -1)
    for first, last, other, end in _matched([letter for letter, _ in letters], [letter for letter, _ in spelling]):
        for number in range(first, last):
            unit_at[letters[number][1]] = spelling[other + (number - first) * (end - other) // (last - first)][1]
    members = np.zeros((len(spans), len(words)), dtype=np.float32)
    for piece, begin, end in _places(text, spans):
        within = unit_at[begin:end]
        np.add.at(members[piece], within[within >= 0], 1)
    members /= np.maximum(members.sum(axis=1, keepdims=True), 1)
    return Units(words, members, are_words=True)


def _matched(letters: list[str], others: list[str]) -> list[tuple[int, int, int, int]]:
    """Pairs of half-open ranges of letters and of others that are equal, or that lie between two equal ranges."""
    if letters == others:
        return [(0, len(letters), 0, len(others))]
    matcher = difflib.SequenceMatcher(None, letters, others, autojunk=False)
    return [opcode[1:] for opcode in matcher.get_opcodes() if opcode[0] in ("equal", "replace")]
