"""The script that measures what context costs: its works run for each model, and its table has the ratios."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import context_costs
from context_study import MODELS


@pytest.mark.parametrize("name", MODELS)
def test_the_works_of_each_model(name: str) -> None:
    for work in context_costs.works(MODELS[name], 2, 3, rows=2).values():
        work()


def test_context_that_is_off_is_the_model_without() -> None:
    plain, off = (context_costs.assembled(words, 0) for words in ((), MODELS["segments"]))
    assert off.context is None
    assert plain.state_dict().keys() == off.state_dict().keys()
    assert all(torch.equal(one, other) for one, other in zip(plain.parameters(), off.parameters(), strict=True))


def test_the_table() -> None:
    none = {"training": [0.002, 0.004, 0.003], "search": [0.1, 0.1, 0.1]}
    two = {"training": [0.004, 0.004, 0.009], "search": [0.1, 0.15, 0.12]}
    assert context_costs.table("concat", [2], [none, two], tokens=1000).splitlines() == [
        "| concat | none | 3.0 | 1.00 (1.00 to 1.00) | 100.0 | 1.00 (1.00 to 1.00) |",
        "| concat | 2 | 4.0 | 2.00 (1.00 to 3.00) | 120.0 | 1.20 (1.00 to 1.50) |",
    ]


def test_every_round_measures_each_work_once_after_one_that_warms_up() -> None:
    calls: list[str] = []
    seconds = context_costs.measured([{"a": lambda: calls.append("a")}, {"b": lambda: calls.append("b")}], 2)
    assert calls == ["a", "b"] * 3
    assert [len(times) for each in seconds for times in each.values()] == [2, 2]


def test_mistakes(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["--sentences", "1,x"], ["--rounds", "0"], ["--pieces", "1"]):
        with pytest.raises(SystemExit):
            context_costs.main(words)
        assert "--sentences wants whole numbers" in capsys.readouterr().err
