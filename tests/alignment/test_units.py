"""What a word is, and which pieces spell it."""

import re

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.units import Units, source_units, spelled, target_units
from nmt.alignment.word_weights import word_weights
from tests.alignment.by_hand import WORKED, even


def owners(units: Units) -> list[list[int]]:
    """The units of each piece."""
    return [np.flatnonzero(row).tolist() for row in units.members]


def test_text_without_spaces_is_counted_in_pieces() -> None:
    found = even("A dog barks", "狗在叫。")
    assert target_units(found).labels == ["狗", "在", "叫", "。"]
    assert not target_units(found).are_words
    assert source_units(found).labels == ["A", "dog", "barks"]
    assert word_weights(found).shape == (4, 3)


def test_a_lone_word_mark_and_the_bytes_of_a_character_make_one_unit() -> None:
    units = target_units(even("a b", "我龘叫")._replace(spans=[(0, 0), (0, 1), *[(1, 2)] * 3, (2, 3), None]))
    assert units.labels == ["我", "龘", "叫"]
    assert owners(units) == [[0], [0], [1], [1], [1], [2], []]


def test_a_truncated_source_takes_its_words_from_the_pieces() -> None:
    found = even("ein Hund bellt", "a dog")._replace(source="ein Hund bellt und rennt")
    assert source_units(found).labels == ["ein", "Hund", "bellt"]


def test_words_are_found_by_their_letters() -> None:
    found = spelled(WORKED.source, WORKED.source_spans, ["das", "Haus", "brennt"])
    assert owners(found) == [[0], [1], [1], [2], []]
    assert found.members.max() == 1


def test_a_piece_over_two_words_is_shared_by_letters() -> None:
    """Moses cuts "don't." into do n't and the full stop; the pieces are don, 't."""
    found = spelled("don't.", [(0, 3), (3, 6), None], ["do", "n't", "."])
    expected = [[2 / 3, 1 / 3, 0.0], [0.0, 2 / 3, 1 / 3], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(found.members, expected, atol=1e-6)


def test_bytes_word_marks_and_unknowns() -> None:
    # A lone word mark, two bytes, a letter; a lone mark, an unknown sign; the mark itself; a space at the end.
    spans = [(0, 0), (0, 1), (0, 1), (1, 2), (3, 3), (3, 4), (5, 6), (7, 7), None]
    found = spelled("üb 龘 \u2581 ", spans, ["üb", "龘", "\u2581"])
    assert owners(found) == [[0], [0], [0], [0], [1], [1], [2], [], []]


def test_words_that_are_spelt_otherwise_are_matched_in_between() -> None:
    spans = [(0, 1), (1, 4), (4, 5), (6, 7), (8, 12), None]
    found = spelled("„Ein“ … Hund", spans, ['"', "ein", '"', "...", "hund"])
    assert owners(found) == [[0], [1], [2], [3], [4], []]


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=4), max_size=5))
def test_one_piece_a_word_gives_the_words_back(words: list[str]) -> None:
    spans = [match.span() for match in re.finditer(r"\S+", " ".join(words))]
    assert owners(spelled(" ".join(words), [*spans, None], words)) == [*([at] for at in range(len(words))), []]
