"""Texts that a Python program gives: by position, and with the place of what is not text."""

from collections.abc import Callable

import numpy as np
import pandas as pd  # type: ignore[import-untyped]
import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from hypothesis import given as holds
from hypothesis import strategies as st

from nmt.data.python_text import lists_of_texts, text, texts
from nmt.system.errors import UserError

LINES = st.lists(st.text(st.characters(codec="utf-8", exclude_characters="\r\n"), max_size=5), min_size=1, max_size=6)
HOLDERS: dict[str, Callable[[list[str]], object]] = {
    "tuple": tuple,
    "iterator": iter,
    "generator": lambda lines: (line for line in lines),
    "values": lambda lines: dict(enumerate(lines)).values(),
    "array": lambda lines: np.array(lines, dtype=object),
    "column": lambda lines: pd.Series(lines, index=range(len(lines))[::-1]),
    "filtered column": lambda lines: pd.DataFrame({"text": ["", *lines]}).iloc[1:]["text"],
    "categories": lambda lines: pd.Series(lines, dtype="category"),
    "Arrow": pa.array,
    "Arrow in parts": lambda lines: pa.chunked_array([[line] for line in lines]),
}
NO_TEXT = [None, float("nan"), 3, b"text", ["text"], {"text": 1}, pd.NA, np.float32(1)]


@pytest.mark.parametrize("holder", HOLDERS)
@holds(LINES)
def test_texts_are_taken_by_position(holder: str, lines: list[str]) -> None:
    assert texts(HOLDERS[holder](lines), "sentences") == lines


@holds(LINES, st.sampled_from(NO_TEXT), st.integers(0, 5), st.sampled_from([list, tuple, iter]))
def test_what_is_not_text_has_its_place(lines: list[str], odd: object, at: int, holder: Callable[..., object]) -> None:
    values: list[object] = [*lines]
    values.insert(at, odd)
    with pytest.raises(TypeError, match=rf"^sentences\[{min(at, len(lines))}\]: .*, not text\.$"):
        texts(holder(values), "sentences")
    with pytest.raises(TypeError, match=rf"^contexts\[1\]\[{min(at, len(lines))}\]: .*, not text\.$"):
        lists_of_texts([[], values], "contexts")


@pytest.mark.parametrize("table", [pd.DataFrame({"text": ["a"]}), pa.table({"text": ["a"]}), {"text": "a"}, {"a"}])
def test_tables_and_sets_are_refused(table: object) -> None:
    with pytest.raises(TypeError, match=r"^sentences: an? \w+, not a list\. Give a list of sentences"):
        texts(table, "sentences")


@pytest.mark.parametrize("single", ["text", b"text", None, 3, 1.5, np.array("text")])
def test_what_is_no_list_is_refused(single: object) -> None:
    with pytest.raises(TypeError, match=r"^sentences: .*, not a list\. Give a list of sentences"):
        texts(single, "sentences")


def test_a_float_is_a_float() -> None:
    with pytest.raises(TypeError, match=r"^sentences\[3\]: a float, not text\.$"):
        texts(pd.Series(["a", "b", "c", float("nan")]), "sentences")


@pytest.mark.parametrize("broken", ["\n", "a\nb", "a\r", "\r\n", "\ud800"])
def test_a_text_is_one_line(broken: str) -> None:
    with pytest.raises(UserError, match=r"^prefixes\[1\]: (has a line break|character 1 is half a surrogate pair)\. "):
        texts(["a", broken], "prefixes")
    with pytest.raises(UserError, match=r"^sentence: "):
        text(broken, "sentence")
