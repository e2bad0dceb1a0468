"""Alignment error rates: worked by hand, by property, and on published links."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.error_rate import alignment_error_rate
from nmt.errors import UserError
from nmt.links import parse_links
from tests.alignment.by_hand import read_corpus

_LINKS = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(_LINKS, _LINKS, _LINKS)
def test_error_rates_lie_between_zero_and_one(
    predicted: frozenset[tuple[int, int]], sure: frozenset[tuple[int, int]], possible: frozenset[tuple[int, int]]
) -> None:
    if predicted or sure:
        found = alignment_error_rate([predicted], [sure], [possible])
        assert math.isnan(found.recall) == (not sure)
        assert all(0 <= figure <= 1 for figure in found if not math.isnan(figure))
        more = alignment_error_rate([predicted], [sure], [possible | predicted])
        assert more.aer <= found.aer
        assert more.precision == 1


def test_error_rate_by_hand() -> None:
    # A = 4 links over two pairs, S = 3, P = S and one more. A and S: 2; A and P: 3.
    predicted = [[(0, 0), (1, 1)], [(0, 0), (5, 5)]]
    sure = [{(0, 0)}, {(0, 0), (1, 1)}]
    possible = [{(1, 1)}, set[tuple[int, int]]()]
    found = alignment_error_rate(predicted, sure, possible)
    assert found.aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)


def test_error_rate_of_the_gold_itself_is_zero() -> None:
    gold = [{(0, 1), (1, 0)}]
    assert alignment_error_rate(gold, gold, gold) == (0.0, 1.0, 1.0)


def test_error_rate_wants_a_line_for_a_line() -> None:
    with pytest.raises(UserError, match="the alignment has 1 line and the sure gold has 2 lines"):
        alignment_error_rate([[]], [set(), set()], [set(), set()])


def test_no_links_at_all_have_no_error_rate() -> None:
    with pytest.raises(UserError, match="no error rate"):
        alignment_error_rate([[]], [set()], [set()])


@pytest.mark.parametrize(("pair", "printed"), [("enfr", "4.1"), ("roen", "20.7")])
def test_published_error_rates(pair: str, printed: str) -> None:
    gold = [parse_links(line, base=1) for line in read_corpus(f"alignments/{pair}/gold.sp")]
    lines = read_corpus(f"alignments/{pair}/awesome-align.pharaoh")
    found = alignment_error_rate(
        [parse_links(line).sure for line in lines],
        [line.sure for line in gold],
        [line.possible for line in gold],
    )
    assert f"{100 * found.aer:.1f}" == printed
