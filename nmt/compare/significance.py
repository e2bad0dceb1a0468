"""Two variants, several seeds, one test set -> is the difference more than noise?

Two kinds of noise can make a difference: other sentences and other seeds would have given another one. One test has
both errors: Student's t of the difference, with the standard error of `variance`, corrected by Holm (1979) for the
number of variants. Two more p-values describe where the noise is: approximate randomisation over sentences (Noreen
1989; Riezler and Maxwell 2005, as sacreBLEU has it), which takes the runs as they are, and Student's t over runs, which
takes the sentences as they are. Neither tests whether other seeds and other sentences would say the same, nor does the
larger of both: where nothing differs, it rejects up to 10 % at a level of 5 % (docs/statistics.md). Where a variant has
one run, and no other of its program has two, the error is that of sentences alone, and no difference is called real.
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

_CELLS = 20_000_000  # of the largest matrix of swaps, 4 bytes each
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
    # The k-th order without a match counts as 1 / 2^k matches; an order that is too long for the text ends it with 0.
    matched = np.where(matches > 0, matches, 0.5 ** np.cumsum(matches == 0, axis=-1))
    possible = (totals > 0).all(-1) & (matches > 0).any(-1)
    with np.errstate(divide="ignore", invalid="ignore"):  # where it is not possible
        precision = np.exp(np.log(matched / totals).mean(-1))
        brevity = np.exp(np.minimum(0, 1 - reference / length))
        return np.where(possible, 100 * brevity * precision, 0.0)


def chrf_of(statistics: Statistics) -> npt.NDArray[np.float64]:
    """chrF2 (Popovic 2015) of summed statistics, over the orders that both texts have.

    Args:
        statistics: [..., 3N] for each order the n-grams of the hypothesis, of the reference, and of both.

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
    """The p of paired approximate randomisation over sentences.

    If the variants were alike, it would be chance which of the two a sentence favours: each trial swaps the two
    variants' translations of each sentence, in all seeds at once, with probability one half, and takes the difference
    anew. Clark et al. 2011 (section 4.2, MultEval) draw a swap for each seed, which counts the interaction of variant
    and sentence once for each seed. p is the share of swaps that make as large a difference, two-sided, with the 1
    added to both counts that keeps it above zero (Davison and Hinkley 1997, section 4.3).

    Args:
        first: [K, N, S] sufficient statistics of the first variant: seeds, sentences, statistics of the metric.
        second: [K, N, S] of the second, seed by seed and sentence by sentence.
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
    """Holm's step-down adjustment: the family-wise error of calling those below alpha real is at most alpha."""
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
        seeds: the K numbers, each once.
        program: its name; "" for this one. Another program's runs tell nothing of how much those of this one deviate.
        copied: whether the runs are those of another variant, translating with another search.
    """

    counts: Statistics
    seeds: list[int]
    program: str = ""
    copied: bool = False


def paired(first: Runs, second: Runs) -> tuple[Statistics, Statistics]:
    """The runs of the seeds that both variants have, in one order; the first runs of both if they share none."""
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
        difference: the variant's mean over its seeds less the baseline's.
        error: its standard error, over sentences and seeds.
        p_sentences: of the randomisation over sentences, with the seeds that both have. A description, as is p_seeds.
        p_seeds: of the t over runs; None without an estimate of how much runs deviate.
        p: of the t with both errors, corrected for the number of tests.
        detectable: the smallest true difference that would have been found with probability 0.8.
        significant: whether p is below the level.
        real: whether the difference is significant, also for other seeds.
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
    """The difference between two variants' means over seeds, the second less the first, with two p-values.

    Attributes:
        difference: of the means.
        noise: its variance, over sentences and seeds.
        p: of the t with both errors, not corrected.
        p_seeds: as in `Contrast`.
    """

    difference: float
    noise: PairNoise
    p: float
    p_seeds: float | None


def joined(texts: Sequence[Sequence[Runs]]) -> list[Runs]:
    """The runs of each variant on several texts, as if these were one."""
    return [
        same[0]._replace(counts=np.concatenate([runs.counts for runs in same], axis=1))
        for same in zip(*texts, strict=True)
    ]


class Noise:
    """The noise of several variants on one text: of its sentences and of their seeds."""

    def __init__(self, variants: Sequence[Runs], scorer: Scorer) -> None:
        """Take the runs of all variants, with as many sentences; the numbers of seeds may differ."""
        self.scores = [scorer(runs.counts.sum(1)).tolist() for runs in variants]
        copies = [at for at, runs in enumerate(variants) if runs.copied]
        self._deviations = Deviations(self.scores, [runs.program for runs in variants], copies)
        self._samples = [Sample(pseudo_values(runs.counts, scorer), runs.seeds) for runs in variants]
        self._interactions = [interaction(sample.values) for sample in self._samples]

    @property
    def collapsed(self) -> list[int]:
        """The variants whose runs deviate so much that they have a deviation of their own."""
        return [at for at in range(len(self.scores)) if len(self.scores[at]) > 1 and at not in self._deviations.alike]

    def between(self, first: int, second: int) -> DifferenceTest:
        """The test of one variant against another."""
        difference = float(np.mean(self.scores[second]) - np.mean(self.scores[first]))
        noise = noise_of(first, second, self._samples, self._interactions, self._deviations)
        by_seeds = PairNoise(UNKNOWN, noise.runs).p(difference) if noise.runs.freedom else None
        return DifferenceTest(difference, noise, noise.p(difference), by_seeds)


def contrast_with(
    baseline: Runs, others: Sequence[Runs], scorer: Scorer, *, trials: int, alpha: float = 0.05, picked: bool = False
) -> list[Contrast]:
    """Test every other variant against the baseline, corrected by Holm for their number.

    A baseline that was picked by its score is above others by luck too: any pair of variants could have been tested, so
    that Bonferroni's correction is for all pairs (`picked`).

    The others have as many sentences as the baseline; the numbers of seeds may differ. `trials` are for `p_sentences`.
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
    """The p of Student's t for two of several variants, from the scores of all runs; None if no variant has two."""
    over_runs = PairNoise(UNKNOWN, Deviations(groups).of_difference(first, second))
    return over_runs.p(float(np.mean(groups[first]) - np.mean(groups[second]))) if over_runs.runs.freedom else None
