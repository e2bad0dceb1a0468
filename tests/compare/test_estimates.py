"""Intervals of figures: Wilson's by hand, the bootstrap's against a closed form."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.estimates import Bootstrap, correlation_of, f1_of, mean_of, share_estimate, share_of


def test_wilson_by_hand() -> None:
    """Newcombe 1998, table I: 81 of 263 is 0.2553 to 0.3662; 0 of 20 is 0 to 0.1611; 1 of 29 is 0.0061 to 0.1718."""
    for count, trials, low, high in ((81, 263, 25.53, 36.62), (0, 20, 0, 16.11), (1, 29, 0.61, 17.18)):
        found = share_estimate(count, trials)
        assert (found.value, found.low, found.high) == pytest.approx((100 * count / trials, low, high), abs=0.005)


@given(st.integers(1, 500).flatmap(lambda trials: st.tuples(st.floats(0, trials), st.just(trials))))
def test_wilson_holds_the_share(case: tuple[float, int]) -> None:
    found = share_estimate(*case)
    assert 0 <= found.low <= found.value + 1e-9
    assert found.value - 1e-9 <= found.high <= 100


def test_scores_of_counts() -> None:
    assert share_of(np.array([3.0, 4.0])) == 75
    assert mean_of(np.array([-3.0, 4.0])) == -0.75
    assert f1_of(np.array([2.0, 3.0, 5.0])) == 50
    assert np.isnan(f1_of(np.zeros((2, 3)))).all()


@given(st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=20))
def test_the_correlation_is_pearsons(rows: list[tuple[int, int]]) -> None:
    x, y = np.array(rows, float).T
    found = correlation_of(np.stack([np.ones_like(x), x, y, x * x, y * y, x * y], -1).sum(0))
    if x.std() and y.std():
        assert found == pytest.approx(np.corrcoef(x, y)[0, 1])
    else:
        assert np.isnan(found)


@pytest.mark.parametrize("sentences", [400, 5000])
def test_the_bootstrap_of_a_mean_is_as_wide_as_its_standard_error(sentences: int) -> None:
    values = np.random.default_rng(7).normal(10, 3, sentences)
    counts = np.stack([values, np.ones(sentences)], -1)[None]
    found = Bootstrap(sentences).estimate(counts, mean_of)
    assert found is not None
    assert found.value == pytest.approx(values.mean())
    error = values.std() / sentences**0.5
    assert (found.high - found.low) / (2 * 1.96 * error) == pytest.approx(1, abs=0.12)
    # A second run with the same sentences halves nothing: the sentences are the same.
    both = Bootstrap(sentences).estimate(np.concatenate([counts, counts]), mean_of)
    assert both == pytest.approx(found)


def test_nothing_to_score_has_no_estimate() -> None:
    assert Bootstrap(3).estimate(np.zeros((1, 3, 2)), share_of) is None
    lone = np.zeros((1, 3, 2))
    lone[0, 1] = 1, 1
    assert Bootstrap(3).estimate(lone, share_of) == (100, 100, 100), "resamples without it have no score"
