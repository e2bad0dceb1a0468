"""Significance tests of the difference between variants with several seeds on one test set.

A difference has two sources of noise: the sentences and the seeds. The main test covers both: Student's t of the
difference, with the standard error of `variance`, corrected by Holm (1979) for the number of variants. Two further
p-values describe the sources: approximate randomisation over sentences (Noreen 1989; Riezler and Maxwell 2005, as in
sacreBLEU), which treats the runs as fixed, and Student's t over runs, which treats the sentences as fixed. Neither
covers other seeds and other sentences together, nor does the larger of both: without a true difference, it rejects up
to 10 % at a level of 5 % (docs/statistics.md). If no variant of a variant's program has two runs, the error covers
sentences alone, and no difference is called real.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.compare.variance import (
    UNKNOWN,
    Deviations,
    PairNoise,
    Sample,
    Scorer,
    Statistics,
    interaction,
    noise_of,
    pseudo_values,
)

_CELLS = 20_000_000  # maximum size of the matrix of swaps, at 4 bytes each
POWER = 0.8


def bleu_of(statistics: Statistics) -> npt.NDArray[np.float64]:
    """Corpus BLEU (exponential smoothing, sacreBLEU's default) of summed statistics.

    Args:
        statistics: [..., 2 + 2N] hypothesis length, reference length, N matches, N totals (sacreBLEU's order).

    Returns:
        [...] scores from 0 to 100.
    """
    orders = (statistics.shape[-1] - 2) // 2
    length, reference = statistics[..., 0], statistics[..., 1]
    matches, totals = statistics[..., 2 : 2 + orders], statistics[..., 2 + orders :]
    # The k-th order without a match counts as 1 / 2^k matches. The score is 0 if the text has no n-grams of some order.
    matched = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    possible = (totals > 0).all(-1) & (matches > 0).any(-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # entries that are not possible
        precision = np.exp(np.log(matched / totals).mean(-1))
        brevity = np.exp(np.minimum(0, 1 - reference / length))
        return np.where(possible, 100 * brevity * precision, 0.0)


def chrf_of(statistics: Statistics) -> npt.NDArray[np.float64]:
    """chrF2 (Popovic 2015) of summed statistics, over the orders that both texts have.

    Args:
        statistics: [..., 3N] for each order the number of n-grams in the hypothesis, in the reference, and in both.

    Returns:
        [...] scores from 0 to 100.
    """
    hypothesis, reference, both = (statistics[..., part::3] for part in range(3))
    there = (hypothesis > 0) & (reference > 0)
    orders = np.maximum(there.sum(-1), 1)
    precision = np.divide(both, hypothesis, out=np.zeros_like(both), where=there).sum(-1) / orders
    recall = np.divide(both, reference, out=np.zeros_like(both), where=there).sum(-1) / orders
    bottom = 4 * precision + recall
    scores: Statistics = np.divide(500 * precision * recall, bottom, out=np.zeros_like(bottom), where=bottom > 0)
    return scores


def randomise(
    first: Statistics, second: Statistics, scorer: Scorer, *, trials: int = 10_000, seed: int = 12345
) -> float:
    """The two-sided p-value of paired approximate randomisation over sentences.

    Under the null hypothesis, chance decides which variant a sentence favours. Each trial swaps the two variants'
    translations of each sentence, in all seeds together, with probability one half, and computes the difference again.
    Clark et al. 2011 (section 4.2, MultEval) draw a separate swap for each seed, which counts the interaction of
    variant and sentence once for each seed. p is the share of trials with a difference at least as large as observed; 1
    is added to both counts, so p is never 0 (Davison and Hinkley 1997, section 4.3).

    Args:
        first: [K, N, S] sufficient statistics of the first variant: seeds, sentences, statistics of the metric.
        second: [K, N, S] sufficient statistics of the second variant, with the same seeds and sentences.
        scorer: [..., S] summed statistics -> [...] scores (`bleu_of`, `chrf_of`).
    """
    generator = np.random.default_rng(seed)
    total, gain = first.sum(1), second - first
    observed = float((scorer(second.sum(1)) - scorer(total)).mean())
    parts = []
    size = max(1, min(trials, _CELLS // first.shape[1]))
    for start in range(0, trials, size):
        count = min(size, trials - start)
        swaps = generator.integers(2, size=(count, first.shape[1]), dtype=np.int8).astype(np.float32)
        differences = np.zeros(count)
        for run in range(len(first)):
            # Counts of n-grams are whole numbers far below 2^24: exact in float32.
            moved = (swaps @ gain[run].astype(np.float32)).astype(np.float64)
            differences += scorer(second[run].sum(0) - moved) - scorer(total[run] + moved)
        parts.append(differences / len(first))
    differences = np.concatenate(parts)
    extreme = int((np.abs(differences) >= abs(observed) - 1e-9).sum())
    return (extreme + 1) / (trials + 1)


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's adjusted p-values: rejecting those below alpha keeps the family-wise error rate at alpha or less."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


class Runs(NamedTuple):
    """A variant's runs.

    Attributes:
        counts: [K, N, S] sufficient statistics: seeds, sentences, statistics of the metric.
        seeds: the K distinct seeds.
        program: name of the program; "" for nmt. Variances over runs are pooled only within a program.
        copied: whether the runs are also the runs of another variant, which uses another search.
    """

    counts: Statistics
    seeds: list[int]
    program: str = ""
    copied: bool = False


def paired(first: Runs, second: Runs) -> tuple[Statistics, Statistics]:
    """The runs with common seeds, in the same order; without a common seed, the first runs of both variants."""
    shared = [seed for seed in first.seeds if seed in second.seeds]
    if not shared:
        pairs = min(len(first.seeds), len(second.seeds))
        return first.counts[:pairs], second.counts[:pairs]
    return (
        first.counts[[first.seeds.index(seed) for seed in shared]],
        second.counts[[second.seeds.index(seed) for seed in shared]],
    )


class Contrast(NamedTuple):
    """The test of a variant against the baseline.

    Attributes:
        difference: the variant's mean over its seeds minus the baseline's.
        error: standard error of the difference, over sentences and seeds.
        p_sentences: p-value of the randomisation over sentences, with the common seeds; like p_seeds, not a decision.
        p_seeds: p-value of the t over runs; None if the variance over runs is unknown.
        p: p-value of the t with both sources of noise, corrected for the number of tests.
        detectable: the minimum detectable difference, with a power of 0.8.
        significant: whether p is below the significance level.
        real: whether the difference is significant and the variance over runs is known.
    """

    difference: float
    error: float
    p_sentences: float
    p_seeds: float | None
    p: float
    detectable: float
    significant: bool
    real: bool


class DifferenceTest(NamedTuple):
    """The test of the difference between two variants.

    Attributes:
        difference: the mean of the second variant over its seeds minus the mean of the first.
        noise: noise of the difference, over sentences and seeds.
        p: p-value of the t with both sources of noise, not corrected.
        p_seeds: as in `Contrast`.
    """

    difference: float
    noise: PairNoise
    p: float
    p_seeds: float | None


def joined(texts: Sequence[Sequence[Runs]]) -> list[Runs]:
    """Join the runs of each variant on several texts into runs on one text."""
    return [
        same[0]._replace(counts=np.concatenate([runs.counts for runs in same], axis=1))
        for same in zip(*texts, strict=True)
    ]


class Noise:
    """The noise of several variants on one text, over its sentences and over seeds."""

    def __init__(self, variants: Sequence[Runs], scorer: Scorer) -> None:
        """Estimate the noise from the runs of all variants on the same sentences; numbers of seeds may differ."""
        self.scores = [scorer(runs.counts.sum(1)).tolist() for runs in variants]
        copies = [at for at, runs in enumerate(variants) if runs.copied]
        self._deviations = Deviations(self.scores, [runs.program for runs in variants], copies)
        self._samples = [Sample(pseudo_values(runs.counts, scorer), runs.seeds) for runs in variants]
        self._interactions = [interaction(sample.values) for sample in self._samples]

    @property
    def collapsed(self) -> list[int]:
        """Indices of the variants whose variance over runs is too large to be pooled with the others'."""
        return [at for at in range(len(self.scores)) if len(self.scores[at]) > 1 and at not in self._deviations.alike]

    def between(self, first: int, second: int) -> DifferenceTest:
        """Test variant `second` against variant `first`."""
        difference = float(np.mean(self.scores[second]) - np.mean(self.scores[first]))
        noise = noise_of(first, second, self._samples, self._interactions, self._deviations)
        by_seeds = PairNoise(UNKNOWN, noise.runs).p(difference) if noise.runs.freedom else None
        return DifferenceTest(difference, noise, noise.p(difference), by_seeds)


def contrast_with(
    baseline: Runs, others: Sequence[Runs], scorer: Scorer, *, trials: int, alpha: float = 0.05, picked: bool = False
) -> list[Contrast]:
    """Test every other variant against the baseline, corrected by Holm for the number of tests.

    With `picked`, the baseline was selected by its score, which favours it by chance. The correction is then
    Bonferroni's for all pairs of variants, because any pair could have been tested.

    All variants have the same sentences; numbers of seeds may differ. `trials` applies to `p_sentences`.
    """
    pairs = len(others) * (len(others) + 1) // 2
    level = alpha / max(pairs if picked else len(others), 1)
    noise = Noise([baseline, *others], scorer)
    rows = [noise.between(0, at) for at in range(1, len(others) + 1)]
    swapped = [randomise(*paired(baseline, runs), scorer, trials=trials) for runs in others]
    adjusted = [min(1.0, pairs * row.p) for row in rows] if picked else holm([row.p for row in rows])
    return [
        Contrast(
            *(row.difference, row.noise.error, p_sentences, row.p_seeds, p),
            detectable=row.noise.detectable(level, POWER),
            significant=p < alpha,
            real=p < alpha and row.p_seeds is not None,
        )
        for row, p_sentences, p in zip(rows, swapped, adjusted, strict=True)
    ]


def p_by_seeds(first: int, second: int, groups: Sequence[Sequence[float]]) -> float | None:
    """The p-value of Student's t for two variants, from the run scores of all (`groups`); None if none has two runs."""
    over_runs = PairNoise(UNKNOWN, Deviations(groups).of_difference(first, second))
    return over_runs.p(float(np.mean(groups[first]) - np.mean(groups[second]))) if over_runs.runs.freedom else None
