"""Alignment error rates: worked by hand, by property, and on published links."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.error_rate import against_gold
from nmt.links import NO_LINKS, GoldLinks, parse_links
from nmt.system.errors import UserError
from tests.alignment.by_hand import read_corpus

_LINKS = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(_LINKS, _LINKS, _LINKS)
def test_error_rates_lie_between_zero_and_one(
    predicted: frozenset[tuple[int, int]], sure: frozenset[tuple[int, int]], possible: frozenset[tuple[int, int]]
) -> None:
    if predicted or sure:
        found = against_gold([predicted], [GoldLinks(sure, possible)])
        assert math.isnan(found.recall) == (not sure)
        assert all(0 <= figure <= 1 for figure in found if not math.isnan(figure))
        more = against_gold([predicted], [GoldLinks(sure, possible | predicted)])
        assert more.aer <= found.aer
        assert more.precision == 1


def test_error_rate_by_hand() -> None:
    # A = 4 links over two pairs, S = 3, P = S and one more. A and S: 2; A and P: 3.
    predicted = [[(0, 0), (1, 1)], [(0, 0), (5, 5)]]
    gold = [parse_links("0-0 1p1"), parse_links("0-0 1-1")]
    found = against_gold(predicted, gold)
    assert found.aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)
    assert against_gold([[(0, 0)]], [GoldLinks(frozenset({(0, 0)}), frozenset())]).precision == 1, (
        "sure is possible, too"
    )


def test_error_rate_of_the_gold_itself_is_zero() -> None:
    gold = parse_links("0-1 1-0")
    assert against_gold([gold.sure], [gold]) == (0.0, 1.0, 1.0)


def test_error_rate_wants_a_line_for_a_line() -> None:
    with pytest.raises(UserError, match="the alignment has 1 line and the gold has 2 lines"):
        against_gold([[]], [NO_LINKS, NO_LINKS])


def test_no_links_at_all_have_no_error_rate() -> None:
    with pytest.raises(UserError, match="no error rate"):
        against_gold([[]], [NO_LINKS])


@pytest.mark.parametrize(("pair", "printed"), [("enfr", "4.1"), ("roen", "20.7")])
def test_published_error_rates(pair: str, printed: str) -> None:
    gold = [parse_links(line, base=1) for line in read_corpus(f"alignments/{pair}/gold.sp")]
    lines = read_corpus(f"alignments/{pair}/awesome-align.pharaoh")
    found = against_gold([parse_links(line).sure for line in lines], gold)
    assert f"{100 * found.aer:.1f}" == printed
