"""More text from a text: no model translates what it has seen, and a killed command goes on."""

import sys
from pathlib import Path

import numpy as np
import pytest

from nmt.data.dataset import Split
from nmt.data.lines import read_lines
from nmt.system.errors import UserError
from tests.small import call, pairs, words

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import diversify


def test_pairs_that_share_a_sentence_are_in_one_fold() -> None:
    source = [f"s{number // 3}" for number in range(30)]  # ten families of three
    folds = diversify._folds(Split("train", source, [f"t{number}" for number in range(30)]), 5, 1)
    assert np.bincount(folds).tolist() == [6] * 5
    assert all(len({*folds[first : first + 3]}) == 1 for first in range(0, 30, 3))
    with pytest.raises(UserError, match="make only 10 folds"):
        diversify._folds(Split("train", source, source), 11, 1)


@pytest.mark.parametrize(
    ("more", "part"),
    [
        (["folds=1"], "folds=1: must be a whole number of at least 2"),
        (["samples=x"], "samples=x: must be"),
        (["name=a"], "name= cannot be set"),
        (["dry_run=yes"], "dry_run=yes: must be true or false"),
        (["trainer.simcutt=3"], "There is no setting 'trainer.simcutt'"),
        (["folds"], "KEY=folds"),
    ],
)
def test_a_command_that_cannot_be(more: list[str], part: str, here: Path, text: Path) -> None:
    with pytest.raises(UserError, match=part):
        diversify.main([f"folder={here / 'more'}", *_words(text), *more])
    assert not (here / "more").exists()


@pytest.mark.long
def test_a_killed_command_goes_on(here: Path, text: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def verb(name: str, *line: str) -> int:
        """Runs a command in this process; each third one is killed before it begins."""
        made.append(name)
        return 137 if killing and len(made) % 3 == 0 else call(name, *line)

    monkeypatch.setattr(diversify, "verb", verb)
    killing, outputs = False, []
    for name in ("whole", "parts"):
        line = [f"folder={here / name}", "folds=2", "chrf=0", *_words(text)]
        while status := diversify.main(line):
            assert status == 137
        outputs.append([read_lines(here / name / f"diversified.{ending}") for ending in ("de", "en", "origin")])
        killing = True
    assert outputs[0] == outputs[1]
    de, en, origin = outputs[0]
    assert origin[:600] == ["original"] * 600
    assert {*origin[600:]} == {"beam de-en", "beam en-de", "sample 1 en-de"}
    rows = list(zip(de, en, strict=True))
    known = {(row[0], row[1]) for row in pairs(340)[:300]}
    assert {*rows[:600]} == known
    assert len({*rows[600:]}) == len(rows) - 600
    assert known.isdisjoint(rows[600:])
    own = [{*read_lines(here / "whole" / f"fold-{number}" / "own.de")} for number in (1, 2)]
    assert own[0].isdisjoint(own[1])
    assert own[0].isdisjoint(read_lines(here / "whole" / "fold-1" / "train.de"))
    with pytest.raises(UserError, match="begun with other folds"):
        diversify.main([f"folder={here / 'whole'}", "folds=3", "chrf=0", *_words(text)])


def _words(text: Path) -> list[str]:
    line = words(text, text, "trainer.steps=2", "search=greedy")
    return [word for word in line if not word.startswith("checkpoints=")]
