"""The tests of differences: against sacreBLEU, against full enumeration, by hand, and by what a test must do."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.compare.estimates import mean_of
from nmt.compare.significance import (
    DifferenceTest,
    Noise,
    Runs,
    bleu_of,
    chrf_of,
    contrast_with,
    holm,
    paired,
    randomise,
)
from nmt.compare.variance import UNKNOWN, PairNoise, Statistics, Variance
from nmt.evaluation import metrics

WORDS = ["a", "b", "red", "green", "house", "."]
LINES = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=3, max_size=3)


@settings(max_examples=25)
@given(hypotheses=LINES, references=LINES, others=LINES)
def test_scores_of_statistics_are_sacrebleus(hypotheses: list[str], references: list[str], others: list[str]) -> None:
    for name, ours, theirs in (("bleu", bleu_of, BLEU()), ("chrf", chrf_of, CHRF())):
        counts = metrics.statistics(name, hypotheses, references, "en")  # type: ignore[arg-type]
        expected = theirs.corpus_score(hypotheses, [references]).score
        assert float(ours(counts.sum(0))) == pytest.approx(expected, abs=1e-9)
        several = metrics.statistics(name, hypotheses, references, "en", [others])  # type: ignore[arg-type]
        score = metrics.corpus_score(name, hypotheses, references, "en", [others])  # type: ignore[arg-type]
        assert float(ours(several.sum(0))) == pytest.approx(score.value, abs=1e-6)
        # Of each sentence alone, all at once; sacreBLEU changes what it is given, so that it gets a copy.
        for value, row in zip(ours(counts), counts, strict=True):
            one = theirs._compute_score_from_stats([int(count) for count in row])
            assert float(value) == pytest.approx(one.score, abs=1e-9)


def test_randomisation_agrees_with_all_the_swaps_there_are() -> None:
    references = ["the red house is old .", "a dog sees two cats .", "we go home now .", "it rains a lot today ."]
    first = [
        ["the red house is old .", "a dog sees two cats .", "we go home .", "it rains today ."],
        ["the red house is .", "a dog sees two cats .", "we go home now .", "it rains a lot ."],
    ]
    second = [
        ["a red house is old .", "the dogs see two cats .", "we go house now .", "it rains a lot today ."],
        ["the house is red .", "a cat sees two dogs .", "we go home .", "rains a lot today ."],
    ]
    scorer = BLEU()

    def bleu(lines: list[str]) -> float:
        return float(scorer.corpus_score(lines, [references]).score)

    def difference(swaps: tuple[int, ...]) -> float:
        total = 0.0
        for seed in range(2):
            ours, theirs = list(first[seed]), list(second[seed])
            for line in range(4):
                if swaps[line]:
                    ours[line], theirs[line] = theirs[line], ours[line]
            total += bleu(theirs) - bleu(ours)
        return total / 2

    everything = [difference(swaps) for swaps in itertools.product((0, 1), repeat=4)]
    observed = everything[0]
    exact = sum(abs(value) >= abs(observed) - 1e-9 for value in everything) / len(everything)
    assert 0.02 < exact < 0.9, "a case that says something"
    counts = [
        np.stack([metrics.statistics("bleu", lines, references, "en") for lines in side]) for side in (first, second)
    ]
    trials = 4000
    found = randomise(counts[0], counts[1], bleu_of, trials=trials)
    assert found == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / trials))
    sides = Noise([Runs(side, [1, 2]) for side in counts], bleu_of)
    assert sides.between(0, 1).difference == pytest.approx(observed)
    assert sides.between(1, 0).difference == pytest.approx(-observed)


def test_the_same_translations_are_no_difference() -> None:
    counts = metrics.statistics("bleu", ["a red house", "b"], ["a red house .", "a"], "en")[None]
    assert randomise(counts, counts, bleu_of, trials=50) == 1


def test_p_by_hand_is_never_zero() -> None:
    """Of forty sentences that all gain, 99 swaps never move all the same way: 0 + 1 of 99 + 1."""
    base = simulated(np.random.default_rng(4), 40, 2, 0.0)[0]
    better = base + np.array([9.0, 0.0])
    assert randomise(base, better, mean_of, trials=99) == pytest.approx(1 / 100)
    (contrast,) = contrast_with(runs_of(base), [runs_of(better)], mean_of, trials=99)
    assert contrast.p_sentences == pytest.approx(1 / 100)


def test_few_cells_at_a_time_give_the_same_kind_of_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = simulated(np.random.default_rng(1), 40, 2, 0.3)
    whole = randomise(first, second, mean_of, trials=999)
    monkeypatch.setattr("nmt.compare.significance._CELLS", 400)  # ten trials at a time
    parts = randomise(first, second, mean_of, trials=999)
    assert parts == pytest.approx(whole, abs=0.07)


def test_holm_by_hand() -> None:
    # Sorted 0.005 0.01 0.03 0.04, times 4 3 2 1: 0.02 0.03 0.06 0.04, and none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


def simulated(
    generator: np.random.Generator,
    sentences: int,
    seeds: int,
    gain: float,
    wobble: float = 0.0,
    interaction: float = 0.0,
) -> tuple[Statistics, Statistics]:
    """Sentence scores of two systems: hard and easy sentences, noise, a run-to-run wobble; the second gains.

    The interaction is what suits one system in a sentence, whatever its seed.
    """
    hardness = generator.normal(size=sentences)
    sides = [
        hardness
        + generator.normal(0, interaction, size=sentences)
        + generator.normal(size=(seeds, sentences))
        + generator.normal(0, wobble, size=(seeds, 1))
        for _ in range(2)
    ]
    ones = np.ones((seeds, sentences))
    return np.stack([sides[0], ones], -1), np.stack([sides[1] + gain, ones], -1)


def runs_of(counts: Statistics, *seeds: int) -> Runs:
    return Runs(counts, list(seeds or range(1, len(counts) + 1)))


@pytest.mark.parametrize("interaction", [0.0, 1.0])
def test_where_nothing_differs_p_is_uniform(interaction: float) -> None:
    generator = np.random.default_rng(11)
    found = np.array(
        [randomise(*simulated(generator, 30, 3, 0.0, interaction=interaction), mean_of, trials=199) for _ in range(400)]
    )
    for level in (0.05, 0.2, 0.5, 0.8):
        # Four standard errors of a share of 400.
        assert abs((found <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / 400)


def test_run_to_run_noise_alone_is_not_called_real() -> None:
    """Models that differ as wholes: swaps of sentences would be fooled."""
    generator = np.random.default_rng(5)
    by_sentences = called = 0
    for _ in range(200):
        sides = simulated(generator, 200, 3, 0.0, wobble=0.3)
        (found,) = contrast_with(runs_of(sides[0]), [runs_of(sides[1])], mean_of, trials=199)
        by_sentences += found.p_sentences < 0.05
        called += found.real
    assert by_sentences > 60
    assert called < 24


@pytest.mark.long
@pytest.mark.parametrize("wobble", [0.0, 0.25], ids=["sentences decide", "seeds decide"])
def test_the_smallest_detectable_difference_is_found_four_times_in_five(wobble: float) -> None:
    generator = np.random.default_rng(7)

    def contrast(gain: float) -> DifferenceTest:
        sides = simulated(generator, 100, 3, gain, wobble, interaction=0.5)
        # Other variants tell the deviation, too.
        more = [runs_of(simulated(generator, 100, 3, 0.0, wobble, interaction=0.5)[0]) for _ in range(8)]
        noise = Noise([*map(runs_of, sides), *more], mean_of)
        return noise.between(0, 1)

    reach = float(np.mean([contrast(0.0).noise.detectable(0.05, 0.8) for _ in range(100)]))
    hits = sum(contrast(reach).p < 0.05 for _ in range(300))
    assert 0.73 < hits / 300 < 0.87


def test_the_detectable_difference_does_not_grow_with_the_difference() -> None:
    sides = simulated(np.random.default_rng(9), 200, 3, 0.0, wobble=0.2)
    detectable = [
        contrast_with(runs_of(sides[0]), [runs_of(sides[1] + np.array([gain, 0.0]))], mean_of, trials=9)[0].detectable
        for gain in (0.0, 5.0)
    ]
    assert detectable[0] == pytest.approx(detectable[1])


@pytest.mark.parametrize(
    ("others", "picked", "tests"), [(1, False, 1), (4, False, 4), (1, True, 1), (4, True, 10)], ids=str
)
def test_the_level_is_shared_by_all_tests(others: int, picked: bool, tests: int) -> None:
    generator = np.random.default_rng(6)
    base, *sides = (simulated(generator, 50, 1, 0.0)[0] for _ in range(others + 1))
    contrasts = contrast_with(
        runs_of(base), [runs_of(side) for side in sides], mean_of, trials=9, alpha=0.04, picked=picked
    )
    for side, contrast in zip(sides, contrasts, strict=True):
        gains = (side - base)[0, :, 0]
        noise = PairNoise(Variance(gains.var(ddof=1) / 50, 49), UNKNOWN)
        assert contrast.error == pytest.approx(noise.error)
        assert contrast.detectable == pytest.approx(noise.detectable(0.04 / tests, 0.8))
        if picked:
            assert contrast.p == pytest.approx(min(1, tests * noise.p(gains.mean())))


def test_a_real_difference_is_found_and_marked() -> None:
    generator = np.random.default_rng(3)
    base, better = simulated(generator, 300, 3, 0.5)
    worse = base - np.array([0.4, 0.0])
    others = [runs_of(own) for own in (better, worse, base.copy())]
    found = contrast_with(runs_of(base), others, mean_of, trials=499)
    assert [own.real for own in found] == [True, True, False]
    assert found[0].difference > 0 > found[1].difference
    alone = contrast_with(runs_of(base[:1]), [runs_of(better[:1])], mean_of, trials=499)[0]
    assert alone.p_seeds is None
    assert alone.significant
    assert not alone.real, "nobody knows other seeds"


def constant(*values: float) -> Statistics:
    """[K, 4, 2] sentence scores of runs whose sentences all have the same."""
    return np.stack([np.stack([np.full(4, value), np.ones(4)], -1) for value in values])


@pytest.mark.long
def test_what_the_scores_picked_is_tested_at_its_level() -> None:
    """The highest of six that are alike is above the others by luck."""
    generator = np.random.default_rng(17)
    called = {False: 0, True: 0}
    for _ in range(150):
        sides = [side for _ in range(3) for side in simulated(generator, 60, 2, 0.0, wobble=0.2)]
        best = max(range(6), key=lambda index, sides=sides: float(mean_of(sides[index].sum(1)).mean()))  # type: ignore[misc]
        others = [runs_of(side) for index, side in enumerate(sides) if index != best]
        for picked in called:
            found = contrast_with(runs_of(sides[best]), others, mean_of, trials=499, picked=picked)
            called[picked] += any(own.real for own in found)
    assert called[True] / 150 < 0.05 + 2 * math.sqrt(0.05 * 0.95 / 150)
    assert called[False] > called[True]


def test_unequal_numbers_of_seeds_by_hand() -> None:
    base, other = runs_of(constant(1, 2, 9), 1, 2, 3), runs_of(constant(4, 8), 3, 1)
    ours, theirs = paired(base, other)
    assert mean_of(ours.sum(1)).tolist() == [1, 9], "seeds 1 and 3,"
    assert mean_of(theirs.sum(1)).tolist() == [8, 4], "in the same order"
    (found,) = contrast_with(base, [other], mean_of, trials=99)
    # All seeds: 6 - 4. Squares about the means are 38 and 8, of 2 + 1 degrees of freedom.
    assert found.difference == pytest.approx(2)
    noise = PairNoise(UNKNOWN, Variance(46 / 3 * (1 / 3 + 1 / 2), 3))
    assert found.p_seeds == pytest.approx(noise.p(2))
    assert found.error == pytest.approx(noise.error), "sentences that are all alike add nothing"
    # None in common: the first two of both.
    ours, theirs = paired(base, runs_of(constant(4, 8), 7, 8))
    assert mean_of(ours.sum(1)).tolist() == [1, 2]
    assert mean_of(theirs.sum(1)).tolist() == [4, 8]
