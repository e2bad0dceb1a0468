"""What the words of a sentence are, and which subword pieces spell them: the units of alignments and pictures.

Stands between a translation's pieces and word-level weights. Pictures take the words that the text itself shows
(`source_units`, `target_units`); links that come from elsewhere count words in their own way (`splitting`), and
`spelled` finds the pieces of such words by their letters.
"""

import codecs
import difflib
import re
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.text.scripts import unspaced
from nmt.translation.types import Translation

WORD_START = "\u2581"
_LITERAL = "\ufdd0"  # as what a U+2581 of the text itself travels
_UNKNOWN = "\u2047"


class Units(NamedTuple):
    """What the rows or the columns of word-level weights stand for.

    Attributes:
        labels: [U] the words; subword pieces where the text puts no spaces between words.
        members: [P, U] the share of each subword piece that lies in each unit: a row of zeros for a piece of no
            unit, one 1 for a piece within a unit, shares that sum to 1 for a piece that reaches over several.
        are_words: whether the units are words.
    """

    labels: list[str]
    members: npt.NDArray[np.float32]
    are_words: bool


def _units(labels: list[str], of_piece: Sequence[int], are_words: bool) -> Units:
    """Units from the unit of each piece, -1 for none."""
    members = np.array(of_piece, dtype=np.int64)[:, None] == np.arange(len(labels))[None, :]
    return Units(labels, members.astype(np.float32), are_words)


def _byte(piece: str) -> int | None:
    match = re.fullmatch(r"<0x([0-9A-F]{2})>", piece)
    return int(match[1], 16) if match else None


def _joined(pieces: Sequence[str]) -> str:
    """The text of some pieces: word marks dropped, byte pieces decoded."""
    data = bytearray()
    for piece in pieces:
        byte = _byte(piece)
        data += piece.replace(WORD_START, "").encode() if byte is None else bytes([byte])
    return data.decode(errors="replace")


def _piece_units(pieces: Sequence[str], words: Sequence[int]) -> Units:
    index: list[int] = []
    groups: list[list[str]] = []
    open_group = False  # a lone word mark waits for its first piece, the bytes of one character for each other
    for piece, word in zip(pieces, words, strict=True):
        byte = _byte(piece)
        if word < 0 and piece != WORD_START:
            index.append(-1)
            open_group = False
            continue
        continues = byte is not None and 0x80 <= byte < 0xC0
        if not groups or not (open_group or continues):
            groups.append([])
        groups[-1].append(piece)
        index.append(len(groups) - 1)
        open_group = piece == WORD_START
    labels = [_joined(group) for group in groups]
    if labels and not labels[-1]:  # a word mark after the last word
        labels.pop()
        index = [-1 if unit == len(labels) else unit for unit in index]
    return _units(labels, index, are_words=False)


def _word_units(text: str, pieces: Sequence[str], words: Sequence[int]) -> Units:
    count = max(words, default=-1) + 1
    for labels in (text.split(), [word for word in text.split(" ") if word]):
        if len(labels) == count:
            return _units(labels, words, are_words=True)
    # The model saw less than the text (a truncated line), or counts words in its own way: ask the pieces.
    grouped: list[list[str]] = [[] for _ in range(count)]
    for piece, word in zip(pieces, words, strict=True):
        if word >= 0:
            grouped[word].append(piece)
    return _units([_joined(group) for group in grouped], words, are_words=True)


def source_units(translation: Translation) -> Units:
    """The source units of a translation: words, or pieces where the source is written without spaces."""
    if unspaced(translation.source):
        return _piece_units(translation.source_pieces, translation.source_words)
    return _word_units(translation.source, translation.source_pieces, translation.source_words)


def target_units(translation: Translation) -> Units:
    """The target units of a translation; see `source_units`."""
    if unspaced(translation.text):
        return _piece_units(translation.pieces, translation.words)
    return _word_units(translation.text, translation.pieces, translation.words)


def spelled(pieces: Sequence[str], inside: Sequence[int], words: list[str]) -> Units:
    """Words that somebody has counted, and the pieces that spell them, found by their letters.

    White space and case make no difference. Where words and pieces are spelt differently (Moses normalises quotation
    marks, say) the longest runs that agree are matched, and what is between two of them in proportion.

    Args:
        pieces: [P] of a sentence.
        inside: [P] negative for a piece that is no text, such as the end of sentence.
        words: of the same sentence.

    Returns:
        One unit a word. A piece that shows nothing (a lone word mark) belongs to what follows.
    """
    letters, owners = _letters(pieces, inside)
    spelling = [(char.lower(), unit) for unit, word in enumerate(words) for char in word]
    theirs = [letter for letter, _ in spelling]
    members = np.zeros((len(pieces), len(words)), dtype=np.float32)
    for kind, first, last, other, end in difflib.SequenceMatcher(None, letters, theirs, autojunk=False).get_opcodes():
        if kind not in ("equal", "replace"):
            continue
        for at in range(first, last):
            unit = spelling[other + (at - first) * (end - other) // (last - first)][1]
            for piece in owners[at]:
                members[piece, unit] += 1
    members /= np.maximum(members.sum(axis=1, keepdims=True), 1)
    return Units(words, members, are_words=True)


def _letters(pieces: Sequence[str], inside: Sequence[int]) -> tuple[list[str], list[list[int]]]:
    """The visible characters that pieces spell, in small letters, and the pieces of each."""
    letters: list[str] = []
    owners: list[list[int]] = []
    waiting: list[int] = []  # word marks, and the bytes of a character so far
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for index, (piece, word) in enumerate(zip(pieces, inside, strict=True)):
        if word < 0 and piece != WORD_START:
            waiting = []
            continue
        waiting.append(index)
        byte = _byte(piece)
        if byte is not None:
            text = decoder.decode(bytes([byte]))
        else:
            text = _UNKNOWN if piece == "<unk>" else piece.replace(WORD_START, "").replace(_LITERAL, WORD_START)
        for char in text:
            if not char.isspace():
                letters.append(char.lower())
                owners.append(waiting)
                waiting = [index]
        if text and not text.isspace():
            waiting = []
    return letters, owners
