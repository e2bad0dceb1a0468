"""Records of runs: what is in them, comparing them, and damage."""

import json
import re
import shutil
from pathlib import Path

import pytest

from nmt.data.lines import read_lines
from nmt.runs.records import record
from nmt.runs.run import Run
from tests.compare.test_command import report
from tests.small import QUICK, SMALL, Capture, call, copied, pairs, snapshot, write_lines

pytestmark = pytest.mark.long


def test_records_compare_like_the_runs(swept: Path, here: Path, capfd: Capture) -> None:
    line = [f"runs={swept}", f"output={here / 'first'}", f"records={here / 'records'}"]
    assert call("compare", *line, "baseline=none", *QUICK) == 0
    record = here / "records" / "none-1"
    assert sorted(str(path.relative_to(record)) for path in record.rglob("*") if path.is_file()) == [
        "config.yaml",
        "evaluation/test/hypotheses.txt",
        "evaluation/test/reference.txt",
        "evaluation/test/references.json",
        "evaluation/test/scores.json",
        "evaluation/test/sentences.json",
        "evaluation/test/source.txt",
        "evaluation/test/words.json",
        "history.jsonl",
        "run.json",
    ]
    assert (here / "records" / "bahdanau-1" / "evaluation" / "test" / "attention.json").is_file()
    assert sum(path.stat().st_size for path in record.rglob("*") if path.is_file()) < 50_000
    for path in (here / "records").rglob("*"):
        if path.is_file():
            assert str(swept.parent) not in path.read_text(encoding="utf-8"), "no places of one machine"
    capfd.readouterr()
    line = [f"runs={here / 'records'}", f"output={here / 'second'}"]
    assert call("compare", *line, "baseline=none", *QUICK) == 0
    assert capfd.readouterr().err == ""
    assert report(here / "second") == report(here / "first")
    assert report(here / "second")["baseline"] == "no attention"
    # What it lacks cannot be had from a record.
    shutil.rmtree(record / "evaluation")
    assert call("compare", *line, *QUICK) == 1
    out, err = capfd.readouterr()
    assert "left out: none-1: on test it has no scores" in err
    assert "a record has no weights" in err
    assert "left out: none-1" in out


def test_a_record_is_not_written_over_itself(swept: Path, here: Path, capfd: Capture) -> None:
    for name in ("bahdanau-1", "none-1"):
        record(Run(swept / name), here / "records" / name)
    before = snapshot(here)
    line = [f"runs={here / 'records'}", f"records={here / 'records'}", f"output={here / 'out'}"]
    assert call("compare", *line, *QUICK) == 1
    assert "bahdanau-1, which is being compared" in capfd.readouterr().err
    assert snapshot(here) == before


def test_records_without_the_text_compare_like_the_runs(swept: Path, here: Path, capfd: Capture) -> None:
    line = [f"runs={swept}", f"output={here / 'first'}", f"records={here / 'records'}"]
    assert call("compare", *line, *QUICK) == 0, "a record that has the text,"
    assert call("compare", *line, "record_text=none", *QUICK) == 0, "and then no longer"
    split = here / "records" / "bahdanau-1" / "evaluation" / "test"
    assert sorted(path.name for path in split.iterdir()) == ["counts.npz", "hypotheses.txt", "scores.json"]
    sources, references = zip(*pairs(340)[320:], strict=True)
    kept = [path.read_text("utf-8") for path in (here / "records").rglob("*.*") if path.suffix not in (".npz", ".txt")]
    told = [re.sub(r"\W+", " ", text) for text in kept]
    assert not any(" " in sentence and f" {sentence} " in text for sentence in (*sources, *references) for text in told)
    # The few whose weights are shown may stay, in lists of words.
    assert call("compare", *line, "record_text=shown", *QUICK) == 0
    assert sorted(path.name for path in split.iterdir()) == [
        *("attention.json", "counts.npz", "hypotheses.txt", "scores.json")
    ]
    capfd.readouterr()
    line = [f"runs={here / 'records'}", f"output={here / 'second'}"]
    assert call("compare", *line, *QUICK) == 0
    assert capfd.readouterr().err == ""
    assert report(here / "second") == report(here / "first")
    text = (here / "second" / "report.md").read_text(encoding="utf-8")
    assert "reference" not in text.split("differ most")[1].split("## ")[0]
    assert "need the text, which these records leave out" in text
    # Counts of other sentences do not give the score that is written beside them.
    other = here / "records" / "none-1" / "evaluation" / "test" / "counts.npz"
    shutil.copy(other, split / "counts.npz")
    assert call("compare", *line, *QUICK) == 1
    assert "left out: bahdanau-1: the translations have BLEU" in capfd.readouterr().err
    other.write_bytes(b"PK\x03\x04 not a table")
    assert call("compare", *line, *QUICK) == 1
    assert "left out: none-1: " in (err := capfd.readouterr().err)
    assert "counts.npz is damaged" in err


def test_a_record_without_text_has_the_splits_that_were_compared(swept: Path, here: Path) -> None:
    text = [f"{name}={swept}/none-1/evaluation/test/{name}.txt" for name in ("source", "reference")]
    runs = ",".join(str(copied(swept / name, here / "runs")) for name in ("none-1", "bahdanau-1"))
    line = [f"runs=[{runs}]", f"output={here / 'first'}", f"records={here / 'records'}", *text]
    assert call("compare", *line, "record_text=none", *QUICK) == 0
    assert len(Run(here / "records" / "none-1").splits()) == 1
    assert call("compare", f"runs={here / 'records'}", f"output={here / 'second'}", *QUICK) == 0


def test_a_run_on_text_with_documents_is_compared_with_itself_without_context(here: Path, capfd: Capture) -> None:
    line = [*SMALL, "data=documents", "context.sentences=1", "name=x", f"checkpoints={here}", "trainer.steps=1"]
    line += [f"cache={here / 'cache'}", "data.train_documents=26", "data.valid_documents=2", "data.test_documents=2"]
    assert call("train", *line) == 0
    assert call("compare", f"runs=[{here / 'x'}]", f"output={here / 'first'}", f"records={here / 'a'}", *QUICK) == 0
    write_lines(here / "theirs", read_lines(here / "a" / "x" / "evaluation" / "test" / "hypotheses.txt"))
    line = [f"runs=[{here / 'a'}]", "systems={them: theirs}", f"output={here / 'second'}", *QUICK]
    assert call("compare", *line) == 0
    assert call("evaluate", f"run={here / 'x'}", "split=test", "context_sentences=0", "pictures=0") == 0
    shutil.copytree(here / "x", here / "y")
    capfd.readouterr()
    assert call("compare", f"runs=[{here / 'a'},{here / 'y'}]", f"output={here / 'third'}", *QUICK) == 0
    assert "another search on test: best weights, own search, context_sentences=0" in capfd.readouterr().out


def test_a_record_loses_what_its_run_has_no_longer(swept: Path, here: Path) -> None:
    run, copy = Run(copied(swept / "bahdanau-1", here / "runs")), Run(here / "record")
    shutil.copytree(run.evaluation / "test", run.evaluation / "more")
    (run.alignments).mkdir()
    (run.alignments / "gold-1.json").write_text("{}", encoding="utf-8")
    record(run, copy.folder)
    assert copy.splits() == ["more", "test"]
    own = copy.folder / "evaluation" / "more" / "notes.txt"
    own.write_text("of somebody", encoding="utf-8")
    shutil.rmtree(run.evaluation / "more")
    shutil.rmtree(run.alignments)
    record(run, copy.folder)
    assert copy.splits() == ["test"]
    assert list(copy.alignments.iterdir()) == []
    assert own.exists(), "what no record holds is not its own to delete"


DAMAGE = [
    ("config.yaml", "seed: 1", "seed: abc"),
    ("config.yaml", "seed: 1", "seed: null"),
    ("config.yaml", "search:\n", "search: null\nlost:\n"),
    ("config.yaml", "decoder:\n", "decoder: null\nlost:\n"),
    ("evaluation/test/scores.json", '"search": {', '"search": null, "lost": {'),
    ("evaluation/test/scores.json", '"runs": [', '"runs": 3, "lost": ['),
    ("evaluation/test/scores.json", '"value": ', '"value": NaN, "lost": '),
    ("history.jsonl", '"step": ', '"step": "a", "lost": '),
    ("history.jsonl", '"valid_bleu": ', '"valid_bleu": null, "lost": '),
    ("alignments/gold-1.json", '"attention": "attention, shift 0"', '"attention": "attention, shift 2"'),
    ("alignments/gold-1.json", '"pairs": 1', '"pairs": Infinity'),
]


@pytest.mark.parametrize(("name", "before", "after"), DAMAGE, ids=lambda value: value[:12])
def test_a_damaged_record_is_named_and_the_others_are_compared(
    name: str, before: str, after: str, swept: Path, here: Path, capfd: Capture
) -> None:
    for run in ("bahdanau-1", "bahdanau-2", "none-1"):
        record(Run(swept / run), here / "records" / run)
    kept = {"gold": "gold", "pairs": 1, "checkpoint": "last", "step": None, "attention": "attention, shift 0"}
    kept |= {"shift_from": "set", "rates": {"attention, shift 0": {"aer": 0.5}}}
    (here / "records" / "bahdanau-1" / "alignments").mkdir()
    (here / "records" / "bahdanau-1" / "alignments" / "gold-1.json").write_text(json.dumps(kept), encoding="utf-8")
    path = here / "records" / "bahdanau-1" / name
    content = path.read_text(encoding="utf-8")
    assert before in content
    path.write_text(content.replace(before, after, 1), encoding="utf-8")
    assert call("compare", f"runs={here / 'records'}", f"output={here / 'out'}", *QUICK) == 1
    err = capfd.readouterr().err
    assert "left out: bahdanau-1: " in err
    assert "damaged" in err
    assert [own["label"] for own in report(here / "out")["variants"]] == ["bahdanau", "no attention"]


def test_a_finished_run_without_its_history_is_named(swept: Path, here: Path, capfd: Capture) -> None:
    for run in ("bahdanau-1", "none-1"):
        record(Run(swept / run), here / "records" / run)
    (here / "records" / "none-1" / "history.jsonl").unlink()
    assert call("compare", f"runs={here / 'records'}", f"output={here / 'out'}", *QUICK) == 1
    assert re.search(r"left out: none-1: .*history\.jsonl is missing", capfd.readouterr().err)


def test_a_record_without_text_has_no_examples(swept: Path, here: Path) -> None:
    run = Run(copied(swept / "bahdanau-1", here / "runs"))
    run.note(examples=[["eins zwei drei", "one two three"]])
    for text in (True, False):
        record(run, here / "record", text=text)
        assert ("examples" in Run(here / "record").facts()) == text
