"""Variants, their labels, what is set apart, the verdict, and the report in its forms."""

import json
import random
import struct
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from nmt.comparison import plots, report
from nmt.comparison.blocks import Heading, Picture, Table, as_html, as_markdown, file_name
from nmt.comparison.labels import labels, telling
from nmt.comparison.results import TESTED, Aligned, Result, Scored, counted
from nmt.comparison.significance import chrf_of
from nmt.comparison.variants import (
    Comparison,
    compare,
)
from nmt.comparison.verdict import as_json, judgement, verdict
from nmt.errors import UserError
from nmt.evaluation import metrics
from nmt.evaluation.forced import Look
from nmt.evaluation.metrics import Score

MACHINE = {"device": "cpu", "threads": 1}
WORDS = [start + end for start in "bdfgklmnprst" for end in ("an", "el", "ist", "oru")]
NONE, BAHDANAU, LUONG = "none", "bahdanau", "luong"
ADDITIVE, GENERAL = "additive", "general"


def texts(count: int = 60) -> tuple[list[str], list[str]]:
    generator = random.Random(1)
    references = [" ".join(generator.choices(WORDS, k=generator.randint(2, 14))) for _ in range(count)]
    return [" ".join(word[::-1] for word in line.split()) for line in references], references


def result(
    name: str,
    seed: int,
    settings: dict[str, Any],
    quality: float,
    *,
    split: str = "test",
    origin: dict[str, str] | None = None,
    made: dict[str, str] | None = None,
    weights: bool = True,
) -> Result:
    """A run that gets this share of the words right."""
    sources, references = texts()
    generator = random.Random(f"{name} {seed}")
    hypotheses = [
        " ".join(word if generator.random() < quality else "wrong" for word in line.split()) for line in references
    ]
    found = {"bleu": metrics.bleu(hypotheses, references, "en"), "ter": Score(50.0, "ter"), "chrf": Score(0.0, "chrf")}
    chrf = metrics.score(hypotheses[:1], references[:1], "en").chrf.signature
    counts = metrics.statistics("chrf", hypotheses, references, "en")
    found["chrf"] = Score(float(chrf_of(counts.sum(0))), chrf)
    looks = [
        Look(line=line, source=["da", "<b>"], target=["$x$", "y", "z"], weights=[[1000, 0], [500, 500], [0, 1000]])
        for line in (3, 5)
    ]
    scored = Scored(
        sources,
        references,
        hypotheses,
        [len(line.split()) for line in sources],
        "words",
        found,
        counted(hypotheses, references, "en", found),
        {0: 0.2, 1: 0.5} if weights else {},
        {"perplexity": 5.0 + seed, "attention_entropy": 1.5 if weights else None, "parameters": 1000, **MACHINE},
        looks if weights else [],
        made or {},
    )
    history = [
        {"step": at, "epoch": at / 2, "minutes": at * 1.5, "valid_bleu": at * quality, "valid_perplexity": 9 / at}
        for at in (1, 2, 3)
    ]
    training = {"minutes": 4.5, "train_tokens_per_second": 1000.0 * seed, "peak_memory": 2.0**30}
    made_from = {"training text": "x", **(origin or {})}
    return Result(name, seed, settings, made_from, training, history, {split: scored}, {}, "cpu, 1 threads")


def variant(settings: dict[str, Any], quality: float, seeds: int = 3, **more: Any) -> list[Result]:
    stem = "-".join(str(value).rpartition(".")[2].lower() for value in settings.values())
    return [result(f"{stem}-{seed}", seed, settings, quality, **more) for seed in range(1, seeds + 1)]


PLAIN = {"decoder": NONE, "decoder.size": 8}
OLD = {"decoder": BAHDANAU, "decoder.size": 8, "attention/score": ADDITIVE}
NEW = {"decoder": LUONG, "decoder.size": 9, "attention/score": GENERAL}


@pytest.fixture(scope="module")
def found() -> Comparison:
    runs = [*variant(OLD, 0.8), *variant(NEW, 0.81), *variant(PLAIN, 0.5, weights=False)]
    return compare(runs, trials=400)


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
    assert split.figures[0]["aer_shift_0"].mean == pytest.approx(20)
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
    assert split.by_length[0][0] == pytest.approx(mean / 3)


def test_only_what_is_more_than_noise_is_called_so(found: Comparison) -> None:
    bleu = found.splits[0].contrasts["bleu"]
    assert bleu[0] is None
    assert bleu[1] is not None
    assert not bleu[1].real
    assert bleu[2] is not None
    assert bleu[2].real
    assert bleu[2].difference < 0
    assert found.splits[0].near == [1 if found.splits[0].best == 0 else 0]


def test_without_a_baseline_the_highest_is_named_and_what_is_not_told_apart(found: Comparison) -> None:
    best, near = found.splits[0].best, found.splits[0].near
    assert not found.baseline_chosen
    lines = verdict(found)
    top = found.variants[best].label
    assert lines[0].startswith(f"The highest score has {top}: BLEU ")
    assert lines[1].startswith(f"Not told apart from {top}: {found.variants[near[0]].label} (")
    assert lines[2].startswith(f"Lower than {top} by more than noise: no attention (")
    assert not any("baseline" in line for line in lines)
    alone = verdict(compare([*variant(OLD, 0.8), *variant(PLAIN, 0.5)], trials=200))
    assert alone[0].startswith("Use bahdanau: ")
    assert "above every other variant by more than noise" in alone[0]
    # The same runs with a baseline that somebody chose.
    chosen = compare([run for own in found.variants for run in own.runs], baseline="bahdanau", trials=400)
    lines = verdict(chosen)
    assert lines[0].startswith(("Stay with the baseline bahdanau", "Use bahdanau, the baseline"))
    assert any(line.startswith("Worse than the baseline by more than noise: no attention") for line in lines)
    text = as_markdown(report.report(chosen, 0), "title")
    assert "the baseline, bahdanau." in text
    assert "the first, for none was chosen" in as_markdown(report.report(found, 0), "title")


def test_the_verdict_names_what_beats_the_baseline() -> None:
    better = compare(
        [*variant(PLAIN, 0.5), *variant(OLD, 0.8), *variant(NEW, 0.81)], baseline="no attention", trials=400
    )
    lines = verdict(better)
    best = better.variants[better.splits[0].best].label
    assert lines[0].startswith(f"Use {best}: BLEU ")
    assert "more than noise" in lines[0]
    assert lines[1].startswith(f"Not told apart from {best}: ")
    assert "nothing to compare it with" in verdict(compare(variant(OLD, 0.8), trials=50))[0]


def test_a_higher_score_of_one_run_does_not_hide_what_is_surely_better() -> None:
    runs = [*variant(PLAIN, 0.5), *variant(OLD, 0.8)]
    shaken = [result("luong-1", 9, NEW, 0.81)]
    better = compare([*runs, *shaken], baseline="no attention", trials=400)
    split = better.splits[0]
    assert better.variants[split.best].runs[0].name == "luong-1"
    row = list(split.contrasts["bleu"])
    top = row[split.best]
    assert top is not None
    row[split.best] = top._replace(significant=False, real=False, p=0.07)
    unsure = better._replace(splits=[split._replace(contrasts={**split.contrasts, "bleu": row})])
    first, second, *_ = verdict(unsure)
    assert first.startswith("Use bahdanau: BLEU ")
    assert second.startswith("Not told apart from luong")
    assert "no attention" not in second
    assert "The highest score, " in first
    assert "is within noise of the baseline (p = 0.070)" in first


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (([20.0, 20.2, 20.1], [20.1, 20.3, 20.0], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %), not told apart from "),
        (([20.0, 20.2, 20.1], [30.1, 30.3, 30.0], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %)."),
        # A t of 0.23 / (0.1 sqrt(2 / 3)) = 2.82 with 6 degrees of freedom: p = 0.03 is below 0.05, not below 0.05 / 3.
        (([20.0, 20.1, 20.2], [20.23, 20.33, 20.43], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %), not told apart from "),
        (([20.0, 20.1, 20.2], [20.4, 20.5, 20.6], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %)."),
        (([20.0], [20.1], [40.0]), "20.0 %, one seed)."),
    ],
    ids=["close", "apart", "close for three pairs", "apart for three pairs", "one seed"],
)
def test_the_closest_to_the_links_is_told_apart_by_its_seeds(rates: tuple[list[float], ...], expected: str) -> None:
    runs = []
    for settings, own in zip((OLD, NEW, PLAIN), rates, strict=True):
        for run, rate in zip(variant(settings, 0.5, len(own)), own, strict=True):
            runs.append(run._replace(aligned={"gold-1": Aligned("gold", 9, {"saliency": rate}, None, "")}))
    (line,) = [line for line in verdict(compare(runs, trials=50)) if line.startswith("Closest to the word links")]
    assert "by saliency bahdanau" in line
    assert f"(alignment error rate {expected}" in line


def test_models_that_have_learnt_nothing_are_called_so(found: Comparison) -> None:
    said = "None of them has learnt to translate (BLEU below 5): what they differ in may be chance."
    assert said in verdict(compare([*variant(OLD, 0.02), *variant(NEW, 0.01)], trials=50))
    assert said not in verdict(found)


def test_links_that_guided_are_named_where_nothing_else_tells() -> None:
    guided = {**OLD, "trainer.guided_alignment": 1.0, "data.train_links": "12ab"}
    plain = {**OLD, "trainer.guided_alignment": 0.0}
    assert labels([plain, guided])[1] == ["guided alignment 0", "guided alignment 1"]
    assert labels([guided, {**guided, "data.train_links": "34cd"}])[1] == ["train links 12ab", "train links 34cd"]


def test_other_links_of_one_name_are_told_apart() -> None:
    aligned = {key: Aligned("gold", 9, {"saliency": 20.0}, None, "") for key in ("12ab", "34cd")}
    found = compare([own._replace(aligned=aligned) for own in variant(OLD, 0.5, 2)], trials=50)
    assert [own.gold for own in found.golds] == ["gold (12ab)", "gold (34cd)"]


def test_markdown_of_any_text_shows_the_text(found: Comparison) -> None:
    table = Table(["a", "b"], [["![x](http://e/x.png) &lt; <b> a|b", "*one* _two_ local_p\rthree"]], text=True)
    written = as_markdown([table], "t").splitlines()[-1]
    assert written == r"| \!\[x\](http://e/x.png) &amp;lt; &lt;b> a\|b | \*one\* \_two\_ local_p three |"


@pytest.mark.parametrize("baseline", [None, "no attention", "bahdanau"])
def test_of_one_seed_each_nothing_is_called_real(baseline: str | None) -> None:
    runs = [*variant(PLAIN, 0.5, 1), *variant(OLD, 0.8, 1), *variant(NEW, 0.3, 1)]
    found = compare(runs, baseline=baseline, trials=400)
    contrasts = [own for own in found.splits[0].contrasts["bleu"] if own is not None]
    assert all(own.significant and not own.real for own in contrasts)
    claims = [line for line in verdict(found) if "better" in line.lower() or "above" in line or "orse" in line]
    assert claims
    assert all("on these sentences" in line and "one seed" in line for line in claims)
    assert not any("more than noise" in line or line.startswith("Use luong") for line in verdict(found))
    said = {judgement(found, own) for own in contrasts}
    assert said <= {"better on these sentences, one seed", "worse on these sentences, one seed"}
    assert all(plots.COLOURS[own] == plots.COLOURS["within noise"] for own in said)
    page = as_html(report.report(found, 0), "title")
    assert 'class="better"' not in page
    assert 'class="worse"' not in page
    assert "on these sentences, one seed" in page


# Two tests against a baseline at 5 %: 2 / 40 is not below it; three pairs of which the highest is in: 3 / 60.
@pytest.mark.parametrize(("baseline", "needed"), [("no attention", 40), (None, 60)])
def test_too_few_trials_are_told_and_claim_nothing(baseline: str | None, needed: int) -> None:
    runs = [*variant(PLAIN, 0.3), *variant(OLD, 0.8), *variant(NEW, 0.5)]
    few = compare(runs, baseline=baseline, trials=needed - 1)
    lines = verdict(few)
    assert lines[0].startswith("The highest score has bahdanau: BLEU ")
    assert lines[1].endswith(f"trials={needed - 1} are too few for 3 variants. Give trials={needed} or more.")
    assert len(lines) == 2
    lines = verdict(compare(runs, baseline=baseline, trials=needed))
    assert lines[0].startswith("Use bahdanau: ")
    assert not any("Nothing is said about the differences" in line for line in lines)


def test_what_comes_close_to_the_highest_needs_trials_for_all_pairs() -> None:
    runs = [*variant(PLAIN, 0.3), *variant(OLD, 0.8), *variant(NEW, 0.8)]
    few, enough = (verdict(compare(runs, baseline="no attention", trials=trials))[1] for trials in (59, 60))
    assert few.startswith("Nothing is said about which variants come close to ")
    assert few.endswith("Give trials=60 or more.")
    assert enough.startswith("Not told apart from ")


def test_a_test_that_could_find_nothing_is_no_noise() -> None:
    runs = [*variant(PLAIN, 0.3), *variant(OLD, 0.8), *variant(NEW, 0.5)]
    few, enough = (compare(runs, trials=trials) for trials in (39, 40))
    for split in few.splits:
        assert {judgement(few, own) for own in split.contrasts["bleu"]} == {"baseline", "too few trials"}
    assert "within noise" not in report.as_text(few)
    assert {judgement(enough, own) for own in enough.splits[0].contrasts["bleu"]} == {"baseline", "better"}


def test_speeds_are_compared_on_one_machine_only() -> None:
    runs = [*variant(OLD, 0.8), *variant(NEW, 0.8)]
    alike = compare(runs, trials=50)
    assert "trains fastest" in verdict(alike)[1]
    assert alike.notes == []
    for machine in ("cpu, 2 threads", ""):
        found = compare([runs[0]._replace(training_machine=machine), *runs[1:]], trials=50)
        assert not any("fastest" in line for line in verdict(found))
        (note,) = found.notes
        assert note.startswith("Speeds of training are of different machines or threads: cpu, 1 threads; ")
        assert note.endswith(f"; {machine or 'unknown'}.")
    unknown = compare([run._replace(training_machine="") for run in runs], trials=50)
    assert not any("fastest" in line for line in verdict(unknown))
    own = runs[0].splits["test"]
    elsewhere = own._replace(measured={**own.measured, "device": "cuda:0"})
    found = compare([runs[0]._replace(splits={"test": elsewhere}), *runs[1:]], trials=50)
    (note,) = found.notes
    assert note.startswith("Speeds of translating test are of different machines or threads: cpu, 1 threads; cuda:0, 1")


def test_a_baseline_is_a_variant_or_a_run() -> None:
    runs = [*variant(OLD, 0.7, 1), *variant(NEW, 0.8, 1)]
    for name in ("luong", "luong-9-general-1", "luong-9-general"):
        assert compare(runs, baseline=name, trials=20).baseline == 1
    with pytest.raises(UserError, match=r"baseline=luung is none of the variants\. Did you mean 'luong'"):
        compare(runs, baseline="luung", trials=20)


def test_only_a_runs_own_seed_is_no_part_of_its_name() -> None:
    runs = [result(f"heads-{heads}", 1, {**OLD, "attention.heads": heads}, 0.7) for heads in (2, 4)]
    with pytest.raises(
        UserError, match=r"baseline=heads is none of the variants\. Did you mean 'heads-4' or 'heads-2'"
    ):
        compare(runs, baseline="heads", trials=20)
    swept = [result(f"{own.name}-seed-3", 3, dict(own.settings), 0.7) for own in runs]
    assert compare(swept, baseline="heads-4", trials=20).baseline == 1


def test_a_baseline_that_was_set_apart_is_told_so_with_the_reason() -> None:
    runs = [*variant(OLD, 0.7, 2), *variant(NEW, 0.8, 1, origin={"training text": "y"})]
    with pytest.raises(UserError) as caught:
        compare(runs, baseline="luong", trials=20)
    for part in ("luong-9-general-1 was set apart", "another training text", "They are: bahdanau"):
        assert part in str(caught.value)
    twice = result("twice", 2, OLD, 0.7)
    with pytest.raises(UserError, match="twice was set apart, the same settings and seed as bahdanau-8-additive-2"):
        compare([*runs[:2], twice], baseline="twice", trials=20)


def test_runs_that_cannot_be_compared_are_set_apart() -> None:
    base, text = {"tokenizer": "a"}, {"text": "t", "bleu signature": "s"}
    runs = variant(OLD, 0.7, 2, origin=base, made=text)
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
    bare = [run._replace(splits={}) for run in variant(OLD, 0.7, 2)]
    with pytest.raises(
        UserError, match=r"None of the runs has scores .*: bahdanau-8-additive-1, bahdanau-8-additive-2"
    ):
        compare(bare, trials=20)
    found = compare([bare[0], *variant(NEW, 0.7, 2)], trials=20)
    assert found.apart == [("bahdanau-8-additive-1", "it has no scores")]


def test_the_difference_is_that_of_the_means_whatever_the_seeds() -> None:
    runs = [*variant(OLD, 0.7, 3), *variant(NEW, 0.75, 2)]
    found = compare(runs, trials=50)
    (split,) = found.splits
    for metric in TESTED:
        contrast = split.contrasts[metric][1]
        assert contrast is not None
        old, new = (own[metric].mean for own in split.figures)
        assert contrast.difference == pytest.approx(new - old)
    (note,) = found.notes
    assert "different seeds" in note
    assert compare(runs[1:], trials=50).notes == [note], "as many, and not the same"


def on(run: Result, split: str, **origin: str) -> Result:
    """The run, scored on one more split."""
    return run._replace(splits={**run.splits, split: run.splits["test"]._replace(origin=origin)})


def test_a_split_that_some_were_not_scored_on_is_left_out() -> None:
    both = on(variant(OLD, 0.7, 1)[0], "long")
    found = compare([both, *variant(NEW, 0.7, 1)], trials=20)
    assert [split.name for split in found.splits] == ["test"]
    (note,) = found.notes
    assert note.startswith("long is left out")
    assert "luong-9-general-1 (not scored on long)" in note


def test_a_split_on_which_runs_are_not_alike_sets_no_run_apart() -> None:
    old, new, plain = (variant(own, 0.7, 1)[0] for own in (OLD, NEW, PLAIN))
    runs = [on(old, "mine", text="t", search="beam"), on(new, "mine", text="u", search="greedy")]
    found = compare([*runs, on(plain, "mine", text="t", search="beam")], trials=20)
    assert found.apart == []
    assert [split.name for split in found.splits] == ["test"]
    (note,) = found.notes
    assert "mine is left out" in note
    assert "luong-9-general-1 (another text on mine, another search on mine)" in note
    # Where it is the only one that they have, those apart are the fewer.
    alone = [run._replace(splits={"mine": run.splits["mine"]}) for run in (runs[1], runs[0])]
    alone.append(on(plain, "mine", text="t", search="beam"))
    found = compare(alone, trials=20)
    reason = "not comparable with bahdanau-8-additive-1: another text on mine, another search on mine"
    assert found.apart == [("luong-9-general-1", reason)]
    assert [split.name for split in found.splits] == ["mine"]


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ([{**NEW, "attention.heads": 1}, {**NEW, "attention.heads": 4}], ["heads 1", "heads 4"]),
        ([{**NEW, "attention.heads": heads} for heads in (1, 4)] + [{**OLD, "attention.heads": 1}],
         ["luong", "luong heads 4", "bahdanau"]),
        ([{**OLD, "attention/score": name} for name in ("scaled_dot", "additive")],
         ["scaled_dot", "additive"]),
        ([{"encoder.size": 8, "decoder.size": size} for size in (8, 16)], ["decoder size 8", "decoder size 16"]),
        ([{"attention.coverage": False}, {"attention.coverage": True}], ["no coverage", "coverage"]),
        ([{"encoder": "gru"}, {"encoder": "lstm"}],
         ["gru encoder", "lstm encoder"]),
        ([OLD], ["bahdanau additive"]),
        # Only a setting that one has and the other has not tells these apart.
        ([{"a": 1, "attention.window.radius": 2}, {"a": 1}, {"a": 1, "attention.window.radius": 3}],
         ["radius 2", "without radius", "radius 3"]),
        # The usual one needs a name too, where it is all that it has.
        ([{"attention.heads": one, "attention.coverage": two} for one, two in ((1, False), (2, False), (1, True))],
         ["no coverage", "heads 2", "coverage"]),
        # Of two scores that come with two wirings, the wiring says enough.
        ([OLD, NEW, {**NEW, "attention/score": ADDITIVE}], ["bahdanau", "luong general", "luong additive"]),
    ],
)  # fmt: skip
def test_labels_are_the_fewest_words_that_tell_apart(settings: list[dict[str, Any]], expected: list[str]) -> None:
    assert labels(settings)[1] == expected


def study() -> list[tuple[str, dict[str, Any]]]:
    """A study of mechanisms, with what each variant should be called."""
    usual = {
        "attention/window": "global",
        "attention/read": "soft",
        "attention.heads": 1,
        "attention.coverage": False,
    }
    scores = ["dot", "general", "concat", "scaled_dot"]
    known = [("no attention", {**PLAIN, "decoder.summary": "every"}), ("bahdanau", {**OLD, **usual})]
    known += [(f"luong {name}", {**NEW, **usual, "attention/score": name}) for name in scores]
    for name in ("local_m", "local_p"):
        window = {"attention/window": name}
        known += [
            (f"luong general {name} {radius}", {**NEW, **usual, **window, "attention.window.radius": radius})
            for radius in (2, 4)
        ]
    known += [(f"bahdanau heads {heads}", {**OLD, **usual, "attention.heads": heads}) for heads in (2, 4)]
    known.append(("bahdanau coverage", {**OLD, **usual, "attention.coverage": True}))
    known.append(("conditional", {**OLD, **usual, "decoder": "conditional"}))
    hard = {"attention/read": "hard", "attention.read.entropy": 0.01}
    known.append(("bahdanau hard", {**OLD, **usual, **hard}))
    return known


def test_labels_of_a_study_hide_what_is_usual() -> None:
    known = study()
    assert labels([own for _, own in known])[1] == [name for name, _ in known]


def test_the_settings_that_differ_are_a_row_a_variant_in_words() -> None:
    known = study()
    runs = [result(name, 1, {**own, "encoder.size": 8}, 0.7) for name, own in known]
    blocks = report.report(compare(runs, trials=20), 0)
    place = blocks.index(Heading("Settings in which the variants differ"))
    table = blocks[place + 1]
    assert isinstance(table, Table)
    # The summary and the entropy are one choice's own, which never vary; encoders are all alike.
    assert set(table.header) == {
        *("variant", "decoder", "decoder.size", "attention/score", "attention/window", "attention.window.radius"),
        *("attention/read", "attention.heads", "attention.coverage"),
    }
    rows = {row[0]: dict(zip(table.header, row, strict=True)) for row in table.rows}
    assert list(rows) == [name for name, _ in known]
    assert rows["luong general local_m 4"] == {
        "variant": "luong general local_m 4",
        "decoder": "luong",
        "decoder.size": "9",
        "attention/score": "general",
        "attention/window": "local_m",
        "attention.window.radius": "4",
        "attention/read": "soft",
        "attention.heads": "1",
        "attention.coverage": "false",
    }
    assert rows["no attention"]["attention/score"] == ""
    assert "nmt." not in str(table)
    # What only one has stays where no choice brings it along.
    lone = compare([result("a", 1, {**OLD, "x": 1}, 0.7), result("b", 1, OLD, 0.7)], trials=20)
    assert telling([own.runs[0].settings for own in lone.variants], lone.differing) == ["x"]


def test_translations_that_do_not_give_their_score_are_refused() -> None:
    good = {"bleu": metrics.bleu(["a b c d e"], ["a b c d e"], "en"), "chrf": Score(100.0, "chrf")}
    counted(["a b c d e"], ["a b c d e"], "en", good)
    with pytest.raises(UserError, match=r"BLEU 100\.00, and 12\.00 is written beside them"):
        counted(["a b c d e"], ["a b c d e"], "en", {**good, "bleu": Score(12.0, "nrefs:1")})


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


# The report


class Page(HTMLParser):
    """Checks that elements are closed in their order, and collects what a browser would load."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.open: list[str] = []
        self.seen: list[str] = []
        self.loads: list[str] = []
        self.text: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.seen.append(tag)
        if tag not in ("meta", "img", "br"):
            self.open.append(tag)
        self.loads += [str(value) for name, value in attrs if name in ("src", "href", "srcset", "data", "action")]
        assert not any(name.startswith("on") for name, _ in attrs)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_the_page_is_whole_and_asks_for_nothing(found: Comparison) -> None:
    odd = found._replace(apart=[("<script>alert(1)</script>", "a & b")])
    text = as_html(report.report(odd, 2), "what <we> found")
    page = Page()
    page.feed(text)
    page.close()
    assert page.open == []
    assert not {"script", "link", "iframe", "object"} & set(page.seen)
    assert page.loads
    assert all(load.startswith("data:image/png;base64,") for load in page.loads)
    assert "http" not in text.replace("http-equiv", "")
    assert "@import" not in text
    assert "url(" not in text
    assert "prefers-color-scheme: dark" in text
    body = " ".join(page.text)
    # The verdict is the first thing in the page, before any picture or table.
    assert body.index(verdict(odd)[0]) < body.index("Scores on test")
    assert text.index('class="lead"') < text.index("<img")
    assert "<script>alert(1)</script>" in body
    for part in ("no attention", "within noise", "worse", "Holm", "decoder.size", "Where they look", "perplexity"):
        assert part in body


def test_the_title_counts_in_words(found: Comparison) -> None:
    assert report.title(found) == "3 variants, 9 runs, on test"
    (split,) = found.splits
    one = found.variants[0]
    single = found._replace(variants=[one._replace(runs=one.runs[:1])], splits=[split, split._replace(name="long")])
    assert report.title(single) == "1 variant, 1 run, on test, long"


def test_the_markdown_names_its_pictures(found: Comparison) -> None:
    blocks = report.report(found._replace(apart=[("a|b", "line\nbreak")]), 1)
    text = as_markdown(blocks, "title")
    assert text.startswith(f"# title\n\n{verdict(found)[0]}\n")
    names = [file_name(block.name) for block in blocks if isinstance(block, Picture)]
    assert len(names) == len(set(names)) == 4
    for name in names:
        assert f"(<pictures/{name}>)" in text
    assert "| a\\|b | line break |" in text
    for line in text.splitlines():
        if line.startswith("| bahdanau"):
            assert line.endswith(" |")


def test_the_terminal_gets_the_verdict_and_the_scores(found: Comparison) -> None:
    text = report.as_text(found._replace(apart=[("x", "why")], notes=["note"]))
    assert text.startswith(verdict(found)[0])
    for part in ("no attention", "within noise", "left out: x: why", "note"):
        assert part in text


def test_the_json_keeps_its_shape(found: Comparison) -> None:
    known = json.loads(json.dumps(as_json(found), allow_nan=False))
    keys = ["verdict", "baseline", "alpha", "trials", "variants", "splits", "alignments", "apart", "notes"]
    assert list(known) == keys
    assert list(known["variants"][0]) == ["label", "runs", "settings", "training"]
    split = known["splits"][0]
    assert list(split) == [
        *("name", "sentences", "signatures", "best", "not_told_apart_from_best", "length_bins", "variants"),
        "differences",
    ]
    first, second = split["variants"][:2]
    assert list(first) == ["label", "figures", "tests", "bleu_by_length"]
    assert first["tests"] == {"bleu": None, "chrf": None}
    assert list(second["tests"]["bleu"]) == [
        *("difference", "p_sentences", "p_seeds", "p", "detectable", "significant", "real")
    ]
    assert list(first["figures"]["bleu"]) == ["mean", "deviation", "values"]
    assert list(split["differences"][0]) == ["line", "chrf"]


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_figures_that_are_no_numbers_are_none_in_the_json(value: float) -> None:
    runs = [*variant(OLD, 0.8, 2), *variant(NEW, 0.8, 2)]
    own = runs[0].splits["test"]
    runs[0] = runs[0]._replace(
        splits={"test": own._replace(measured={**own.measured, "perplexity": value})},
        settings={**OLD, "trainer.odd": value},
        training={**runs[0].training, "minutes": value},
    )
    odd = compare(
        [runs[0], *(run._replace(settings={**run.settings, "trainer.odd": 1.0}) for run in runs[1:])], trials=50
    )
    known = json.loads(json.dumps(as_json(odd), allow_nan=False))
    first = known["splits"][0]["variants"][0]
    assert first["figures"]["perplexity"] == {"mean": None, "deviation": None, "values": [None]}
    assert known["variants"][0]["training"]["minutes"]["mean"] is None
    assert known["variants"][0]["settings"]["trainer.odd"] is None
    assert first["figures"]["bleu"]["mean"] > 0
    two = compare([runs[0]._replace(settings=OLD), *runs[1:]], trials=50)
    json.dumps(as_json(two), allow_nan=False)
    as_html(report.report(two, 0), "title")


@pytest.mark.parametrize("pieces", [2, 5, 14])
def test_titles_of_many_panels_neither_overlap_nor_leave_the_picture(pieces: int) -> None:
    source = ["▁Straßen"] * (pieces - 2) + ["a", "."]
    look = Look(line=1, source=source, target=["▁street"] * pieces, weights=[[1000] + [0] * (pieces - 1)] * pieces)
    panels = [(name, look) for name, _ in study() if name != "no attention"]
    panels.append(("a-label-without-any-blank-in-it", look))
    picture = plots.side_by_side(panels)
    plots.png(picture)  # lays it out
    page = picture.bbox
    shown = [axes for axes in picture.axes if axes.get_visible()]
    assert len(shown) == len(panels)
    assert len({round(axes.get_position().y0, 3) for axes in shown}) == -(-len(panels) // 4), "rows of four"
    boxes = [axes.title.get_window_extent() for axes in shown]
    for at, box in enumerate(boxes):
        assert page.x0 <= box.x0 < box.x1 <= page.x1
        assert page.y0 <= box.y0 < box.y1 <= page.y1
        assert not any(box.overlaps(other) for other in boxes[at + 1 :])


def test_pictures_of_any_text_are_drawn(found: Comparison) -> None:
    look = Look(line=1, source=["数据", "שלום", "$a"], target=["a" * 40, "_{x}"], weights=[[1000, 0, 0], [0, 500, 500]])
    panels = [(f"variant ${number}", look) for number in range(5)]
    data = plots.png(plots.side_by_side(panels))
    assert data.startswith(b"\x89PNG")
    width, height = struct.unpack(">II", data[16:24])
    assert width > height, "four panels in a row"
    lone = found._replace(
        variants=[own._replace(runs=[run._replace(history=[]) for run in own.runs]) for own in found.variants]
    )
    assert plots.curves(lone) is None
    some = found._replace(variants=[found.variants[0], *lone.variants[1:]])
    assert plots.curves(some) is not None


def test_a_curve_of_one_validation_is_seen(found: Comparison) -> None:
    first = [run._replace(history=run.history[:1]) for run in found.variants[0].runs]
    picture = plots.curves(found._replace(variants=[found.variants[0]._replace(runs=first), *found.variants[1:]]))
    assert picture is not None
    assert [line.get_marker() for line in picture.axes[0].lines] == ["o", "", ""]
