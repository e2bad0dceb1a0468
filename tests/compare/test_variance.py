"""The error of a difference: its parts by hand, against scipy, and how often the test errs."""

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from nmt.compare.estimates import mean_of
from nmt.compare.variance import (
    UNKNOWN,
    Deviations,
    PairNoise,
    Sample,
    Statistics,
    Variance,
    by_sentences,
    interaction,
    noise_of,
    pseudo_values,
    shared_interaction,
)


def counts(values: Statistics) -> Statistics:
    return np.stack([values, np.ones_like(values)], -1)


def p_of(part: Variance, first: list[float], second: list[float]) -> float:
    return PairNoise(UNKNOWN, part).p(float(np.mean(first) - np.mean(second)))


def test_the_pseudo_values_of_a_mean_are_the_sentences() -> None:
    values = np.array([[1.0, 5.0, 9.0], [2.0, 2.0, 8.0]])
    np.testing.assert_allclose(pseudo_values(counts(values), mean_of), values)


def test_the_part_of_sentences_is_that_of_their_differences() -> None:
    first, second = np.array([[1.0, 2, 3], [3, 4, 5]]), np.array([[4.0, 3, 8], [4, 3, 8]])
    # Means over runs 2 3 4 and 4 3 8: differences 2 0 4, whose variance is 4.
    assert list(by_sentences(first, second)) == pytest.approx([4 / 3, 2])
    assert by_sentences(first[:, :1], second[:, :1]).freedom == 0


def test_the_interaction_is_what_neither_run_nor_sentence_explains() -> None:
    sums = np.add.outer([0.0, 10.0], [1.0, 2.0, 3.0])
    assert interaction(sums).variance == pytest.approx(0)
    # [[1, -1], [-1, 1]] on top: squares 4 over 1 degree of freedom. A lone run has none.
    odd = np.add.outer([0.0, 10.0], [1.0, 2.0]) + np.array([[1, -1], [-1, 1]])
    assert list(interaction(odd)) == pytest.approx([4, 1])
    assert interaction(np.ones((1, 2))).freedom == 0


def test_runs_are_pooled_as_in_students_test() -> None:
    first, second = [30.0, 31.0, 33.0], [34.0, 35.5, 36.0]
    part = Deviations([first, second]).of_difference(0, 1)
    expected = stats.ttest_ind(first, second)
    assert part.freedom == 4
    assert p_of(part, first, second) == pytest.approx(expected.pvalue)


def test_runs_of_unequal_deviation_are_tested_as_welch_does() -> None:
    first, second = [30.0, 30.01, 30.02, 30.01], [20.0, 35.0, 50.0, 28.0]
    part = Deviations([first, second]).of_difference(0, 1)
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert part.freedom == pytest.approx(expected.df)
    assert p_of(part, first, second) == pytest.approx(expected.pvalue)


def test_a_collapsed_variant_is_not_pooled() -> None:
    alike = [[base, base + 1.0] for base in range(9)]
    wild, lone = [0.0, 100.0], [5.0]
    deviations = Deviations([*alike, wild, lone])
    # The variance of each of the nine is 0.5.
    assert list(deviations.of_difference(0, 1)) == pytest.approx([0.5, 9])
    assert list(deviations.of_mean(9)) == pytest.approx([2500, 1])
    # What nobody knows of a variant with one run may be as large as that of the wild one.
    assert list(deviations.of_mean(10)) == pytest.approx([5004.5 / 10, 10])
    assert deviations.alike == list(range(9))


def test_a_variant_that_deviates_rather_much_is_pooled() -> None:
    """F is 7.2 with 1 and 9 degrees of freedom: p = 0.025, which is less than 0.05 but not than 0.05 / 10."""
    deviations = Deviations([*([base, base + 1.0] for base in range(9)), [0.0, 7.2**0.5]])
    pooled = (9 * 0.5 + 3.6) / 10
    assert list(deviations.of_difference(0, 9)) == pytest.approx([pooled, 10])


def test_a_copy_takes_the_pooled_deviation_and_adds_nothing_to_it() -> None:
    # Each of the first two has a variance of 2; the copy's own would be 18.
    deviations = Deviations([[1.0, 3.0], [2.0, 4.0], [1.0, 7.0]], copies=[2])
    assert list(deviations.of_difference(0, 1)) == pytest.approx([2, 2])
    assert list(deviations.of_difference(0, 2)) == pytest.approx([2, 2])


def test_equal_scores_of_all_runs_are_pooled_as_well() -> None:
    same, other = [3.0, 3.0], [4.0, 4.0]
    assert Deviations([same, other]).of_difference(0, 1) == (0, 2)
    assert list(Deviations([same, other, [4.0, 6.0]]).of_difference(0, 2)) == pytest.approx([1, 1])


def test_a_lone_run_borrows_the_deviation_of_the_others() -> None:
    # Squares 2 and 2 of 1 + 2 degrees of freedom.
    part = Deviations([[1, 3], [9], [4, 5, 6]]).of_difference(0, 1)
    assert list(part) == pytest.approx([4 / 3 * (1 / 2 + 1), 3])
    assert Deviations([[1], [2]]).of_difference(0, 1).freedom == 0


def test_another_program_lends_no_deviation() -> None:
    ours, theirs = [[1.0], [3.0], [4.0, 6.0]], [[5.0, 9.0], [2.0]]
    deviations = Deviations([*ours, *theirs], ["", "", "", "marian", "eole"])
    assert list(deviations.of_difference(0, 1)) == pytest.approx([4, 1]), "of the third, pooled for both"
    assert deviations.of_difference(0, 4) == UNKNOWN
    assert deviations.of_difference(3, 4) == UNKNOWN
    assert list(deviations.of_difference(2, 3)) == pytest.approx([1 + 4, 25 / (1 + 16)])
    assert Deviations([[1.0], [3.0], [5.0, 9.0]], ["", "", "marian"]).of_difference(0, 1) == UNKNOWN


def noise(first: int, second: int, variants: list[Statistics], seeds: list[range] | None = None) -> PairNoise:
    """The noise of a pair; by default, no two variants share a seed."""
    runs = Deviations([values.mean(1).tolist() for values in variants])
    seeds = seeds or [range(10 * at, 10 * at + len(values)) for at, values in enumerate(variants)]
    samples = [Sample(values, list(numbers)) for values, numbers in zip(variants, seeds, strict=True)]
    return noise_of(first, second, samples, [interaction(values) for values in variants], runs)


def test_both_parts_add_up_less_what_both_hold() -> None:
    variants = [*np.random.default_rng(0).normal(0, 1, (3, 2, 10)) + np.array([[[0.0], [3]], [[0], [5]], [[0], [4]]])]
    sentences, runs = by_sentences(*variants[:2]), Deviations([each.mean(1).tolist() for each in variants])
    shared = float(np.mean([interaction(values).variance for values in variants])) * (1 / 2 + 1 / 2) / 10
    over_runs = runs.of_difference(0, 1)
    assert over_runs.freedom == 3, "the third is pooled, too"
    found = noise(0, 1, variants)
    assert tuple(found) == (sentences, over_runs, (pytest.approx(shared), 3 * 9), 0)
    assert found.error**2 == pytest.approx(sentences.variance + over_runs.variance - shared)
    of_sentences, of_runs = stats.t.isf(0.01, 9) ** 2, stats.t.isf(0.01, 3) ** 2
    bound = of_sentences * (sentences.variance - shared) + of_runs * over_runs.variance
    assert found.reach(0.02) == pytest.approx(math.sqrt(bound))
    assert found.p(found.reach(0.02)) == pytest.approx(0.02)
    assert found.interval(1.0, 0.02) == pytest.approx((1 - math.sqrt(bound), 1 + math.sqrt(bound)))


def test_interaction_that_the_runs_of_one_seed_share_is_not_subtracted() -> None:
    generator = np.random.default_rng(0)
    base = generator.normal(0, 1, (3, 400))
    ours, alike = Sample(base, [1, 2, 3]), Sample(base + generator.normal(0, 0.5, (3, 400)), [1, 2, 3])
    assert shared_interaction(ours, ours) == pytest.approx(1)
    assert shared_interaction(ours, alike) == pytest.approx(1 / math.sqrt(1.25), abs=0.03)
    assert shared_interaction(ours, alike._replace(seeds=[3, 1, 2])) < 0.1, "runs are paired by their seeds"
    assert shared_interaction(ours, Sample(base[:1], [2])) == 0.5, "all of one seed in (3 + 1) / 2 may be shared"
    assert shared_interaction(ours, alike._replace(seeds=[4, 5, 6])) == 0


def test_the_bound_with_shared_interaction_by_hand() -> None:
    parts = Variance(1.0, 100), Variance(4.0, 6), Variance(3.0, 50)
    of_sentences, of_runs = stats.t.isf(0.025, 100) ** 2, stats.t.isf(0.025, 6) ** 2
    plain = 1 * of_sentences + 4 * of_runs - 3 * of_sentences
    assert PairNoise(*parts).reach(0.05) == pytest.approx(math.sqrt(plain))
    less = 1 * of_sentences + 4 * of_runs - 3 * 0.9 * of_sentences
    assert PairNoise(*parts, 0.1).reach(0.05) == pytest.approx(math.sqrt(less)), "the lower of two remedies"
    # Of many runs, one t is lower. Its variance is 1 + 4 - 3, its degrees of freedom 2^2 / (1 + 16 + 9) * 100.
    single = 2 * stats.t.isf(0.025, 400 / 26) ** 2
    of_many, of_their_runs, in_both = (Variance(part.variance, 100) for part in parts)
    many = PairNoise(of_many, of_their_runs, in_both, 1.0)
    most = (1 + 4) * stats.t.isf(0.025, 100) ** 2
    assert many.reach(0.05) == pytest.approx(math.sqrt(0.9 * single + 0.1 * most)), "and a tenth of the distance"


def test_variants_that_are_more_alike_than_their_runs_have_an_interval() -> None:
    values = 30 * np.random.default_rng(3).normal(0, 1, (3, 400)) + np.array([[0.0], [3], [4]])
    variants = [values, values + np.random.default_rng(4).normal(0, 1, (3, 400))]
    found = noise(0, 1, variants, [range(3), range(3)])
    assert math.isfinite(found.detectable(0.05, 0.8))
    assert found.reach(0.05) > 4, "that whole runs do not differ is not known of three seeds"


def test_runs_that_deviate_by_their_interaction_alone_add_no_error() -> None:
    variants = [np.array([[1.0, 2, 6], [2, 1, 6]]), np.array([[3.0, 4, 2], [4, 3, 2]])]
    assert noise(0, 1, variants).error ** 2 == by_sentences(*variants).variance, "equal means of both runs"


def test_the_interaction_of_a_collapsed_variant_is_not_that_of_others() -> None:
    alike = [*np.random.default_rng(0).normal(0, 1, (8, 2, 10)) + np.array([[0.0], [3]])]
    wild = 50 * np.random.default_rng(1).normal(0, 1, (2, 10)) + np.array([[0.0], [900]])
    assert noise(0, 1, [*alike, wild]) == noise(0, 1, alike)


def test_without_seeds_the_noise_is_that_of_sentences() -> None:
    variants = [np.array([[1.0, 2, 6]]), np.array([[3.0, 4, 2]])]
    assert noise(0, 1, variants) == (by_sentences(*variants), UNKNOWN, UNKNOWN, 0)


def test_what_has_no_error_is_certain() -> None:
    certain = PairNoise(Variance(0.0, 3), UNKNOWN)
    assert certain.p(0.0) == 1
    assert certain.p(0.1) == 0
    unknown = PairNoise(UNKNOWN, UNKNOWN)
    assert unknown.p(0.1) == 1, "one sentence and one seed tell nothing"
    assert unknown.detectable(0.05, 0.8) == 0
    assert all(map(math.isnan, unknown.interval(0.1)))


def test_a_single_t_has_the_p_of_student() -> None:
    for freedom, t in ((1, 12.7), (4, 2.0), (1000, 6.0), (3, 1e6)):
        found = PairNoise(Variance(0.25, freedom), UNKNOWN).p(t / 2)
        assert found == pytest.approx(2 * stats.t.sf(t, freedom), rel=1e-6)


def test_the_detectable_difference_has_the_power() -> None:
    sure = PairNoise(Variance(0.25, 1e9), UNKNOWN)
    assert sure.detectable(0.05, 0.8) == pytest.approx((1.959964 + 0.841621) * 0.5, rel=1e-4)
    assert PairNoise(Variance(0.25, 4), UNKNOWN).detectable(0.05, 0.8) > sure.detectable(0.05, 0.8)


NOISES = {"most is interaction": (0.5, 0.05, 1.0), "whole runs deviate": (1.0, 0.3, 1.0)}


class Simulation(NamedTuple):
    """Shares of pairs called different: without a difference, such pairs of the last variant, with a difference."""

    errs: float
    last_errs: float
    finds: float


def simulated(
    noises: tuple[float, float, float],
    seeds: int,
    variants: int,
    *,
    wild: float = 1,
    shares: Sequence[float] = (0, 0),
    draws: int = 16_000,
) -> Simulation:
    """Draw scores of 100 sentences and test them.

    Args:
        noises: deviations of sentence, whole run, run in a sentence.
        seeds: of each variant, the same numbers.
        variants: at least two.
        wild: how many times as much the runs of the last variant deviate, whose pairs are counted alone.
        shares: of the noise of whole runs, and of sentences and runs in them, that the variants have in common. The
            difference that is to be found is three standard errors.
        draws: of a variant's scores, and of all variants together.
    """
    generator, lines = np.random.default_rng(seeds), 100
    deviations = np.ones((variants, 1, 1))
    deviations[-1] = wild
    of_runs, of_sentences = shares

    def drawn(deviation: float, share: float, *shape: int) -> Statistics:
        common = generator.normal(0, deviation * math.sqrt(share), (1, *shape))
        return common + generator.normal(0, deviation * math.sqrt(1 - share), (variants, *shape))

    sentence, run, both = noises
    parts = sentence**2 / lines + both**2 / lines / seeds, run**2 / seeds
    gain = 3 * math.sqrt(2 * ((1 - of_sentences) * parts[0] + (1 - of_runs) * parts[1]))
    errs, last_errs, finds = [], [], []
    for _ in range(draws // max(variants, 4)):
        values = (
            drawn(sentence, of_sentences, 1, lines)
            + deviations * drawn(run, of_runs, seeds, 1)
            + deviations * drawn(both, of_sentences, seeds, lines)
        )
        means = values.mean((1, 2))
        samples = [Sample(each, range(seeds)) for each in values]
        runs, interactions = Deviations(values.mean(2).tolist()), [interaction(each) for each in values]
        for first in range(0, max(variants - 2, 1), 2):
            reach = noise_of(first, first + 1, samples, interactions, runs).reach(0.05)
            errs.append(abs(means[first + 1] - means[first]) > reach)
            finds.append(abs(means[first + 1] - means[first] + gain) > reach)
        last = noise_of(0, variants - 1, samples, interactions, runs)
        last_errs.append(abs(means[-1] - means[0]) > last.reach(0.05))
    found = Simulation(*(float(np.mean(each)) for each in (errs, last_errs, finds)))
    print(noises, seeds, variants, wild, shares, *(f"{100 * each:.1f}" for each in found))
    return found


@pytest.mark.long
@pytest.mark.parametrize("wild", [1, 8])
@pytest.mark.parametrize("variants", [8, 38])
@pytest.mark.parametrize("seeds", [3, 5])
@pytest.mark.parametrize("noises", NOISES)
def test_one_pair_in_twenty_errs_and_four_in_five_are_found(noises: str, seeds: int, variants: int, wild: int) -> None:
    found = simulated(NOISES[noises], seeds, variants, wild=wild)
    assert 0.03 <= found.errs <= 0.06
    # Three seeds hide a collapse in one sample of ten.
    assert found.last_errs <= 0.09
    assert found.finds >= 0.77


@pytest.mark.long
@pytest.mark.parametrize("variants", [2, 8, 38])
@pytest.mark.parametrize("seeds", [2, 3, 5])
@pytest.mark.parametrize(
    ("noises", "shares"),
    [
        ("most is interaction", (0, 0.5)),
        ("most is interaction", (0, 0.9)),
        ("most is interaction", (0.9, 0.9)),
        ("whole runs deviate", (0, 0)),
        ("whole runs deviate", (0, 0.9)),
    ],
    ids=str,
)
def test_variants_whose_runs_share_their_noise_do_not_err_more_often(
    noises: str, seeds: int, variants: int, shares: tuple[float, float]
) -> None:
    assert simulated(NOISES[noises], seeds, variants, shares=shares, draws=8_000).errs <= 0.06


@pytest.mark.long
def test_the_pairs_of_a_variant_that_deviates_three_times_as_much_err_more_often() -> None:
    """Three seeds hardly show such a deviation."""
    generator, trials = np.random.default_rng(1), 1000
    deviations = np.ones((20, 1))
    deviations[-1] = 3
    of_wild = 0
    for _ in range(trials):
        scores = generator.normal(0, deviations, (20, 3)).tolist()
        of_wild += p_of(Deviations(scores).of_difference(0, 19), scores[0], scores[19]) < 0.05
    assert 0.05 < of_wild / trials <= 0.2


def test_p_and_interval_agree_with_fewer_sentences_than_runs() -> None:
    """The interaction must not be subtracted with a larger t than that of the runs that hold it."""
    few = PairNoise(Variance(0.0, 1), Variance(155.64, 2), Variance(2.43, 2))
    assert few.interval(-39.28)[1] > 0
    assert few.p(-39.28) > 0.05
    reaches = [
        PairNoise(Variance(0.5, 9), Variance(4.0, 20), Variance(3.0, 180)).reach(10.0**-at) for at in range(1, 9)
    ]
    assert reaches == sorted(reaches)
