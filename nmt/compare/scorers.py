"""Scores (`grid.ItemScore`) of sentences, of words, and of pieces under forced decoding.

Words of references are items in the same order for all runs. Matches of a word are clipped in each sentence, as in
BLEU.
"""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt.compare.estimates import Bootstrap, correlation_of, f1_of, mean_of, share_of
from nmt.compare.grid import Bucket, Grid, Item, ItemScore, grid
from nmt.compare.results import SCORERS, RunOnSplit
from nmt.compare.significance import chrf_of
from nmt.evaluation.metrics import Metric
from nmt.evaluation.word_counts import split_words, without_spaces

_BINS = 10  # bins of the calibration error, as in the literature
_WORDS = "words of references"


class WordKey(NamedTuple):
    """The key of an item that is a word.

    Attributes:
        row: index of the sentence, from 0.
        text: the word.
        at: position in the reference, from 0; -1 for a word of a translation.
        length: number of words in the reference; 0 for a word of a translation.
    """

    row: int
    text: str
    at: int
    length: int


class Texts(NamedTuple):
    """The words of a split.

    Attributes:
        labels: labels of the variants.
        runs: runs of each variant, in the order of the seeds.
        sources: words of each source.
        references: words of each reference.
        hypotheses: words of each translation, by variant, run and sentence.
        characters: whether words are single characters, for (sources, references).
        bootstrap: the bootstrap over the sentences.
    """

    labels: list[str]
    runs: list[list[RunOnSplit]]
    sources: list[list[str]]
    references: list[list[str]]
    hypotheses: list[list[list[list[str]]]]
    characters: tuple[bool, bool]
    bootstrap: Bootstrap

    def grid(self, score: ItemScore, bucket: Bucket) -> Grid:
        """The score of every variant in every bucket."""
        return grid([len(runs) for runs in self.runs], self.bootstrap, len(self.references), score, bucket)

    def words(self, row: int) -> Iterator[WordKey]:
        """Yield the words of a reference."""
        reference = self.references[row]
        return (WordKey(row, text, at, len(reference)) for at, text in enumerate(reference))


def texts_of(labels: Sequence[str], runs: list[list[RunOnSplit]]) -> Texts | None:
    """Split the texts of a split into words; None if only records without text are given."""
    first = next((run for of_variant in runs for run in of_variant if run.sources is not None), None)
    if first is None or first.sources is None or first.references is None:
        return None
    characters = without_spaces(first.sources), without_spaces(first.references)

    def words(lines: Sequence[str], side: int) -> list[list[str]]:
        return [split_words(line, characters[side]) for line in lines]

    hypotheses = [[words(run.hypotheses, 1) for run in of_variant] for of_variant in runs]
    sides = words(first.sources, 0), words(first.references, 1)
    return Texts(list(labels), runs, *sides, hypotheses, characters, Bootstrap(len(first.sources)))


# Scores of sentences; the key is the row.


def corpus(runs: Sequence[Sequence[RunOnSplit]], metric: Metric, *, length_ratio: bool = False) -> ItemScore:
    """A corpus metric over the sentences of a bucket.

    `length_ratio`: score the length of the translations in per cent of the references' length, in BLEU's tokens.
    """

    def items(variant: int, run: int) -> Iterator[Item]:
        return (Item(row, row, counts) for row, counts in enumerate(runs[variant][run].counts[metric]))

    size = runs[0][0].counts[metric].shape[1]
    return ItemScore(items, share_of if length_ratio else SCORERS[metric], size, "sentences")


def distribution(texts: Texts) -> ItemScore:
    """The share of all sentences that are in a bucket, in per cent; the key is the sentence's chrF."""

    def items(variant: int, run: int) -> Iterator[Item]:
        return (Item(row, score, (1.0,)) for row, score in enumerate(_chrf(texts, variant, run)))

    return ItemScore(items, share_of, 1, of_all=True)


def measures(texts: Texts, names: Mapping[str, str], *, correlated: bool = False) -> tuple[ItemScore, Bucket]:
    """The means of sentence measures, or their correlations with chrF, and a bucket for each measure.

    `names`: {measure (`nmt.evaluation.sentence_measures`): its title}.
    """

    def items(variant: int, run: int) -> Iterator[Item]:
        rows = zip(texts.runs[variant][run].measures, _chrf(texts, variant, run), strict=False)
        for row, (known, y) in enumerate(rows):
            for name in names.keys() & known.keys():
                x = float(known[name])
                yield Item(row, name, (1.0, x, y, x * x, y * y, x * y) if correlated else (x, 1.0))

    places = {name: (at,) for at, name in enumerate(names)}
    score = ItemScore(items, correlation_of, 6) if correlated else ItemScore(items, mean_of, 2)
    title = "correlation with chrF" if correlated else "mean of a sentence"
    return score, Bucket(title, list(names.values()), places.__getitem__)


def _chrf(texts: Texts, variant: int, run: int) -> list[float]:
    scores: list[float] = chrf_of(texts.runs[variant][run].counts["chrf"]).tolist()
    return scores


# Scores of words; the key is a `WordKey`.


def matched(reference: Sequence[str], hypothesis: Sequence[str]) -> list[bool]:
    """Whether each reference word is matched; if the translation has a word k times, its first k places match."""
    left = Counter(hypothesis)
    right = []
    for word in reference:
        right.append(left[word] > 0)
        left[word] -= 1
    return right


def recall(texts: Texts, unit: str = _WORDS) -> ItemScore:
    """The share of reference words that the translations have, in per cent."""

    def items(variant: int, run: int) -> Iterator[Item]:
        for row, hypothesis in enumerate(texts.hypotheses[variant][run]):
            for word, right in zip(texts.words(row), matched(texts.references[row], hypothesis), strict=True):
                yield Item(row, word, (float(right), 1.0))

    return ItemScore(items, share_of, 2, unit)


def f1(texts: Texts) -> ItemScore:
    """F1 of the words of references and translations, in per cent."""

    def items(variant: int, run: int) -> Iterator[Item]:
        for row, hypothesis in enumerate(texts.hypotheses[variant][run]):
            for word, right in zip(texts.words(row), matched(texts.references[row], hypothesis), strict=True):
                yield Item(row, word, (float(right), 0.0, 1.0))
            for text in hypothesis:
                yield Item(row, WordKey(row, text, -1, 0), (0.0, 1.0, 0.0))

    return ItemScore(items, f1_of, 3, _WORDS, counted=2)


def log_prob(texts: Texts) -> ItemScore:
    """The mean natural log-probability of reference words, over the references that every run was forced to decode."""
    rows = set.intersection(*({each.line - 1 for each in run.forced} for runs in texts.runs for run in runs))

    def items(variant: int, run: int) -> Iterator[Item]:
        for forced in texts.runs[variant][run].forced:
            if forced.line - 1 in rows:
                for word, value in zip(texts.words(forced.line - 1), forced.log_probs, strict=False):
                    yield Item(word.row, word, (value, 1.0))

    return ItemScore(items, mean_of, 2, _WORDS)


# Scores of pieces; the key is the probability of the most probable piece.


def correct_pieces(texts: Texts) -> ItemScore:
    """The share of steps, in per cent, at which the reference has the most probable piece."""

    def items(variant: int, run: int) -> Iterator[Item]:
        for forced in texts.runs[variant][run].forced:
            for best, right in zip(forced.best, forced.right, strict=True):
                yield Item(forced.line - 1, best, (float(right), 1.0))

    return ItemScore(items, share_of, 2)


def calibration_error(best: Sequence[float], right: Sequence[bool]) -> float:
    """The expected calibration error in per cent (Naeini et al. 2015; Guo et al. 2017), with ten equal bins.

    It is the distance between a bin's mean probability and its share of right pieces, averaged over pieces.
    """
    probabilities, correct = np.array(best, float), np.array(right, float)
    bins = np.minimum((probabilities * _BINS).astype(np.int64), _BINS - 1)
    distances = np.bincount(bins, probabilities - correct)
    return float(100 * np.abs(distances).sum() / max(len(probabilities), 1))
