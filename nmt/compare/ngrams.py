"""N-grams that a variant translates correctly more often than another variant, or produces too often or too rarely."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import NamedTuple

from nmt.compare.scorers import Texts
from nmt.viewer.blocks import Linked, Table

LONGEST = 4  # words
FEWEST = 5  # minimum count
MOST = 5  # n-grams for each kind and variant
_MANY = 6  # with more variants than this, fewer n-grams are listed for each
_MOST_LINES = 8

Ngram = tuple[str, ...]
Lines = Sequence[Sequence[str]]


class NgramCounts(NamedTuple):
    """The counts of each n-gram in the translations, in the references, and in both texts of the same sentence."""

    produced: Counter[Ngram]
    expected: Counter[Ngram]
    right: Counter[Ngram]


class Salient(NamedTuple):
    """An n-gram with its counts in two texts and their smoothed ratio."""

    ngram: Ngram
    first: int
    second: int
    ratio: float


def ngrams_of(words: Sequence[str], size: int) -> Iterator[Ngram]:
    """The n-grams of `size` words, in the order of the sentence."""
    return (tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def ngrams(words: Sequence[str]) -> Counter[Ngram]:
    """The counts of all n-grams of up to four words."""
    return Counter(ngram for size in range(1, LONGEST + 1) for ngram in ngrams_of(words, size))


def count(hypotheses: Lines, references: Lines) -> NgramCounts:
    """Count the n-grams of a run's translations; matches are clipped in each sentence, as in BLEU."""
    counts = NgramCounts(Counter(), Counter(), Counter())
    for hypothesis, reference in zip(map(ngrams, hypotheses), map(ngrams, references), strict=True):
        for total, part in zip(counts, (hypothesis, reference, hypothesis & reference), strict=True):
            total.update(part)
    return counts


def salient(first: Mapping[Ngram, int], second: Mapping[Ngram, int], most: int = MOST) -> list[Salient]:
    """The n-grams with the largest ratio (first + 1) / (second + 1) and a first count of at least `FEWEST`.

    A part of a listed n-gram is left out unless it is more frequent than the whole.
    """
    ratios = [
        Salient(ngram, times, other, (times + 1) / (other + 1))
        for ngram, times in first.items()
        if times >= FEWEST and times > (other := second.get(ngram, 0))
    ]
    listed: list[Salient] = []
    for candidate in sorted(ratios, key=lambda each: (-each.ratio, -len(each.ngram), each.ngram)):
        if len(listed) == most:
            break
        if not any(times_of(candidate.ngram, each.ngram) and candidate.first <= each.first for each in listed):
            listed.append(candidate)
    return listed


def times_of(ngram: Ngram, words: Sequence[str]) -> int:
    """The count of an n-gram in a sentence."""
    if not set(ngram) <= set(words):  # fast exit: most sentences lack one of the words
        return 0
    return sum(other == ngram for other in ngrams_of(words, len(ngram)))


def lines_with_more(ngram: Ngram, first: Lines, second: Lines, references: Lines | None = None) -> list[int]:
    """The first line numbers, from 1, in which the first text has an n-gram more often than the second.

    With `references`, the first text's count is clipped to the reference's count.
    """

    def has_more(row: int) -> bool:
        times = times_of(ngram, first[row])
        if times and references is not None:
            times = min(times, times_of(ngram, references[row]))
        return times > 0 and times > times_of(ngram, second[row])

    return [row + 1 for row in islice(filter(has_more, range(len(first))), _MOST_LINES)]


def tables(texts: Texts, order: Sequence[int], rivals: Sequence[int | None]) -> list[tuple[str, Table]]:
    """A title and a table for each kind, with a row for each n-gram of a variant's first seed.

    Rows are in the `order` of the variants; each variant is compared with its rival, unless that is None.
    """
    references, between = texts.references, "" if texts.characters[1] else " "
    hypotheses = [runs[0] for runs in texts.hypotheses]
    counts = [count(lines, references) for lines in hypotheses]
    most = MOST if len(texts.labels) <= _MANY else 2

    def rows(at: int, first: Counter[Ngram], second: Counter[Ngram], *lines: Lines) -> list[list[str]]:
        return [
            [texts.labels[at], between.join(each.ngram), Linked(f"{each.first:,}", lines_with_more(each.ngram, *lines)),
             f"{each.second:,}", f"{each.ratio:.1f}"]
            for each in salient(first, second, most)
        ]  # fmt: skip

    right = Table(["variant", "n-gram", "right", "there", "ratio", "than"], [])
    over = Table(["variant", "n-gram", "translations", "references", "ratio"], [])
    under = Table(["variant", "n-gram", "references", "translations", "ratio"], [])
    for at in order:
        produced, expected, matches = counts[at]
        rival = rivals[at]
        if rival is not None:
            better = rows(at, matches, counts[rival].right, hypotheses[at], hypotheses[rival], references)
            right.rows.extend([*row, texts.labels[rival]] for row in better)
        over.rows.extend(rows(at, produced, expected, hypotheses[at], references))
        under.rows.extend(rows(at, expected, produced, references, hypotheses[at]))
    kinds = "More often right than by another variant", "Produced too often", "Produced too rarely"
    return list(zip(kinds, (right, over, under), strict=True))
