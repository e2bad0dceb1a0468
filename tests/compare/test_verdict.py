"""What a comparison says: the verdict in words, judgements, JSON."""

import json

import pytest

from nmt.compare import plots, report
from nmt.compare.method import method
from nmt.compare.results import Alignment
from nmt.compare.systems import SYSTEM
from nmt.compare.variants import Comparison, compare
from nmt.compare.verdict import as_json, judgement, verdict
from nmt.viewer.blocks import Table, as_html, as_markdown
from tests.compare.runs import NEW, OLD, PLAIN, result, runs_of


def test_without_a_baseline_the_highest_is_named_and_what_is_not_told_apart(found: Comparison) -> None:
    best, near = found.splits[0].best, found.splits[0].near
    assert not found.baseline_chosen
    lines = verdict(found)
    top = found.variants[best].label
    assert lines[0].startswith(f"{top} has the highest score: BLEU ")
    assert lines[1].startswith(f"Not significantly different from {top}: {found.variants[near[0]].label} (")
    assert lines[2].startswith(f"Significantly lower than {top}: no attention (")
    assert not any("baseline" in line for line in lines)
    alone = verdict(compare([*runs_of(OLD, 0.8), *runs_of(PLAIN, 0.5)], trials=200))
    assert alone[0].startswith("Use bahdanau: ")
    assert "significantly above every other variant" in alone[0]
    # The same runs with a baseline that somebody chose.
    chosen = compare([run for own in found.variants for run in own.runs], baseline="bahdanau", trials=400)
    lines = verdict(chosen)
    assert "keep the baseline bahdanau" in lines[0] or lines[0].startswith("Use bahdanau, the baseline")
    assert any(line.startswith("Significantly worse than the baseline: no attention") for line in lines)
    text = as_markdown(report.report(chosen, 0), "title")
    assert "against the baseline, bahdanau." in text
    assert "the first run, because baseline= is not set" in as_markdown(report.report(found, 0), "title")


def test_the_verdict_names_what_beats_the_baseline() -> None:
    better = compare(
        [*runs_of(PLAIN, 0.5), *runs_of(OLD, 0.8), *runs_of(NEW, 0.81)], baseline="no attention", trials=400
    )
    lines = verdict(better)
    best = better.variants[better.splits[0].best].label
    assert lines[0].startswith(f"Use {best}: BLEU ")
    assert "a significant difference" in lines[0]
    assert lines[1].startswith(f"Not significantly different from {best}: ")
    assert "nothing to compare it with" in verdict(compare(runs_of(OLD, 0.8), trials=50))[0]


def test_a_higher_score_of_one_run_does_not_hide_what_is_surely_better() -> None:
    runs = [*runs_of(PLAIN, 0.5), *runs_of(OLD, 0.8)]
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
    assert second.startswith("Not significantly different from luong")
    assert "no attention" not in second
    assert "The highest score, " in first
    assert "is not significantly different from the baseline (p = 0.070)" in first


@pytest.mark.parametrize(
    ("rates", "expected"),
    [
        (
            ([20.0, 20.2, 20.1], [20.1, 20.3, 20.0], [40.0, 40.1, 40.2]),
            "20.1 ± 0.1 %), not significantly diff",
        ),
        (([20.0, 20.2, 20.1], [30.1, 30.3, 30.0], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %)."),
        # A t of 0.23 / (0.1 sqrt(2 / 3)) = 2.82 with 6 degrees of freedom: p = 0.03 is below 0.05, not below 0.05 / 3.
        (
            ([20.0, 20.1, 20.2], [20.23, 20.33, 20.43], [40.0, 40.1, 40.2]),
            "20.1 ± 0.1 %), not significantly diff",
        ),
        (([20.0, 20.1, 20.2], [20.4, 20.5, 20.6], [40.0, 40.1, 40.2]), "20.1 ± 0.1 %)."),
        (([20.0], [20.1], [40.0]), "20.0 %, one seed)."),
    ],
    ids=["close", "apart", "close for three pairs", "apart for three pairs", "one seed"],
)
def test_the_closest_to_the_links_is_told_apart_by_its_seeds(rates: tuple[list[float], ...], expected: str) -> None:
    runs = []
    for settings, own in zip((OLD, NEW, PLAIN), rates, strict=True):
        for run, rate in zip(runs_of(settings, 0.5, len(own)), own, strict=True):
            runs.append(run._replace(aligned={"gold-1": Alignment("gold", 9, {"saliency": rate}, None, "")}))
    (line,) = [line for line in verdict(compare(runs, trials=50)) if line.startswith("Closest to the word links")]
    assert "by saliency bahdanau" in line
    assert f"(alignment error rate {expected}" in line


def test_models_that_have_learnt_nothing_are_called_so(found: Comparison) -> None:
    said = "No variant has learnt to translate (BLEU below 5): their differences may be chance."
    assert said in verdict(compare([*runs_of(OLD, 0.02), *runs_of(NEW, 0.01)], trials=50))
    assert said not in verdict(found)


@pytest.mark.parametrize("baseline", [None, "no attention", "bahdanau"])
def test_of_one_seed_each_nothing_is_called_real(baseline: str | None) -> None:
    runs = [*runs_of(PLAIN, 0.5, 1), *runs_of(OLD, 0.8, 1), *runs_of(NEW, 0.3, 1)]
    found = compare(runs, baseline=baseline, trials=400)
    contrasts = [own for own in found.splits[0].contrasts["bleu"] if own is not None]
    assert all(own.significant and not own.real for own in contrasts)
    claims = [line for line in verdict(found) if "better" in line.lower() or "Lower" in line or "orse" in line]
    assert claims
    assert all("on these sentences" in line and "one seed" in line for line in claims)
    assert not any("ignificant" in line or line.startswith("Use luong") for line in verdict(found))
    said = {judgement(own) for own in contrasts}
    assert said <= {"better on these sentences, one seed", "worse on these sentences, one seed"}
    assert all(plots.COLOURS[own] == plots.COLOURS["n.s."] for own in said)
    page = as_html(report.report(found, 0), "title")
    assert 'class="better"' not in page
    assert 'class="worse"' not in page
    assert "on these sentences, one seed" in page


@pytest.mark.parametrize(
    ("diagonal", "expected"),
    [
        (50.0, "Closest to the word links of gold: by saliency bahdanau (alignment error rate 20.0 ± 1.0 %)."),
        (
            30.0,
            "Closest to the word links of gold: by saliency bahdanau (alignment error rate 20.0 ± 1.0 %). On gold, a "
            "straight diagonal (30.0 %) has fewer errors than luong by saliency.",
        ),
        (19.0, "On gold, a straight diagonal (19.0 %) has fewer errors than any variant by saliency."),
    ],
)
def test_error_rates_stand_beside_the_diagonal(diagonal: float, expected: str) -> None:
    runs = []
    for settings, rate in ((OLD, 20.0), (NEW, 40.0)):
        for run, more in zip(runs_of(settings, 0.8), (-1.0, 0.0, 1.0), strict=True):
            aligned = Alignment("gold", 9, {"saliency": rate + more}, None, "", {"diagonal": diagonal})
            runs.append(run._replace(aligned={"gold-1": aligned}))
    found = compare(runs, trials=50)
    assert expected in verdict(found)
    (table,) = (block for block in report.report(found, 0) if isinstance(block, Table) and "gold" in block.header[0])
    assert ["(diagonal)", f"{diagonal:.1f}"] in table.rows


def test_the_json_keeps_its_shape(found: Comparison) -> None:
    known = json.loads(json.dumps(as_json(found), allow_nan=False))
    split = known["splits"][0]
    first, second = split["variants"][:2]
    shapes = [
        (known, "verdict baseline alpha trials variants splits alignments joint apart notes"),
        (known["joint"], "splits sentences judge tests collapsed"),
        (known["joint"]["tests"][0], "first second difference low high error p detectable significant real"),
        (known["variants"][0], "label runs settings training"),
        (split, "name sentences signatures judged_by best not_different_from_best length_unit length_bins variants "
                "families differences"),
        (first, "label figures tests by_length"),
        (first["by_length"][0], "value low high"),
        (second["tests"]["bleu"], "difference error p_sentences p_seeds p detectable significant real"),
        (first["figures"]["bleu"], "mean deviation values"),
        (split["differences"][0], "line chrf"),
    ]  # fmt: skip
    for value, keys in shapes:
        assert list(value) == keys.split()
    assert first["tests"] == {"bleu": None, "chrf": None}


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_figures_that_are_no_numbers_are_none_in_the_json(value: float) -> None:
    runs = [*runs_of(OLD, 0.8, 2), *runs_of(NEW, 0.8, 2)]
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


def test_where_bleu_is_blind_chrf_decides() -> None:
    runs = [*runs_of(OLD, 0.9), *runs_of(PLAIN, 0.5)]
    blind = [
        run._replace(splits={name: scored._replace(judged_by="chrf") for name, scored in run.splits.items()})
        for run in runs
    ]
    by_bleu, by_chrf = (compare(each, trials=200) for each in (runs, blind))
    (split,) = by_chrf.splits
    assert split.judge == "chrf"
    assert split.figures == by_bleu.splits[0].figures, "both metrics are measured"
    lines = verdict(by_chrf)
    assert lines[0].startswith("Use bahdanau: chrF ")
    assert any(line.startswith("Judged by chrF: most references of test have fewer than 4 tokens") for line in lines)
    assert not any("Judged by" in line for line in verdict(by_bleu))
    table = report.scores_table(by_chrf, split)
    assert table.header[:7] == ["variant", "seeds", "chrF", "to baseline", "p", "verdict", "BLEU"]
    best = split.figures[split.best]["chrf"]
    assert table.rows[0][2] == f"{best.mean:.2f} ± {best.deviation:.2f}"
    known = as_json(by_chrf)["splits"][0]
    assert known["judged_by"] == "chrf"
    assert list(known["variants"][0]["by_length"][0]) == ["value", "low", "high"]


def test_another_programs_seeds_say_nothing_of_single_runs() -> None:
    """Marian has two files, our variants have one run each."""
    ours = [*runs_of(PLAIN, 0.5, 1), *runs_of(OLD, 0.8, 1)]
    theirs = [result(f"marian-{seed}", seed, {SYSTEM: "marian"}, 0.8) for seed in (1, 2)]
    found = compare([*ours, *theirs], baseline="no attention", trials=200)
    tests = found.splits[0].tests[1:]
    assert [test and test.p_seeds for test in tests] == [None, None]
    lines = verdict(found)
    assert "on these sentences, one seed" in lines[0]
    assert not any("ignificantly better" in line or line.startswith("Use") for line in lines)
    (table,) = (block for block in method(found) if isinstance(block, Table) and "p, seeds" in block.header)
    assert {row[table.header.index("p, seeds")] for row in table.rows} == {"no estimate"}
