"""What verbs are asked to do, by hand: which search, which budget, which lines; no model is trained."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nmt.build.requests import SearchRequest
from nmt.config.composition import compose
from nmt.data.dataset import Split
from nmt.evaluate.work import _rows_to_force
from nmt.runs.run import Run
from nmt.train.recipe import take_named_budget
from nmt.translate import line_input as chunks


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
    choice: str, words: list[str], expected: tuple[str, dict[str, float]], trained: Path
) -> None:
    name, node = SearchRequest(choice, {"beam_size": 7, "length_penalty": 0.5}, words).for_run(Run(trained).config())
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


def translator(most: int) -> Any:
    """A stand-in for a translator that takes lines of at most `most` pieces, a letter each."""
    pieces = SimpleNamespace(encode=lambda lines: [list(line) for line in lines])
    return SimpleNamespace(tokenizer=SimpleNamespace(source=pieces, target=pieces), max_source_length=most)


def test_pairs_are_forced_that_fit_on_both_sides() -> None:
    split = Split("test", ["abc", "", "a", "abcd", "a", "abc"], ["abc", "a", "", "a", "abcd", "a"])
    assert _rows_to_force(translator(3), split) == [0, 5]
