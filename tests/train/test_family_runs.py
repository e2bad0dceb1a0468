"""Transformers and convolutional models through the verbs: they learn, align by layer and head, and mix with others."""

import json
import re
from pathlib import Path

import pytest

from nmt.runs.run import Run
from tests.small import BOTH, Capture, call, learnt, translation_of, words, write_lines

pytestmark = pytest.mark.long

CONVOLUTIONAL = ("encoder=conv", "decoder=conv", "attention/score=dot", "encoder.size=32")


@pytest.fixture(scope="module")
def convolutional(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has learnt the language by heart."""
    folder = tmp_path_factory.mktemp("convolutional")
    layers = ("encoder.layers=2", "decoder.layers=2", "trainer.steps=200", "trainer.validate_every=200")
    assert call("train", *words(text, folder, "name=numbers", *CONVOLUTIONAL, *layers, "optimizer.lr=0.01")) == 0
    return folder / "numbers"


@pytest.mark.parametrize(
    ("family", "heads", "count", "missing", "choices"),
    [
        ("transformer", ["1.1", "2.4"], 8, "3.1", "mean, 2.mean or one from 1.1 to 2.4"),
        ("convolutional", ["1.1", "2.1"], 2, "2.2", "mean or one from 1.1 to 2.1"),
    ],
)
def test_it_learns_and_each_layer_has_weights_links_and_pictures(
    family: str, heads: list[str], count: int, missing: str, choices: str,
    request: pytest.FixtureRequest, here: Path, capfd: Capture,
) -> None:  # fmt: skip
    run: Path = request.getfixturevalue(family)
    assert Run(run).history()[-1]["valid_perplexity"] < 2.5
    assert learnt(run, here) >= 90
    source = write_lines(here / "in", ["eins und zwei"])
    line = [f"run={run}", f"input={source}", "format=jsonl", "weights=true"]
    records = []
    for head in ("mean", *heads):
        more = [f"head={head}", f"output={here / head}", f"heatmaps={here / head}-maps"]
        assert call("translate", *line, *more) == 0
        records.append(json.loads((here / head).read_text(encoding="utf-8")))
        assert (here / f"{head}-maps" / "00001.png").stat().st_size > 1000
    assert {record["translation"] for record in records} == {translation_of("eins und zwei")}
    assert len(records[0]["weights"]) == count
    capfd.readouterr()
    assert call("translate", *line, f"head={missing}") == 1
    assert f"head={missing} does not exist. Give head=auto, {choices}." in capfd.readouterr().err
    files = [write_lines(here / side, lines) for side, lines in (("s", ["eins zwei"]), ("t", ["one two"]))]
    for more in ([f"head={heads[1]}"], ["method=saliency"]):
        line = [f"run={run}", f"source={files[0]}", f"target={files[1]}", *more, "shift=0"]
        assert call("align", *line, f"output={here / 'links'}") == 0
        assert re.fullmatch(r"\d+-\d+ \d+-\d+\n", (here / "links").read_text(encoding="utf-8"))


def test_lines_longer_than_learned_positions_are_told_and_translated(text: Path, here: Path, capfd: Capture) -> None:
    learned = [f"{side}/positions=learned" for side in ("encoder", "decoder")]
    counts = ["encoder.positions.count=8", "decoder.positions.count=3"]
    assert call("train", *words(text, here, "name=short", "trainer.steps=2", *BOTH, *learned, *counts)) == 0
    long = ["rot", "eins zwei drei " * 5, "eins zwei drei " * 6]
    source, reference = write_lines(here / "in", long), write_lines(here / "reference", long)
    run = f"run={here / 'short'}"
    capfd.readouterr()
    prefixes = write_lines(here / "prefixes", ["", "", "one two three"])
    command = [run, f"input={source}", f"output={here / 'out'}", f"prefix={prefixes}"]
    assert call("translate", *command) == 0
    is_long = "is longer than the 8 positions that the model has learned (encoder.positions.count)"
    becomes_long = (
        "has a translation that is longer than the 3 positions that the model has learned (decoder.positions."
    )
    err = capfd.readouterr().err
    for line in (2, 3):
        assert f"warning: line {line} {is_long}: the pieces beyond share the last one. To translate it in parts" in err
    assert f"line 3 {becomes_long}count)" in err
    assert call("translate", *command, "max_source_length=7") == 0
    assert is_long not in capfd.readouterr().err
    assert call("align", run, f"source={source}", f"target={reference}", f"output={here / 'links'}") == 0
    err = capfd.readouterr().err
    assert err.count(is_long) == err.count(f": 2 pairs are too long; pair 2, the first, {is_long}") == 1
    assert err.count(becomes_long) == err.count("2 pairs are too long; pair 2, the first, has a translation") == 1
