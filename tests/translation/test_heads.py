"""Names of heads: selections, defaults, and words for them."""

import pytest

from nmt.system.errors import UserError
from nmt.translation.named_heads import Heads, choose_head

ONE, FOUR = ("0",), ("0", "1", "2", "3")
DEEP = tuple(f"{layer}.{head}" for layer in (1, 2, 3) for head in range(1, 12))
THIN = ("1.1", "2.1", "3.1")
SHALLOW = ("1.1", "1.2")


@pytest.mark.parametrize(
    ("heads", "selection", "positions"),
    [
        (ONE, "mean", [0]),
        (ONE, "auto", [0]),
        (FOUR, "auto", [0, 1, 2, 3]),
        (FOUR, "3", [3]),
        (FOUR, "3.mean", []),
        (FOUR, "4", []),
        (DEEP, "mean", list(range(33))),
        (DEEP, "auto", list(range(11, 22))),
        (DEEP, "2.mean", list(range(11, 22))),
        (DEEP, "2.1", [11]),
        (DEEP, "2.10", [20]),
        (DEEP, "1.11", [10]),
        (DEEP, "4.mean", []),
        (DEEP, "2", []),
        (DEEP, ".mean", []),
        (DEEP, "", []),
        (THIN, "auto", [1]),
        (SHALLOW, "auto", [0, 1]),
    ],
)
def test_a_selection_stands_for_heads(heads: tuple[str, ...], selection: str, positions: list[int]) -> None:
    assert Heads(heads).select(selection) == positions


@pytest.mark.parametrize(
    ("heads", "expected"),
    [
        (ONE, ["0"]),
        (FOUR, ["mean", *FOUR]),
        (DEEP, ["mean", "1.mean", "2.mean", "3.mean", *DEEP]),
        (THIN, ["mean", *THIN]),
        (SHALLOW, ["mean", *SHALLOW]),
        ((), []),
    ],
)
def test_selections_are_all_different(heads: tuple[str, ...], expected: list[str]) -> None:
    found = Heads(heads).selections
    assert found == expected
    positions = [tuple(Heads(heads).select(name)) for name in found]
    assert len(set(positions)) == len(positions)
    assert all(positions)


def test_defaults_take_the_penultimate_layer() -> None:
    every = [Heads(names) for names in (ONE, FOUR, DEEP, THIN, SHALLOW)]
    assert [heads.default for heads in every] == ["mean", "mean", "2.mean", "2.mean", "mean"]
    assert [heads.guided for heads in every] == ["mean", "mean", "2.1", "2.1", "mean"]
    assert Heads(DEEP).layers == ["1", "2", "3"]


def test_words() -> None:
    assert Heads(ONE).describe("mean") == "one head"
    assert Heads(FOUR).describe("mean") == "mean of 4 heads"
    assert Heads(DEEP).describe("auto") == "mean of the 11 heads of layer 2"
    assert Heads(THIN).describe("auto") == "only head of layer 2"
    assert Heads(DEEP).describe("2.10") == "head 2.10"
    assert Heads(ONE).alternatives == "mean or 0"
    assert Heads(FOUR).alternatives == "mean or one from 0 to 3"
    assert Heads(DEEP).alternatives == "mean, 3.mean or one from 1.1 to 3.11"


@pytest.mark.parametrize(
    ("heads", "wanted", "rates", "expected"),
    [
        (Heads(DEEP), "3.2", {"1.1": 0.1}, ("3.2", "set")),
        (Heads(DEEP, "2.4"), "auto", None, ("2.4", "default")),
        (Heads(DEEP), "auto", {}, ("2.mean", "default")),
        (Heads(DEEP, "2.4"), "auto", {"mean": 9.0, "3.1": 8.0, "2.4": 8.0}, ("3.1", "validation")),
        (Heads(()), "0", None, ("0", "set")),
    ],
)
def test_a_head_is_set_or_has_the_lowest_error_rate_or_is_the_default(
    heads: Heads, wanted: str, rates: dict[str, float] | None, expected: tuple[str, str]
) -> None:
    assert choose_head(heads, wanted, rates) == expected
    with pytest.raises(UserError, match=r"head=9\.9 does not exist\. Give head=auto, mean"):
        choose_head(heads, "9.9", rates)
