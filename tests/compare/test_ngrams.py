"""Salient n-grams, by hand."""

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.ngrams import FEWEST, Ngram, Salient, count, lines_with_more, ngrams, salient, tables, times_of
from tests.compare.texts import scored, texts


def test_counts_by_hand() -> None:
    found = count([["a", "a"], ["b"]], [["a", "b"], ["c"]])
    assert found.produced == Counter({("a",): 2, ("a", "a"): 1, ("b",): 1})
    assert found.expected == Counter({("a",): 1, ("b",): 1, ("a", "b"): 1, ("c",): 1})
    assert found.right == Counter({("a",): 1}), "the b of one sentence is not that of another"


def test_salient_ones_have_the_highest_smoothed_ratio() -> None:
    here: dict[Ngram, int] = {("a",): 9, ("b",): 5, ("c",): 4, ("d",): 20, ("e",): 6}
    there: dict[Ngram, int] = {("a",): 1, ("b",): 0, ("d",): 20, ("e",): 4}
    assert salient(here, there) == [
        Salient(("b",), 5, 0, 6.0),
        Salient(("a",), 9, 1, 5.0),
        Salient(("e",), 6, 4, 1.4),
    ], "c is rarer than FEWEST, d is as frequent there"
    assert salient(here, there, most=1) == [Salient(("b",), 5, 0, 6.0)]
    assert FEWEST == 5


def test_a_part_of_a_salient_ngram_is_left_out() -> None:
    here: dict[Ngram, int] = {("a", "b"): 6, ("a",): 6, ("b",): 8}
    assert [each.ngram for each in salient(here, {})] == [("b",), ("a", "b")]


@given(st.lists(st.sampled_from("ab"), max_size=9))
def test_times_are_those_of_the_counter(words: list[str]) -> None:
    assert all(times_of(ngram, words) == times for ngram, times in ngrams(words).items())
    assert times_of(("c",), words) == times_of(("a", "c"), words) == 0


def test_lines_that_show_it() -> None:
    here, there = [["a"], ["a", "a"], ["b"], ["a"]], [["a"], ["a"], [], ["b"]]
    assert lines_with_more(("a",), here, there) == [2, 4]
    references = [["a"], ["a"], ["b"], ["a"]]
    assert lines_with_more(("a",), here, there, references) == [4], "line 2 has one right a in both"


def test_tables_compare_each_variant_with_its_rival() -> None:
    references = ["<b> dog"] * 6 + ["cat"] * 6
    good = scored(["x"] * 12, references, ["<b> dog"] * 6 + ["cow"] * 6)
    poor = scored(["x"] * 12, references, ["cat"] * 12)
    found = dict(tables(texts([[good], [poor]]), [0, 1], [1, 0]))
    right, over, under = found.values()
    assert right.rows == [["a", "<b> dog", "6", "0", "7.0", "b"], ["b", "cat", "6", "0", "7.0", "a"]]
    assert right.rows[0][2].lines == (1, 2, 3, 4, 5, 6)  # type: ignore[attr-defined]
    assert over.rows == [["a", "cow", "6", "0", "7.0"], ["b", "cat", "12", "6", "1.9"]]
    assert over.rows[1][2].lines == (1, 2, 3, 4, 5, 6)  # type: ignore[attr-defined]
    assert under.rows == [["a", "cat", "6", "0", "7.0"], ["b", "<b> dog", "6", "0", "7.0"]]
