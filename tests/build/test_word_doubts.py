"""`doubt.json` of a run: fitted at the end of training or by evaluating, checked like other facts, used everywhere."""

import json
import math
import re
from pathlib import Path
from typing import Any

import pytest

import nmt
from nmt.build.approximations import measured
from nmt.build.head_choice import choose_for_tags
from nmt.build.open import open_linker, open_run
from nmt.build.word_doubts import open_doubts
from nmt.inspection import doubt as inspection
from nmt.inspection.doubt import OF_ATTENTION, OF_PIECES
from nmt.runs.run import Run
from nmt.system.compute import CPU
from nmt.system.errors import UserError
from tests.small import Capture, call, copied, pairs, refusal, write_lines
from tests.translate.test_translate import translate

ROWS = pairs(340)[300:320]
LINES = ["eins zwei zwei", "", "rot und blau haus"]


def write_doubts(run: Path, weights: dict[str, float], intercept: float = 0.0) -> Path:
    """A `doubt.json` with these weights, of the features that the run has, and 0 for the others."""
    has = open_run(run).config.choices.decoder != "none"
    names = OF_PIECES + OF_ATTENTION * has
    facts: dict[str, Any] = {"step": Run(run).best_step(), "sentences": 1, "intercept": intercept}
    facts["features"] = {name: [0.0, 1.0, weights.get(name, 0.0)] for name in names}
    facts["evidence"] = {"words": 0, "right": 0.0, "auc": None, "calibration": []}
    Run(run).write("doubt.json", json.dumps(facts))
    return run


@pytest.fixture
def doubting(trained: Path, here: Path) -> Path:
    """A run that finds only repeated words right enough."""
    return write_doubts(copied(trained, here), {"repeated": 3.0}, -1.5)


def of_python(run: Path) -> list[Any]:
    translator = nmt.load(run, "doubts=true", "device=cpu", "threads=1")
    return [each.doubt for each in translator.translate(LINES)]


def test_the_formats_say_the_same(doubting: Path, here: Path, capfd: Capture) -> None:
    found = of_python(doubting)
    plain = translate(doubting, LINES, here)
    first, empty, third = (json.loads(line) for line in translate(doubting, LINES, here, "format=jsonl", "doubts=true"))
    assert empty["doubt"] is found[1] is None
    assert [first["doubt"], third["doubt"]] == [found[0].as_json(), found[2].as_json()]
    assert len(first["doubt"]["confidence"]) == len(plain[0].split())
    tsv = [line.split("\t") for line in translate(doubting, LINES, here, "format=tsv", "doubts=true")]
    assert [len(columns) for columns in tsv] == [10] * 3
    assert [float(value) for value in tsv[0][6].split()] == first["doubt"]["confidence"]
    assert [float(tsv[0][7]), int(tsv[0][8])] == [first["doubt"]["mean"], first["doubt"]["weakest"]]
    assert tsv[1][6:] == [""] * 4
    documents = [json.loads(line) for line in translate(doubting, LINES, here, "format=json", "doubts=true")]
    assert [each["hypotheses"][0]["doubt"] for each in documents] == [first["doubt"], None, third["doubt"]]
    (asked,) = translate(doubting, LINES[:1], here, "format=json", "include=[doubt]")
    assert json.loads(asked)["hypotheses"][0]["doubt"] == first["doubt"]
    capfd.readouterr()
    marked = translate(doubting, LINES, here, "doubts=true")
    assert "Words in [? ] are more likely wrong than right." in capfd.readouterr().err
    assert [re.sub(r"\[\?(\S+?)\]", r"\1", line) for line in marked] == plain, "marks change nothing else"
    for line, doubt in zip(marked, found, strict=True):
        numbers = [at for at, word in enumerate(line.split()) if word.startswith("[?")]
        assert numbers == ([] if doubt is None else doubt.doubtful)
    assert any("[?" in line for line in marked)
    assert not all("[?" in word for line in marked for word in line.split())


def test_the_page_is_whole_and_runs_nothing(trained: Path, here: Path) -> None:
    """Whatever the text says: every word is doubtful here."""
    run = write_doubts(copied(trained, here), {}, -1.0)
    lines = ["eins <b> & zwei", "", "drei"]
    page = translate(run, lines, here, "format=html", "doubts=true")
    assert len(page) == 3
    assert page[0].startswith('<!DOCTYPE html><meta charset="utf-8">')
    assert [line.count('<p dir="auto">') for line in page] == [1, 1, 1]
    texts = [each.text for each in nmt.load(run, "device=cpu").translate(lines)]
    assert page[2] == "".join(
        ['<p dir="auto">', " ".join(f'<u title="more likely wrong than right">{word}<sup>?</sup></u>'
                                    for word in texts[2].split())]
    )  # fmt: skip
    assert "<b>" not in page[0]


def test_a_model_without_attention_has_doubts_by_its_probabilities(unattentive: Path, here: Path) -> None:
    run = write_doubts(copied(unattentive, here), {"lowest": 1.0}, 2.0)
    record = json.loads(translate(run, ["eins"], here, "format=jsonl", "doubts=true")[0])
    assert record["links"] is None
    assert record["doubt"]["unattended"] == []
    assert all(0 <= value <= 1 for value in record["doubt"]["confidence"])


def test_training_ends_with_doubts_fitted_on_its_validation_set(
    run: Path, here: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "LEAST", 1)
    sources = [row[0] for row in ROWS]
    references = [row[1].replace("one", "eleven").replace("red", "green") for row in ROWS]
    lines = measured(Run(run), CPU, sources, references, "en")
    assert lines[-1].startswith("Doubts are fitted on 20 validation sentences: ")
    model = open_doubts(open_run(run))
    assert model is not None
    assert tuple(model.features) == OF_PIECES + OF_ATTENTION
    assert model.evidence.words == sum(
        len(each.text.split()) for each in nmt.load(run, "device=cpu").translate(sources)
    )
    assert "doubt.json" in json.loads((run / "checksums.json").read_text())
    monkeypatch.setattr(inspection, "LEAST", 10**6)
    (run / "doubt.json").unlink()
    assert "too few wrong or right words" in measured(Run(run), CPU, sources, references, "en")[-1]
    assert not (run / "doubt.json").exists()


def test_a_run_without_doubts_says_how_to_fit_them(
    run: Path, here: Path, capfd: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(inspection, "LEAST", 1)
    write_lines(here / "in", LINES)
    asked = f"run={run}", f"input={here / 'in'}", f"output={here / 'out'}", "doubts=true"
    message = refusal(capfd, here, "translate", *asked)
    assert f"{run} has no doubt.json of its best weights. To fit it: " in message
    assert message.rstrip().endswith(f"-m nmt.evaluate run={run} split=valid")
    assert call("evaluate", f"run={run}", "split=valid", "pictures=0", "device=cpu", "threads=1") == 0
    assert "Doubts are fitted on 20 validation sentences" in capfd.readouterr().out
    assert call("translate", *asked) == 0
    # The report of a test set has their AUC and calibration.
    assert call("evaluate", f"run={run}", "split=test", "pictures=1", "device=cpu", "threads=1") == 0
    assert re.search(r"Confidence of \d+ words, of which \d+% are right: AUC", capfd.readouterr().out)
    scores = Run(run).scores("test")["measured"]["doubt"]
    assert scores["words"] == sum(words for words, *_ in scores["calibration"]) > 0
    report = (run / "evaluation" / "test" / "report.html").read_text(encoding="utf-8")
    assert "Confidence of words" in report
    assert '"doubtful":' in report
    # Weights that were trained on are others.
    facts = json.loads((run / "doubt.json").read_text())
    Run(run).write("doubt.json", json.dumps({**facts, "step": 1}))
    assert open_doubts(open_run(run)) is None


def _feature(facts: Any, value: Any) -> Any:
    return {**facts, "features": {**facts["features"], "lowest": value}}


@pytest.mark.parametrize(
    "change",
    [
        lambda facts: [],
        lambda facts: {**facts, "intercept": "0"},
        lambda facts: {**facts, "intercept": 1e300},
        lambda facts: {**facts, "features": {}},
        lambda facts: {**facts, "features": {"lowest": [0, 1, 0]}},
        lambda facts: _feature(facts, [0, 0, 1]),
        lambda facts: _feature(facts, [0, 1]),
        lambda facts: _feature(facts, [0, True, 1]),
        lambda facts: _feature(facts, [math.nan, 1, 1]),
        lambda facts: {**facts, "evidence": {}},
        lambda facts: {**facts, "evidence": {**facts["evidence"], "calibration": [[1, 2, 3]]}},
        lambda facts: {key: value for key, value in facts.items() if key != "step"},
    ],
)
def test_other_types_and_ranges_are_damage(change: Any, doubting: Path) -> None:
    facts = json.loads((doubting / "doubt.json").read_text())
    Run(doubting).write("doubt.json", json.dumps(change(facts)))
    with pytest.raises(UserError, match=r"doubt\.json is damaged"):
        open_doubts(open_run(doubting))


def test_a_changed_file_is_noticed_by_its_checksum(doubting: Path, here: Path, capfd: Capture) -> None:
    path = doubting / "doubt.json"
    path.write_text(path.read_text().replace("-1.5", "-1.6"))
    write_lines(here / "in", LINES)
    message = refusal(capfd, here, "translate", f"run={doubting}", f"input={here / 'in'}", "doubts=true")
    assert f"{path} is damaged: its checksum is not the one that it was written with" in message
    assert call("check", f"run={doubting}") == 1
    assert "is not intact: doubt.json" in capfd.readouterr().out


def test_tags_use_the_head_and_the_shift_that_were_chosen_when_training_ended(trained: Path, here: Path) -> None:
    run = copied(trained, here)
    choose_for_tags(Run(run), nmt.load(run, "device=cpu")._translator, *map(list, zip(*ROWS, strict=True)))
    opened = open_run(run)
    assert opened.facts["tags"]["step"] == opened.best_step
    translator = nmt.load(run, "device=cpu")
    assert translator._linker[:2] == (opened.facts["tags"]["head"], opened.facts["tags"]["shift"])
    assert translator._linker.lexicon is not None
    Run(run).note(tags={**opened.facts["tags"], "shift": 1})
    assert nmt.load(run, "device=cpu")._linker.shift == 1
    assert open_linker(open_run(run), translator._translator, "mean").shift == 0, "head= is set"
    Run(run).note(tags={**opened.facts["tags"], "step": 1_000_000, "shift": 1})
    assert nmt.load(run, "device=cpu")._linker.shift == 0, "it was trained on since"
    Run(run).note(tags={**opened.facts["tags"], "head": "7"})
    with pytest.raises(UserError, match="head=7 does not exist"):
        nmt.load(run, "device=cpu")
