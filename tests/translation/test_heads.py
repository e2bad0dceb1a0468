"""Names of heads: selections, defaults, and words for them."""

import pytest

from nmt.translation.heads import alternatives, default, described, guided, layers_of, penultimate, selected, selections

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
    assert selected(selection, heads) == positions


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
    found = selections(heads)
    assert found == expected
    positions = [tuple(selected(name, heads)) for name in found]
    assert len(set(positions)) == len(positions)
    assert all(positions)


def test_defaults_take_the_penultimate_layer() -> None:
    assert [default(heads) for heads in (ONE, FOUR, DEEP, THIN, SHALLOW)] == [
        *("mean", "mean", "2.mean", "2.mean", "mean")
    ]
    assert [guided(heads) for heads in (ONE, FOUR, DEEP, THIN, SHALLOW)] == ["mean", "mean", "2.1", "2.1", "mean"]
    assert [penultimate(heads) for heads in (ONE, FOUR, DEEP, SHALLOW)] == [None, None, "2", None]
    assert layers_of(DEEP) == ["1", "2", "3"]


def test_words() -> None:
    assert described("mean", ONE) == "one head"
    assert described("mean", FOUR) == "mean of 4 heads"
    assert described("auto", DEEP) == "mean of the 11 heads of layer 2"
    assert described("auto", THIN) == "only head of layer 2"
    assert described("2.10", DEEP) == "head 2.10 (of heads 1.1 to 3.11)"
    assert alternatives(ONE) == "mean or 0"
    assert alternatives(FOUR) == "mean or one from 0 to 3"
    assert alternatives(DEEP) == "mean, 3.mean or one from 1.1 to 3.11"
