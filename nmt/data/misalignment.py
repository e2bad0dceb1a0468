"""Parallel text whose lines stop matching: a line is missing or added on one side, and all later pairs are wrong.

The lines of both sides are compared at several offsets, by their lengths and by words that translate each other. These
words are found by co-occurrence, in neighbouring lines as well, so that they do not depend on the offset. Where another
offset fits better for a long stretch, the text is misaligned there. docs/own-data.md has measurements.
"""

import re
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.text_formats import FIRST_LINES, format_of
from nmt.data.text_tables import quote_doubts
from nmt.text.scripts import lengths

Scores = npt.NDArray[np.float64]

#: Offsets that are tried.
_OFFSETS: Final = (-1, 1, -2, 2, -3, 3)
#: Neighbouring lines on either side whose words count as co-occurring.
_NEAR: Final = 2
#: The fewest lines to check, the most lines to check, and the lines in each part sampled from a longer text.
_FEWEST, _MOST, _PART = 200, 50_000, 1000
#: The fewest lines that can show that the two sides are unrelated.
_TELLING: Final = 500
#: The fewest pairs of a stretch, and the least gain of its scores, in standard errors of the mean.
_STRETCH, _CERTAIN = 40, 8.0


class Shift(NamedTuple):
    """A stretch of source lines that fit target lines in other rows better.

    Attributes:
        first, last: first and last row on the source side, from 0.
        offset: source row n fits target row n + offset; 0 if the sides are unrelated.
    """

    first: int
    last: int
    offset: int


def find_shift(source: Sequence[str], target: Sequence[str]) -> Shift | None:
    """The longest stretch that fits at another offset, or the whole text if it is unrelated; None if lines match."""
    rows = _rows(len(source))
    if len(rows) < _FEWEST:
        return None
    sides = [[side[row] for row in rows.tolist()] for side in (source, target)]
    blank = np.array([not all(map(str.strip, pair)) for pair in zip(*sides, strict=True)])
    words, (source_lengths, target_lengths) = _Words(*sides), map(_relative_lengths, sides)

    def scores(offset: int) -> Scores:
        totals = words.scores(offset) + np.clip(source_lengths * np.roll(target_lengths, -offset), -3, 3)
        at = np.arange(len(rows)) + offset
        inside = (at >= 0) & (at < len(rows))
        at = np.clip(at, 0, len(rows) - 1)
        inside &= (rows[at] == rows + offset) & ~blank & ~blank[at]
        return np.where(inside, totals, np.nan)

    same_row, shifts = scores(0), list[tuple[int, Shift]]()
    for offset in _OFFSETS:
        fitting = scores(offset)
        gain = np.nan_to_num(fitting - same_row)
        first, end = _largest_sum(gain - 1e-3)
        stretch = slice(first, end)
        # At twice the offset, the stretch must fit worse, too.
        beyond = np.nan_to_num(fitting - scores(2 * offset))[stretch]
        if end - first >= _STRETCH and min(_certainty(gain[stretch]), _certainty(beyond)) > _CERTAIN:
            shift = Shift(int(rows[first]), int(rows[end - 1]), offset)
            shifts.append((-int(np.count_nonzero(gain[stretch] > 0)), shift))
    if shifts:
        return min(shifts)[1]
    fits = min(_certainty(np.nan_to_num(same_row - scores(offset))) for offset in (-1, 1))
    unrelated = fits < _CERTAIN / 2 and len(rows) >= _TELLING and words.share() > 0.2
    return Shift(0, len(source) - 1, 0) if unrelated else None


def doubts_about(sides: Sequence[Sequence[str]], names: Sequence[str], start: int = 1) -> list[str]:
    """Warnings for the user if the lines of two files do not seem to be text, or not translations of each other.

    `sides` are all lines of both files; the first line of each has the number `start` in its file.
    """
    notes = []
    for side, name in zip(sides, names, strict=True):
        if file_format := format_of(side[:FIRST_LINES]):
            notes.append(f"warning: {name} looks like {file_format.name}. Its lines are taken as they are.")
    notes += [note for side, name in zip(sides, names, strict=True) for note in quote_doubts(side, name, start)]
    shift = find_shift(*sides)
    if shift is None:
        return notes
    if not shift.offset:
        notes.append(
            f"warning: line N of {names[0]} does not seem to be the translation of line N of {names[1]}: lines in "
            "other rows fit as well. Are these the right files, in the right order?"
        )
        return notes
    line, count = shift.first + start, len(sides[0])
    until = "" if shift.last >= count - max(_STRETCH, count // 50) else f" until about line {shift.last + start:,}"
    longer, shorter = names[::-1] if shift.offset > 0 else names
    notes.append(
        f"warning: the two sides do not seem to match from about line {line:,} on{until}: line {line:,} of {names[0]} "
        f"seems to belong to line {max(line + shift.offset, start):,} of {names[1]}. Is a line missing in {shorter} "
        f"near there, or added in {longer}? Correct it: the pairs after it are wrong."
    )
    return notes


def _rows(count: int) -> npt.NDArray[np.int64]:
    """The rows to check: all, or evenly spaced parts of a long text."""
    if count <= _MOST:
        return np.arange(count)
    starts = np.linspace(0, count - _PART, _MOST // _PART).astype(np.int64)
    return (starts[:, None] + np.arange(_PART)).ravel()


def _certainty(gains: Scores) -> float:
    """The mean of the gains in standard errors."""
    return float(gains.mean() / max(float(gains.std()), 1e-9) * np.sqrt(len(gains)))


def _largest_sum(values: Scores) -> tuple[int, int]:
    """First and end of the stretch with the largest sum."""
    sums = np.concatenate([[0.0], np.cumsum(values)])
    end = int(np.argmax(sums - np.minimum.accumulate(sums)))
    return int(np.argmin(sums[: end + 1])), end


def _relative_lengths(side: Sequence[str]) -> Scores:
    """Standardised log lengths of lines; near zero if all lines have about the same length."""
    values = np.log1p([len(line.strip()) for line in side])
    relative: Scores = (values - values.mean()) / max(float(values.std()), 0.1)
    return relative


class _Words:
    """Scores of lines by their words that translate each other, as co-occurrence in the text itself shows."""

    def __init__(self, source: Sequence[str], target: Sequence[str]) -> None:
        from scipy.sparse import csr_array  # type: ignore[import-untyped]

        count = len(source)
        words, translations = (_occurrences(side) for side in (source, target))
        near: Any = translations
        for offset in (*range(-_NEAR, 0), *range(1, _NEAR + 1)):
            near = near + _rolled(translations, offset)
        near.data[:] = 1
        pairs = (words.T @ near).tocoo()
        often, often_near = (np.asarray(side.sum(axis=0)).ravel() for side in (words, near))
        expected = often[pairs.row] * often_near[pairs.col] / count
        surplus = (pairs.data - expected) / np.sqrt(expected)
        likely = np.flatnonzero((pairs.data >= 2) & (surplus > 3))
        likely = likely[np.lexsort((-surplus[likely], pairs.row[likely]))]
        ranks = np.arange(len(likely)) - np.searchsorted(pairs.row[likely], pairs.row[likely])
        best = likely[ranks < 3]
        share = (pairs.data[best] / often[pairs.row[best]]).astype(np.float32)
        shape = (words.shape[1], translations.shape[1])
        self._expected = words @ csr_array((share, (pairs.row[best], pairs.col[best])), shape=shape)
        self._expected.data = np.minimum(self._expected.data, 1)
        rarity = np.log(count / np.maximum(np.asarray(translations.sum(axis=0)).ravel(), 1))
        self._target = translations.multiply(rarity).tocsr()
        self._norm = np.sqrt(np.maximum(1, np.asarray(self._target.sum(axis=1)).ravel()))
        raw = self._raw(0)
        self._deviation = max(float(raw.std()), float(self._raw(1).std()), 1e-9)

    def _raw(self, offset: int) -> Scores:
        overlaps = np.asarray(self._expected.multiply(_rolled(self._target, offset)).sum(axis=1)).ravel()
        scores: Scores = overlaps / np.roll(self._norm, -offset)
        return scores

    def share(self) -> float:
        """The share of lines that have a word whose likely translation is in the same row."""
        return float((self._raw(0) > 0).mean())

    def scores(self, offset: int) -> Scores:
        """Scores of each source line with the target line `offset` rows further, in standard deviations."""
        scores: Scores = self._raw(offset) / self._deviation
        return scores


def _rolled(rows: Any, offset: int) -> Any:
    return rows[np.roll(np.arange(rows.shape[0]), -offset)]


def _occurrences(lines: Sequence[str]) -> Any:
    """A sparse matrix [lines, words] of the words in each line, without words in one line or in over a tenth of them.

    In text without spaces between words, pairs of characters count as words.
    """
    from scipy.sparse import csr_array

    spaced = lengths(lines[:2000]).unit == "words"
    numbers: dict[str, int] = {}
    rows, columns = list[int](), list[int]()
    for row, line in enumerate(lines):
        text = line.lower()
        words = set(re.findall(r"\w+", text)) if spaced else {text[at : at + 2] for at in range(len(text) - 1)}
        for word in words:
            rows.append(row)
            columns.append(numbers.setdefault(word, len(numbers)))
    place = np.array(columns, dtype=np.int64)
    counts = np.bincount(place, minlength=len(numbers))
    informative = (counts > 1) & (counts <= 0.1 * len(lines))
    new, inside = np.cumsum(informative) - 1, informative[place]
    entries = (np.array(rows, dtype=np.int64)[inside], new[place[inside]])
    return csr_array((np.ones(len(entries[0]), dtype=np.float32), entries), shape=(len(lines), int(informative.sum())))
