"""Which runs and splits may be compared, and what is said of the others."""

import pytest

from nmt.compare.results import Result
from nmt.compare.variants import compare
from nmt.system.errors import UserError
from tests.compare.runs import NEW, OLD, PLAIN, result, runs_of


def test_a_baseline_that_was_set_apart_is_told_so_with_the_reason() -> None:
    runs = [*runs_of(OLD, 0.7, 2), *runs_of(NEW, 0.8, 1, origin={"training text": "y"})]
    with pytest.raises(UserError) as caught:
        compare(runs, baseline="luong", trials=20)
    for part in ("luong-9-general-1 was left out", "another training text", "They are: bahdanau"):
        assert part in str(caught.value)
    twice = result("twice", 2, OLD, 0.7)
    with pytest.raises(UserError, match="twice was left out, the same settings and seed as bahdanau-8-additive-2"):
        compare([*runs[:2], twice], baseline="twice", trials=20)


def test_runs_that_cannot_be_compared_are_set_apart() -> None:
    base, text = {"tokenizer": "a"}, {"text": "t", "bleu signature": "s"}
    runs = runs_of(OLD, 0.7, 2, origin=base, made=text)
    odd = [
        result("other-tokenizer", 1, NEW, 0.8, origin={"tokenizer": "b"}, made=text),
        result("other-text", 2, NEW, 0.8, origin=base, made={**text, "text": "u"}),
        result("other-signature", 3, NEW, 0.8, origin=base, made={**text, "bleu signature": "r"}),
        result("other-data", 4, NEW, 0.8, origin={**base, "training text": "y"}, made=text),
        result("other-split", 5, NEW, 0.8, split="valid", origin=base),
        result("twice", 2, OLD, 0.7, origin=base, made=text),
    ]
    found = compare([odd[0], *runs, *odd[1:]], trials=20)
    assert [[run.name for run in variant.runs] for variant in found.variants] == [[run.name for run in runs]]
    reasons = dict(found.apart)
    for name, word in (
        ("other-tokenizer", "another tokenizer"),
        ("other-text", "another text on test"),
        ("other-signature", "another bleu signature on test"),
        ("other-data", "another training text"),
        ("other-split", "not scored on test"),
        ("twice", "the same settings and seed as"),
    ):
        assert word in reasons[name], name
    # The baseline decides which runs are the odd ones.
    turned = compare([odd[0], *runs], baseline="other-tokenizer", trials=20)
    assert sorted(name for name, _ in turned.apart) == sorted(run.name for run in runs)
    with pytest.raises(UserError, match="no run"):
        compare([])


def test_runs_without_scores_are_named() -> None:
    bare = [run._replace(splits={}) for run in runs_of(OLD, 0.7, 2)]
    with pytest.raises(
        UserError, match=r"None of the runs has scores .*: bahdanau-8-additive-1, bahdanau-8-additive-2"
    ):
        compare(bare, trials=20)
    found = compare([bare[0], *runs_of(NEW, 0.7, 2)], trials=20)
    assert found.apart == [("bahdanau-8-additive-1", "it has no scores")]


def on(run: Result, split: str, **origin: str) -> Result:
    """The run, scored on one more split."""
    return run._replace(splits={**run.splits, split: run.splits["test"]._replace(origin=origin)})


def test_a_split_that_some_were_not_scored_on_is_left_out() -> None:
    both = on(runs_of(OLD, 0.7, 1)[0], "long")
    found = compare([both, *runs_of(NEW, 0.7, 1)], trials=20)
    assert [split.name for split in found.splits] == ["test"]
    (note,) = found.notes
    assert note.startswith("long is left out")
    assert "luong-9-general-1 (not scored on long)" in note


def test_a_split_on_which_runs_are_not_alike_sets_no_run_apart() -> None:
    old, new, plain = (runs_of(own, 0.7, 1)[0] for own in (OLD, NEW, PLAIN))
    runs = [on(old, "mine", text="t", search="beam"), on(new, "mine", text="u", search="greedy")]
    found = compare([*runs, on(plain, "mine", text="t", search="beam")], trials=20)
    assert found.apart == []
    assert [split.name for split in found.splits] == ["test"]
    (note,) = found.notes
    assert "mine is left out" in note
    assert "luong-9-general-1 (another text on mine, another search on mine: greedy)" in note
    # Where it is the only one that they have, those apart are the fewer.
    alone = [run._replace(splits={"mine": run.splits["mine"]}) for run in (runs[1], runs[0])]
    alone.append(on(plain, "mine", text="t", search="beam"))
    found = compare(alone, trials=20)
    reason = "not comparable with bahdanau-8-additive-1: another text on mine, another search on mine: greedy"
    assert found.apart == [("luong-9-general-1", reason)]
    assert [split.name for split in found.splits] == ["mine"]
