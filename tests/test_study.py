"""The attention study's script: its tables from a comparison's figures, and what it would train."""

import sys
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import attention_study as study

from nmt import build, cli


def rate(mean: float) -> dict[str, Any]:
    return {"mean": mean, "deviation": None, "values": [mean]}


def test_error_rates_are_ordered_by_the_best_of_each_row() -> None:
    found = {
        "alignments": [
            {
                "gold": "built-in",
                "variants": [
                    {"label": "dot", "aer": {"shift 0": rate(30.0), "shift 1": rate(12.34), "chosen": rate(1.0)}},
                    {"label": "additive", "aer": {"shift 0": rate(20.0)}},
                    {"label": "general", "aer": {"shift 0": rate(9.96), "shift 1": rate(50.0)}},
                ],
            }
        ]
    }
    rows = [line for line in study.exact_links(found).splitlines() if line.startswith("|")]
    assert rows == [
        "| attention | built-in: shift 0 | built-in: shift 1 |",
        "|---|---:|---:|",
        "| general | 10.0 | 50.0 |",
        "| dot | 30.0 | 12.3 |",
        "| additive | 20.0 | - |",
    ]


def test_the_literature_stands_beside_the_better_radius_of_each_window() -> None:
    runs = {
        "luong-dot-1": 31.0,
        "luong-general-1": 35.0,
        "luong-local_p-radius-2-1": 33.0,
        "luong-local_p-radius-4-1": 34.0,
        "bahdanau-1": 39.0,
    }
    found = {
        "variants": [{"label": name.upper(), "runs": [{"name": name}]} for name in runs],
        "splits": [
            {
                "variants": [
                    {"label": name.upper(), "figures": {"bleu": {"mean": bleu, "deviation": bleu / 100}}}
                    for name, bleu in runs.items()
                ]
            }
        ],
    }
    lines = study.published(found).splitlines()
    assert "| local-p general | 20.9 | 1 | 34.00 | 2 |" in lines
    assert "| dot | 20.5 | 2 | 31.00 | 3 |" in lines
    assert "| general | 19.1 | 5 | 35.00 | 1 |" in lines
    assert "| location | 19.3 | 4 | - | - |" in lines  # none was trained
    assert any("ours by 0.31 to 0.39" in line for line in lines)


@pytest.mark.parametrize("words", [[], ["nonsense"], ["train"], ["report", "more=1"]])
def test_a_word_that_it_does_not_know_gets_the_usage(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert study.main(words) == 1
    assert "attention_study.py train multi30k=DIR" in capsys.readouterr().err


@pytest.mark.parametrize("corpus", ["multi30k", "builtin"])
def test_all_variants_can_be_built_and_differ(corpus: str) -> None:
    groups = study.GROUPS if corpus == "multi30k" else [*study.GROUPS, *study.GUIDED]
    configs = [
        cli.compose("train", combination.overrides)
        for _, overrides in groups
        for combination in cli.expand("train", [*study.MODEL, f"data={corpus}", *overrides, "seed=1"])
    ]
    for config in configs:
        build.assemble(config, 50, 50, True)
    wordings = {str(config) for config in configs}
    assert len(wordings) == len(configs) == (16 if corpus == "multi30k" else 18)
