"""Scores x buckets, by hand: words by training count, pieces and place, sentences, likelihood, calibration."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare import buckets, scorers
from nmt.compare.buckets import COUNTS, PIECES
from nmt.compare.grid import Grid, ItemScore, grid_table
from nmt.compare.results import ForcedReference, WordFacts
from nmt.compare.scorers import WordKey, calibration_error, matched
from nmt.drawing.length_plot import FEW
from tests.compare.texts import scored, texts, values

WORDS = {"the": WordFacts(500, 1), "red": WordFacts(3, 2), "dog": WordFacts(0, 7)}
COUNT = buckets.training_count(WORDS, "t")


def places(facts: WordFacts) -> list[str]:
    """The buckets of a word with these facts, by training count and by pieces."""
    word, words = WordKey(0, "x", 0, 1), {"x": facts}
    known = (buckets.training_count(words, "t"), buckets.piece_count(words))
    return [bucket.names[place] for bucket in known for place in bucket.places(word)]


@pytest.mark.parametrize(
    ("times", "name"),
    [(0, "0 (unseen)"), (1, "1"), (2, "2-4"), (4, "2-4"), (5, "5-9"), (9, "5-9"), (10, "10-99"), (999, "100-999"),
     (1000, "1000 or more")],
)  # fmt: skip
def test_buckets_of_counts(times: int, name: str) -> None:
    assert places(WordFacts(times, 1)) == [name, "1"]


def test_a_word_without_a_count_is_in_no_bucket_of_counts() -> None:
    assert [places(WordFacts(None, number)) for number in (1, 4, 5, 30)] == [["1"], ["4"], [PIECES[-1]], [PIECES[-1]]]
    assert list(COUNT.places(WordKey(0, "unknown", 0, 1))) == []


def test_f1_by_hand() -> None:
    """The: 2 of 3 in translations and 2 of 2 in references. Red: none of 1. Dog: 1 of 1 and 1 of 2."""
    made = texts([[scored(["1", "2"], ["the dog the", "red dog"], ["the the the", "dog x"])]])
    found = made.grid(scorers.f1(made), COUNT)
    assert values(found.rows) == [[pytest.approx(200 / 3), None, 0.0, None, None, pytest.approx(80), None]]
    assert found.sizes == [2, 0, 1, 0, 0, 2, 0]
    table = grid_table(found, ["a"], [0])
    assert table.header == ["t", "0 (unseen)", "2-4", "100-999"], "empty buckets are left out"
    assert table.rows[1] == ["words of references", "2", "1", "2"]


def test_a_score_is_a_mean_over_seeds() -> None:
    right, wrong = (scored(["1"], ["the"], [text]) for text in ("the", "x"))
    made = texts([[right, wrong], [wrong, wrong]])
    assert values(made.grid(scorers.f1(made), COUNT).rows) == [[None] * 5 + [50.0, None], [None] * 5 + [0.0, None]]


@given(st.lists(st.sampled_from("abc"), max_size=8), st.lists(st.sampled_from("abc"), max_size=8))
def test_matches_are_clipped_as_in_bleu(reference: list[str], hypothesis: list[str]) -> None:
    found = matched(reference, hypothesis)
    assert len(found) == len(reference)
    assert sum(found) == (Counter(reference) & Counter(hypothesis)).total()


def test_recall_by_place() -> None:
    made = texts([[scored(["1", "2"], ["a b c d e f g h", "a b"], ["a b c x y z", "b"])]])
    found = made.grid(scorers.recall(made), buckets.QUARTER)
    # The two words of the second reference begin its first and its third quarter.
    assert values(found.rows) == [[pytest.approx(200 / 3), 50.0, pytest.approx(100 / 3), 0.0]]
    assert found.sizes == [3, 2, 3, 2]
    reference = [f"w{number}" for number in range(1, 24)]
    hypothesis = ["x" if word in {"w1", "w5", "w6", "w11", "w23"} else word for word in reference]
    made = texts([[scored(["1", "2"], [" ".join(reference), "a b"], [" ".join(hypothesis), "a"])]])
    found = made.grid(scorers.recall(made), buckets.STEP)
    assert found.sizes == [2, 2, 1, 2, 5, 10, 3]
    assert values(found.rows) == [[50.0, 50.0, 100.0, 50.0, 80.0, 90.0, pytest.approx(200 / 3)]]


def test_recall_through_links() -> None:
    made = texts([[scored(["der Hund", "rot"], ["the dog", "red"], ["the cat", "red"])]])
    words = {"der": WordFacts(50, 1), "Hund": WordFacts(0, 1), "rot": WordFacts(0, 1)}
    bucket = buckets.linked_count(made.sources, [[(0, 0), (1, 1)], [(0, 0)]], words)
    found = made.grid(scorers.recall(made, "linked words"), bucket)
    assert values(found.rows) == [[50.0, None, None, None, 100.0, None, None]]
    assert found.sizes == [2, 0, 0, 0, 1, 0, 0]
    # A word with two links is in the buckets of both.
    both = buckets.linked_count([["der", "Hund"]], [[(0, 0), (1, 0)]], words)
    assert [COUNTS[place] for place in both.places(WordKey(0, "the", 0, 1))] == ["10-99", "0 (unseen)"]


def test_sentences_may_be_in_several_buckets() -> None:
    references = ["the dog barks at night"] * FEW + ["a cat"] * 3
    run = scored(["s"] * (FEW + 3), references, ["the dog barks at night"] * FEW + ["x"] * 3)
    made = texts([[run]])
    rows = buckets.row_sets("kind", {"all": range(FEW + 3), "dogs": range(FEW)})

    def of(score: ItemScore) -> Grid:
        return made.grid(score, rows)

    found = of(scorers.corpus(made.runs, "bleu"))
    assert found.sizes == [FEW + 3, FEW]
    ((everything, dogs),) = found.rows
    assert everything is not None
    assert dogs is not None
    assert everything.value == pytest.approx(run.scores["bleu"].value)
    assert tuple(dogs) == pytest.approx((100, 100, 100))
    # Translations have 5 and 1 tokens for 5 and 2.
    lengths = of(scorers.corpus(made.runs, "bleu", length_ratio=True))
    assert values(lengths.rows) == [[pytest.approx(100 * (5 * FEW + 3) / (5 * FEW + 6)), 100]]


def test_shares_by_fifth_of_chrf() -> None:
    made = texts([[scored(["s"] * 4, ["one two"] * 4, ["one two", "", "", "one two"])]])
    found = made.grid(scorers.distribution(made), buckets.fifths("t", buckets.FIFTHS, 100))
    assert values(found.rows) == [[50.0, 0.0, 0.0, 0.0, 50.0]]


def test_measures_have_means_and_correlations() -> None:
    measures = [{"entropy": 1.0}, {"entropy": 3.0}, {}]
    made = texts([[scored(["s"] * 3, ["one", "two", "x"], ["one", "", "x"], measures=measures)]])
    names = {"entropy": "entropy", "coverage": "coverage deviation"}
    for correlated, expected in ((False, 2.0), (True, -1.0)):
        found = made.grid(*scorers.measures(made, names, correlated=correlated))
        assert values(found.rows) == [[pytest.approx(expected), None]]
        assert list(found.names) == list(names.values())


SOURCES, REFERENCES = ["1", "2"], ["the dog", "the"]


def forced(line: int, log_probs: list[float], best: list[float], right: list[bool]) -> ForcedReference:
    return ForcedReference(line, log_probs, None, best, right)


def test_likelihood_by_training_count() -> None:
    first = [forced(1, [-1.0, -4.0], [], []), forced(2, [-2.0], [], [])]
    second = [forced(1, [-2.0, -8.0], [], [])]
    runs = [scored(SOURCES, REFERENCES, REFERENCES, forced=rows) for rows in (first, second)]
    alone, both = texts([[runs[0]]]), texts([[runs[0]], [runs[1]]])
    assert values(alone.grid(scorers.log_prob(alone), COUNT).rows) == [[-4.0, None, None, None, None, -1.5, None]]
    # The second run was not forced to line 2, so that line 2 is not compared.
    found = both.grid(scorers.log_prob(both), COUNT)
    assert values(found.rows) == [[-4.0, *[None] * 4, -1.0, None], [-8.0, *[None] * 4, -2.0, None]]


def test_calibration_by_hand() -> None:
    """One piece of 4 is 0.05 off, and three have a mean probability of 2.9 / 3 where 2 / 3 are right."""
    best, right = [0.05, 0.95, 0.95, 1.0], [False, True, True, False]
    rows = [forced(1, [], best[:2], right[:2]), forced(2, [], best[2:], right[2:])]
    made = texts([[scored(SOURCES, REFERENCES, REFERENCES, forced=rows)]])
    found = made.grid(scorers.correct_pieces(made), buckets.fifths("t", buckets.FIFTHS, 1))
    assert values(found.rows) == [[0.0, None, None, None, pytest.approx(200 / 3, abs=1e-6)]]
    assert calibration_error(best, right) == pytest.approx(100 * (0.05 / 4 + 0.9 / 3 * 3 / 4))
    assert calibration_error([0.25] * 4, [True, False, False, False]) == pytest.approx(0)
    assert calibration_error([], []) == 0
