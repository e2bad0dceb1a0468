"""N-grams that a variant has right more often than another, produces too often, or too rarely: section 8."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.compare.texts import Texts, Words
from nmt.viewer.blocks import Linked, Table

LONGEST = 4  # words
FEWEST = 5  # rarer n-grams say little
MOST = 5  # n-grams of one kind and variant
_MANY = 6  # variants; of more, there are fewer n-grams of each
_MOST_LINES = 8

Ngram = tuple[str, ...]


class NgramCounts(NamedTuple):
    """How often each n-gram is in the translations of a run, in the references, and in both of one sentence."""

    produced: Counter[Ngram]
    expected: Counter[Ngram]
    right: Counter[Ngram]


class Salient(NamedTuple):
    """An n-gram, how often it is here and there, and the smoothed ratio of both."""

    ngram: Ngram
    here: int
    there: int
    ratio: float


def ngrams(words: Words) -> Counter[Ngram]:
    """All n-grams of up to four words."""
    return Counter(
        tuple(words[at : at + size]) for size in range(1, LONGEST + 1) for at in range(len(words) - size + 1)
    )


def count(hypotheses: Sequence[Words], references: Sequence[Words]) -> NgramCounts:
    """The counts of a run; right ones are clipped in each sentence, as in BLEU."""
    produced, expected, right = Counter[Ngram](), Counter[Ngram](), Counter[Ngram]()
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        found, wanted = ngrams(hypothesis), ngrams(reference)
        produced.update(found)
        expected.update(wanted)
        right.update({ngram: min(times, wanted[ngram]) for ngram, times in found.items() if ngram in wanted})
    return NgramCounts(produced, expected, right)


def salient(here: Mapping[Ngram, int], there: Mapping[Ngram, int], most: int = MOST) -> list[Salient]:
    """The n-grams with the largest ratio (here + 1) / (there + 1), of those that are here `FEWEST` times.

    A part of an n-gram in the list is left out, unless it is more frequent here than the whole.
    """
    ratios = [
        Salient(ngram, times, other, (times + 1) / (other + 1))
        for ngram, times in here.items()
        if times >= FEWEST and times > (other := there.get(ngram, 0))
    ]
    chosen: list[Salient] = []
    for candidate in sorted(ratios, key=lambda each: (-each.ratio, -len(each.ngram), each.ngram)):
        if len(chosen) == most:
            break
        if not any(_within(candidate.ngram, each.ngram) and candidate.here <= each.here for each in chosen):
            chosen.append(candidate)
    return chosen


def _within(part: Ngram, whole: Ngram) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))


def times_of(ngram: Ngram, words: Words) -> int:
    """How often an n-gram is in a sentence."""
    if not set(ngram) <= set(words):  # most sentences lack one of its words
        return 0
    return sum(tuple(words[at : at + len(ngram)]) == ngram for at in range(len(words) - len(ngram) + 1))


def lines_with_more(
    ngram: Ngram, here: Sequence[Words], there: Sequence[Words], right: Sequence[Words] | None = None
) -> list[int]:
    """The first lines, from 1, in which one text has an n-gram more often than another.

    Args:
        ngram: the n-gram.
        here: the text.
        there: the other text.
        right: the references, if no more than these have of it counts in both.
    """
    lines = []
    for row, (words, others) in enumerate(zip(here, there, strict=True)):
        times, other = times_of(ngram, words), times_of(ngram, others)
        most = times if right is None or not times else times_of(ngram, right[row])
        if min(times, most) > other:
            lines.append(row + 1)
            if len(lines) == _MOST_LINES:
                break
    return lines


def tables(texts: Texts, order: Sequence[int], rivals: Sequence[int | None]) -> list[tuple[str, Table]]:
    """A table of each kind with its title: a row for each n-gram of a variant's first seed.

    Args:
        texts: of the split.
        order: of the variants in the tables.
        rivals: the variant that each is compared with; None for none.
    """
    references, between = texts.references, "" if texts.characters[1] else " "
    hypotheses = [runs[0] for runs in texts.hypotheses]
    counted = [count(lines, references) for lines in hypotheses]
    most = MOST if len(texts.labels) <= _MANY else 2

    def cells(at: int, each: Salient, lines: Sequence[int]) -> list[str]:
        figures = Linked(f"{each.here:,}", lines), f"{each.there:,}", f"{each.ratio:.1f}"
        return [texts.labels[at], between.join(each.ngram), *figures]

    right: list[list[str]] = []
    over: list[list[str]] = []
    under: list[list[str]] = []
    for at in order:
        counts, lines, rival = counted[at], hypotheses[at], rivals[at]
        if rival is not None:
            for each in salient(counts.right, counted[rival].right, most):
                better = lines_with_more(each.ngram, lines, hypotheses[rival], references)
                right.append([*cells(at, each, better), texts.labels[rival]])
        over += [
            cells(at, each, lines_with_more(each.ngram, lines, references))
            for each in salient(counts.produced, counts.expected, most)
        ]
        under += [
            cells(at, each, lines_with_more(each.ngram, references, lines))
            for each in salient(counts.expected, counts.produced, most)
        ]
    start = ["variant", "n-gram"]
    return [
        ("More often right than by another variant", Table([*start, "right", "there", "ratio", "than"], right)),
        ("Produced too often", Table([*start, "translations", "references", "ratio"], over)),
        ("Produced too rarely", Table([*start, "references", "translations", "ratio"], under)),
    ]
