"""Nothing of what is held out stands in the training text, on either side, however the pairs hang together."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.dataset import Split
from nmt.data.holdout import default_size, divide, hold_out, normal
from nmt.data.lines import read_lines
from nmt.system.errors import UserError

WORDS = st.sampled_from(["a", "A", " a", "b", "c", "d", "e", "f", "g", "ß", "SS", "x y", "x  y", "h", "i", "j"])
PAIRS = st.lists(st.tuples(WORDS | st.text("abcdefgh", max_size=2), WORDS | st.text("mnopq", max_size=2)), max_size=60)


@given(PAIRS, st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_no_sentence_of_a_held_out_pair_is_in_another_set(
    pairs: list[tuple[str, str]], valid: int, test: int, seed: int
) -> None:
    source, target = [a for a, _ in pairs], [b for _, b in pairs]
    sizes = {"valid": valid, "test": test}
    try:
        rows, related = hold_out(source, target, sizes, seed)
    except UserError:
        return
    assert (rows, related) == hold_out(source, target, sizes, seed)
    assert all(min(1, size) <= len(rows[name]) <= size for name, size in sizes.items())
    train = {*range(len(pairs))} - {*related, *rows["valid"], *rows["test"]}
    assert train
    sentences = [{normal(s) for row in kept for s in pairs[row]} for kept in (rows["valid"], rows["test"], train)]
    assert not sentences[0] & sentences[1]
    assert not (sentences[0] | sentences[1]) & sentences[2]
    # Nobody is left out without a reason.
    assert all({normal(s) for s in pairs[row]} & (sentences[0] | sentences[1]) for row in related)


def test_pairs_without_anything_in_common_are_held_out_exactly() -> None:
    source, target = [f"s{i}" for i in range(500)], [f"t{i}" for i in range(500)]
    rows, related = hold_out(source, target, {"valid": 20, "test": 30}, seed=1)
    assert ([len(rows[name]) for name in ("valid", "test")], related) == ([20, 30], [])
    assert rows["valid"] == sorted(rows["valid"])
    assert rows["valid"] != hold_out(source, target, {"valid": 20, "test": 30}, seed=2)[0]["valid"]


def test_a_sentence_that_comes_often_stays_in_training() -> None:
    source = ["hello"] * 100 + [f"s{i}" for i in range(100)]
    rows, related = hold_out(source, [f"t{i}" for i in range(200)], {"valid": 10, "test": 10}, seed=1)
    assert not set(range(100)) & {*rows["valid"], *rows["test"], *related}
    assert len(rows["valid"]) == len(rows["test"]) == 10


@pytest.mark.parametrize(("source", "count"), [([], 0), (["s0"], 1), (["s0", "s1"], 2), (["hi"] * 30, 30)])
def test_too_few_pairs_or_all_of_them_hang_together(source: list[str], count: int) -> None:
    with pytest.raises(UserError, match=rf"None of {count} pairs can be held out.*data\.valid=.*data\.test="):
        hold_out(source, [f"t{i}" for i in range(count)], {"valid": 1, "test": 1}, seed=1)


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
    twice = [f"s{i // 2}" for i in range(100)]
    splits, (note,) = divide(Split("x", twice, [f"t{i}" for i in range(100)]), {"valid": 10}, seed=1)
    assert {name: len(split.source) for name, split in splits.items()} == {"valid": 10, "train": 80}
    assert "the other 80 pairs; 10 that share a sentence with them are left out" in note


def test_tatoeba_does_not_leak(corpora: Path) -> None:
    source, target = (read_lines(corpora / "tatoeba" / f"train.{code}.gz")[:40_000] for code in ("de", "en"))
    splits, _ = divide(Split("x", source, target), {"valid": 500, "test": 500}, seed=1)
    known = {normal(text) for name in ("train", "valid") for side in splits[name][1:3] for text in side}
    assert len(splits["valid"].source) == len(splits["test"].source) == 500
    assert len(splits["train"].source) > 38_000
    assert known.isdisjoint(map(normal, [*splits["test"].source, *splits["test"].target]))
