"""Text in columns, in any script."""

from nmt.drawing.layout import columns_of, shorten, wrap


def test_columns_count_wide_and_combining_characters() -> None:
    assert columns_of("abc") == 3
    assert columns_of("中文") == 4
    assert columns_of("e\u0301") == 1


def test_wrap_breaks_at_blanks_and_inside_text_without_them() -> None:
    assert wrap("one two three", 7) == ["one two", "three"]
    assert wrap("ab 中文中文中", 6) == ["ab 中", "文中文", "中"]
    assert wrap("", 5) == [""]
    assert wrap("luong-scaled_dot-projected", 25) == ["luong-scaled_dot-", "projected"]
    assert wrap("-中文中文", 5) == ["-中文", "中文"]
    assert wrap("--option=valuevalue", 8) == ["--option", "=valueva", "lue"]
    assert wrap("a-b cccccccc", 6) == ["a-b cc", "cccccc"], "the hyphen of a word before is none of this word"


def test_shorten_keeps_both_ends() -> None:
    assert shorten("short", 8) == "short"
    assert shorten("Straßenbahnhaltestelle", 9) == "Straß…lle"
    assert columns_of(shorten("中" * 40, 11)) <= 11
