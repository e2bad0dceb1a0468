"""Comparing runs: which settings make a variant, and what a variant is called."""

import json
import re
import shutil
from pathlib import Path

import pytest

from nmt.compare.reader import read_result
from nmt.runs import Run
from tests.pipeline.small import QUICK, call

pytestmark = pytest.mark.long

Capture = pytest.CaptureFixture[str]


def labels(folder: Path) -> list[str]:
    """The labels of a report's variants."""
    report = json.loads((folder / "report.json").read_text(encoding="utf-8"))
    return [variant["label"] for variant in report["variants"]]


def test_how_much_text_the_tokenizer_was_learned_from_makes_no_variant(swept: Path, here: Path) -> None:
    """A default that has changed since, or the setting of a run that took the tokenizer from elsewhere."""
    shutil.copytree(swept / "none-1", here / "none-1")
    config = here / "none-1" / "config.yaml"
    text = config.read_text(encoding="utf-8")
    changed = re.sub(r"(sample_(?:sentences|characters)): \d+", r"\1: 7", text)
    assert changed != text
    config.write_text(changed, encoding="utf-8")
    settings = [read_result("none-1", Run(folder / "none-1"), None).settings for folder in (swept, here)]
    assert settings[0] == settings[1]
    assert settings[0]["tokenizer.vocabulary_size"]


def test_variants_are_called_by_their_settings_or_by_their_names(swept: Path, here: Path, capfd: Capture) -> None:
    line = [f"runs={swept}", f"output={here / 'out'}", *QUICK]
    assert call("compare", *line) == 0
    assert labels(here / "out") == ["bahdanau", "no attention"]
    assert call("compare", *line, "labels=names", "baseline=none") == 0
    assert labels(here / "out") == ["bahdanau", "none"]
    assert "| none |" in (here / "out" / "report.md").read_text(encoding="utf-8")
    capfd.readouterr()
    assert call("compare", *line, "labels=seeds") == 1
    assert "labels=seeds: must be settings or names." in capfd.readouterr().err
