"""Nothing of what is held out stands in the training text, on either side, however the pairs hang together."""

import random
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.dataset import Split
from nmt.data.holdout import components, default_size, divide, hold_out, normal
from nmt.data.lines import read_lines
from nmt.system.errors import UserError

WORDS = st.sampled_from(["a", "A", " a", "b", "c", "d", "e", "f", "g", "ß", "SS", "x y", "x  y", "h", "i", "j"])
PAIRS = st.lists(st.tuples(WORDS | st.text("abcdefgh", max_size=2), WORDS | st.text("mnopq", max_size=2)), max_size=60)


@given(PAIRS, st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_no_sentence_is_on_both_sides_of_the_fence(
    pairs: list[tuple[str, str]], valid: int, test: int, seed: int
) -> None:
    source, target = [a for a, _ in pairs], [b for _, b in pairs]
    try:
        rows = hold_out(source, target, {"valid": valid, "test": test}, seed)
    except UserError:
        return
    held_out = {row for kept in rows.values() for row in kept}
    rows["train"] = [row for row in range(len(pairs)) if row not in held_out]
    assert sum(map(len, rows.values())) == len(pairs)
    assert len(rows["valid"]) <= valid
    assert len(rows["test"]) <= test
    assert rows["train"]
    held = {name: {normal(s) for row in kept for s in pairs[row]} for name, kept in rows.items()}
    assert not held["train"] & held["valid"]
    assert not held["train"] & held["test"]
    assert not held["valid"] & held["test"]
    again = hold_out(source, target, {"valid": valid, "test": test}, seed)
    assert (rows["valid"], rows["test"]) == (again["valid"], again["test"])


@given(PAIRS)
def test_components_are_what_a_search_finds(pairs: list[tuple[str, str]]) -> None:
    found = components([a for a, _ in pairs], [b for _, b in pairs])
    keys = [{normal(a), normal(b)} for a, b in pairs]
    for row in range(len(pairs)):
        # Breadth first from this pair, over shared sentences.
        reached, seen = {row}, set(keys[row])
        while more := {other for other in range(len(pairs)) if other not in reached and keys[other] & seen}:
            reached |= more
            seen |= {key for other in more for key in keys[other]}
        assert {other for other in range(len(pairs)) if found[other] == found[row]} == reached


def test_pairs_without_anything_in_common_are_held_out_exactly() -> None:
    source, target = [f"s{i}" for i in range(500)], [f"t{i}" for i in range(500)]
    rows = hold_out(source, target, {"valid": 20, "test": 30}, seed=1)
    assert [len(rows[name]) for name in ("valid", "test")] == [20, 30]
    assert rows["valid"] == sorted(rows["valid"])
    other = hold_out(source, target, {"valid": 20, "test": 30}, seed=2)
    assert rows["valid"] != other["valid"]


def test_a_large_family_stays_in_training() -> None:
    # Half of the pairs share one source sentence.
    source = ["hello"] * 100 + [f"s{i}" for i in range(100)]
    target = [f"t{i}" for i in range(200)]
    rows = hold_out(source, target, {"valid": 10, "test": 10}, seed=1)
    assert not set(range(100)) & {*rows["valid"], *rows["test"]}
    assert len(rows["valid"]) == len(rows["test"]) == 10


@pytest.mark.parametrize("pairs", [0, 1, 2])
def test_too_few_pairs(pairs: int) -> None:
    text = [f"s{i}" for i in range(pairs)]
    with pytest.raises(UserError, match=r"None of .* can be held out"):
        hold_out(text, [f"t{i}" for i in range(pairs)], {"valid": 1, "test": 1}, seed=1)


def test_pairs_that_all_hang_together() -> None:
    with pytest.raises(UserError, match=r"None of 30 pairs can be held out.*data\.valid=.*data\.test="):
        hold_out(["hi"] * 30, [f"t{i}" for i in range(30)], {"valid": 3, "test": 3}, seed=1)


@pytest.mark.parametrize(("pairs", "size"), [(3, 1), (100, 10), (200, 20), (2_000, 40), (20_000, 400), (10**7, 2_000)])
def test_sizes(pairs: int, size: int) -> None:
    assert default_size(pairs) == size


def test_dividing_says_what_it_did() -> None:
    text = [f"s{i}" for i in range(300)]
    splits, notes = divide(Split("x", text, [f"t{i}" for i in range(300)]), {"valid": None, "test": 7}, seed=5)
    assert [len(splits[name].source) for name in ("train", "valid", "test")] == [273, 20, 7]
    assert notes == [
        "Held out: 20 for valid and 7 for test. None of their sentences is in the other 273 "
        "pairs (data.valid_pairs=20 data.test_pairs=7 data.seed=5)."
    ]
    assert divide(Split("x", text, text), {}, seed=5)[1] == []


def test_tatoeba_leaks_when_split_at_random_and_not_here(corpora: Path) -> None:
    source, target = (read_lines(corpora / "tatoeba" / f"train.{code}.gz")[:40_000] for code in ("de", "en"))
    rows = hold_out(source, target, {"valid": 500, "test": 500}, seed=1)
    assert len(rows["valid"]) == len(rows["test"]) == 500

    def leaks(test: list[int], train: list[int]) -> int:
        known = {normal(side[row]) for row in train for side in (source, target)}
        return sum(normal(source[row]) in known or normal(target[row]) in known for row in test)

    assert leaks(rows["test"], [row for row in range(len(source)) if row not in {*rows["test"]}]) == 0
    shuffled = random.Random(1).sample(range(len(source)), len(source))
    assert leaks(shuffled[:500], shuffled[500:]) > 50
