"""Quality over time: clocks, recipes, curves, and a whole run of tiny sizes."""

import itertools
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from benchmarking import clocks, quality, report
from benchmarking.settings import (
    MATCHED,
    Json,
    recipe,
    unattended,
)

from nmt.command.composing import compose
from nmt.errors import UserError
from tests.benchmark.test_benchmark import SCRIPT, pairs

pytestmark = pytest.mark.long


def test_our_clock_stands_still_while_weights_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 50.0
    monkeypatch.setattr("time.perf_counter", lambda: now)
    feed = clocks.Timed(pairs(), tokens_per_batch=100, sentences_per_batch=1)
    still = clocks.Still(pairs(), tokens_per_batch=100)
    clock = feed.clock = still.clock = clocks.Clock()
    now += 1000  # nothing has begun
    updates, seen = 0, []
    for epoch in range(2):
        for _ in feed.epoch(epoch):
            now += 2  # an update
            updates += 1
            if updates in (3, 4):  # in the midst of an epoch, and after its last batch
                assert list(still.epoch(0)) == []
                now += 100
                seen.append(clock.stop())
    assert updates == 8
    assert seen == [6, 8]
    assert clock.stop() == 16


def test_recipes() -> None:
    budget = unattended("minutes", 40, 100)
    matched = compose("train", [*recipe("nmt", True, MATCHED), *budget])
    plain = compose("train", [])
    assert (matched.trainer.steps, matched.trainer.epochs, matched.trainer.minutes) == (None, None, 40)
    assert matched.trainer.sentences_per_batch == 80
    assert (matched.model.tie_embeddings, matched.decoder.size, matched.attention.size) == ("none", 512, 512)
    assert matched.optimizer == plain.optimizer
    assert matched.schedule == plain.schedule
    assert matched.trainer.average == plain.trainer.average
    for multi30k, choice in ((True, "experiment=multi30k"), (False, "data=builtin")):
        whole = compose("train", [choice])
        own = compose("train", [*recipe("nmt-default", multi30k, MATCHED), *budget])
        for part in ("model", "encoder", "decoder", "attention", "optimizer", "schedule", "tokenizer"):
            assert own[part] == whole[part]
        assert own.trainer.tokens_per_batch == whole.trainer.tokens_per_batch
        assert own.trainer.validate_every == 100


def curve(*points: tuple[float, float]) -> list[Json]:
    """Points of (minutes, BLEU)."""
    return [{"update": 1, "minutes": minutes, "bleu": bleu} for minutes, bleu in points]


def test_quality_is_read_off_the_curve() -> None:
    points = curve((1, 4), (3, 8), (5, 7), (7, 12))
    assert report._minutes_until(points, 3) == 1  # no later than the first
    assert report._minutes_until(points, 6) == 2
    assert report._minutes_until(points, 8) == 3
    assert report._minutes_until(points, 10) == pytest.approx(5 + 2 * 3 / 5)
    assert report._minutes_until(points, 13) is None
    assert report._bleu_after(points, 0.5) is None
    assert report._bleu_after(points, 6) == 7
    ours = {"title": "ours", "version": "1", "ours": True, "points": points}
    theirs = {"title": "theirs", "version": "2", "ours": False, "points": curve((6, 9), (9, 6))}
    programs = {"nmt": ours, "joeynmt": theirs}
    assert list(report._levels(programs)) == [5, 10]
    assert report._overtaken(programs) == [
        "theirs's best, 9.0 after 6.0 minutes: reached after 5.8 minutes by ours."  # 5 + 2 x 2 / 5
    ]


def test_a_measurement_of_something_else_is_not_taken_up(tmp_path: Path) -> None:
    now: Json = {
        "settings": {"minutes": 40, "quick": False},
        "corpus": {"name": "m30k-de-en", "pairs": 29000, "notes": ["here"]},
        "machine": {"cpu": "x", "cores": 2, "threads": 2, "torch": "2"},
    }
    quality._check_same(tmp_path, {**now, "corpus": {**now["corpus"], "notes": ["there"]}}, now)
    for kind, key, value in (("settings", "minutes", 5), ("corpus", "pairs", 100), ("machine", "threads", 1)):
        with pytest.raises(UserError, match=rf"{kind}\.{key} was {value}, and is"):
            quality._check_same(tmp_path, {**now, kind: {**now[kind], key: value}}, now)
    for text in ("{", "[]", "{}", '{"machine": {}, "corpus": {}, "settings": {}, "programs": []}'):
        (tmp_path / "all.json").write_text(text, encoding="utf-8")
        with pytest.raises(UserError, match=r"all\.json"):
            quality._read(tmp_path / "all.json")


# One process, so that what all cases load is loaded once.
SITTINGS = """
import shutil, sys
sys.path.insert(0, sys.argv[1])
import benchmark, quality_over_time
quick = ["--quick", "--threads", "1"]
own = [*quick, "--json", "all.json", "--plot", ".", "--models", "models", "--joey-python", sys.argv[2]]
assert quality_over_time.main([*own, "--only", "nmt"]) == 0
shutil.copy("all.json", "first.json")
assert quality_over_time.main(own) == 0
assert benchmark.main([*quick, "--models", "models", "--only", "startup"]) == 0
assert quality_over_time.main([*own, "--minutes", "7"]) == 1
"""


@pytest.mark.slow
def test_a_whole_run_of_quality(tmp_path: Path, python: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", SITTINGS, str(SCRIPT.parent), python],
        cwd=tmp_path,
        env={key: value for key, value in os.environ.items() if not key.startswith("NMT_")},
        capture_output=True,
        text=True,
        check=False,
        timeout=1800,
    )
    assert done.returncode == 0, done.stderr
    first, found = (json.loads((tmp_path / name).read_text(encoding="utf-8")) for name in ("first.json", "all.json"))
    programs = found["programs"]
    assert list(first["programs"]) == ["nmt"]
    assert "nmt is measured already" in done.stderr
    assert programs["nmt"] == first["programs"]["nmt"]
    assert list(programs) == ["nmt", "nmt-default", "joeynmt", "opennmt-py"]
    assert "NMT_ONMT_PYTHON" in programs["opennmt-py"]["missing"]
    for name in ("nmt", "nmt-default", "joeynmt"):
        points = programs[name]["points"]
        # On a busy machine ours may have no time but for the last point.
        assert len(points) == 3 if name == "joeynmt" else points
        for before, after in itertools.pairwise(points):
            assert 0 < before["minutes"] < after["minutes"]
            assert 0 < before["update"] < after["update"]
        assert all(0 <= point["bleu"] <= 100 for point in points)
        assert programs[name]["cores_of_others"] is None or programs[name]["cores_of_others"] >= 0
    assert (tmp_path / "quality-over-time.png").read_bytes().startswith(b"\x89PNG")
    assert "| Joey NMT 9.8" in done.stdout
    assert sorted(path.name for path in (tmp_path / "models").iterdir()) == [
        "joeynmt.ckpt",
        "nmt-default.safetensors",
        "nmt.safetensors",
        "tokenizer.model",
    ]
    assert "## Start-up" in done.stdout
    assert "before it translates" not in done.stderr  # the model is there
    assert "settings.minutes was 0.03, and is 7.0 now" in done.stderr
