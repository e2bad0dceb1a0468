"""What verbs are asked to do, by hand: which search, which budget, which lines, which head; no model is trained."""

import json
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.command.composing import compose
from nmt.data.dataset import Split
from nmt.errors import UserError
from nmt.pipeline import chunks
from nmt.pipeline.comparing import _stale
from nmt.pipeline.evaluating import _rows_to_force
from nmt.pipeline.opening import head_of
from nmt.pipeline.recipe import take_named_budget
from nmt.pipeline.requests import SearchRequest
from nmt.pipeline.results import _search
from nmt.runs import Run
from nmt.translation.stepping import Stepper
from tests.pipeline.test_old_runs import OLD_RUNS

#: A run whose search is a beam of 5.
RUN = Run(OLD_RUNS / "v0.1" / "bahdanau")


@pytest.mark.parametrize(
    ("choice", "words", "expected"),
    [
        ("beam", [], ("beam", {"beam_size": 5, "length_penalty": 1.0})),
        ("beam", ["search.beam_size=7"], ("beam", {"beam_size": 7, "length_penalty": 1.0})),
        ("beam", ["search=beam"], ("beam", {"beam_size": 7, "length_penalty": 0.5})),
        ("greedy", ["search=greedy"], ("greedy", {"beam_size": 7, "length_penalty": 0.5})),
        ("sampling", ["search.beam_size=7"], ("sampling", {"beam_size": 7, "length_penalty": 0.5})),
    ],
)
def test_a_search_is_the_runs_but_for_what_the_line_names(
    choice: str, words: list[str], expected: tuple[str, dict[str, float]]
) -> None:
    name, node = SearchRequest(choice, {"beam_size": 7, "length_penalty": 0.5}, words).for_run(RUN)
    assert (name, {key: node[key] for key in expected[1]}) == expected


@pytest.mark.parametrize(
    ("words", "budget"),
    [
        (["trainer.minutes=10"], (None, None, 10)),
        (["trainer.steps=5", "trainer.epochs=2"], (5, 2, None)),
        (["trainer.minutes=null"], (None, 4, None)),
        (["trainer.patience=3"], (None, 4, None)),
    ],
)
def test_a_named_budget_stands_alone(words: list[str], budget: tuple[float | None, ...]) -> None:
    config = compose("train", words)
    take_named_budget(config, words)
    assert (config.trainer.steps, config.trainer.epochs, config.trainer.minutes) == budget


def test_lines_are_taken_by_number_and_by_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chunks, "CHARACTERS", 10)
    lines = ["a", "b", "c", "d" * 9, "e", "f" * 20, "g"]
    parts = [["a", "b", "c"], ["d" * 9, "e"], ["f" * 20], ["g"]]
    assert list(chunks.full(iter(lines), 3)) == parts
    assert [line for part in chunks.arriving(iter(lines), 3) for line in part] == lines


def translator(*heads: int, most: int = 3) -> Any:
    """What stands for models with so many heads, which take lines of at most `most` pieces, a letter each."""
    models: Any = [
        SimpleNamespace(decoder=SimpleNamespace(heads=[str(head) for head in range(count)])) for count in heads
    ]
    pieces = SimpleNamespace(encode=lambda lines: [list(line) for line in lines])
    return SimpleNamespace(
        models=models,
        stepper=Stepper(models),
        tokenizer=SimpleNamespace(source=pieces, target=pieces),
        max_source_length=most,
    )


@pytest.mark.parametrize(
    ("text", "heads"),
    [("mean", (4,)), ("auto", (4,)), ("0", (1,)), ("3", (4,)), ("3", (4, 0, 4)), ("0", (2, 4))],
)
def test_heads_by_their_number(text: str, heads: Sequence[int]) -> None:
    assert head_of(text, translator(*heads)) == text


@pytest.mark.parametrize(("text", "heads"), [("4", (4,)), ("1", (1,)), ("1", (2, 4)), ("-1", (4,)), ("all", (4,))])
def test_heads_that_are_not_there(text: str, heads: Sequence[int]) -> None:
    with pytest.raises(UserError, match=f"head={text} does not exist"):
        head_of(text, translator(*heads))


def test_pairs_are_forced_that_fit_on_both_sides() -> None:
    split = Split("test", ["abc", "", "a", "abcd", "a", "abc"], ["abc", "a", "", "a", "abcd", "a"])
    assert _rows_to_force(translator(1), split) == [0, 5]


def test_a_split_is_scored_again_where_the_run_is_better_since(tmp_path: Path) -> None:
    run = Run(tmp_path)
    figures = dict.fromkeys(("epoch", "minutes", "valid_loss", "valid_bleu", "valid_perplexity"), 1.0)
    run.keep_history([{**figures, "step": 10, "best": 1.0}, {**figures, "step": 20, "best": 0.0}])
    assert "no scores" in _stale(run, "test")
    file = run.evaluation / "test" / "scores.json"
    file.parent.mkdir(parents=True)
    provenance = {"text": "1a", "checkpoint": "best", "step": 10}
    scores: dict[str, Any] = {
        "split": "test",
        **{key: {"value": 1.0, "signature": "s"} for key in ("bleu", "chrf", "ter")},
    }
    scores["provenance"] = provenance
    file.write_text(json.dumps({**scores, "measured": {"seconds": 1}}), encoding="utf-8")
    assert _stale(run, "test") == ""
    run.keep_history([{**figures, "step": 10, "best": 1.0}, {**figures, "step": 20, "best": 1.0}])
    assert "the best step is 20" in _stale(run, "test")
    file.write_text(json.dumps(scores), encoding="utf-8")
    assert "earlier version" in _stale(run, "test")


def test_another_search_is_another_measurement() -> None:
    own = {"name": "beam", "beam_size": 5, "length_penalty": 1.0, "coverage_penalty": 0.0, "nbest": 1}
    config = RUN.config()
    assert _search(config, {"checkpoint": "best", "search": own}) == "best weights, own search"
    assert _search(config, {"checkpoint": "last", "search": {**own, "name": "BeamSearch"}}).startswith("last weights")
    assert '"beam_size": 6' in _search(config, {"checkpoint": "best", "search": {**own, "beam_size": 6}})
    assert '"greedy"' in _search(config, {"checkpoint": "best", "search": {**own, "name": "greedy"}})
