"""The sentences that the page offers, and the names of models."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.build.open import TranslatorRequest
from nmt.build.requests import read
from nmt.config.composition import compose
from nmt.data.languages import sample
from nmt.runs.run import EXAMPLE_FOLLOWS, Run
from nmt.serve.description import labels
from nmt.serve.first_sentences import first_sentences
from nmt.serve.server import names
from nmt.text.known_words import KnownWords, load_known_words


def offer(run: Run, words: KnownWords | None = None) -> list[str]:
    """The sentences that are offered."""
    config = compose("translate", ["device=cpu", "threads=1"])
    config.run = [str(run.folder)]
    return first_sentences(run, read(TranslatorRequest, config).open(), words)


def example(run: Run) -> str:
    """The first of them, for a run that kept none."""
    run.note(examples=[])
    return next(iter(offer(run)), "")


def test_ids_of_runs_have_as_many_folders_as_tell_them_apart(tmp_path: Path) -> None:
    runs = [Run(tmp_path / path) for path in ("a/x/demo", "b/x/demo", "b/y/other")]
    assert names(runs[1:]) == ["demo", "other"]
    assert names(runs) == ["a/x/demo", "b/x/demo", "other"]
    assert names([runs[0], runs[0]]) == ["demo 1", "demo 2"]
    assert len({*names([runs[0], runs[0], Run(tmp_path / "demo 2")])}) == 3
    assert names([Run(Path("/x/demo")), Run(Path("/demo"))]) == ["x/demo", "/demo"]


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of a run that has never been evaluated."""
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    shutil.rmtree(folder / "evaluation", ignore_errors=True)
    return Run(folder)


def test_a_run_that_was_never_evaluated_opens_with_a_sentence_of_its_validation_set(run: Run, text: Path) -> None:
    offered = offer(run)
    assert len(offered) == 3
    assert {*offered} <= {*(text / "valid.de").read_text("utf-8").splitlines()}
    assert example(run) in (text / "valid.de").read_text("utf-8").splitlines()


def test_sentences_are_short_known_and_well_translated(run: Run) -> None:
    """Those of the validation set come first, then those of an evaluation."""
    offered = [["eins zwei drei", "one two three"], ["rot blau haus", "one one one"], ["eins zwei drei Katze", "x"],
               ["eins zwei", "one two"], [" ".join(["eins"] * 10), "one"],
               ["null eins zwei drei", "zero one two three"], ["vier fünf sechs", "four five six"]]  # fmt: skip
    run.note(examples=offered)
    words = load_known_words(run.words)
    assert words is not None
    assert {*offer(run, words)} == {"null eins zwei drei", "vier fünf sechs", "eins zwei drei"}
    assert "eins zwei drei Katze" in offer(run, KnownWords.of(["eins zwei drei Katze"]))
    run.note(examples=[])
    folder = run.folder / "evaluation" / "test"
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text("{}", "utf-8")
    (folder / "source.txt").write_text("kurz\nsechs fünf vier\n", "utf-8")
    (folder / "reference.txt").write_text("short\nsix five four\n", "utf-8")
    assert offer(run) == ["sechs fünf vier"]


def test_models_are_named_by_what_differs(run: Run, trained: Path, transformer: Path, tmp_path: Path) -> None:
    other = Run(Path(shutil.copytree(trained, tmp_path / "other")))
    config = other.config()
    config.seed = 7
    other.write_config(config)
    assert labels([run], ["a"]) == ["a"]
    assert labels([run, other], ["a", "b"]) == ["seed 1", "seed 7"]
    assert labels([run, Run(trained)], ["a", "b"]) == ["a", "b"]
    assert labels([run, Run(transformer)], ["a", "b"]) == [
        "bahdanau additive gru",
        "transformer scaled_dot",
    ]
    three = labels([run, other, Run(transformer)], ["a", "b", "c"])
    assert three[0] != three[1]


def test_the_last_training_counts_and_numbers_of_links_are_taken_off(run: Run) -> None:
    lines = [EXAMPLE_FOLLOWS, "  eins[1] zwei", "  one[1] two", EXAMPLE_FOLLOWS, "  a[0][12] [3] b", "  x"]
    (run.folder / "train.log").write_text("\n".join(["filler" * 9] * 2000 + lines), "utf-8")
    assert example(run) == "a[0] [3] b"


@pytest.mark.parametrize("log", [None, "", EXAMPLE_FOLLOWS, f"{EXAMPLE_FOLLOWS}\n  {'long ' * 99}\n"])
def test_a_run_without_a_sentence_opens_with_a_date(run: Run, log: str | None) -> None:
    path = run.folder / "train.log"
    path.unlink() if log is None else path.write_text(log, "utf-8")
    assert example(run) == "Mittwoch, 28. September 2011"
    facts = json.loads((run.folder / "run.json").read_text("utf-8"))
    (run.folder / "run.json").write_text(json.dumps({**facts, "languages": ["source", "target"]}), "utf-8")
    assert example(run) == ""


def test_no_link_leads_out_of_the_run(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{EXAMPLE_FOLLOWS}\n  a secret sentence\n  x\n", "utf-8")
    (run.folder / "train.log").unlink()
    (run.folder / "train.log").symlink_to(secret)
    monkeypatch.setattr(Run, "check", lambda _: None)  # as if the link had been made after the check of the folder
    assert example(run) == "Mittwoch, 28. September 2011"


def test_a_date_in_a_language() -> None:
    assert sample("pt-BR") == "quarta-feira, 28 de setembro de 2011"
    assert sample("ja") == "2011年9月28日水曜日"
    assert (sample("xx"), sample("source"), sample("../de")) == ("", "", "")
