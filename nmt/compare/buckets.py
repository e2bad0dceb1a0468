"""Buckets (`grid.Bucket`) of words by training count, pieces and position, and of sentences by length and score."""

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Mapping, Sequence

from nmt.compare.grid import Bucket
from nmt.compare.results import WordFacts
from nmt.compare.scorers import WordKey
from nmt.drawing.length_plot import FEW
from nmt.evaluation.length_bins import binned, joined
from nmt.links import Link

#: Minimum count of each bucket.
_COUNTS = (0, 1, 2, 5, 10, 100, 1000)
COUNTS = ("0 (unseen)", "1", "2-4", "5-9", "10-99", "100-999", "1000 or more")
PIECES = ("1", "2", "3", "4", "5 or more")
QUARTERS = ("first quarter", "second", "third", "last quarter")
#: Position of the first word of each bucket, from 1.
_STEPS = (1, 2, 3, 4, 6, 11, 21)
STEPS = ("1st word", "2nd", "3rd", "4-5", "6-10", "11-20", "21 or later")
FIFTHS = ("0-20", "20-40", "40-60", "60-80", "80-100")


def _count_place(facts: WordFacts | None) -> tuple[int, ...]:
    return () if facts is None or facts.times is None else (bisect_right(_COUNTS, facts.times) - 1,)


def training_count(words: Mapping[str, WordFacts], title: str) -> Bucket:
    """Buckets by the word's count in the training text; words with unknown counts are in no bucket."""
    return Bucket(title, COUNTS, lambda word: _count_place(words.get(word.text)))


def linked_count(
    sources: Sequence[Sequence[str]], links: Sequence[Sequence[Link]], words: Mapping[str, WordFacts]
) -> Bucket:
    """Buckets by training count of the linked source words; a reference word is in the bucket of each linked word.

    `links` are the (source word, reference word) indices of each sentence, from 0.
    """
    places: dict[tuple[int, int], list[int]] = defaultdict(list)
    for row, (source, of_row) in enumerate(zip(sources, links, strict=True)):
        for one, other in of_row:
            places[row, other] += _count_place(words.get(source[one]))
    return Bucket("training count of the source word", COUNTS, lambda word: places.get((word.row, word.at), ()))


def piece_count(words: Mapping[str, WordFacts]) -> Bucket:
    """Buckets by the number of pieces of a word; words without facts are in no bucket."""

    def places(word: WordKey) -> tuple[int, ...]:
        facts = words.get(word.text)
        return () if facts is None else (min(max(facts.pieces, 1), len(PIECES)) - 1,)

    return Bucket("pieces of the target word", PIECES, places)


QUARTER = Bucket("place in the reference", QUARTERS, lambda word: (4 * word.at // word.length,))
STEP = Bucket("word of the reference", STEPS, lambda word: (bisect_right(_STEPS, word.at + 1) - 1,))


def fifths(title: str, names: Sequence[str], most: float) -> Bucket:
    """Five equal ranges of a key from 0 to `most`."""
    return Bucket(title, names, lambda value: (min(int(5 * value / most), 4),))


def row_sets(title: str, rows: Mapping[str, Sequence[int]]) -> Bucket:
    """A bucket for each named set of sentences; the sets may overlap."""
    places: dict[int, list[int]] = defaultdict(list)
    for place, members in enumerate(rows.values()):
        for row in members:
            places[row].append(place)
    return Bucket(title, list(rows), lambda row: places.get(row, ()))


def source_length(
    lengths: Sequence[int], unit: str, *, everything: bool = False
) -> tuple[Bucket, list[tuple[int, int, int]]]:
    """Buckets by source length, and for each its shortest and longest length and its number of sentences.

    A bucket with too few sentences is joined with its neighbour. `everything` adds a bucket of all sentences.
    """
    bins = joined(binned(lengths), FEW)
    rows: dict[str, Sequence[int]] = {"all": range(len(lengths))} if everything else {}
    rows |= {f"{shortest}-{longest}": members for shortest, longest, members in bins}
    sizes = [(shortest, longest, len(members)) for shortest, longest, members in bins]
    return row_sets(f"source {unit}", rows), sizes
