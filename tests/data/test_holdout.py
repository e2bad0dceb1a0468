"""Nothing of what is held out stands in the training text, on either side, however the pairs hang together."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.data.dataset import Split
from nmt.data.holdout import components, default_size, divide, hold_out, hold_out_of_many, normal
from nmt.data.lines import read_lines
from nmt.system.errors import UserError

WORDS = st.sampled_from(["a", "A", " a", "b", "c", "d", "e", "f", "g", "ß", "SS", "x y", "x  y", "h", "i", "j"])
PAIRS = st.lists(st.tuples(WORDS | st.text("abcdefgh", max_size=2), WORDS | st.text("mnopq", max_size=2)), max_size=60)


@pytest.mark.parametrize("many", [False, True])
@given(PAIRS, st.integers(1, 6), st.integers(0, 6), st.integers(0, 3))
def test_no_sentence_of_a_held_out_pair_is_in_another_set(
    many: bool, pairs: list[tuple[str, str]], valid: int, test: int, seed: int
) -> None:
    source, target = [a for a, _ in pairs], [b for _, b in pairs]
    sizes = {"valid": valid, "test": test}

    def held_out() -> tuple[dict[str, list[int]], list[int]]:
        if many and pairs:
            return hold_out_of_many(source, target, sizes, seed)
        return hold_out(source, target, sizes, seed), []

    try:
        rows, related = held_out()
    except UserError:
        return
    assert (rows, related) == held_out()
    assert all(min(1, size) <= len(rows[name]) <= size for name, size in sizes.items())
    train = {*range(len(pairs))} - {*related, *rows["valid"], *rows["test"]}
    assert train or many
    sentences = [{normal(s) for row in kept for s in pairs[row]} for kept in (rows["valid"], rows["test"], train)]
    assert not sentences[0] & sentences[1]
    assert not (sentences[0] | sentences[1]) & sentences[2]
    # Nobody is left out without a reason.
    assert all({normal(s) for s in pairs[row]} & (sentences[0] | sentences[1]) for row in related)


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
    assert rows["valid"] != hold_out(source, target, {"valid": 20, "test": 30}, seed=2)["valid"]


@pytest.mark.parametrize("hold", [hold_out, lambda *given: hold_out_of_many(*given)[0]])
def test_a_large_family_stays_in_training(hold: Callable[..., dict[str, list[int]]]) -> None:
    source = ["hello"] * 100 + [f"s{i}" for i in range(100)]
    rows = hold(source, [f"t{i}" for i in range(200)], {"valid": 10, "test": 10}, 1)
    assert not set(range(100)) & {*rows["valid"], *rows["test"]}
    assert len(rows["valid"]) == len(rows["test"]) == 10


@pytest.mark.parametrize(("source", "count"), [([], 0), (["s0"], 1), (["s0", "s1"], 2), (["hi"] * 30, 30)])
def test_too_few_pairs_or_all_of_them_hang_together(source: list[str], count: int) -> None:
    with pytest.raises(UserError, match=rf"None of {count} pairs can be held out.*data\.valid=.*data\.test="):
        hold_out(source, [f"t{i}" for i in range(count)], {"valid": 1, "test": 1}, seed=1)


@pytest.mark.parametrize(("pairs", "size"), [(3, 1), (100, 10), (200, 20), (2_000, 40), (20_000, 400), (10**7, 2_000)])
def test_sizes(pairs: int, size: int) -> None:
    assert default_size(pairs) == size


def test_dividing_says_what_it_did(monkeypatch: pytest.MonkeyPatch) -> None:
    text = [f"s{i}" for i in range(300)]
    splits, notes = divide(Split("x", text, [f"t{i}" for i in range(300)]), {"valid": None, "test": 7}, seed=5)
    assert [len(splits[name].source) for name in ("train", "valid", "test")] == [273, 20, 7]
    assert notes == [
        "Held out: 20 for valid and 7 for test. None of their sentences is in the other 273 "
        "pairs (data.valid_pairs=20 data.test_pairs=7 data.seed=5)."
    ]
    assert divide(Split("x", text, text), {}, seed=5)[1] == []
    monkeypatch.setattr("nmt.data.holdout.MANY", 1)
    twice = [f"s{i // 2}" for i in range(100)]
    splits, (note,) = divide(Split("x", twice, [f"t{i}" for i in range(100)]), {"valid": 10}, seed=1)
    assert {name: len(split.source) for name, split in splits.items()} == {"valid": 10, "train": 80}
    assert "the other 80 pairs; 10 that share a sentence with them are left out" in note


def test_tatoeba_does_not_leak(corpora: Path) -> None:
    source, target = (read_lines(corpora / "tatoeba" / f"train.{code}.gz")[:40_000] for code in ("de", "en"))
    splits, _ = divide(Split("x", source, target), {"valid": 500, "test": 500}, seed=1)
    known = {normal(text) for name in ("train", "valid") for side in splits[name][1:3] for text in side}
    assert len(splits["valid"].source) == len(splits["test"].source) == 500
    assert len(splits["train"].source) == 39_000
    assert known.isdisjoint(map(normal, [*splits["test"].source, *splits["test"].target]))
