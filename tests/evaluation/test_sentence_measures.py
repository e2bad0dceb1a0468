"""Measures of single sentences, worked by hand."""

import math

import pytest

from nmt.evaluation.sentence_measures import error_rates, measures, rows
from nmt.links import parse_links
from tests.alignment.by_hand import EMPTY, WORKED, even


def test_measures_of_a_sentence() -> None:
    """With head 0, das receives 0.05 + 0.1, Haus 0.75 + 0.2 and brennt 0.15 + 0.6."""
    found = measures(WORKED, ["houses burn"], "0")
    assert found["chrf"] == pytest.approx(100)
    assert (found["length"], found["log_prob"], found["repetition"]) == (3, -0.5, 0)
    assert found["coverage"] == pytest.approx((0.85 + 0.05 + 0.25) / 3)
    assert found["unattended"] == 1
    rows = [[0.1, 0.3, 0.4, 0.1, 0.1], [0.5, 0.3, 0.2], [0.1, 0.1, 0.1, 0.6, 0.1], [0.2, 0.8]]
    assert found["entropy"] == pytest.approx(-sum(p * math.log(p) for row in rows for p in row) / 4)
    assert measures(WORKED, ["houses burn"], "1")["entropy"] > found["entropy"]
    # Five weights are not there: two in the second row, three in the last.
    assert found["zero_weights"] == pytest.approx(100 * 5 / 20)


def test_monotonicity_is_the_share_of_steps_that_do_not_go_back() -> None:
    """houses looks at Haus, burn at brennt; the other way round the only step goes back."""
    assert measures(WORKED, ["houses burn"], "0")["monotonicity"] == 100
    assert WORKED.weights is not None
    back = WORKED._replace(weights=WORKED.weights[:, [2, 2, 0, 3]])
    assert measures(back, ["houses burn"], "0")["monotonicity"] == 0
    staying = even("a b", "x y z")
    assert measures(staying, [""], "mean")["monotonicity"] == 100, "one word that is looked at twice"
    assert "monotonicity" not in measures(even("a b", "x"), [""], "mean")


def test_weight_on_the_end_is_of_the_words_before_their_end() -> None:
    """The last row, which writes the end, looks at it with 0.8: that does not count."""
    assert measures(WORKED, ["houses burn"], "0")["end_weight"] == pytest.approx(100 * (0.1 + 0 + 0.1) / 3)
    assert measures(WORKED, ["houses burn"], "1")["end_weight"] == pytest.approx(100 * (0.1 + 0.2 + 0.1) / 3)


def test_repetition_counts_sequences_that_come_again() -> None:
    assert measures(even("a b", "x y z x y z x"), [""], "mean")["repetition"] == 2  # x y z and y z x
    assert measures(even("a b", "x y z x y"), [""], "mean")["repetition"] == 0


def test_one_hot_weights_have_no_entropy_and_factors_are_normalised() -> None:
    assert WORKED.weights is not None
    weights = 0 * WORKED.weights
    weights[:, :, 1] = 0.5  # what local-p leaves of a weight
    found = measures(WORKED._replace(weights=weights), ["x"], "mean")
    assert found["entropy"] == 0
    assert found["unattended"] == 2


def test_without_weights_there_is_no_attention_to_measure() -> None:
    assert set(measures(EMPTY, [""], "mean")) == {"chrf", "length", "log_prob", "repetition", "cut"}


def test_error_rates_of_single_pairs() -> None:
    pairs = [WORKED, WORKED, WORKED, EMPTY]
    rates = error_rates([parse_links(line) for line in ("1-0 2-1", "0-0 2-1", "", "")], pairs, "0")
    assert rates[:2] == [pytest.approx(0), pytest.approx(50)]
    assert rates[2:] == [None, None]


def test_rows_have_measures_and_gold_of_each_line() -> None:
    pairs = [WORKED, EMPTY]
    found = list(rows(pairs, ["houses burn", ""], "0", gold=["2-1 0p0", ""], forced=pairs))
    assert [row["line"] for row in found] == [1, 2]
    assert [row["gold"] for row in found] == ["0p0 2-1", ""]
    assert found[0]["error_rate"] is not None
    assert found[1]["error_rate"] is None
    assert found[0].items() >= measures(WORKED, ["houses burn"], "0").items()
    assert "gold" not in next(rows(pairs, ["", ""], "0"))
