"""Kinds of sentences, by hand."""

import pytest

from nmt.compare.slices import MOST_LABELS, Slicing, slices_of


def kinds(sentence: str, language: str = "en") -> set[str]:
    return {name for name, rows in slices_of([sentence, "other"], language, Slicing()).items() if 0 in rows}


@pytest.mark.parametrize(
    ("sentence", "language", "expected"),
    [
        ("in 12 days", "en", {"numbers"}),
        ("NATO and the US", "en", {"all capitals"}),
        ("I am A", "en", set()),
        ('he said "go"', "en", {"quotes"}),
        ("he said 'go'", "en", {"quotes"}),
        ("the dog's bone", "en", set()),
        ("«Oui»", "fr", {"quotes"}),
        ("really? ", "en", {"questions"}),
        ('"really?"', "en", {"questions", "quotes"}),
        ("why? because", "en", set()),
        ("吗？", "zh", {"questions"}),
        ("Not now", "en", {"negation"}),
        ("I don't know", "en", {"negation"}),
        ("I don’t know", "en_GB", {"negation"}),
        ("a knot", "en", set()),
        ("ich habe keinen Hund.", "de", {"negation"}),
        ("ce n'est rien", "fr", {"negation"}),
        ("no", "xx", set()),
    ],
)
def test_kinds_of_a_sentence(sentence: str, language: str, expected: set[str]) -> None:
    assert kinds(sentence, language) == expected


def test_duplicates_patterns_and_labels() -> None:
    sources = ["a b", "c", "a b", "d1"]
    found = slices_of(sources, "xx", Slicing(r"[ad]\w?", ["news", "", "news", "law"]))
    assert found["duplicates"] == [0, 2]
    assert found["regex [ad]\\w?"] == [0, 2, 3]
    assert found["label news"] == [0, 2]
    assert found["label law"] == [3]
    assert "negation" not in found
    many = slices_of(["x"] * 30, "en", Slicing(None, [str(number) for number in range(30)]))
    assert sum(name.startswith("label ") for name in many) == MOST_LABELS
