"""The tests of differences: against sacreBLEU, against full enumeration, by hand, and by what a test must do."""

import itertools
import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sacrebleu.metrics.bleu import BLEU
from sacrebleu.metrics.chrf import CHRF

from nmt.evaluation import metrics
from nmt.evaluation.significance import (
    Statistics,
    bleu_of,
    chrf_of,
    contrast_with,
    holm,
    pooled_deviation,
    randomise,
    student_t,
)

WORDS = ["a", "b", "red", "green", "house", "."]
LINES = st.lists(st.lists(st.sampled_from(WORDS), max_size=8).map(" ".join), min_size=3, max_size=3)


@settings(deadline=None, max_examples=25)
@given(hypotheses=LINES, references=LINES)
def test_scores_of_statistics_are_sacrebleus(hypotheses: list[str], references: list[str]) -> None:
    for name, ours, theirs in (("bleu", bleu_of, BLEU()), ("chrf", chrf_of, CHRF())):
        counts = metrics.statistics(name, hypotheses, references, "en")  # type: ignore[arg-type]
        expected = theirs.corpus_score(hypotheses, [references]).score
        assert float(ours(counts.sum(0))) == pytest.approx(expected, abs=1e-9)
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
    assert found.difference == pytest.approx(observed)
    assert found.p == pytest.approx(exact, abs=4 * math.sqrt(exact * (1 - exact) / trials))
    assert found.deviation == pytest.approx(float(np.std(everything)), rel=0.1)
    turned = randomise(counts[1], counts[0], bleu_of, trials=trials)
    assert turned.difference == pytest.approx(-observed)


def test_the_same_translations_are_no_difference() -> None:
    counts = metrics.statistics("bleu", ["a red house", "b"], ["a red house .", "a"], "en")[None]
    found = randomise(counts, counts, bleu_of, trials=50)
    assert (found.difference, found.p, found.deviation) == (0, 1, 0)


def test_few_cells_at_a_time_give_the_same_kind_of_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = simulated(np.random.default_rng(1), 40, 2, 0.3)
    whole = randomise(first, second, mean_of, trials=999)
    monkeypatch.setattr("nmt.evaluation.significance._CELLS", 400)  # ten trials at a time
    parts = randomise(first, second, mean_of, trials=999)
    assert parts.p == pytest.approx(whole.p, abs=0.07)
    assert parts.deviation == pytest.approx(whole.deviation, rel=0.1)


def test_holm_by_hand() -> None:
    # Sorted 0.005 0.01 0.03 0.04, times 4 3 2 1: 0.02 0.03 0.06 0.04, and none below the one before.
    assert holm([0.01, 0.04, 0.03, 0.005]) == pytest.approx([0.03, 0.06, 0.06, 0.02])
    assert holm([0.6, 0.7]) == [1, 1]
    assert holm([]) == []


@pytest.mark.parametrize(
    ("t", "freedom", "p"),
    # The table of any textbook, two-sided.
    [(12.706, 1, 0.05), (4.303, 2, 0.05), (3.182, 3, 0.05), (9.925, 2, 0.01), (2.228, 10, 0.05), (2.845, 20, 0.01),
     (2.040, 31, 0.05), (0, 7, 1.0)],
)  # fmt: skip
def test_students_distribution_is_the_tables(t: float, freedom: int, p: float) -> None:
    assert student_t(t, freedom) == pytest.approx(p, rel=2e-3)
    assert student_t(-t, freedom) == student_t(t, freedom)


def test_pooled_deviation_by_hand() -> None:
    # Squares about the means: 2 (of 1 and 3), 2 (of 4, 5, 6) and none of a lone 9; 1 + 2 degrees of freedom.
    deviation, freedom = pooled_deviation([[1, 3], [4, 5, 6], [9]])
    assert deviation == pytest.approx(math.sqrt(4 / 3))
    assert freedom == 3
    assert pooled_deviation([[1], [2]])[1] == 0


def mean_of(statistics: Statistics) -> Statistics:
    """A score that is the mean of the sentences."""
    scores: Statistics = statistics[..., 0] / statistics[..., 1]
    return scores


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


def spread_of(*sides: Statistics) -> tuple[float, int]:
    return pooled_deviation([mean_of(side.sum(1)).tolist() for side in sides])


@pytest.mark.parametrize("interaction", [0.0, 1.0])
def test_where_nothing_differs_p_is_uniform(interaction: float) -> None:
    generator = np.random.default_rng(11)
    found = np.array(
        [
            randomise(*simulated(generator, 30, 3, 0.0, interaction=interaction), mean_of, trials=199).p
            for _ in range(400)
        ]
    )
    for level in (0.05, 0.2, 0.5, 0.8):
        # Four standard errors of a share of 400.
        assert abs((found <= level).mean() - level) < 4 * math.sqrt(level * (1 - level) / 400)


def test_run_to_run_noise_alone_is_not_called_real() -> None:
    """Models that differ as wholes: swaps of sentences would be fooled, the runs' own deviation is not."""
    generator = np.random.default_rng(5)
    by_sentences = called = 0
    for _ in range(200):
        sides = simulated(generator, 200, 3, 0.0, wobble=0.3)
        (found,) = contrast_with(sides[0], [sides[1]], mean_of, spread_of(*sides), trials=199)
        by_sentences += found.p_sentences < 0.05
        called += found.real
    assert by_sentences > 60
    assert called < 24


@pytest.mark.parametrize("wobble", [0.0, 0.25], ids=["sentences decide", "seeds decide"])
def test_the_smallest_detectable_difference_is_found_four_times_in_five(wobble: float) -> None:
    generator = np.random.default_rng(7)
    reach = 0.0
    for _ in range(40):  # more runs of other variants, whose deviation is pooled
        sides = simulated(generator, 100, 3, 0.0, wobble)
        more = [simulated(generator, 100, 3, 0.0, wobble)[0] for _ in range(8)]
        spread = spread_of(*sides, *more)
        reach += contrast_with(sides[0], [sides[1]], mean_of, spread, trials=199)[0].detectable / 40
    hits = 0
    for _ in range(200):
        sides = simulated(generator, 100, 3, reach, wobble)
        more = [simulated(generator, 100, 3, 0.0, wobble)[0] for _ in range(8)]
        hits += contrast_with(sides[0], [sides[1]], mean_of, spread_of(*sides, *more), trials=199)[0].real
    assert 0.62 < hits / 200 < 0.93


def test_a_real_difference_is_found_and_marked() -> None:
    generator = np.random.default_rng(3)
    base, better = simulated(generator, 300, 3, 0.5)
    _, alike = simulated(generator, 300, 3, 0.0)
    worse = base - np.array([0.4, 0.0])
    found = contrast_with(base, [better, worse, base.copy()], mean_of, spread_of(base, better, worse), trials=499)
    assert [own.real for own in found] == [True, True, False]
    assert found[0].difference > 0 > found[1].difference
    assert all(own.p >= max(own.p_sentences, own.p_seeds or 0) for own in found)
    alone = contrast_with(base[:1], [better[:1]], mean_of, (math.nan, 0), trials=499)[0]
    assert alone.p_seeds is None
    assert alone.p == alone.p_sentences
    # Of unequal numbers of seeds, those that both have are paired.
    fewer = contrast_with(base, [alike[:2]], mean_of, (0.05, 4), trials=99)[0]
    assert fewer.difference == pytest.approx(float((mean_of(alike[:2].sum(1)) - mean_of(base[:2].sum(1))).mean()))
