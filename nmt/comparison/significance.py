"""Two variants, several seeds, one test set -> is the difference more than noise? Stands on the metrics.

Two kinds of noise can make a difference. Another test set would have given another one: approximate
randomisation over sentences (Noreen 1989; Riezler and Maxwell 2005, as sacreBLEU has it), a sentence with all its
seeds at once. Other seeds would have given another one: Student's t over the runs, with the deviation
pooled over all variants. A difference is called real where both say so, so that the larger p counts (an
intersection-union test, Berger 1982), corrected by Holm (1979) for the number of variants. Where no variant has two
seeds, only the first can be asked, and no difference is called real.
"""

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from scipy import optimize, stats  # type: ignore[import-untyped]

Statistics = npt.NDArray[np.float64]
Scorer = Callable[[Statistics], npt.NDArray[np.float64]]

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


class Randomised(NamedTuple):
    """What the randomisation found.

    Attributes:
        difference: the second variant's mean score over seeds less the first's.
        p: the share of random swaps that make as large a difference, two-sided, with the 1 added to both
            counts that keeps it above zero (Davison and Hinkley 1997, section 4.3).
        deviation: standard deviation of the difference where swaps alone make it.
    """

    difference: float
    p: float
    deviation: float


def randomise(
    first: Statistics, second: Statistics, scorer: Scorer, *, trials: int = 10_000, seed: int = 12345
) -> Randomised:
    """Paired approximate randomisation over sentences.

    If the variants were alike, it would be chance which of the two a sentence favours: each trial swaps the two
    variants' translations of each sentence, in all seeds at once, with probability one half, and takes the difference
    anew. Clark et al. 2011 (section 4.2, MultEval) draw a swap for each seed, as if each seed had sentences of its own:
    what suits one variant's way with a sentence, and comes back in every seed, then counts as often as there are seeds.

    Args:
        first: [K, N, S] sufficient statistics of the first variant: seeds, sentences, statistics of the metric.
        second: [K, N, S] of the second, seed by seed and sentence by sentence.
        scorer: [..., S] summed statistics -> [...] scores (`bleu_of`, `chrf_of`).
        trials: random swaps.
        seed: of the swaps.
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
    return Randomised(observed, (extreme + 1) / (trials + 1), float(differences.std()))


def student_t(t: float, freedom: int) -> float:
    """P(|T| >= |t|) for Student's distribution with so many degrees of freedom."""
    return float(2 * stats.t.sf(abs(t), freedom))


def pooled_deviation(groups: Sequence[Sequence[float]]) -> tuple[float, int]:
    """The run-to-run deviation that groups of scores share, and its degrees of freedom (0: no group has two)."""
    freedom = sum(len(group) - 1 for group in groups)
    if freedom < 1:
        return math.nan, 0
    squares = sum(float(np.var(group)) * len(group) for group in groups)
    return math.sqrt(squares / freedom), freedom


def holm(p_values: Sequence[float]) -> list[float]:
    """Holm's step-down adjustment: the family-wise error of calling those below alpha real is at most alpha."""
    adjusted = [1.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def least_trials(tests: int, alpha: float) -> int:
    """The fewest swaps that let one of so many tests be significant: tests / (trials + 1), its least p, below alpha."""
    trials = math.ceil(tests / alpha) - 1
    return trials if tests * (1 / (trials + 1)) < alpha else trials + 1


class Runs(NamedTuple):
    """A variant's runs.

    Attributes:
        counts: [K, N, S] sufficient statistics: seeds, sentences, statistics of the metric.
        seeds: the K numbers, each once.
    """

    counts: Statistics
    seeds: list[int]


def paired(first: Runs, second: Runs) -> tuple[Statistics, Statistics]:
    """The runs of the seeds that both variants have, in one order; the first runs of both where none is shared."""
    shared = [seed for seed in first.seeds if seed in second.seeds]
    if not shared:
        pairs = min(len(first.seeds), len(second.seeds))
        return first.counts[:pairs], second.counts[:pairs]
    return (
        first.counts[[first.seeds.index(seed) for seed in shared]],
        second.counts[[second.seeds.index(seed) for seed in shared]],
    )


class Contrast(NamedTuple):
    """A variant against the baseline.

    Attributes:
        difference: the variant's mean over its seeds less the baseline's over its own.
        p_sentences: of the randomisation over sentences, with the seeds that both have.
        p_seeds: of the t over runs; None where no variant has two seeds.
        p: the larger of the two, corrected for the number of tests.
        detectable: the smallest true difference that would have been found with probability 0.8.
        significant: whether p is below the level.
        real: whether other seeds were asked besides: significant, and some variant has two seeds.
    """

    difference: float
    p_sentences: float
    p_seeds: float | None
    p: float
    detectable: float
    significant: bool
    real: bool


def contrast_with(
    baseline: Runs,
    others: Sequence[Runs],
    scorer: Scorer,
    spread: tuple[float, int],
    *,
    trials: int = 10_000,
    alpha: float = 0.05,
    picked: bool = False,
) -> list[Contrast]:
    """Test every other variant against the baseline, corrected by Holm for their number.

    Where the scores themselves picked the baseline as the highest, it stands above others by luck too: any pair of
    variants could have been tested, and Bonferroni's correction for all pairs holds whichever was picked.

    Args:
        baseline: its runs.
        others: the runs of each other variant, with as many sentences; the numbers of seeds may differ.
        scorer: of the metric.
        spread: run-to-run deviation and its degrees of freedom (`pooled_deviation`).
        trials: random swaps a test.
        alpha: the level.
        picked: whether the baseline was picked by its score.
    """
    pairs = len(others) * (len(others) + 1) // 2
    deviation, freedom = spread
    rows = []
    for runs in others:
        difference = _mean(runs, scorer) - _mean(baseline, scorer)
        randomised = randomise(*paired(baseline, runs), scorer, trials=trials)
        # Where the seeds that both have point the other way, they are no evidence for the difference of the means.
        p_sentences = randomised.p if randomised.difference * difference > 0 else 1.0
        error = deviation * math.sqrt(1 / len(runs.seeds) + 1 / len(baseline.seeds)) if freedom else 0.0
        p_seeds = _by_seeds(difference, error, freedom) if freedom else None
        detectable = _detectable(randomised.deviation, error, freedom, alpha / (pairs if picked else len(others)))
        rows.append((difference, p_sentences, p_seeds, detectable))
    larger = [max(p_sentences, p_seeds or 0.0) for _, p_sentences, p_seeds, _ in rows]
    adjusted = [min(1.0, pairs * p) for p in larger] if picked else holm(larger)
    return [
        Contrast(difference, p_sentences, p_seeds, p, detectable, p < alpha, p < alpha and p_seeds is not None)
        for (difference, p_sentences, p_seeds, detectable), p in zip(rows, adjusted, strict=True)
    ]


def _mean(runs: Runs, scorer: Scorer) -> float:
    """The score of a variant: the mean over its runs."""
    return float(scorer(runs.counts.sum(1)).mean())


def p_by_seeds(first: Sequence[float], second: Sequence[float], spread: tuple[float, int]) -> float | None:
    """The p of Student's t for two groups of scores that share a run-to-run deviation; None where that is unknown."""
    deviation, freedom = spread
    error = deviation * math.sqrt(1 / len(first) + 1 / len(second))
    return _by_seeds(float(np.mean(first) - np.mean(second)), error, freedom) if freedom else None


def _by_seeds(difference: float, error: float, freedom: int) -> float:
    """See `p_by_seeds`; with no deviation at all, a difference is sure."""
    return student_t(difference / error, freedom) if error else float(difference == 0)


def _detectable(by_sentences: float, by_seeds: float, freedom: int, level: float) -> float:
    """The difference that passes both tests at `level` with a probability of 0.8, were they independent."""
    seeded = freedom > 0 and by_seeds > 0
    if not by_sentences and not seeded:
        return 0.0

    def power(difference: float) -> float:
        passes = 1.0
        if by_sentences:
            passes *= stats.norm.sf(stats.norm.isf(level / 2), difference / by_sentences)
        if seeded:
            passes *= stats.nct.sf(stats.t.isf(level / 2, freedom), freedom, difference / by_seeds)
        return passes

    most = max(by_sentences, by_seeds)
    while power(most) < POWER:
        most *= 2
    return float(optimize.brentq(lambda difference: power(difference) - POWER, 0, most))
