"""The error of a difference: its parts by hand, against scipy, and how often the test errs."""

import math

import numpy as np
import pytest
from scipy import stats  # type: ignore[import-untyped]

from nmt.compare.estimates import mean_of
from nmt.compare.variance import (
    Error,
    Part,
    Statistics,
    by_runs,
    by_sentences,
    error_of,
    has_own_deviation,
    interaction,
    of_mean,
    pooled_deviation,
    pseudo_values,
)

pytestmark = pytest.mark.long


def counts(values: Statistics) -> Statistics:
    return np.stack([values, np.ones_like(values)], -1)


def p_of(part: Part, first: list[float], second: list[float]) -> float:
    return Error(math.sqrt(part.variance), part.freedom).p(float(np.mean(first) - np.mean(second)))


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
    assert interaction([sums]).variance == pytest.approx(0)
    # [[1, -1], [-1, 1]] on top: squares 4 over 1 degree of freedom. A lone run has none.
    odd = np.add.outer([0.0, 10.0], [1.0, 2.0]) + np.array([[1, -1], [-1, 1]])
    assert list(interaction([odd, np.ones((1, 2))])) == pytest.approx([4, 1])
    assert interaction([np.ones((1, 2))]).freedom == 0


def test_runs_are_pooled_as_in_students_test() -> None:
    first, second = [30.0, 31.0, 33.0], [34.0, 35.5, 36.0]
    part = by_runs(first, second, [first, second])
    expected = stats.ttest_ind(first, second)
    assert part.freedom == 4
    assert p_of(part, first, second) == pytest.approx(expected.pvalue)


def test_runs_of_unequal_deviation_are_tested_as_welch_does() -> None:
    first, second = [30.0, 30.01, 30.02, 30.01], [20.0, 35.0, 50.0, 28.0]
    part = by_runs(first, second, [first, second])
    expected = stats.ttest_ind(first, second, equal_var=False)
    assert part.freedom == pytest.approx(expected.df)
    assert p_of(part, first, second) == pytest.approx(expected.pvalue)


def test_a_variant_that_stands_out_is_not_pooled() -> None:
    alike = [[base, base + 1.0] for base in range(9)]
    wild, lone = [0.0, 100.0], [5.0]
    groups = [*alike, wild, lone]
    # The variance of each of the nine is 0.5.
    assert list(by_runs(alike[0], alike[1], groups)) == pytest.approx([0.5, 9])
    assert list(of_mean(wild, groups)) == pytest.approx([2500, 1])
    # What nobody knows of a variant with one run may be as large as that of the wild one.
    assert list(of_mean(lone, groups)) == pytest.approx([5004.5 / 10, 10])
    assert [has_own_deviation(group, groups) for group in groups] == [False] * 9 + [True, False]
    assert pooled_deviation(groups) == pytest.approx(0.5**0.5)


def test_a_variant_that_deviates_rather_much_is_pooled_for_the_others_alone() -> None:
    """F is 7.2 with 1 and 9 degrees of freedom: p = 0.025, which is less than 0.05 but not than 0.05 / 10."""
    alike = [[base, base + 1.0] for base in range(9)]
    rather = [0.0, 7.2**0.5]
    groups = [*alike, rather]
    pooled = (9 * 0.5 + 3.6) / 10
    assert list(by_runs(alike[0], alike[1], groups)) == pytest.approx([pooled, 10])
    assert list(of_mean(rather, groups)) == pytest.approx([1.8, 1])
    assert list(of_mean([0.0, 2.2], [*alike, [0.0, 2.2]])) == pytest.approx([(4.5 + 2.42) / 20, 10]), "p = 0.054"


def test_equal_scores_of_all_runs_are_pooled_as_well() -> None:
    same, other = [3.0, 3.0], [4.0, 4.0]
    assert by_runs(same, other, [same, other]) == (0, 2)
    assert list(by_runs(same, [4.0, 6.0], [same, other, [4.0, 6.0]])) == pytest.approx([1, 1])


def test_a_lone_run_borrows_the_deviation_of_the_others() -> None:
    # Squares 2 and 2 of 1 + 2 degrees of freedom.
    part = by_runs([1, 3], [9], [[1, 3], [9], [4, 5, 6]])
    assert list(part) == pytest.approx([4 / 3 * (1 / 2 + 1), 3])
    assert by_runs([1], [2], [[1], [2]]).freedom == 0


def test_both_parts_add_up_less_what_both_hold() -> None:
    error = error_of(Part(4.0, 9), Part(3.0, 4), Part(20.0, 36), (2, 2), 10)
    # 20 (1/2 + 1/2) / 10 = 2 are in both: 4 + 3 - 2 = 5; Satterthwaite: 25 / (16/9 + 9/4 + 4/36).
    assert error.size == pytest.approx(math.sqrt(5))
    assert error.freedom == pytest.approx(25 / (16 / 9 + 9 / 4 + 4 / 36))
    # Never less than either part.
    assert error_of(Part(4.0, 9), Part(3.0, 4), Part(90.0, 36), (2, 2), 10).size == pytest.approx(2)
    # Without seeds the error is that of sentences.
    assert error_of(Part(4.0, 9), Part(0.0, 0), Part(0.0, 0), (1, 1), 10) == (2, 9)


def test_what_has_no_error_is_certain() -> None:
    assert Error(0.0, 3).p(0.0) == 1
    assert Error(0.0, 3).p(0.1) == 0
    assert Error(0.0, 0).p(0.1) == 1, "one sentence and one seed tell nothing"
    assert Error(0.0, 0).detectable(0.05, 0.8) == 0


def test_the_detectable_difference_has_the_power() -> None:
    error = Error(0.5, 1e9)
    assert error.detectable(0.05, 0.8) == pytest.approx((1.959964 + 0.841621) * 0.5, rel=1e-4)
    assert Error(0.5, 4).detectable(0.05, 0.8) > error.detectable(0.05, 0.8)


@pytest.mark.parametrize("seeds", [3, 5, 10])
def test_where_nothing_differs_one_in_twenty_is_called_different(seeds: int) -> None:
    """Other sentences, other seeds, and their interaction, all of about the same size."""
    generator, lines, trials = np.random.default_rng(seeds), 100, 3000
    rejected = 0
    for _ in range(trials):
        sides = [
            generator.normal(0, 1, lines)
            + generator.normal(0, 0.12, (seeds, 1))
            + generator.normal(0, 1, (seeds, lines))
            for _ in range(2)
        ]
        scores = [side.mean(1).tolist() for side in sides]
        error = error_of(
            by_sentences(*sides), by_runs(scores[0], scores[1], scores), interaction(sides), (seeds, seeds), lines
        )
        rejected += error.p(float(np.mean(scores[1]) - np.mean(scores[0]))) < 0.05
    assert 0.04 <= rejected / trials <= 0.06


@pytest.mark.parametrize(("deviation", "at_most"), [(8, 0.08), (3, 0.13)])
def test_one_wild_variant_of_twenty_does_not_change_how_often_the_others_are_called_different(
    deviation: int, at_most: float
) -> None:
    """Its own pairs err more often where it deviates so little that three seeds hardly show it."""
    generator, trials = np.random.default_rng(1), 1000
    deviations = np.ones((20, 1))
    deviations[-1] = deviation
    rejected, of_wild = 0, 0
    for _ in range(trials):
        scores = generator.normal(0, deviations, (20, 3)).tolist()
        for first in range(0, 18, 2):
            part = by_runs(scores[first], scores[first + 1], scores)
            rejected += p_of(part, scores[first], scores[first + 1]) < 0.05
        of_wild += p_of(by_runs(scores[0], scores[-1], scores), scores[0], scores[-1]) < 0.05
    assert 0.035 <= rejected / (9 * trials) <= 0.06
    assert of_wild / trials <= at_most
