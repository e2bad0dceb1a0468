"""A convolutional model through the verbs: it learns, translates, aligns by layer; mixtures of families train."""

import json
import re
from pathlib import Path

import pytest

from nmt.runs.run import Run
from tests.small import call, learnt, translation_of, words, write_lines

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]

BOTH = ("encoder=conv", "decoder=conv", "attention/score=dot", "encoder.size=32")


@pytest.fixture(scope="module")
def convolutional(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt the language by heart."""
    folder = tmp_path_factory.mktemp("convolutional")
    layers = ("encoder.layers=2", "decoder.layers=2", "trainer.steps=200", "trainer.validate_every=200")
    assert call("train", *words(text, folder, "name=numbers", *BOTH, *layers, "optimizer.lr=0.01")) == 0
    return folder / "numbers"


def test_it_learns(convolutional: Path, here: Path) -> None:
    """Nearly all of its training text, and sentences that it has not seen far better than chance."""
    assert Run(convolutional).history()[-1]["valid_perplexity"] < 2.5
    assert learnt(convolutional, here) >= 90


def test_weights_links_and_pictures_are_by_layer(convolutional: Path, here: Path, capfd: Capture) -> None:
    source = write_lines(here / "in", ["eins und zwei"])
    line = [f"run={convolutional}", f"input={source}", "format=jsonl", "weights=true"]
    for head in ("mean", "1.1", "2.1"):
        assert call("translate", *line, f"head={head}", f"output={here / head}", f"heatmaps={here / head}-maps") == 0
        record = json.loads((here / head).read_text(encoding="utf-8"))
        assert record["translation"] == translation_of("eins und zwei")
        assert len(record["weights"]) == 2
        assert (here / f"{head}-maps" / "00001.png").stat().st_size > 1000
    capfd.readouterr()
    assert call("translate", *line, "head=2.2") == 1
    assert "head=2.2 does not exist. Give head=auto, mean or one from 1.1 to 2.1." in capfd.readouterr().err
    files = [write_lines(here / side, lines) for side, lines in (("s", ["eins zwei"]), ("t", ["one two"]))]
    for more in ("head=2.1", "method=saliency"):
        line = [f"run={convolutional}", f"source={files[0]}", f"target={files[1]}", more, "shift=0"]
        assert call("align", *line, f"output={here / 'links'}") == 0
        assert re.fullmatch(r"\d+-\d+ \d+-\d+\n", (here / "links").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    "choices",
    [
        ("encoder=conv", "decoder=luong", "attention/score=general"),
        ("encoder=conv", "decoder=transformer", "encoder/positions=sinusoidal"),
        ("encoder=transformer", "decoder=conv", "decoder.positions.count=4"),
        ("encoder=gru", "decoder=conv", "attention/score=dot", "trainer.scheduled_sampling=0.5"),
    ],
    ids=" ".join,
)
def test_every_mixture_of_families_trains(choices: tuple[str, ...], text: Path, here: Path, capfd: Capture) -> None:
    assert call("train", *words(text, here, "name=mixed", "trainer.steps=3", *choices)) == 0
    said = capfd.readouterr().err
    assert ("beyond 4 share the last position (decoder.positions.count)" in said) == (
        "decoder.positions.count=4" in choices
    )
    source = write_lines(here / "in", ["rot blau", "", "eins und zwei und drei"])
    assert call("translate", f"run={here / 'mixed'}", f"input={source}", f"output={here / 'out'}") == 0
    assert len((here / "out").read_text(encoding="utf-8").splitlines()) == 3


def test_a_line_longer_than_learned_positions_is_told_and_translated(text: Path, here: Path, capfd: Capture) -> None:
    line = words(text, here, "name=short", "trainer.steps=2", *BOTH, "encoder.positions.count=8")
    assert call("train", *line) == 0
    source = write_lines(here / "in", ["rot", "eins zwei drei " * 5])
    capfd.readouterr()
    assert call("translate", f"run={here / 'short'}", f"input={source}", f"output={here / 'out'}") == 0
    err = capfd.readouterr().err
    assert err.count("positions that the model has learned") == 1
    assert "line 2 is longer than the 8 positions that the model has learned (encoder.positions.count)" in err
    assert len((here / "out").read_text(encoding="utf-8").splitlines()) == 2


def test_what_cannot_be_is_refused_before_a_run_is_made(text: Path, here: Path, capfd: Capture) -> None:
    assert call("train", *words(text, here, "name=never", "trainer.steps=2", *BOTH, "encoder/positions=relative")) == 1
    assert "Give encoder/positions=learned, sinusoidal or none." in capfd.readouterr().err
    assert not (here / "never").exists()
