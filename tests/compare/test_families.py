"""Contrasts by design: which pairs of variants differ in one setting, and how they are tested."""

from itertools import combinations

import numpy as np
import pytest

from nmt.compare import report
from nmt.compare.families import factor
from nmt.compare.significance import Noise, Runs, bleu_of, holm
from nmt.compare.variants import compare
from nmt.evaluation.metrics import bleu
from nmt.viewer.blocks import Heading, Table
from tests.compare.runs import GENERAL, LUONG, runs_of, study

SETTINGS = dict(study())
for own in SETTINGS.values():
    if own.get("attention/window") == "global":
        own["attention.window"] = {}  # as a configuration has a choice without settings
BASE = {"decoder": LUONG, "attention/score": GENERAL, "attention.heads": 1}


@pytest.mark.parametrize(
    ("first", "second", "setting"),
    [
        ("luong general", "luong dot", "attention/score"),
        ("luong general", "luong general local_m 2", "attention/window"),
        ("luong general local_m 2", "luong general local_m 4", "attention/window"),
        ("luong general local_m 2", "luong general local_p 2", "attention/window"),
        ("luong general local_m 2", "luong general local_p 4", None),
        ("luong dot", "luong general local_m 2", None),
        ("bahdanau", "luong general", None),
        ("bahdanau", "bahdanau", None),
        ("no attention", "bahdanau", None),  # without attention there is no score either
    ],
)
def test_a_contrast_differs_in_one_setting(first: str, second: str, setting: str | None) -> None:
    assert factor(SETTINGS[first], SETTINGS[second]) == setting
    assert factor(SETTINGS[second], SETTINGS[first]) == setting


def test_a_setting_that_only_one_variant_has_is_a_difference_without_a_choice() -> None:
    assert factor(BASE, {**BASE, "trainer.r_drop": 5.0}) == "trainer.r_drop"
    assert factor(BASE, {**BASE, "trainer.r_drop": 5.0, "seed": 2}) is None


def test_each_family_is_corrected_for_itself() -> None:
    """Three scores make a family of three pairs, heads one of one; the differences are those of sacreBLEU's scores."""
    qualities = {"dot": 0.8, "concat": 0.75, GENERAL: 0.6}
    runs = [run for score, part in qualities.items() for run in runs_of({**BASE, "attention/score": score}, part)]
    runs += runs_of({**BASE, "attention.heads": 2}, 0.3)
    found = compare(runs, trials=20)
    split = found.splits[0]
    assert {family.setting: len(family.pairs) for family in split.families} == {
        "attention/score": 3,
        "attention.heads": 1,
    }
    means = [
        sum(bleu(run.splits["test"].hypotheses, run.splits["test"].references or [], "en").value for run in own.runs)
        / 3
        for own in found.variants
    ]
    counts = [[run.splits["test"].counts["bleu"] for run in own.runs] for own in found.variants]
    noise = Noise([Runs(np.stack(own), [1, 2, 3]) for own in counts], bleu_of)
    scores, heads = split.families
    assert [(pair.first, pair.second) for pair in scores.pairs] == list(combinations(range(3), 2))
    raw = [noise.between(pair.first, pair.second).p for pair in scores.pairs]
    assert [pair.p for pair in scores.pairs] == pytest.approx(holm(raw))
    (pair,) = heads.pairs
    assert pair.p == pytest.approx(noise.between(2, 3).p)
    assert pair.real
    for pair in [*scores.pairs, *heads.pairs]:
        assert pair.difference == pytest.approx(means[pair.second] - means[pair.first])
    tables = [block for block in report.report(found, 0) if isinstance(block, Table)]
    (row,) = next(table.rows for table in tables if table.header[0] == "attention.heads, from")
    assert row[:3] == [found.variants[2].label, found.variants[3].label, f"{pair.difference:+.2f}"]
    assert row[-1] == "worse"


def test_two_variants_need_no_families() -> None:
    found = compare([*runs_of(BASE, 0.8), *runs_of({**BASE, "attention.heads": 2}, 0.3)], trials=20)
    assert len(found.splits[0].families) == 1
    assert not [
        block for block in report.report(found, 0) if isinstance(block, Heading) and "One setting" in block.text
    ]
