"""Scores of test splits and of files, and what lies beside them."""

import json
import math
import re
import shutil
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from nmt.data.dataset import Split
from nmt.runs.run import Run
from nmt.runs.versions import code_revision
from tests.small import Capture, call, copied, pairs, snapshot, weights, words, write_lines


def scores(folder: Path) -> dict[str, Any]:
    """scores.json, read by a reader that takes no NaN."""

    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is no JSON")

    found: dict[str, object] = json.loads((folder / "scores.json").read_text(encoding="utf-8"), parse_constant=refuse)
    return found


@pytest.fixture(scope="module")
def several(text: Path, trained: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the trained run whose data set names two test splits, one with an empty line."""
    folder = tmp_path_factory.mktemp("several")
    rows = pairs(6)
    write_lines(folder / "easy.de", [*(source for source, _ in rows), ""])
    write_lines(folder / "easy.en", [*(target for _, target in rows), "nothing"])
    run = Run(copied(trained, folder))
    config = run.config()
    config.data.test = [str(text / "test"), str(folder / "easy")]
    run.write_config(config)
    return run.folder


def test_every_test_split_is_scored(several: Path, here: Path, capfd: Capture) -> None:
    before = {path: data for path, data in snapshot(several).items() if not path.startswith("evaluation")}
    assert call("evaluate", f"run={several}", "pictures=1", "lines=[3]") == 0
    out, err = capfd.readouterr()
    for split, count in (("test", 20), ("easy", 7)):
        folder = several / "evaluation" / split
        assert sorted(path.name for path in folder.iterdir()) == [
            "alignments.pharaoh",
            "attention.json",
            "heatmaps",
            "hypotheses.txt",
            "reference.txt",
            "references.json",
            "report.html",
            "scores.json",
            "sentences.json",
            "source.txt",
            "words.json",
        ]
        for name in ("hypotheses.txt", "alignments.pharaoh"):
            assert (folder / name).read_text(encoding="utf-8").count("\n") == count
        pictures = sorted(path.name for path in (folder / "heatmaps").iterdir())
        assert pictures == ["0001-subword.png", "0001-word.png", "0003-subword.png", "0003-word.png"]
        known = scores(folder)
        assert known["split"] == split
        assert split in out
        assert f"Translating {split}: {count} sentences" in err
    assert str(several / "evaluation") in out
    for word in ("BLEU", "chrF", "TER", "tok:13a", "version:"):
        assert word in out
    assert list(here.iterdir()) == []
    after = {path: data for path, data in snapshot(several).items() if not path.startswith("evaluation")}
    assert after == before


def test_words_and_references_are_saved_for_comparisons(trained: Path, text: Path, here: Path) -> None:
    assert call("evaluate", f"run={trained}", f"output={here / 'out'}", "pictures=0") == 0
    folder = here / "out" / "test"
    known = json.loads((folder / "words.json").read_text(encoding="utf-8"))
    for side, language in (("source", "de"), ("target", "en")):
        training = Counter((text / f"train.{language}").read_text(encoding="utf-8").split())
        tested = (text / f"test.{language}").read_text(encoding="utf-8").split()
        assert set(tested) <= known[side].keys()
        assert {word: times for word, (times, _) in known[side].items()} == {
            word: training[word] for word in known[side]
        }
        assert all(pieces >= 1 for _, pieces in known[side].values())
    rows = json.loads((folder / "references.json").read_text(encoding="utf-8"))
    references = (text / "test.en").read_text(encoding="utf-8").splitlines()
    assert [row["line"] for row in rows] == list(range(1, len(references) + 1))
    for row, reference in zip(rows, references, strict=True):
        assert len(row["log_probs"]) == len(reference.split())
        assert len(row["best"]) == len(row["right"]) > len(row["log_probs"])
        assert row["links"]
    # Of other text, the training counts are not known.
    source = write_lines(here / "in.de", ["eins"])
    words_ = [f"source={source}", f"reference={source}", f"output={here / 'other'}", "pictures=0"]
    assert call("evaluate", f"run={trained}", *words_) == 0
    (path,) = (here / "other").glob("*/words.json")
    assert json.loads(path.read_text(encoding="utf-8"))["source"]["eins"][0] is None


def test_a_lost_training_text_is_a_warning(trained: Path, text: Path, here: Path, capfd: Capture) -> None:
    moved = Path(shutil.copytree(text, here / "text"))
    run = Run(copied(trained, here / "runs"))
    config = run.config()
    for name in ("train", "valid", "test"):
        config.data[name] = [str(moved / name)] if name == "test" else str(moved / name)
    run.write_config(config)
    write_lines(moved / "train.de", ["etwas anderes"])
    write_lines(moved / "train.en", ["something else"])
    assert call("evaluate", f"run={run.folder}", "data=run", "pictures=0") == 0
    err = capfd.readouterr().err
    assert "warning: words are not counted in the training text: The text of train has changed" in err
    known = json.loads((run.evaluation / "test" / "words.json").read_text(encoding="utf-8"))
    assert {times for times, _ in known["target"].values()} == {None}


def sides(folder: Path) -> tuple[list[str], list[str]]:
    """Source and reference as they lie beside the scores."""
    source, reference = (folder / name for name in ("source.txt", "reference.txt"))
    lines = [path.read_text(encoding="utf-8").split("\n")[:-1] for path in (source, reference)]
    return lines[0], lines[1]


def test_the_scores_name_where_they_come_from(several: Path, here: Path) -> None:
    assert (
        call(
            "evaluate",
            f"run={several}",
            "split=easy",
            "pictures=0",
            f"output={here}",
            "search.beam_size=3",
            "length_ratio=1.5",
        )
        == 0
    )
    known = scores(here / "easy")
    provenance = known["provenance"]
    assert isinstance(provenance, dict)
    assert provenance["runs"] == [str(several)]
    assert provenance["search"] == {
        "name": "beam",
        "beam_size": 3,
        "nbest": 1,
        "length_penalty": 1.0,
        "coverage_penalty": 0.0,
    }
    best = [entry["step"] for entry in Run(several).history() if entry["best"]][-1]
    assert (provenance["checkpoint"], provenance["step"]) == ("best", best)
    assert provenance["versions"]["sacrebleu"]
    assert provenance["settings"] == {"length_ratio": 1.5}
    assert provenance["code"] == code_revision()
    assert provenance["model"]["encoder"]["size"] == 16
    assert len(provenance["tokenizer"]) > 64
    assert provenance["text"] == Split("easy", *sides(here / "easy")).fingerprint()
    measured = known["measured"]
    assert isinstance(measured, dict)
    assert 1 < measured["perplexity"] < 2, "it has learnt the language"
    assert 0 < measured["attention_entropy"] < math.log(12)
    assert measured["hidden_share"] == 0, "no window hides anything"
    assert measured["forced_sentences"] == 6, "the empty line is not decoded by force"
    assert measured["parameters"] == sum(tensor.numel() for tensor in weights(several / "best.safetensors").values())
    assert measured["sentences_per_second"] == pytest.approx(7 / measured["seconds"])
    assert (measured["device"], measured["threads"] > 0) == ("cpu", True)
    text = json.dumps(known)
    assert re.search(r"nrefs:1\|case:mixed\|eff:no\|tok:13a\|smooth:exp\|version:", text)
    assert sorted(path.name for path in here.iterdir()) == ["easy"]


def test_files_of_ones_own_are_scored(trained: Path, here: Path, capfd: Capture) -> None:
    rows = [pair for pair in pairs(40) if len(pair[0].split()) > 3]  # learnt, and long enough for BLEU
    source = write_lines(here / "mine.de", [source for source, _ in rows])
    reference = write_lines(here / "mine.en", [target for _, target in rows])
    files = [f"source={source}", f"reference={reference}"]
    assert call("evaluate", f"run={trained}", *files, f"output={here / 'scores'}", "pictures=0") == 0
    out = capfd.readouterr().out
    assert "100.0" in out
    (folder,) = (here / "scores").iterdir()
    assert re.fullmatch(r"mine\.de-\w{6}", folder.name), "a name that no other text has"
    hypotheses = (folder / "hypotheses.txt").read_text(encoding="utf-8")
    assert hypotheses == reference.read_text(encoding="utf-8")


def test_files_do_not_take_the_place_of_a_split(several: Path, here: Path) -> None:
    run = copied(several, here)
    source, reference = write_lines(here / "test", ["eins"]), write_lines(here / "test.en", ["one"])
    files = [f"source={source}", f"reference={reference}"]
    assert call("evaluate", f"run={run}", "split=easy", "pictures=0") == 0
    assert call("evaluate", f"run={run}", *files, "pictures=0") == 0
    assert (run / "evaluation" / "easy" / "hypotheses.txt").read_text(encoding="utf-8").count("\n") == 7


def test_the_validation_set_can_be_scored(trained: Path, here: Path) -> None:
    assert call("evaluate", f"run={trained}", "split=valid", f"output={here}", "pictures=0", "search=greedy") == 0
    assert (here / "valid" / "hypotheses.txt").read_text(encoding="utf-8").count("\n") == 20


def test_a_run_without_attention_has_scores_and_no_pictures(unattentive: Path, here: Path, capfd: Capture) -> None:
    assert call("evaluate", f"run={unattentive}", f"output={here}", "extra_length=3") == 0
    assert "decoder=none" in capfd.readouterr().out
    assert not (here / "test" / "heatmaps").exists()
    assert not (here / "test" / "alignments.pharaoh").exists()
    assert scores(here / "test")["by_length"]["bins"]


def test_an_ensemble_has_a_folder_of_its_own(trained: Path, here: Path) -> None:
    runs = [copied(trained, here / name) for name in ("a", "b")]
    assert call("evaluate", f"run=[{runs[0]},{runs[1]}]", "pictures=0") == 0
    assert not (runs[0] / "evaluation").exists()
    provenance = scores(runs[0] / "evaluation-with-numbers" / "test")["provenance"]
    assert isinstance(provenance, dict)
    assert provenance["runs"] == [str(run) for run in runs]


def test_gold_links_are_compared_with_the_attention(here: Path, capfd: Capture) -> None:
    line = ["data.train_pairs=60", "data.valid_pairs=5", "data.test_pairs=6", "trainer.epochs=null", "trainer.steps=2"]
    line += ["tokenizer.vocabulary_size=400", "trainer.tensorboard=false", "threads=1", "device=cpu"]
    sizes = ["model.embedding_size=16", "encoder.size=8", "decoder.size=16", "attention.size=8"]
    assert call("train", *line, *sizes, "name=a", f"checkpoints={here}", f"cache={here / 'cache'}") == 0
    assert call("evaluate", f"run={here / 'a'}", "pictures=0", "extra_length=2", "length_ratio=1") == 0
    assert "alignment error rate against the gold links" in capfd.readouterr().out
    alignment = scores(here / "a" / "evaluation" / "test")["alignment"]
    assert isinstance(alignment, dict)
    read_result = pytest.importorskip("nmt.compare.reader").read_result
    ((key, evaluated),) = read_result("a", Run(here / "a"), None).aligned.items()
    assert (evaluated.gold, evaluated.pairs, evaluated.attention) == ("test", 6, "attention, shift 0")
    # `nmt.align` says the same of the same references, and chooses on the validation set's gold.
    capfd.readouterr()
    assert call("align", f"run={here / 'a'}") == 0
    out, err = capfd.readouterr()
    assert "shift=auto: on the 5 validation pairs" in err
    for shift in (0, 1):
        rate = alignment[f"shift_{shift}"]["aer"]
        assert 0 <= rate <= 1
        assert re.search(rf"^attention, shift {shift}(?: \*)? +{100 * rate:.1f} %", out, re.MULTILINE)
    ((same_key, aligned),) = read_result("a", Run(here / "a"), None).aligned.items()
    assert same_key == key
    assert aligned.shift_from == "validation"
    assert {way: aligned.rates[way] for way in evaluated.rates} == pytest.approx(evaluated.rates)
    assert aligned.rates.keys() - evaluated.rates.keys() == {"saliency"}
    assert call("align", f"run={here / 'a'}", "words=char") == 1
    assert "count words between white space" in capfd.readouterr().err


def test_a_data_set_without_tests_says_what_to_give(text: Path, trained: Path, here: Path, capfd: Capture) -> None:
    run = Run(copied(trained, here))
    config = run.config()
    config.data.test = None
    run.write_config(config)
    assert call("evaluate", f"run={run.folder}") == 1
    assert "has no test split. Give split=valid, or source=FILE reference=FILE" in capfd.readouterr().err
    assert call("evaluate", f"run={run.folder}", "split=test") == 1
    assert "has no split 'test'; it has train, valid." in capfd.readouterr().err
    line = [word for word in words(text, here, "name=b", "trainer.steps=1") if not word.startswith("data.test")]
    assert call("train", *line) == 0
    assert call("evaluate", f"run={here / 'b'}", "split=valid", "pictures=0", "extra_length=2") == 0


def test_sentences_in_a_legacy_encoding(trained: Path, here: Path) -> None:
    for name, text in (("source", "fünf zwei\neins\n"), ("reference", "five two\none\n")):
        (here / name).write_bytes(text.encode("cp1252"))
    words = [
        f"run={trained}",
        f"source={here / 'source'}",
        f"reference={here / 'reference'}",
        f"output={here / 'scores'}",
    ]
    assert call("evaluate", *words, "encoding=cp1252", "pictures=0", "device=cpu", "threads=1") == 0
    (folder,) = (here / "scores").iterdir()
    assert (folder / "source.txt").read_text(encoding="utf-8") == "fünf zwei\neins\n"
