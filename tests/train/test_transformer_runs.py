"""A Transformer through the verbs: it learns, translates, aligns by layer and head; mixtures of families train."""

import json
import re
from pathlib import Path

import pytest

from nmt.runs.run import Run
from tests.small import BOTH, call, learnt, pairs, translation_of, words, write_lines

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]


def test_it_learns(transformer: Path, here: Path) -> None:
    """Nearly all of its training text, and sentences that it has not seen far better than chance."""
    assert Run(transformer).history()[-1]["valid_perplexity"] < 2.5
    assert learnt(transformer, here) >= 90


def test_a_beam_of_one_is_greedy_and_a_shortlist_serves_it(transformer: Path, here: Path) -> None:
    source = write_lines(here / "in", [row[0] for row in pairs(30)])
    translations = []
    for search in (["search=greedy"], ["search.beam_size=1"], ["search.beam_size=1", "shortlist=20"]):
        assert call("translate", f"run={transformer}", f"input={source}", f"output={here / 'out'}", *search) == 0
        translations.append((here / "out").read_text(encoding="utf-8"))
    assert translations[0] == translations[1]
    assert sum(one == two for one, two in zip(translations[0].split("\n"), translations[2].split("\n"))) >= 28


def test_weights_links_and_pictures_are_by_layer_and_head(transformer: Path, here: Path, capfd: Capture) -> None:
    source = write_lines(here / "in", ["eins und zwei"])
    line = [f"run={transformer}", f"input={source}", "format=jsonl", "weights=true"]
    records = {}
    for head in ("mean", "1.1", "2.4"):
        more = [f"head={head}", f"output={here / head}", f"heatmaps={here / f'maps-{head}'}"]
        assert call("translate", *line, *more) == 0
        records[head] = json.loads((here / head).read_text(encoding="utf-8"))
        assert (here / f"maps-{head}" / "00001.png").stat().st_size > 1000
    assert len(records["mean"]["weights"]) == 8
    assert records["mean"]["translation"] == translation_of("eins und zwei")
    assert len({json.dumps(record["links"]) for record in records.values()}) > 1
    capfd.readouterr()
    assert call("translate", *line, "head=3.1") == 1
    assert "head=3.1 does not exist. Give head=auto, mean, 2.mean or one from 1.1 to 2.4." in capfd.readouterr().err


def test_it_is_evaluated_and_aligned_by_a_head(transformer: Path, here: Path, capfd: Capture) -> None:
    assert call("evaluate", f"run={transformer}", "head=2.1", f"output={here / 'scores'}", "pictures=1") == 0
    assert "BLEU" in capfd.readouterr().out
    files = [write_lines(here / side, lines) for side, lines in (("s", ["eins zwei"]), ("t", ["one two"]))]
    gold = write_lines(here / "gold", ["0-0 1-1"])
    for more in (["head=2.1"], ["method=saliency"]):
        line = [f"run={transformer}", f"source={files[0]}", f"target={files[1]}", f"gold={gold}", *more]
        assert call("align", *line, f"output={here / 'links'}", "shift=0") == 0
        assert re.fullmatch(r"\d+-\d+ \d+-\d+\n", (here / "links").read_text(encoding="utf-8"))
    kept = [json.loads(path.read_text(encoding="utf-8")) for path in (transformer / "alignments").iterdir()]
    assert "gold, head=2.1" in {measured["gold"] for measured in kept}


@pytest.mark.parametrize(
    "choices",
    [
        ("encoder=transformer", "decoder=luong", "attention/score=general"),
        ("decoder=transformer", "decoder/positions=learned", "decoder.positions.count=4"),
        (*BOTH, "encoder/score=additive", "decoder.self_attention.heads=8"),
        (*BOTH, "encoder.norm=post", "decoder.norm=post", "encoder/positions=relative"),
    ],
    ids=" ".join,
)
def test_every_mixture_of_families_trains(choices: tuple[str, ...], text: Path, here: Path, capfd: Capture) -> None:
    assert call("train", *words(text, here, "name=mixed", "trainer.steps=3", *choices)) == 0
    said = capfd.readouterr().err
    assert ("share the last position (decoder.positions.count)" in said) == ("decoder.positions.count=4" in choices)
    source = write_lines(here / "in", ["rot blau", "", "eins und zwei und drei"])
    assert call("translate", f"run={here / 'mixed'}", f"input={source}", f"output={here / 'out'}") == 0
    assert len((here / "out").read_text(encoding="utf-8").splitlines()) == 3


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
    pair = [f"source={source}", f"reference={reference}"]
    assert call("evaluate", run, *pair, f"output={here / 'scores'}", "pictures=0") == 0
    err = capfd.readouterr().err
    assert err.count(is_long) == err.count(f": 2 lines are too long; line 2, the first, {is_long}") == 1
    assert call("align", run, f"source={source}", f"target={reference}", f"output={here / 'links'}") == 0
    err = capfd.readouterr().err
    assert err.count(is_long) == err.count(f": 2 pairs are too long; pair 2, the first, {is_long}") == 1
    assert err.count(becomes_long) == err.count("2 pairs are too long; pair 2, the first, has a translation") == 1
