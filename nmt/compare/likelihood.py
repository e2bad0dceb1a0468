"""References under forced decoding: what their words cost each model, and how far its probabilities can be trusted.

Section 10 of the report. Search has no part in it, so a model can be told from its search.
"""

from collections import Counter
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nmt.compare.intervals import mean_of, share_of
from nmt.compare.results import Known
from nmt.compare.texts import Buckets, Texts, by_bucket
from nmt.compare.variance import Statistics
from nmt.compare.vocabulary import FREQUENCIES, frequency, places_of

PROBABILITIES = ("0-20 %", "20-40 %", "40-60 %", "60-80 %", "80-100 %")
_BINS = 10  # of the calibration error, as in the literature


def by_frequency(texts: Texts, words: Mapping[str, Known]) -> Buckets | None:
    """The mean log-probability of a reference word, by how often training had it; None where a run has none.

    Only of references that every run was forced to.
    """
    places = places_of(words, frequency)
    every = [run for runs in texts.runs for run in runs]
    if not places or not all(run.forced for run in every):
        return None
    rows = set.intersection(*({each.line - 1 for each in run.forced} for run in every))
    buckets = {row: [places.get(word) for word in texts.references[row]] for row in rows}

    def counts(variant: int, run: int) -> Statistics:
        table = np.zeros((len(texts.references), len(FREQUENCIES), 2))
        for each in texts.runs[variant][run].forced:
            for place, log_prob in zip(buckets.get(each.line - 1, ()), each.log_probs, strict=False):
                if place is not None:
                    table[each.line - 1, place] += log_prob, 1
        return table

    sizes = Counter(place for row in rows for place in buckets[row])
    counted = [sizes[at] for at in range(len(FREQUENCIES))]
    return by_bucket(texts, FREQUENCIES, counts, mean_of, "training count", "words of references", counted)


def calibration(texts: Texts) -> Buckets | None:
    """How often the most probable piece is right, by its probability; None where a run has no forced references."""
    if not all(run.forced for runs in texts.runs for run in runs):
        return None

    def counts(variant: int, run: int) -> Statistics:
        table = np.zeros((len(texts.references), len(PROBABILITIES), 2))
        for each in texts.runs[variant][run].forced:
            bins = _bins(np.array(each.best), len(PROBABILITIES))
            np.add.at(table[each.line - 1, :, 0], bins, np.array(each.right, float))
            np.add.at(table[each.line - 1, :, 1], bins, 1)
        return table

    return by_bucket(texts, PROBABILITIES, counts, share_of, "probability of the most probable piece")


def calibration_error(best: Sequence[float], right: Sequence[bool]) -> float:
    """The expected calibration error in per cent (Naeini et al. 2015; Guo et al. 2017), with ten equal bins.

    The mean over pieces of the distance, in a piece's bin, between the mean probability and the share that is right.
    """
    probabilities, correct = np.array(best, float), np.array(right, float)
    distances = np.bincount(_bins(probabilities, _BINS), probabilities - correct)
    return float(100 * np.abs(distances).sum() / max(len(probabilities), 1))


def _bins(probabilities: npt.NDArray[np.float64], count: int) -> npt.NDArray[np.int64]:
    return np.minimum((probabilities * count).astype(np.int64), count - 1)
