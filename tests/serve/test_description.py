"""The sentence that the page opens with."""

import json
import shutil
from pathlib import Path

import pytest

from nmt.data.languages import sample
from nmt.runs.run import EXAMPLE_FOLLOWS, Run
from nmt.serve.first_sentences import first_sentences


def example(run: Run, words: KnownWords | None = None) -> str:
    """The first sentence that is offered."""
    translator = read(TranslatorRequest, composed(run)).open()
    return next(iter(first_sentences(run, translator, words)), "")


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Run:
    """A copy of a run that has never been evaluated."""
    folder = Path(shutil.copytree(trained, tmp_path / "run"))
    shutil.rmtree(folder / "evaluation", ignore_errors=True)
    return Run(folder)


def test_a_run_that_was_never_evaluated_opens_with_a_sentence_of_its_validation_set(run: Run, text: Path) -> None:
    assert example(run) in (text / "valid.de").read_text("utf-8").splitlines()


def test_the_evaluation_comes_before_the_validation_set(run: Run) -> None:
    folder = run.folder / "evaluation" / "test"
    folder.mkdir(parents=True)
    (folder / "scores.json").write_text("{}", "utf-8")
    (folder / "source.txt").write_text("kurz\nein Satz mit Wörtern\n", "utf-8")
    assert example(run) == "ein Satz mit Wörtern"


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


def test_no_link_leads_out_of_the_run(run: Run, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text(f"{EXAMPLE_FOLLOWS}\n  a secret sentence\n  x\n", "utf-8")
    (run.folder / "train.log").unlink()
    (run.folder / "train.log").symlink_to(secret)
    run._is_checked = True  # as if the link had been made after the check of the folder
    assert example(run) == "Mittwoch, 28. September 2011"


def test_a_date_in_a_language() -> None:
    assert sample("pt-BR") == "quarta-feira, 28 de setembro de 2011"
    assert sample("ja") == "2011年9月28日水曜日"
    assert (sample("xx"), sample("source"), sample("../de")) == ("", "", "")
