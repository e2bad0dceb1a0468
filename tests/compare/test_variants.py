"""Variants, their figures, and where they differ."""

import numpy as np
import pytest

from nmt.compare.results import TESTED, Alignment, counted
from nmt.compare.variants import Comparison, compare
from nmt.evaluation import metrics
from nmt.evaluation.metrics import MetricScore
from nmt.system.errors import UserError
from tests.compare.runs import NEW, OLD, result, runs_of, texts


def test_variants_are_runs_that_differ_in_their_seed_alone(found: Comparison) -> None:
    assert [variant.label for variant in found.variants] == ["bahdanau", "luong", "no attention"]
    assert [[run.seed for run in variant.runs] for variant in found.variants] == [[1, 2, 3]] * 3
    assert sorted(found.differing) == ["attention/score", "decoder", "decoder.size"]


def test_figures_are_means_and_deviations_over_seeds(found: Comparison) -> None:
    split = found.splits[0]
    for variant, figures in zip(found.variants, split.figures, strict=True):
        values = [run.splits["test"].scores["bleu"].value for run in variant.runs]
        assert figures["bleu"].values == values
        assert figures["bleu"].mean == pytest.approx(sum(values) / 3)
        assert figures["bleu"].deviation == pytest.approx(np.std(values, ddof=1))
    assert split.figures[0]["perplexity"].mean == pytest.approx(7)
    assert "attention_entropy" not in split.figures[2]
    assert sum(count for _, _, count in split.bins) == 60
    # BLEU of a bin is that of its sentences.
    shortest, longest, _ = split.bins[0]
    sources, references = texts()
    rows = [row for row, line in enumerate(sources) if shortest <= len(line.split()) <= longest]
    mean = sum(
        metrics.bleu(
            [run.splits["test"].hypotheses[row] for row in rows], [references[row] for row in rows], "en"
        ).value
        for run in found.variants[0].runs
    )
    bleu = split.by_length.rows[0][0]
    assert bleu is not None
    assert bleu.value == pytest.approx(mean / 3)
    assert bleu.low < bleu.value < bleu.high


def test_only_what_is_more_than_noise_is_called_so(found: Comparison) -> None:
    bleu = found.splits[0].contrasts["bleu"]
    assert bleu[0] is None
    assert bleu[1] is not None
    assert not bleu[1].real
    assert bleu[2] is not None
    assert bleu[2].real
    assert bleu[2].difference < 0
    assert found.splits[0].near == [1 if found.splits[0].best == 0 else 0]


def test_other_links_of_one_name_are_told_apart() -> None:
    aligned = {key: Alignment("gold", 9, {"saliency": 20.0}, None, "") for key in ("12ab", "34cd")}
    found = compare([own._replace(aligned=aligned) for own in runs_of(OLD, 0.5, 2)], trials=50)
    assert [own.gold for own in found.golds] == ["gold (12ab)", "gold (34cd)"]


def test_speeds_are_compared_on_one_machine_only() -> None:
    runs = [*runs_of(OLD, 0.8), *runs_of(NEW, 0.8)]
    alike = compare(runs, trials=50)
    assert alike.notes == []
    for machine in ("cpu, 2 threads", ""):
        found = compare([runs[0]._replace(training_machine=machine), *runs[1:]], trials=50)
        (note,) = found.notes
        assert note.startswith("Training speeds are from different machines or threads: cpu, 1 threads; ")
        assert note.endswith(f"; {machine or 'unknown'}.")
    own = runs[0].splits["test"]
    elsewhere = own._replace(measured={**own.measured, "device": "cuda:0"})
    found = compare([runs[0]._replace(splits={"test": elsewhere}), *runs[1:]], trials=50)
    (note,) = found.notes
    assert note.startswith("Translation speeds on test are from different machines or threads: cpu, 1")


def test_variants_can_be_labelled_with_the_names_of_their_runs() -> None:
    runs = [*runs_of(OLD, 0.7, 2), *runs_of(NEW, 0.8, 2)]
    names = {run.name.removesuffix(f"-{run.seed}") for run in runs}
    by_name = compare(runs, trials=50, named=True)
    assert {variant.label for variant in by_name.variants} == names
    assert by_name.differing == compare(runs, trials=50).differing
    alike = [run._replace(name=f"run-{run.seed}") for run in runs]
    with pytest.raises(UserError, match="labels=names: runs called run have different settings"):
        compare(alike, trials=50, named=True)
    renamed = [run._replace(name=f"run{run.seed}-{run.seed}") for run in runs_of(OLD, 0.7, 2)]
    with pytest.raises(UserError, match="labels=names: run1 and run2 have the same settings"):
        compare(renamed, trials=50, named=True)


def test_a_baseline_is_a_variant_or_a_run() -> None:
    runs = [*runs_of(OLD, 0.7, 1), *runs_of(NEW, 0.8, 1)]
    for name in ("luong", "luong-9-general-1", "luong-9-general"):
        assert compare(runs, baseline=name, trials=20).baseline == 1
    with pytest.raises(UserError, match=r"baseline=luung is not one of the variants\. Did you mean 'luong'"):
        compare(runs, baseline="luung", trials=20)


def test_only_a_runs_own_seed_is_no_part_of_its_name() -> None:
    runs = [result(f"heads-{heads}", 1, {**OLD, "attention.heads": heads}, 0.7) for heads in (2, 4)]
    with pytest.raises(
        UserError, match=r"baseline=heads is not one of the variants\. Did you mean 'heads-4' or 'heads-2'"
    ):
        compare(runs, baseline="heads", trials=20)
    swept = [result(f"{own.name}-seed-3", 3, dict(own.settings), 0.7) for own in runs]
    assert compare(swept, baseline="heads-4", trials=20).baseline == 1


def test_the_difference_is_that_of_the_means_whatever_the_seeds() -> None:
    runs = [*runs_of(OLD, 0.7, 3), *runs_of(NEW, 0.75, 2)]
    found = compare(runs, trials=50)
    (split,) = found.splits
    for metric in TESTED:
        contrast = split.contrasts[metric][1]
        assert contrast is not None
        old, new = (own[metric].mean for own in split.figures)
        assert contrast.difference == pytest.approx(new - old)
    (note,) = found.notes
    assert "different seeds (bahdanau has 1, 2, 3; luong has 1, 2)" in note
    (as_many,) = compare(runs[1:], trials=50).notes
    assert "different seeds (bahdanau has 2, 3; luong has 1, 2)" in as_many, "as many, and not the same"


def test_translations_that_do_not_give_their_score_are_refused() -> None:
    good = {"bleu": metrics.bleu(["a b c d e"], ["a b c d e"], "en"), "chrf": MetricScore(100.0, "chrf")}
    counted(["a b c d e"], ["a b c d e"], "en", good)
    with pytest.raises(UserError, match=r"BLEU 100\.00, and 12\.00 is written beside them"):
        counted(["a b c d e"], ["a b c d e"], "en", {**good, "bleu": MetricScore(12.0, "nrefs:1")})


def test_the_sentences_on_which_they_differ_most(found: Comparison) -> None:
    differences = found.splits[0].differences
    assert len(differences) == 5
    deviations = [float(np.std(own.chrf)) for own in differences]
    assert deviations == sorted(deviations, reverse=True)
    row = differences[0].line - 1
    reference = texts()[1][row]
    for variant, mean in zip(found.variants, differences[0].chrf, strict=True):
        own = [metrics.sentence_chrf(run.splits["test"].hypotheses[row], reference) for run in variant.runs]
        assert mean == pytest.approx(sum(own) / 3)
