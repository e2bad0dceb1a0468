"""Words by how often training had them, by their pieces and by their place: sections 6, 7 and 9 of the report."""

from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from nmt.compare.intervals import f1_of, share_of
from nmt.compare.results import Known
from nmt.compare.texts import Buckets, Texts, Words, by_bucket
from nmt.compare.variance import Statistics
from nmt.links import Link

Bucket = Callable[[Known], int | None]

#: The least count of each bucket; the first one is of unseen words.
_FREQUENCIES = (0, 1, 2, 5, 10, 100, 1000)
FREQUENCIES = ("0 (unseen)", "1", "2-4", "5-9", "10-99", "100-999", "1000 or more")
_MOST_PIECES = 5
PIECES = ("1", "2", "3", "4", "5 or more")
QUARTERS = ("first quarter", "second", "third", "last quarter")
#: The first word of each bucket, from 1.
_STEPS = (1, 2, 3, 4, 6, 11, 21)
STEPS = ("1st word", "2nd", "3rd", "4-5", "6-10", "11-20", "21 or later")


def frequency(known: Known) -> int | None:
    """The number of a word's bucket in `FREQUENCIES`; None where the training text is unknown."""
    return None if known.times is None else bisect_right(_FREQUENCIES, known.times) - 1


def pieces(known: Known) -> int | None:
    """The number of a word's bucket in `PIECES`."""
    return min(max(known.pieces, 1), _MOST_PIECES) - 1


def matched(reference: Words, hypothesis: Words) -> list[bool]:
    """Which words of a reference are in its translation: of a word that is there k times, the first k."""
    left = Counter(hypothesis)
    found = []
    for word in reference:
        found.append(left[word] > 0)
        left[word] -= 1
    return found


def places_of(words: Mapping[str, Known], bucket: Bucket) -> dict[str, int]:
    """The bucket of each word that is in one."""
    return {word: place for word, known in words.items() if (place := bucket(known)) is not None}


def f1_by(texts: Texts, words: Mapping[str, Known], bucket: Bucket, names: Sequence[str],
          title: str) -> Buckets:  # fmt: skip
    """F1 of the words in each bucket; words that are not known are in none.

    A word is right if translation and reference have it, as often as both do.
    """
    places = places_of(words, bucket)

    def counts(variant: int, run: int) -> Statistics:
        table = np.zeros((len(texts.references), len(names), 3))
        for row, (hypothesis, reference) in enumerate(
            zip(texts.hypotheses[variant][run], texts.references, strict=True)
        ):
            here, wanted = Counter(hypothesis), Counter(reference)
            for column, words_here in enumerate((here & wanted, here, wanted)):
                for word, times in words_here.items():
                    if word in places:
                        table[row, places[word], column] += times
        return table

    sizes = Counter(places[word] for reference in texts.references for word in reference if word in places)
    return by_bucket(texts, names, counts, f1_of, title, "words of references", [sizes[at] for at in range(len(names))])


def recall_by_source(texts: Texts, words: Mapping[str, Known], linked: Sequence[Sequence[Link]]) -> Buckets:
    """The share of reference words that are translated, by how often training had the source word they link to.

    Args:
        texts: of the split.
        words: of the sources.
        linked: for each sentence (word of the source, word of the reference), from 0.
    """
    places = places_of(words, frequency)
    of_links = [
        [(places[source[one]], other) for one, other in links if source[one] in places]
        for source, links in zip(texts.sources, linked, strict=True)
    ]

    def counts(variant: int, run: int) -> Statistics:
        table = np.zeros((len(texts.references), len(FREQUENCIES), 2))
        for row, (hypothesis, reference) in enumerate(
            zip(texts.hypotheses[variant][run], texts.references, strict=True)
        ):
            right = matched(reference, hypothesis)
            for place, other in of_links[row]:
                table[row, place] += right[other], 1
        return table

    sizes = Counter(place for links in of_links for place, _ in links)
    title = "training count of the source word"
    counted = [sizes[at] for at in range(len(FREQUENCIES))]
    return by_bucket(texts, FREQUENCIES, counts, share_of, title, "linked words", counted)


def recall_by_quarter(texts: Texts) -> Buckets:
    """The share of reference words that are translated, by quarter of the reference."""
    quarters = [[4 * at // len(reference) for at in range(len(reference))] for reference in texts.references]
    return _recall_at(texts, quarters, QUARTERS, "place in the reference")


def recall_by_step(texts: Texts) -> Buckets:
    """The same by the number of the word in the reference."""
    steps = [[bisect_right(_STEPS, at) - 1 for at in range(1, len(reference) + 1)] for reference in texts.references]
    return _recall_at(texts, steps, STEPS, "word of the reference")


def _recall_at(texts: Texts, places: Sequence[Sequence[int]], names: Sequence[str], title: str) -> Buckets:
    """Recall of reference words by the buckets in which they are, which `places` has for each word."""

    def counts(variant: int, run: int) -> Statistics:
        table = np.zeros((len(texts.references), len(names), 2))
        for row, (hypothesis, reference) in enumerate(
            zip(texts.hypotheses[variant][run], texts.references, strict=True)
        ):
            for place, right in zip(places[row], matched(reference, hypothesis), strict=True):
                table[row, place] += right, 1
        return table

    sizes = Counter(place for row in places for place in row)
    return by_bucket(texts, names, counts, share_of, title, "words of references",
                     [sizes[at] for at in range(len(names))])  # fmt: skip
