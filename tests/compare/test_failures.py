"""Failures that can be counted, by hand."""

import pytest

from nmt.compare.failures import KINDS, copies, failing, failures, repeats
from tests.compare.texts import scored, texts


@pytest.mark.parametrize(
    ("hypothesis", "reference", "expected"),
    [
        ("a b c a b c", "a b c", True),
        ("a a a a", "a", True),
        ("a a a", "a", False),
        ("a b a b", "x", False),
        ("a b c a b c", "a b c a b c", False),
        ("a b c a b c a b c", "a b c a b c", True),
        ("", "a", False),
    ],
)
def test_repetition_is_more_than_the_reference_has(hypothesis: str, reference: str, expected: bool) -> None:
    assert repeats(hypothesis.split(), reference.split()) is expected


@pytest.mark.parametrize(
    ("source", "hypothesis", "reference", "expected"),
    [
        ("der Hund", "der Hund", "the dog", True),
        ("der rote Hund bellt", "oh der rote Hund", "the red dog", True),
        ("der rote Hund", "der rote dog", "the red dog", False),
        ("Angela Dorothea Merkel spricht", "Angela Dorothea Merkel", "Angela Dorothea Merkel speaks", False),
        ("1 2 3", "1 2 3", "3 2 1", False),
        ("Taxi", "Taxi", "Taxi", False),
        ("", "", "x", False),
    ],
)
def test_copies_are_what_the_reference_does_not_have(
    source: str, hypothesis: str, reference: str, expected: bool
) -> None:
    assert copies(source.split(), hypothesis.split(), reference.split()) is expected


def test_the_table_counts_and_leads_to_lines() -> None:
    sources, references = ["der Hund", "eins zwei", "rot", "blau"], ["the dog", "one two", "red", "blue"]
    measures = [{"unattended": number, "cut": number > 1} for number in (0, 1, 2, 0)]
    one = scored(sources, references, ["der Hund", "", "a b c a b c", "blue"], measures=measures)
    other = scored(sources, references, ["the dog", "", "red", "blue"])
    made = texts([[one], [other]])
    assert failing(made, 0, 0) == [[3], [2, 3], [1], [2], [3]]
    assert failing(made, 1, 0) == [[], None, [], [2], None]
    table = failures(made, [1, 0])
    assert table.header[1:] == list(KINDS)
    assert [row[0] for row in table.rows] == ["b", "a"]
    assert table.rows[0][2] == table.rows[0][5] == "-"
    # Wilson's interval of 1 of 4.
    assert table.rows[1][1] == "25.0 (4.6 to 69.9)"
    assert [getattr(cell, "lines", ()) for cell in table.rows[1]] == [(), (3,), (2, 3), (1,), (2,), (3,)]


def test_seeds_are_averaged() -> None:
    sources, references = ["a b"] * 4, ["x y"] * 4
    whole = scored(sources, references, ["x y"] * 4)
    half = scored(sources, references, ["", "", "x y", "x y"])
    (row,) = failures(texts([[whole, half]]), [0]).rows
    assert row[4].startswith("25.0 (")
    assert getattr(row[4], "lines", None) == (), "the first seed has no empty line"
