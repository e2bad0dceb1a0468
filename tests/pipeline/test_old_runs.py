"""Runs made by earlier versions still translate, evaluate, compare and resume.

`tests/old_runs/v0.1/` was made by version 0.1 (133fe6b) on the built-in corpus, English to French, written to text
files: two runs, what that version translated of `text/test.en`, and below the figures that it gave. A version that
changes the format of a run adds a folder of its own.
"""

import json
import shlex
import shutil
from pathlib import Path

import pytest

from nmt import compat
from nmt.build import parts as build
from nmt.command.composing import compose
from nmt.command.quoting import quote
from nmt.limits import written_as
from nmt.runs import Run, settings
from tests.catalogue import thinned
from tests.pipeline.small import call

OLD_RUNS = Path(__file__).parents[1] / "old_runs"
#: What version 0.1 measured: BLEU and perplexity of the test set; validation perplexity ten updates after resuming.
FIGURES = {
    "bahdanau": {"bleu": 30.538078, "perplexity": 2.283947, "resumed": 3.545067, "steps": 1210},
    "luong-local_p-heads": {"bleu": 4.471545, "perplexity": 4.368430, "resumed": 5.701464, "steps": 910},
}


@pytest.fixture
def old(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of the folder of version 0.1, to stand in."""
    folder = Path(shutil.copytree(OLD_RUNS / "v0.1", tmp_path / "v0.1"))
    monkeypatch.chdir(folder)
    return folder


@pytest.mark.parametrize("name", FIGURES)
def test_an_old_run_translates_as_it_did(name: str, old: Path) -> None:
    assert call("translate", f"run={name}", "input=text/test.en", "output=now.txt", "device=cpu") == 0
    assert (old / "now.txt").read_text() == (old / f"{name}.txt").read_text()


def test_old_runs_evaluate_and_compare(old: Path) -> None:
    for name, figures in FIGURES.items():
        assert call("evaluate", f"run={name}", "pictures=0", "device=cpu", "data=run") == 0
        scores = json.loads((old / name / "evaluation/test/scores.json").read_text())
        assert scores["bleu"]["value"] == pytest.approx(figures["bleu"], abs=1e-3)
        assert scores["measured"]["perplexity"] == pytest.approx(figures["perplexity"], rel=1e-4)
    assert call("compare", f"runs=[{','.join(FIGURES)}]", "output=comparison", "device=cpu") == 0
    report = json.loads((old / "comparison/report.json").read_text())
    assert {variant["label"] for variant in report["variants"]} == {"bahdanau", "luong"}


@pytest.mark.parametrize("name", thinned(FIGURES, 2))
def test_an_old_run_resumes(name: str, old: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = FIGURES[name]
    line = [f"name={name}", "checkpoints=.", "resume=true", f"trainer.steps={figures['steps']}"]
    # Nothing says who has made it, so its user repeats its data settings, once.
    assert call("train", *line) == 1
    message = capsys.readouterr().err
    assert call("train", *line, *shlex.split(message.rpartition("on the command line: ")[2])) == 0
    last = Run(old / name).history()[-1]
    assert last["step"] == figures["steps"]
    assert last["valid_perplexity"] == pytest.approx(figures["resumed"], rel=1e-3)
    # From here on it is a run of today's format.
    config = (old / name / "config.yaml").read_text()
    assert "choices:" in config
    assert Run(old / name).is_own()
    assert "_target_:" not in config
    assert call("translate", f"run={name}", "input=text/test.en", "output=now.txt", "device=cpu") == 0


def test_an_old_scaled_dot_of_one_head_stays_without_projections(old: Path) -> None:
    """What version 0.1 had by default is no longer the default."""
    file = old / "bahdanau" / "config.yaml"
    file.write_text(file.read_text().replace("scores.Additive", "scores.ScaledDot"))
    assert Run(old / "bahdanau").config().attention.project is False
    assert Run(old / "luong-local_p-heads").config().attention.project is None


#: What today's command line must say for the settings of the old run.
SAME = {
    "bahdanau": ["attention/score=additive", "decoder=bahdanau"],
    "luong-local_p-heads": ["attention/window=local_p", "encoder=lstm"],
}


@pytest.mark.parametrize("name", FIGURES)
def test_an_old_run_is_the_same_as_a_new_one_with_its_settings(name: str, old: Path) -> None:
    ours = settings(Run(old / name).config())
    unsaid = ("decoder.first_state", "attention.project", "model.fast")
    words = [
        f"{key}={written_as(value)}" for key, value in ours.items() if "." in key and value != {} and key not in unsaid
    ]
    theirs = compose("train", quote([*SAME[name], "data=text", "precision=float32", *words]))
    assert theirs.decoder.first_state == "auto"
    assert settings(theirs) == ours


def test_auto_is_the_first_state_of_the_wirings_paper() -> None:
    for name, kind in compat.FIRST_STATES.items():
        config = compose("train", [f"decoder={name}"])
        assert build.assemble(config, 8, 8, joint=True).decoder.first_state.kind == kind  # type: ignore[union-attr]
        assert settings(config)["decoder.first_state"] == kind
    config = compose("train", ["encoder=embeddings"])
    assert settings(config)["decoder.first_state"] == "auto"  # the mean, which no old run could have


def test_a_run_gets_the_settings_that_are_younger_than_it() -> None:
    """Runs that name choices, too; a setting that a run has stays."""
    for wiring, own in (("luong", {"multi_step": False}), ("none", {})):
        tree = {"choices": {"decoder": wiring, "trainer": "default"}, "decoder": {"size": 3}, "trainer": {}}
        trainer = {"guided_head": None, "r_drop": 0.0, "skipped_updates": 10, "graphs": "never"}
        assert compat.with_choices(tree) == {**tree, "decoder": {"size": 3, **own}, "trainer": trainer}
    tree = {"choices": {"decoder": "luong"}, "decoder": {"multi_step": True}}
    assert compat.with_choices(tree) == tree
