"""Several test sets in one test, and the page that shows it."""

import numpy as np
import pytest

from nmt.compare import report, summary
from nmt.compare.method import method
from nmt.compare.results import Result
from nmt.compare.significance import Noise, Runs, bleu_of
from nmt.compare.table_files import named
from nmt.compare.variants import Comparison, compare
from nmt.compare.verdict import as_json, verdict
from nmt.viewer.blocks import Heading, Lines, Picture, Table, as_markdown
from tests.compare.runs import NEW, OLD, PLAIN, result, runs_of

QUALITIES = ((OLD, 0.7), (NEW, 0.8), (PLAIN, 0.3))


def on(splits: list[str]) -> Comparison:
    """Three variants with two seeds, each with other translations on every split."""
    runs: list[Result] = []
    for settings, quality in QUALITIES:
        for run in runs_of(settings, quality, 2, weights=settings is not PLAIN):
            others = {name: result(f"{run.name}-{name}", run.seed, settings, quality) for name in splits}
            runs.append(
                run._replace(
                    splits={
                        name: other.splits["test"]._replace(of_data=name != "valid") for name, other in others.items()
                    }
                )
            )
    return compare(runs, trials=20)


@pytest.fixture(scope="module")
def both() -> Comparison:
    return on(["test", "valid", "other"])


def test_sets_are_joined_as_one_text_without_the_one_that_chose_the_runs(both: Comparison) -> None:
    joint = both.joint
    assert (joint.splits, joint.sentences) == (["test", "other"], 120)
    text = [
        Runs(
            np.stack(
                [np.concatenate([run.splits[name].counts["bleu"] for name in joint.splits]) for run in variant.runs]
            ),
            [1, 2],
        )
        for variant in both.variants
    ]
    for test in joint.tests:
        expected = Noise(text, bleu_of).between(0, test.second)
        assert test.difference == pytest.approx(expected.difference)
        assert test.error == pytest.approx(expected.noise.error)
        assert (test.low + test.high) / 2 == pytest.approx(test.difference)
        assert not test.low <= 0 <= test.high, "the variants are far apart"
    assert [test.second for test in joint.tests] == [1, 2]
    (line,) = (line for line in verdict(both) if "together" in line)
    assert line.startswith("On test, other together (120 sentences), compared with bahdanau: better: luong (")
    assert as_json(both)["joint"]["tests"][1]["second"] == "no attention"


def test_what_all_sets_find_is_recommended_where_the_first_finds_nothing(both: Comparison) -> None:
    split = both.splits[0]
    unsure = [
        test and test._replace(p=0.2, significant=False, real=test.difference < 0 and test.real) for test in split.tests
    ]
    quiet = split._replace(contrasts={**split.contrasts, "bleu": unsure})
    line = verdict(both._replace(baseline_chosen=True, splits=[quiet, *both.splits[1:]]))[0]
    assert line.startswith("Use luong: on all test sets together, +")
    assert line.endswith("On test alone, no variant is significantly better.")


def test_a_paper_has_one_table_of_all_sets(both: Comparison) -> None:
    table = report.sets_table(both)
    names = ["test", "valid", "other"]
    assert table.header == ["variant", "seeds", *(f"BLEU, {name}" for name in names), "to baseline, BLEU", "p"]
    for row, at in zip(table.rows, both.splits[0].order, strict=True):
        assert row[:2] == [both.labels[at], "2"]
        means = [float(cell.split()[0]) for cell in row[2:5]]
        assert means == [pytest.approx(split.score(at).mean, abs=0.005) for split in both.splits]
        joint = {test.second: f"{test.difference:+.2f}" for test in both.joint.tests}
        assert row[5] == joint.get(at, "")
    best = max(range(3), key=lambda at: both.splits[1].score(at).mean)
    bold = {both.splits[0].order[row] for row, column in table.best if column == 3}
    assert bold == {best, *both.splits[1].near}
    blocks = report.report(both, 0)
    place = blocks.index(Heading("Scores on all test sets"))
    assert isinstance(note := blocks[place + 2], Lines)
    assert "are on test, other together (120 sentences)." in note.lines[0]
    assert "scores-on-all-test-sets" in named(blocks)
    assert Heading("Scores on all test sets") not in report.report(on(["test"]), 0)


def test_one_set_alone_is_not_called_joined() -> None:
    alone = on(["test"])
    assert alone.joint.splits == ["test"]
    assert not any("together" in line for line in verdict(alone))


@pytest.mark.long
def test_the_page_is_short_and_has_three_pictures_and_every_difference(both: Comparison) -> None:
    blocks = summary.summary(both)
    assert [block.name for block in blocks if isinstance(block, Picture)] == ["forest", "learning-curves", "maps"]
    assert len(as_markdown(blocks, "a sweep").split()) < 1500
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert [(row[0], row[-1]) for row in table.rows] == [("luong", "better"), ("no attention", "worse")]
    heads = [block.text for block in blocks if isinstance(block, Heading)]
    assert heads[:2] == ["Verdict on test", "Differences from the baseline, on test, other together"]
    lines = [line for block in blocks if isinstance(block, Lines) for line in block.lines]
    assert any(line.startswith("BLEU: nrefs:1|case:mixed|") for line in lines), "sacreBLEU's signature"


@pytest.mark.long
def test_one_sentence_and_one_seed_have_no_interval() -> None:
    runs = []
    for settings, quality in QUALITIES[:2]:
        (run,) = runs_of(settings, quality, 1)
        text = run.splits["test"]
        cut = {metric: counts[:1] for metric, counts in text.counts.items()}
        one = text._replace(hypotheses=text.hypotheses[:1], lengths=text.lengths[:1], counts=cut)
        runs.append(run._replace(splits={"test": one}))
    blocks = summary.summary(compare(runs, trials=20))
    (table,) = (block for block in blocks if isinstance(block, Table))
    assert table.rows[0][3:5] == ["-", "-"]


@pytest.mark.long
def test_the_page_of_one_variant_has_no_differences() -> None:
    lone = compare(runs_of(OLD, 0.7, 2, weights=False), trials=20)
    assert [block.name for block in summary.summary(lone) if isinstance(block, Picture)] == ["learning-curves"]


def test_a_variant_that_is_left_out_of_the_pooled_deviation_is_named() -> None:
    runs = [run for settings, quality in QUALITIES for run in runs_of(settings, quality, 3)]
    assert "leaves them out of the pool" not in as_markdown(method(compare(runs, trials=20)), "the method")
    wild = [result(f"wild-{seed}", seed, {**NEW, "decoder.size": 99}, 0.2 + 0.25 * seed) for seed in (1, 2, 3)]
    comparison = compare([*runs, *wild], trials=20)
    assert comparison.joint.collapsed == [3]
    assert f"the runs of {comparison.labels[3]} deviate so much more" in as_markdown(method(comparison), "the method")


def test_unequal_training_by_minutes_is_said() -> None:
    def warned(few: int, many: int, minutes: float = 5) -> list[str]:
        runs = []
        for (settings, quality), steps in zip(QUALITIES[:2], (few, many), strict=True):
            limited = runs_of({**settings, "trainer.minutes": 5}, quality, 2)
            runs += [run._replace(training={**run.training, "step": steps, "minutes": minutes}) for run in limited]
        return [line for line in verdict(compare(runs, trials=20)) if line.startswith("Unequal training")]

    (line,) = warned(12_380, 25_645)
    assert "25,645 updates" in line
    assert "12,380, because" in line
    assert warned(12_380, 25_645, minutes=3) == [], "the limit was not reached"
    assert warned(600, 645) == []
