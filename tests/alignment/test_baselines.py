"""Links that need no model: by hand, by property, and on real links."""

from hypothesis import assume, given
from hypothesis import strategies as st

from nmt.alignment.baselines import DIAGONAL, ORACLE, baselines, diagonal, oracle
from nmt.alignment.error_rate import against_gold
from nmt.alignment.splitters import splitter
from nmt.links import GoldLinks, Link, parse_file
from tests.alignment.by_hand import read_corpus


def test_the_diagonal_by_hand() -> None:
    assert diagonal(3, 3) == [(0, 0), (1, 1), (2, 2)]
    assert diagonal(6, 3) == [(1, 0), (3, 1), (5, 2)]  # the middles of the words lie at 1/6, 3/6 and 5/6
    assert diagonal(2, 4) == [(0, 0), (0, 1), (1, 2), (1, 3)]
    assert diagonal(0, 2) == diagonal(2, 0) == []


def test_the_oracle_by_hand() -> None:
    gold = GoldLinks(frozenset({(2, 0), (3, 0)}), frozenset({(0, 0), (2, 0), (3, 0), (1, 2)}))
    # Word 0 has sure links, word 1 none at all, word 2 a possible one.
    assert oracle(gold, 4, 3) == [(2, 0), (0, 1), (1, 2)]
    assert oracle(gold, 0, 3) == []


@given(st.data(), st.integers(1, 5), st.integers(1, 5))
def test_no_links_of_one_word_each_are_better_than_the_oracle(data: st.DataObject, sources: int, targets: int) -> None:
    link = st.tuples(st.integers(0, sources - 1), st.integers(0, targets - 1))
    sure: frozenset[Link] = data.draw(st.frozensets(link, max_size=8))
    gold = [GoldLinks(sure, sure | data.draw(st.frozensets(link, max_size=8)))]
    assume(gold[0].possible)
    guess = [(data.draw(st.integers(0, sources - 1)), target) for target in range(targets)]
    found = baselines(gold, [(sources, targets)])
    assert [target for _, target in found[ORACLE][0]] == list(range(targets))
    assert against_gold(found[ORACLE], gold).aer <= min(
        against_gold([guess], gold).aer, against_gold(found[DIAGONAL], gold).aer
    )


def test_the_diagonal_on_real_links() -> None:
    """The error rates that another program found for the diagonal."""
    sides = [read_corpus(f"multi30k/test_2016_flickr.{code}.gz") for code in ("de", "en")]
    words = [[len(splitter("moses", code)(line)) for line in side] for code, side in zip(("de", "en"), sides)]
    gold = parse_file(read_corpus("alignments/multi30k_silver/test_2016_flickr.de-en.sp"), "gold", pairs=len(sides[0]))
    found = baselines(gold, list(zip(*words, strict=True)))
    assert round(100 * against_gold(found[DIAGONAL], gold).aer, 1) == 42.6
    assert against_gold(found[ORACLE], gold).aer < 0.06
