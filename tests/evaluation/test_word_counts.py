"""Words, and how often a text has them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.evaluation.word_counts import Word, count, places, split_words, without_spaces


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("Der Hund bellt.", ["Der", "Hund", "bellt", "."]),
        ('„Nein!", sagt er', ["„", "Nein", "!", '"', ",", "sagt", "er"]),
        ("3.5 km, don't e-mail", ["3.5", "km", ",", "don't", "e-mail"]),
        ("... $5", [".", ".", ".", "$", "5"]),
        ("हिन्दी में।", ["हिन्दी", "में", "।"]),
        ("  ", []),
    ],
)
def test_marks_around_a_word_are_words(sentence: str, expected: list[str]) -> None:
    assert split_words(sentence) == expected


@given(st.text(alphabet="ab .,\u00a0\u3000é中'(", max_size=20), st.booleans())
def test_words_are_where_they_say_and_leave_out_white_space_only(sentence: str, characters: bool) -> None:
    found = places(sentence, characters)
    assert all(sentence[word.begin : word.begin + len(word.text)] == word.text for word in found)
    assert "".join(word.text for word in found) == "".join(sentence.split())
    assert found == sorted(found, key=lambda word: word.begin)


def test_characters_are_words_in_text_without_spaces() -> None:
    assert places("我 爱", characters=True) == [Word("我", 0), Word("爱", 2)]
    assert without_spaces(["我爱你。", "他们在北京大学学习。"])
    assert not without_spaces(["Der Hund bellt."])


@given(st.lists(st.text(alphabet="ab ,", max_size=8), max_size=6), st.booleans())
def test_counts_are_those_of_each_sentence(lines: list[str], characters: bool) -> None:
    every = [word for line in lines for word in split_words(line, characters)]
    assert count(lines, {"a", "ab", ",", "zz"}, characters) == {
        word: every.count(word) for word in ("a", "ab", ",", "zz")
    }
