"""Comparing runs: what is scored on the way, and what is left out and why."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch

from nmt.runs.records import record
from nmt.runs.run import Run, settings
from tests.small import QUICK, Capture, call, copied, pairs, snapshot, words, write_lines

pytestmark = pytest.mark.long


def report(folder: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return found


def test_the_first_comparison_scores_what_was_not_scored(swept: Path, here: Path, capfd: Capture) -> None:
    for name in ("bahdanau-1", "none-2"):
        known = Run(swept / name).scores("test")
        assert known["measured"]["perplexity"] > 1
    before = snapshot(swept)
    assert call("compare", f"runs={swept}", f"output={here / 'again'}", *QUICK) == 0
    out, err = capfd.readouterr()
    assert err == "", "nothing has to be scored a second time"
    assert snapshot(swept) == before
    assert report(here / "again") == report(swept / "comparison")
    assert out.startswith("Use bahdanau: ")
    assert "no attention" in out
    assert str(here / "again" / "report.html") in out


def test_the_report_tells_the_learnt_from_the_unlearnt(swept: Path) -> None:
    found = report(swept / "comparison")
    assert [own["label"] for own in found["variants"]] == ["bahdanau", "no attention"]
    assert [[run["name"] for run in own["runs"]] for own in found["variants"]] == [
        ["bahdanau-1", "bahdanau-2"],
        ["none-1", "none-2"],
    ]
    (split,) = found["splits"]
    assert (split["name"], split["sentences"], split["best"]) == ("test", 20, "bahdanau")
    learnt, unlearnt = split["variants"]
    assert learnt["figures"]["bleu"]["mean"] > unlearnt["figures"]["bleu"]["mean"] + 20
    assert unlearnt["tests"]["bleu"]["real"]
    assert unlearnt["tests"]["bleu"]["difference"] < -20
    values = [Run(swept / f"bahdanau-{seed}").scores("test")["bleu"]["value"] for seed in (1, 2)]
    assert learnt["figures"]["bleu"]["values"] == pytest.approx(values)
    assert learnt["figures"]["perplexity"]["mean"] < unlearnt["figures"]["perplexity"]["mean"]
    assert "attention_entropy" in learnt["figures"]
    assert "attention_entropy" not in unlearnt["figures"]
    for key in ("minutes", "train_tokens_per_second", "peak_memory"):
        assert found["variants"][0]["training"][key]["mean"] > 0
    page = (swept / "comparison" / "report.html").read_text(encoding="utf-8")
    drawn = {path.name for path in (swept / "comparison" / "pictures").glob("*.png")}
    # The viewer stands for the pictures of weights; two pictures are those of the summary.
    assert page.count("<img") == len(drawn - {"forest.png", "maps.png"}) - 1 == 2
    summary = (swept / "comparison" / "summary.md").read_text(encoding="utf-8")
    in_summary = {name for name in drawn if f"pictures/{name}" in summary}
    assert in_summary == {"forest.png", "learning-curves.png", "maps.png"}
    assert page.count('class="nmt-viewer"') == 1
    assert "Use bahdanau" in page
    assert (swept / "comparison" / "report.md").read_text(encoding="utf-8").startswith("# 2 variants, 4 runs")


def spoil(run: Path, how: str) -> None:
    """Makes a run one that cannot be compared."""
    scores = run / "evaluation" / "test" / "scores.json"
    known = json.loads(scores.read_text(encoding="utf-8"))
    if how == "unfinished":
        Run(run).note(status="interrupted", step=7)
    elif how == "damaged scores":
        scores.write_text("{", encoding="utf-8")
    elif how == "no figure":
        del known["bleu"]
        scores.write_text(json.dumps(known), encoding="utf-8")
    elif how == "damaged configuration":
        (run / "config.yaml").write_text("a: [", encoding="utf-8")
    elif how == "damaged history":
        (run / "history.jsonl").write_text("x\n", encoding="utf-8")
    elif how == "another text":
        write_lines(run / "evaluation" / "test" / "reference.txt", ["other"] * 20)
    elif how == "lines lost":
        write_lines(run / "evaluation" / "test" / "hypotheses.txt", ["one"])
    elif how == "other translations":
        write_lines(run / "evaluation" / "test" / "hypotheses.txt", ["one two three four five"] * 20)
    elif how == "other tokenizer":
        known["provenance"]["tokenizer"] = "x"
        scores.write_text(json.dumps(known), encoding="utf-8")
    elif how == "other training text":
        Run(run).note(text={**Run(run).facts()["text"], "train": "x"})
    elif how == "other search":
        known["provenance"]["search"]["beam_size"] = 1
        scores.write_text(json.dumps(known), encoding="utf-8")


REASONS = {
    "unfinished": "it was stopped at step 7. Resume with: python -m nmt.train name=unfinished checkpoints=",
    "damaged scores": "scores.json is damaged",
    "no figure": "scores.json is damaged",
    "damaged configuration": "config.yaml is damaged",
    "damaged history": "history.jsonl is damaged",
    "another text": "do not belong to scores.json",
    "lines lost": "do not belong to scores.json",
    "other translations": "written beside them",
    "other tokenizer": "not comparable with bahdanau-1: another tokenizer",
    "other training text": "not comparable with bahdanau-1: another training text",
    "other search": "not comparable with bahdanau-1: another search on test: best weights, ",
}


def test_runs_that_cannot_be_compared_are_named_with_the_reason(swept: Path, here: Path, capfd: Capture) -> None:
    place = here / "runs"
    for name in ("bahdanau-1", "none-1"):
        copied(swept / name, place)
    for how in REASONS:
        spoil(Path(shutil.copytree(swept / "none-2", place / how)), how)
    assert call("compare", f"runs={place}", "evaluate=false", *QUICK) == 1, "runs are missing"
    out, err = capfd.readouterr()
    assert "8 runs left out, for the reasons above: " in err.splitlines()[-1]
    assert call("compare", f"runs={place}", "evaluate=false", "incomplete=true", *QUICK) == 0
    found = report(place / "comparison")
    assert {own["run"]: REASONS[own["run"]] in own["reason"] for own in found["apart"]} == dict.fromkeys(REASONS, True)
    assert [len(own["runs"]) for own in found["variants"]] == [1, 1]
    texts = [(place / "comparison" / f"report.{form}").read_text(encoding="utf-8") for form in ("html", "md")]
    for text in (out, *texts):
        assert all(how in text for how in REASONS)


def test_what_was_not_scored_is_said_where_scoring_is_not_wanted(swept: Path, here: Path, capfd: Capture) -> None:
    for name in ("bahdanau-1", "none-1"):
        copied(swept / name, here)
    shutil.rmtree(here / "none-1" / "evaluation")
    (here / "half").mkdir()
    (here / "half" / "run.json").write_text("{}", encoding="utf-8")
    (here / "never.log").write_text("nmt.train: no such thing\n", encoding="utf-8")
    assert call("compare", f"runs={here}", "evaluate=false", *QUICK) == 1
    err = capfd.readouterr().err
    assert "left out: none-1: on test it has no scores, and evaluate=false does not compute them." in err
    assert "or run: python -m nmt.evaluate run=" in err
    assert "left out: half: half is not a run" in err.replace(f"{here}/", "")
    assert "left out: never: it never started" in err
    # A better checkpoint since, or another text of that name, makes the scores old.
    history = Run(here / "bahdanau-1").history()
    trained = history[-1]["step"]
    Run(here / "bahdanau-1").keep_history([*history, {**history[-1], "step": trained + 100}])
    assert call("compare", f"runs={here / 'bahdanau-1'}", f"output={here / 'out'}", *QUICK) == 0
    assert f"its scores are from step {trained}, but the best step is {trained + 100}" in capfd.readouterr().err


def test_files_of_ones_own_are_compared(swept: Path, here: Path, capfd: Capture) -> None:
    rows = [pair for pair in pairs(60) if len(pair[0].split()) > 3][:8]
    source = write_lines(here / "long.de", [source for source, _ in rows])
    reference = write_lines(here / "long.en", [target for _, target in rows])
    runs = ",".join(str(copied(swept / name, here / "runs")) for name in ("bahdanau-1", "none-1"))
    line = [f"runs=[{runs}]", f"source={source}", f"reference={reference}", *QUICK]
    assert call("compare", *line) == 0
    assert re.search(r"long\.de-\w{6}: it has no scores", capfd.readouterr().err)
    (own,) = report(here / "comparison")["splits"]
    name = own["name"]
    assert name.startswith("long.de-")
    assert own["sentences"] == 8
    # From now on it is one of the splits that all have.
    assert call("compare", f"runs=[{runs}]", f"output={here / 'all'}", *QUICK) == 0
    assert [own["name"] for own in report(here / "all")["splits"]] == ["test", name]
    assert call("compare", f"runs=[{runs}]", f"split={name}", f"output={here / 'one'}", *QUICK) == 0
    assert [own["name"] for own in report(here / "one")["splits"]] == [name]
    # Another text in a file of the same name is another split.
    write_lines(source, [source for source, _ in reversed(rows)])
    assert call("compare", *line) == 0
    assert report(here / "comparison")["splits"][0]["name"] != name


@pytest.mark.parametrize(
    ("line", "parts"),
    [
        ([], ["Give runs=FOLDER"]),
        (["runs=nowhere"], ["There is no run nowhere"]),
        (["runs={swept}/bahdanau-1/tokenizer"], ["is not a run"]),
        (["runs={swept}", "baseline=luong"], ["baseline=luong is not one of the variants", "bahdanau; no attention"]),
        (["runs={swept}", "source=a"], ["source= needs reference="]),
        (["runs={swept}", "split=test", "source=a", "reference=b"], ["split= and source= cannot be combined"]),
        (["runs={swept}", "output={swept}/bahdanau-1/config.yaml"], ["is a file"]),
        (["runs={swept}", "split=valid", "evaluate=false"], ["No run can be compared"]),
        (["runs={swept}", "trials=many"], ["trials=many: must be a whole number"]),
        (["runs={swept}", "trials=0"], ["trials=0: must be at least 1"]),
        (["runs={swept}", "record_text=some"], ["record_text=some: must be all, shown or none"]),
        (["runs={swept}", "records={here}", "baseline=luong"], ["baseline=luong is not one of the variants"]),
        (["runs={swept}", "alpha=5"], ["alpha=5: must be greater than 0 and less than 1", "such as 0.05"]),
        (["runs={swept}", "records={swept}"], ["records= would overwrite the run"]),
        (["runs={swept}", "slice_regex=(ein"], ["slice_regex=(ein: not a valid regular expression: missing )"]),
        (["runs={swept}", "slice_labels=none.txt"], ["none.txt"]),
        (
            ["runs={swept}", "slice_labels={swept}/bahdanau-1/run.json"],
            ["run.json: ", "lines, but test has 20. Give one label for each line of test"],
        ),
        (["rums={swept}"], ["no setting 'rums'", "'runs'"]),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_mistakes_are_one_message(line: list[str], parts: list[str], swept: Path, here: Path, capfd: Capture) -> None:
    before = snapshot(swept)
    assert call("compare", *(word.format(swept=swept, here=here) for word in line)) == 1
    out, err = capfd.readouterr()
    assert out == ""
    for part in parts:
        assert part in err
    assert "Traceback" not in err
    assert snapshot(swept) == before
    assert list(here.iterdir()) == []


def test_a_sweep_of_which_no_run_has_begun_is_told_so(here: Path, capfd: Capture) -> None:
    (here / "dot-1.log").write_text("nmt.train: no such thing\n", encoding="utf-8")
    assert call("compare", f"runs={here}") == 1
    err = capfd.readouterr().err
    log = here / "dot-1.log"
    assert err == f"nmt.compare: {here} contains no run that has started. If it is a sweep, see {log}.\n"


def test_what_all_have_in_common_is_told(swept: Path, here: Path) -> None:
    assert call("compare", f"runs={swept}", f"output={here / 'out'}", *QUICK) == 0
    _, _, common = (here / "out" / "report.md").read_text("utf-8").partition("## What they have in common")
    common, _, _ = common.partition("##")
    assert "Trained on text-de-en, de to en, 300 sentence pairs." in common
    assert f"and torch {torch.__version__}." in common
    assert "encoder.size=16, " in common
    assert "trainer.steps" not in common, "that differs"


def test_what_a_run_is_leaves_out_where_it_lies(swept: Path) -> None:
    one, two, none = (settings(Run(swept / name).config()) for name in ("bahdanau-1", "bahdanau-2", "none-1"))
    assert {key for key in one if one[key] != two[key]} == {"seed"}
    assert not {"name", "checkpoints", "threads", "resume"} & one.keys()
    assert any(key.startswith("attention.") for key in one)
    assert not any(key.startswith("attention.") for key in none), "it takes no part"


def test_pictures_of_an_earlier_report_go_and_others_stay(swept: Path, here: Path) -> None:
    line = [f"runs={swept}", f"output={here / 'out'}", *QUICK]
    (here / "out" / "pictures").mkdir(parents=True)
    for name in ("weights-test-9.png", "weights-test-9.pdf", "holiday.png", "holiday.pdf"):
        (here / "out" / "pictures" / name).write_bytes(b"")
    assert call("compare", *line) == 0
    left = {path.name for path in (here / "out" / "pictures").iterdir()}
    assert {"holiday.png", "holiday.pdf", "learning-curves.png", "learning-curves.pdf"} <= left
    assert not {"weights-test-9.png", "weights-test-9.pdf"} & left
    assert (here / "out" / "pictures" / "learning-curves.pdf").read_bytes().startswith(b"%PDF")
    courses = (here / "out" / "curves.csv").read_text(encoding="utf-8").splitlines()
    assert courses[0].startswith("variant,run,seed,step,epoch,minutes,tokens,train_loss,")
    assert len(courses) == 5, "one validation of each run"
    assert all(int(line.split(",")[6]) > 0 for line in courses[1:])


def test_tables_are_files_and_those_of_an_earlier_report_go(swept: Path, here: Path) -> None:
    folder = here / "out" / "tables"
    for name in ("old.csv", "old.json", "old.tex", "mine.csv"):
        write_lines(folder / name, ["x"])
    labels = write_lines(here / "kinds", ["<b>"] * 20)
    line = [f"runs={swept}", f"output={here / 'out'}", "slice_regex=ein.*", f"slice_labels={labels}", *QUICK]
    assert call("compare", *line) == 0
    left = {path.name for path in folder.iterdir()}
    assert "mine.csv" in left
    assert not {"old.csv", "old.json", "old.tex"} & left
    names = {name.partition(".")[0] for name in left - {"mine.csv"}}
    assert {"scores-on-test", "failures", "word-f1-by-training-frequency", "what-it-costs", "calibration"} <= names
    assert {f"{name}.{end}" for name in names for end in ("csv", "json", "tex")} == left - {"mine.csv"}
    costs = (folder / "what-it-costs.csv").read_text(encoding="utf-8").splitlines()
    assert costs[0].startswith("variant,parameters,")
    assert len(costs) == 3
    page = (here / "out" / "report.html").read_text(encoding="utf-8")
    assert "label &lt;b&gt; (20)" in page
    assert "Word F1 by training frequency" in page


@pytest.mark.parametrize("name", ["sentences.json", "references.json", "words.json"])
@pytest.mark.parametrize("written", ["[{}]", '[{"line": 99}]'])
def test_damaged_analyses_are_named_and_missing_ones_are_not(
    name: str, written: str, swept: Path, here: Path, capfd: Capture
) -> None:
    run = copied(swept / "bahdanau-1", here / "runs")
    path = run / "evaluation" / "test" / name
    path.write_text(written, encoding="utf-8")
    line = [f"runs=[{run},{swept / 'none-1'}]", f"output={here / 'out'}", *QUICK]
    assert call("compare", *line) == 1
    assert f"{name} is damaged" in capfd.readouterr().err
    path.unlink()
    assert call("compare", *line) == 0
    assert capfd.readouterr().err == ""


def test_two_of_one_name_are_told_apart_by_their_folders(swept: Path, here: Path, capfd: Capture) -> None:
    for folder in ("a", "b"):
        record(Run(swept / "none-1"), here / folder / "none-1")
    record(Run(swept / "bahdanau-1"), here / "a" / "bahdanau-1")
    (here / "a" / "none-1" / "config.yaml").unlink()
    (here / "b" / "none-1" / "run.json").write_text("{}", encoding="utf-8")
    assert call("compare", f"runs=[{here / 'a'},{here / 'b'}]", f"output={here / 'out'}", *QUICK) == 1
    err = capfd.readouterr().err
    assert f"left out: {here / 'a' / 'none-1'}: " in err
    assert f"left out: {here / 'b' / 'none-1'}: " in err


def test_runs_that_other_links_guided_are_other_variants(text: Path, here: Path, capfd: Capture) -> None:
    for number, links in ((1, "0-0"), (2, "0-0 0-0"), (3, "")):
        line = words(text, here / "runs", f"name=g-{number}", f"seed={number}", "trainer.steps=2")
        guide = write_lines(here / str(number) / "links", [links] * 300)
        guided = [f"data.train_links={guide}", "trainer.guided_alignment=1"]
        assert call("train", *line, *guided) == 0
    assert call("compare", f"runs={here / 'runs'}", f"output={here / 'out'}", *QUICK) == 0
    found = [[run["name"] for run in own["runs"]] for own in report(here / "out")["variants"]]
    assert found == [["g-1", "g-2"], ["g-3"]], "a link twice is one link"
    # Nor does a training go on with other links than it began with.
    write_lines(here / "1" / "links", [""] * 300)
    capfd.readouterr()
    assert call("train", "name=g-1", f"checkpoints={here / 'runs'}", "resume=true", "trainer.steps=3") == 1
    assert "The word links of train have changed since" in capfd.readouterr().err


def test_error_rates_that_align_has_kept(swept: Path, here: Path, capfd: Capture) -> None:
    """Every run of a variant has to have been measured, at its present state."""
    for name in ("bahdanau-1", "bahdanau-2", "none-1"):
        copied(swept / name, here / "runs")
    text = [f"source={write_lines(here / 'a', ['eins zwei'])}", f"target={write_lines(here / 'b', ['one two'])}"]
    gold = write_lines(here / "gold", ["0-1 1-0"])  # where a diagonal is wrong
    for name, how in (("bahdanau-1", ["shift=0"]), ("none-1", ["method=saliency"]), ("bahdanau-2", ["shift=0"])):
        alone = [f"runs={here / 'runs'}", f"output={here / 'out'}", *QUICK]
        assert call("align", f"run={here / 'runs' / name}", *text, f"gold={gold}", *how) == 0
        assert call("compare", *alone) == 0
    (own,) = report(here / "out")["alignments"]
    assert (own["gold"], own["pairs"]) == ("gold", 1)
    learnt, unlearnt = own["rates"].values()
    assert set(learnt) == {"attention, shift 0", "attention, shift 1", "attention", "saliency"}
    assert learnt["attention"] == learnt["attention, shift 0"]
    assert len(learnt["attention"]["values"]) == 2
    assert set(unlearnt) == {"saliency"}
    assert "The shift was set by hand (shift=) for runs in gold." in (here / "out" / "report.md").read_text("utf-8")
    assert "Alignment error rates" in (here / "out" / "report.md").read_text(encoding="utf-8")
    assert "Closest to the word links of gold: by saliency " in capfd.readouterr().out
    # A run that went on since is not what was measured.
    (kept,) = (here / "runs" / "bahdanau-2" / "alignments").iterdir()
    kept.write_text(kept.read_text(encoding="utf-8").replace('"step": ', '"step": 1'), encoding="utf-8")
    assert call("compare", *alone) == 0
    assert "is from an earlier state of the run" in capfd.readouterr().err
    (own,) = report(here / "out")["alignments"]
    assert own["rates"]["bahdanau"] == {}


def test_links_by_a_threshold_are_another_measurement(swept: Path, here: Path) -> None:
    """It stands beside the links of best words, and says which it is."""
    text = [f"source={write_lines(here / 'a', ['eins zwei'])}", f"target={write_lines(here / 'b', ['one two'])}"]
    gold = write_lines(here / "gold", ["0-0 1-1"])
    runs = [copied(swept / name, here / "runs") for name in ("bahdanau-1", "none-1")]
    for how in ([], ["threshold=0.01"]):
        assert call("align", f"run={runs[0]}", *text, f"gold={gold}", "shift=0", *how) == 0
    assert call("compare", f"runs={here / 'runs'}", f"output={here / 'out'}", *QUICK) == 0
    assert sorted(own["gold"] for own in report(here / "out")["alignments"]) == ["gold", "gold, links above 0.01"]


def test_what_was_scored_before_is_not_taken_for_what_is_asked(swept: Path, here: Path, capfd: Capture) -> None:
    """Neither the scores of an earlier state, nor those of another text that has the same name."""
    line = [f"runs={here / 'runs'}", f"output={here / 'out'}", "evaluate=false", *QUICK]
    for name in ("bahdanau-1", "none-1"):
        copied(swept / name, here / "runs")
    run = Run(here / "runs" / "none-1")
    run.keep_history([*run.history(), {**run.history()[-1], "step": 10_000, "best": 1.0}])
    assert call("compare", *line) == 1
    assert re.search(
        r"left out: none-1: on test its scores are from step \d+, but the best step is", capfd.readouterr().err
    )
    other = [f"source={write_lines(here / 'test', ['eins'])}", f"reference={write_lines(here / 'other', ['one'])}"]
    assert call("compare", *line, *other) == 1
    assert re.search(r"left out: bahdanau-1: on test-\w{6} it has no scores", capfd.readouterr().err)


@pytest.mark.parametrize(
    "spoilt", ["[{", "[{}]", '[{"line": 1, "source": ["a"], "target": ["b"], "weights": [[1, 2]]}]']
)
def test_damaged_weights_are_named(spoilt: str, swept: Path, here: Path, capfd: Capture) -> None:
    run = copied(swept / "bahdanau-1", here)
    (run / "evaluation" / "test" / "attention.json").write_text(spoilt, encoding="utf-8")
    assert call("compare", f"runs=[{run},{swept / 'none-1'}]", f"output={here / 'out'}", *QUICK) == 1
    err = capfd.readouterr().err
    assert "left out: bahdanau-1: " in err
    assert "attention.json is damaged" in err


def test_runs_without_a_test_set_say_so(swept: Path, here: Path, capfd: Capture) -> None:
    run = copied(swept / "none-1", here)
    shutil.rmtree(run / "evaluation")
    facts = json.loads((run / "run.json").read_text(encoding="utf-8"))
    del facts["text"]["test"]
    (run / "run.json").write_text(json.dumps(facts), encoding="utf-8")
    assert call("compare", f"runs={run}", *QUICK) == 1
    assert "its data set has no test split. Give split=valid" in capfd.readouterr().err
