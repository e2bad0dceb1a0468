"""Run folders as a comparison reads them: which settings make a variant, and which scores are up to date."""

import json
import re
import shutil
from pathlib import Path
from typing import Any

import pytest

from nmt.compare.reader import _search, read_result
from nmt.compare.request import _stale
from nmt.runs.run import Run
from tests.small import QUICK, Capture, call

pytestmark = pytest.mark.long


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


def test_a_weight_of_exactly_0_is_one_that_the_model_has(swept: Path, here: Path) -> None:
    """Earlier versions have rounded small weights to 0."""
    run = Run(shutil.copytree(swept / "bahdanau-1", here / "bahdanau-1"))
    (run.folder / "checksums.json").unlink(missing_ok=True)
    folder = run.evaluation / "test"
    maps, scores = (json.loads((folder / name).read_text("utf-8")) for name in ("attention.json", "scores.json"))
    assert scores["measured"]["hidden_share"] == 0
    maps[0]["weights"][0][0] = 0
    (folder / "attention.json").write_text(json.dumps(maps), encoding="utf-8")
    for share, expected in ((0.0, 1), (None, 1), (0.1, 0)):
        scores["measured"]["hidden_share"] = share
        (folder / "scores.json").write_text(json.dumps(scores), encoding="utf-8")
        looks = read_result("bahdanau-1", run, None).splits["test"].attention_maps
        assert looks[0]["weights"][0][0] == expected


def test_a_split_is_scored_again_where_the_run_is_better_since(tmp_path: Path) -> None:
    run = Run(tmp_path)
    figures = dict.fromkeys(("epoch", "minutes", "valid_loss", "valid_bleu", "valid_perplexity"), 1.0)
    run.keep_history([{**figures, "step": 10, "best": 1.0}, {**figures, "step": 20, "best": 0.0}])
    assert "no scores" in _stale(run, "test")
    file = run.evaluation / "test" / "scores.json"
    file.parent.mkdir(parents=True)
    provenance = {"text": "1a", "checkpoint": "best", "step": 10}
    scores: dict[str, Any] = {
        "split": "test",
        **{key: {"value": 1.0, "signature": "s"} for key in ("bleu", "chrf", "ter")},
    }
    scores["provenance"] = provenance
    file.write_text(json.dumps({**scores, "measured": {"seconds": 1}}), encoding="utf-8")
    assert _stale(run, "test") == ""
    run.keep_history([{**figures, "step": 10, "best": 1.0}, {**figures, "step": 20, "best": 1.0}])
    assert "the best step is 20" in _stale(run, "test")


def test_another_search_is_another_measurement(trained: Path) -> None:
    own = {"name": "beam", "beam_size": 5, "length_penalty": 1.0, "coverage_penalty": 0.0, "nbest": 1}
    config = Run(trained).config()
    assert _search(config, {"checkpoint": "best", "search": own}) == "best weights, own search"
    assert _search(config, {"checkpoint": "last", "search": own}) == "last weights, own search"
    assert '"beam_size": 6' in _search(config, {"checkpoint": "best", "search": {**own, "beam_size": 6}})
    assert '"greedy"' in _search(config, {"checkpoint": "best", "search": {**own, "name": "greedy"}})
    changed = {"checkpoint": "best", "search": own, "settings": {"precision": "int8", "extra_length": 3}}
    assert _search(config, changed) == "best weights, own search, extra_length=3, precision=int8"
