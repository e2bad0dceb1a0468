"""Words by training count, pieces and place, by hand."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.results import WordFacts
from nmt.compare.texts import table_of
from nmt.compare.vocabulary import (
    FREQUENCIES,
    PIECES,
    f1_by,
    frequency,
    matched,
    pieces,
    recall_by_quarter,
    recall_by_source,
    recall_by_step,
)
from tests.compare.texts import scored, texts, values

WORDS = {"the": WordFacts(500, 1), "red": WordFacts(3, 2), "dog": WordFacts(0, 7)}


@pytest.mark.parametrize(
    ("times", "name"),
    [(0, "0 (unseen)"), (1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-9"), (9, "5-9"), (10, "10-99"), (999, "100-999"),
     (1000, "1000 or more")],
)  # fmt: skip
def test_buckets_of_counts(times: int, name: str) -> None:
    place = frequency(WordFacts(times, 1))
    assert place is not None
    assert FREQUENCIES[place] == name
    assert frequency(WordFacts(None, 1)) is None


def test_buckets_of_pieces() -> None:
    assert [PIECES[place] for number in (1, 4, 5, 30) if (place := pieces(WordFacts(0, number))) is not None] == [
        "1", "4", "5 or more", "5 or more",
    ]  # fmt: skip


def test_f1_by_hand() -> None:
    """The: 2 of 3 in translations and 2 of 2 in references. Red: none of 1. Dog: 1 of 1 and 1 of 2."""
    run = scored(["1", "2"], ["the dog the", "red dog"], ["the the the", "dog x"])
    found = f1_by(texts([[run]]), WORDS, frequency, FREQUENCIES, "t")
    assert values(found.rows) == [[pytest.approx(200 / 3), None, 0.0, None, None, pytest.approx(80), None]]
    assert found.counts == [2, 0, 1, 0, 0, 2, 0]
    table = table_of(["a"], [0], found)
    assert table.header == ["t", "0 (unseen)", "2-4", "100-999"], "empty buckets are left out"
    assert table.rows[1] == ["words of references", "2", "1", "2"]


def test_f1_is_a_mean_over_seeds() -> None:
    right, wrong = (scored(["1"], ["the"], [text]) for text in ("the", "x"))
    found = f1_by(texts([[right, wrong], [wrong, wrong]]), WORDS, frequency, FREQUENCIES, "t")
    assert values(found.rows) == [[None] * 5 + [50.0, None], [None] * 5 + [0.0, None]]


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_matches_are_clipped_as_in_bleu(reference: list[str], hypothesis: list[str]) -> None:
    found = matched(reference, hypothesis)
    assert len(found) == len(reference)
    assert sum(found) == (Counter(reference) & Counter(hypothesis)).total()


def test_recall_by_quarter() -> None:
    run = scored(["1", "2"], ["a b c d e f g h", "a b"], ["a b c x y z", "b"])
    found = recall_by_quarter(texts([[run]]))
    # The two words of the second reference begin its first and its third quarter.
    assert values(found.rows) == [[pytest.approx(200 / 3), 50.0, pytest.approx(100 / 3), 0.0]]
    assert found.counts == [3, 2, 3, 2]


def test_recall_by_number_of_the_word() -> None:
    reference = [f"w{number}" for number in range(1, 24)]
    wrong = {"w1", "w5", "w6", "w11", "w23"}
    hypothesis = ["x" if word in wrong else word for word in reference]
    run = scored(["1", "2"], [" ".join(reference), "a b"], [" ".join(hypothesis), "a"])
    found = recall_by_step(texts([[run]]))
    assert found.counts == [2, 2, 1, 2, 5, 10, 3]
    assert values(found.rows) == [[50.0, 50.0, 100.0, 50.0, 80.0, 90.0, pytest.approx(200 / 3)]]


def test_recall_through_links() -> None:
    run = scored(["der Hund", "rot"], ["the dog", "red"], ["the cat", "red"])
    known = {"der": WordFacts(50, 1), "Hund": WordFacts(0, 1), "rot": WordFacts(0, 1)}
    found = recall_by_source(texts([[run]]), known, [[(0, 0), (1, 1)], [(0, 0)]])
    assert values(found.rows) == [[50.0, None, None, None, 100.0, None, None]]
    assert found.counts == [2, 0, 0, 0, 1, 0, 0]
