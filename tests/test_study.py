"""The attention study: its variants can be built, its records are lossless, its page has their tables."""

import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import attention_study
from study import records, rows
from study.questions import EQUAL_TIME, LONGER, QUESTIONS

from nmt.build.parts import assemble
from nmt.config.composition import compose
from nmt.runs.run import settings
from tests.compare.runs import result

pytestmark = pytest.mark.long

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize("corpus", ["multi30k", "builtin"])
def test_all_variants_can_be_built_and_differ(corpus: str) -> None:
    variants = rows.ROWS if corpus == "multi30k" else rows.ONCE
    configs = [compose("train", [*rows.SIZES, f"data={corpus}", *row.overrides, "seed=1"]) for row in variants]
    for config in configs:
        assemble(config, 50, 50, True)
    assert len({str(settings(config)) for config in configs}) == len({row.name for row in variants}) == len(variants)


def test_every_contrast_is_between_two_rows_of_the_study() -> None:
    asked = [pair for each in (*QUESTIONS, *LONGER, EQUAL_TIME) for pair in (*each.pairs, *each.controls)]
    assert {name for pair in asked for name in pair} <= {row.name for row in rows.ROWS}


def test_what_is_recorded_is_read_again(tmp_path: Path) -> None:
    runs = {("short", "none", seed): result(f"none-{seed}", seed, {}, 0.1 * seed) for seed in (1, 2)}
    records.add({("short", "none", 1): result("none-1", 1, {}, 0.9)}, tmp_path)  # replaced by what follows
    records.add(runs, tmp_path)
    records.add({("tuning", "other", 1): result("other-1", 1, {}, 0.3)}, tmp_path)
    assert records.recorded(tmp_path) == {*runs, ("tuning", "other", 1)}
    assert records.load("tuning", tmp_path)["other"][0].counts == {}
    loaded = records.load("short", tmp_path)["none"]
    for run, original in zip(loaded, runs.values(), strict=True):
        for name, split in original.splits.items():
            np.testing.assert_array_equal(run.counts[name], split.counts["bleu"])
            assert run.lengths[name] == split.lengths
            assert run.scores[name]["bleu"] == split.scores["bleu"].value


@pytest.mark.slow
def test_the_tables_of_the_page_are_those_of_the_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(ROOT / "docs", tmp_path / "docs", ignore=shutil.ignore_patterns("*.png", "*.ipynb"))
    monkeypatch.chdir(tmp_path)
    assert attention_study.main(["report"]) == 0
    for page in ("attention-study.md", *attention_study.QUOTING):
        assert (tmp_path / "docs" / page).read_text("utf-8") == (ROOT / "docs" / page).read_text("utf-8"), page
