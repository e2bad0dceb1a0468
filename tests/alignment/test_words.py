"""What a word is, and which pieces spell it."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.weights import word_weights
from nmt.alignment.words import Units, source_units, spelled, target_units
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
    pieces = ["\u2581", "我", "<0xE9>", "<0xBE>", "<0x98>", "叫", "</s>"]
    found = even("a b", "我龘叫")._replace(pieces=pieces, words=[0] * 6 + [-1])
    units = target_units(found)
    assert units.labels == ["我", "龘", "叫"]
    assert owners(units) == [[0], [0], [1], [1], [1], [2], []]


def test_a_truncated_source_takes_its_words_from_the_pieces() -> None:
    found = even("ein Hund bellt", "a dog")._replace(
        source="ein Hund bellt und rennt", source_pieces=["\u2581ein", "\u2581Hund", "\u2581bellt", "</s>"]
    )
    assert source_units(found).labels == ["ein", "Hund", "bellt"]


def test_words_are_found_by_their_letters() -> None:
    found = spelled(WORKED.source_pieces, WORKED.source_words, ["das", "Haus", "brennt"])
    assert owners(found) == [[0], [1], [1], [2], []]
    assert found.members.max() == 1


def test_a_piece_over_two_words_is_shared_by_letters() -> None:
    """Moses cuts "don't." into do n't and the full stop; the pieces are don, 't."""
    found = spelled(["\u2581don", "'t.", "</s>"], [0, 0, -1], ["do", "n't", "."])
    expected = [[2 / 3, 1 / 3, 0.0], [0.0, 2 / 3, 1 / 3], [0.0, 0.0, 0.0]]
    np.testing.assert_allclose(found.members, expected, atol=1e-6)


def test_bytes_word_marks_and_unknowns() -> None:
    pieces = ["\u2581", "<0xC3>", "<0xBC>", "b", "\u2581", "<unk>", "\u2581\ufdd0", "\u2581", "</s>"]
    found = spelled(pieces, [0, 0, 0, 0, 1, 1, 2, -1, -1], ["üb", "龘", "\u2581"])
    assert owners(found) == [[0], [0], [0], [0], [1], [1], [2], [], []]


def test_words_that_are_spelt_otherwise_are_matched_in_between() -> None:
    found = spelled(
        ["\u2581„", "Ein", "“", "\u2581…", "\u2581Hund", "</s>"], [0, 0, 0, 1, 2, -1], ['"', "ein", '"', "...", "hund"]
    )
    assert owners(found) == [[0], [1], [2], [3], [4], []]


@given(st.lists(st.text(st.characters(exclude_categories=["Z", "C"]), min_size=1, max_size=4), max_size=5))
def test_one_piece_a_word_gives_the_words_back(words: list[str]) -> None:
    pieces = ["\u2581" + word for word in words if "\u2581" not in word]
    kept = [word for word in words if "\u2581" not in word]
    assert owners(spelled([*pieces, "</s>"], [*range(len(kept)), -1], kept)) == [*([at] for at in range(len(kept))), []]
