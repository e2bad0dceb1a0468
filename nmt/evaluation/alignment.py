"""Attention weights -> word-level weights -> discrete links, and their agreement with gold links.

Stands after the translator: it reads `Translation.weights` and reaches no further back. Links are pairs of
positions (source, target), both counted from 0, written in Pharaoh format: "0-0 1-2", `-` for a sure link and
`p` for a possible one.
"""

import re
from collections.abc import Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.errors import UserError
from nmt.translation.types import Translation

Link = tuple[int, int]
Weights = npt.NDArray[np.float32]
Head = int | Literal["mean"]

WORD_START = "\u2581"

# First and last code points of the scripts that put no spaces between words.
_UNSPACED = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x0F00, 0x0FFF),  # Tibetan
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3005, 0x3007),  # ideographic iteration mark and zero
    (0x3040, 0x30FF),  # Hiragana, Katakana
    (0x3400, 0x9FFF),  # Han
    (0xF900, 0xFAFF),
    (0x20000, 0x3FFFF),
)


class Units(NamedTuple):
    """What the rows or the columns of word-level weights stand for.

    Attributes:
        labels: [U] the words; subword pieces where the text puts no spaces between words.
        of_piece: [P] for each subword piece the unit it belongs to, -1 for none.
        are_words: whether the units are whitespace-delimited words.
    """

    labels: list[str]
    of_piece: list[int]
    are_words: bool


def unspaced(text: str) -> bool:
    """Whether `text` is written without spaces between words, so that whitespace words would be sentences.

    True where most letters are of such a script and the whitespace words are long: Chinese that somebody has
    segmented ("我 爱 你") has words like any other text.
    """
    letters = [char for char in text if char.isalpha()]
    found = sum(any(low <= ord(char) <= high for low, high in _UNSPACED) for char in letters)
    words = len(text.split())
    return found > len(letters) / 2 and (words == 1 or found > 4 * words)


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
    return Units(labels, index, are_words=False)


def _word_units(text: str, pieces: Sequence[str], words: Sequence[int]) -> Units:
    count = max(words, default=-1) + 1
    for labels in (text.split(), [word for word in text.split(" ") if word]):
        if len(labels) == count:
            return Units(labels, list(words), are_words=True)
    # The model saw less than the text (a truncated line), or counts words in its own way: ask the pieces.
    grouped: list[list[str]] = [[] for _ in range(count)]
    for piece, word in zip(pieces, words, strict=True):
        if word >= 0:
            grouped[word].append(piece)
    return Units([_joined(group) for group in grouped], list(words), are_words=True)


def source_units(translation: Translation, *, whitespace: bool = False) -> Units:
    """The source units of a translation: words, or pieces where the source is written without spaces.

    Args:
        translation: what the translator returned.
        whitespace: always take whitespace-delimited words, as links that come from elsewhere do.
    """
    if not whitespace and unspaced(translation.source):
        return _piece_units(translation.source_pieces, translation.source_words)
    return _word_units(translation.source, translation.source_pieces, translation.source_words)


def target_units(translation: Translation, *, whitespace: bool = False) -> Units:
    """The target units of a translation; see `source_units`."""
    if not whitespace and unspaced(translation.text):
        return _piece_units(translation.pieces, translation.words)
    return _word_units(translation.text, translation.pieces, translation.words)


def piece_weights(translation: Translation, head: Head = "mean", shift: int = 0) -> Weights:
    """The weights of one head over subword pieces, end of sentence included.

    Args:
        translation: what the translator returned.
        head: number of a head, from 0, or "mean" for the mean of all heads.
        shift: 0 leaves row t at the piece that was predicted from it; 1 moves it to the piece before, which
            was the decoder's input at that step (Luong et al. 2015, footnote 14). The first row, whose input
            was the beginning of the sentence, then falls away, and the last piece has none.

    Returns:
        [T, S] for shift 0, [T - 1, S] for shift 1 (T = 0 stays 0). Rows sum to one, or less under a
        factor such as local-p's.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    if shift not in (0, 1):
        raise UserError(f"shift={shift}: a row belongs to the predicted piece (0) or to the one before it (1).")
    if translation.weights is None:
        if any(word >= 0 for word in translation.words):
            raise UserError(
                "decoder=none has no attention weights: nothing to draw and no alignments. Train with "
                "decoder=bahdanau or decoder=luong to see what the model looks at."
            )
        return np.zeros((0, len(translation.source_pieces)), dtype=np.float32)  # of an empty line
    heads = len(translation.weights)
    if head == "mean":
        weights: Weights = translation.weights.mean(axis=0, dtype=np.float32)
    elif 0 <= head < heads:
        weights = translation.weights[head]
    else:
        raise UserError(f"head={head}: the model has heads 0 to {heads - 1}; or ask for head=mean.")
    return weights[shift:]


def word_weights(translation: Translation, head: Head = "mean", shift: int = 0, *, whitespace: bool = False) -> Weights:
    """The weights of one head over words.

    The sum over the source pieces of a word, the mean over its target pieces.
    What fell on the end of the sentence belongs to no word and is dropped, so that a row sums to one at
    most; it is not rescaled, for a faint row is news.

    Args:
        translation: what the translator returned.
        head: number of a head, from 0, or "mean".
        shift: 0 or 1, in pieces; see `piece_weights`.
        whitespace: see `source_units`.

    Returns:
        [Tw, Sw] with the units of `target_units` and `source_units`; the row of a word of which no piece has
        weights is zero.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    source = source_units(translation, whitespace=whitespace)
    target = target_units(translation, whitespace=whitespace)
    pieces = piece_weights(translation, head, shift)
    # Membership matrices: pieces [T, S] -> words by two products.
    sources = _membership(source)
    targets = _membership(target)[: len(pieces)]
    counts = targets.sum(axis=0)[:, None]
    summed = targets.T @ pieces @ sources
    averaged: Weights = np.divide(summed, counts, out=np.zeros_like(summed), where=counts > 0)
    return averaged


def _membership(units: Units) -> Weights:
    """[P, U] one where piece p belongs to unit u."""
    belongs = np.array(units.of_piece, dtype=np.int64)[:, None] == np.arange(len(units.labels))[None, :]
    members: Weights = belongs.astype(np.float32)
    return members


def links(translation: Translation, head: Head = "mean", shift: int = 0, *, whitespace: bool = False) -> list[Link]:
    """Links every target word to the source word with the most weight.

    Args: as `word_weights`.

    Returns:
        (source, target) positions from 0, in the order of the target; a word without weights has no link.

    Raises:
        UserError: the model has no attention, or no such head or shift.
    """
    weights = word_weights(translation, head, shift, whitespace=whitespace)
    return [(int(row.argmax()), target) for target, row in enumerate(weights) if row.any()]


class GoldLinks(NamedTuple):
    """The links that a person (or a corpus) gives one sentence pair.

    Attributes:
        sure: links that must be there.
        possible: links that may be there; holds the sure ones too.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


def format_links(found: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """Writes links in Pharaoh format, "0-0 1-2"; links that are only possible as "1p2"."""
    sure = set(found)
    marked = [(link, "-") for link in sure] + [(link, "p") for link in set(possible) - sure]
    return " ".join(f"{source}{mark}{target}" for (source, target), mark in sorted(marked))


def parse_links(line: str, *, base: int = 0) -> GoldLinks:
    """Reads one line in Pharaoh format.

    Args:
        line: links with blanks between them, `-` sure and `p` possible; may be empty.
        base: the number of the first word in the file, 0 or 1 (the gold of WPT 2003 counts from 1).

    Raises:
        UserError: something else stands there, or a position is before the first word.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        match = re.fullmatch(r"([0-9]+)([-p])([0-9]+)", item)
        if match is None:
            raise UserError(f"'{item}' is no word link: write SOURCE-TARGET, such as 0-2 (possible links 0p2).")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise UserError(f"'{item}' has a word before the first one: these links count from {base}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


class AlignmentScore(NamedTuple):
    """Agreement of predicted links with gold links, over a whole corpus (Och and Ney 2003, section 5).

    Attributes:
        aer: alignment error rate, 0 to 1, less is better.
        precision: share of the predicted links that are at least possible.
        recall: share of the sure links that were predicted.
    """

    aer: float
    precision: float
    recall: float


def alignment_error_rate(
    predicted: Sequence[Iterable[Link]],
    sure: Sequence[AbstractSet[Link]],
    possible: Sequence[AbstractSet[Link]],
) -> AlignmentScore:
    """Alignment error rate, AER = 1 - (|A and S| + |A and P|) / (|A| + |S|), counts summed over the corpus.

    Args:
        predicted: A, the links of each sentence pair.
        sure: S, the sure gold links of each.
        possible: P, the possible gold links of each; the sure ones are taken as possible too.

    Returns:
        Error rate, precision and recall. Precision is 1 where nothing was predicted, recall 1 where nothing
        is sure.

    Raises:
        UserError: the three have different lengths, or hold no link at all.
    """
    if not len(predicted) == len(sure) == len(possible):
        raise UserError(
            f"There are links for {len(predicted)} sentence pairs, but gold for {len(sure)} (sure) and "
            f"{len(possible)} (possible): every line of the one needs a line of the other."
        )
    total = in_sure = in_possible = sures = 0
    for links_, sure_, possible_ in zip(predicted, sure, possible, strict=True):
        found = set(links_)
        total += len(found)
        sures += len(sure_)
        in_sure += len(found & sure_)
        in_possible += len(found & (possible_ | sure_))
    if total + sures == 0:
        raise UserError("Neither the predicted nor the gold links hold a link: there is no error rate.")
    return AlignmentScore(
        aer=1 - (in_sure + in_possible) / (total + sures),
        precision=in_possible / total if total else 1.0,
        recall=in_sure / sures if sures else 1.0,
    )
