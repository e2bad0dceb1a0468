"""A CUDA device played by the CPU: the same numbers as the CPU, few waits, few launches. Each test is a process.

It has to load the guard of the device before torch. See `tests/cuda/device.py`, and `docs/gpu.md` for what it shows.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch

from tests.catalogue import DECODERS, ENCODERS, READS, SCORES, WINDOWED, WITH_ATTENTION
from tests.cuda.guard import compiled

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++, which compiles the guard of the device"),
    pytest.mark.skipif(torch.version.cuda is not None, reason="this torch has CUDA; the device is for one without"),
]

RUN = """
import sys
from tests.cuda.guard import load
load(sys.argv[1])
from tests.cuda.program import main
main(*sys.argv[2:])
"""
#: Where the host may wait for the device in an update: nowhere; and where it reads losses and norms of many updates.
ALLOWED_IN_UPDATE: dict[str, int] = {}
ALLOWED_IN_READING = {"training/learner.py read: copy": 1}
#: Where it may wait in one more step of a beam.
ALLOWED_IN_STEP = {
    "search/beam.py __call__: nonzero": 1,
    "search/beam.py _follow: copy": 4,
}


@pytest.fixture(scope="session")
def guard(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The compiled guard."""
    return compiled(tmp_path_factory.mktemp("guard"))


def run(guard: Path, task: str, cases: list[list[str]] | str) -> dict[str, Any]:
    """The results of a task, from a process of its own."""
    words = [sys.executable, "-W", "ignore", "-c", RUN, str(guard), task, json.dumps(cases)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    ended = subprocess.run(words, capture_output=True, text=True, check=False, env=environment, cwd=root)
    assert ended.returncode == 0, ended.stderr
    results: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
    return results


def wired(*overrides: str) -> list[list[str]]:
    """The overrides with two wirings: step by step, and all steps at once."""
    return [[f"decoder={decoder}", *overrides] for decoder in ("bahdanau", "luong")]


MECHANISMS = [
    *([f"decoder={wiring}", f"attention/score={score}"] for wiring in WITH_ATTENTION for score in SCORES),
    *(case for window in WINDOWED for case in wired(*window)),
    *(case for read in READS for case in wired(f"attention/read={read}")),
    *wired("attention.heads=2"),
    *wired("attention.coverage=true"),
]
FAMILIES = [
    *([f"encoder={encoder}", f"decoder={decoder}"] for encoder in ENCODERS for decoder in ("luong", "transformer")),
    *([f"decoder={decoder}", "model.fast=false"] for decoder in DECODERS),
]


@pytest.mark.parametrize("cases", [MECHANISMS, FAMILIES], ids=["mechanisms", "families"])
def test_the_gpu_computes_what_the_cpu_computes(cases: list[list[str]], guard: Path) -> None:
    """Loss, gradients and the tokens of a beam; an operation with tensors of both devices is an error."""
    results = run(guard, "parity", cases)
    assert len(results) == len(cases)
    wrong = {
        case: found
        for case, found in results.items()
        if "error" in found or found["loss"] > 1e-5 or found["gradients"] > 1e-4 or not found["tokens"]
    }
    assert wrong == {}
    assert all(found["nonzero"] > 1e-3 for found in results.values())


def test_the_whole_pipeline_runs_on_the_gpu(guard: Path, tmp_path: Path) -> None:
    """Train, resume, translate and evaluate there; then translate the same, and resume, on the CPU."""
    found = run(guard, "pipeline", str(tmp_path))
    assert found["statuses"] == [0] * 6
    assert found["texts"][0] == found["texts"][1]
    assert found["launches"] > 1000
    assert "on cuda (" in found["log"]
    assert "The saved state is of another device" in found["log"]


@pytest.fixture(scope="module")
def costs(guard: Path) -> dict[str, Any]:
    """Waits and launches of an update and of beams of several lengths."""
    return run(guard, "costs", wired())


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_an_update_waits_only_where_it_may(wiring: str, costs: dict[str, Any]) -> None:
    found = costs[f"decoder={wiring}"]
    assert found["update"] == ALLOWED_IN_UPDATE
    assert found["reading"] == ALLOWED_IN_READING
    assert found["launches"] <= LAUNCHES_OF_UPDATE[wiring]


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_a_wait_that_is_added_is_noticed(wiring: str, costs: dict[str, Any]) -> None:
    """A reading of logits in the middle of an update."""
    planted = costs[f"decoder={wiring}"]["planted"]
    assert planted == {**ALLOWED_IN_UPDATE, "model/seq2seq.py logits: number": 1}


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_a_step_of_a_beam_waits_only_where_it_may(wiring: str, costs: dict[str, Any]) -> None:
    (fewer, few_launches), (more, more_launches) = costs[f"decoder={wiring}"]["beams"]
    assert {place: more[place] - fewer.get(place, 0) for place in more if more[place] != fewer.get(place)} == (
        ALLOWED_IN_STEP
    )
    assert more_launches - few_launches <= LAUNCHES_OF_STEP[wiring]


CAPTURED = [
    ["decoder=bahdanau"],
    ["decoder=luong"],
    ["decoder=conditional", "attention.coverage=true"],
    ["decoder=none"],
    ["encoder=transformer", "decoder=transformer"],
    ["encoder=conv", "decoder=conv"],
]


def test_a_captured_update_is_the_ordinary_one(guard: Path) -> None:
    """A graph of one batch, replayed with others, makes the same weights; it waits no more, and launches less."""
    results = run(guard, "captured", CAPTURED)
    assert len(results) == len(CAPTURED)
    for case, found in results.items():
        assert found["notes"] == [], case
        assert found["graphs"] == 1, case
        assert found["gap"] < 1e-4 < 1e-2 < found["learned"], case
        (waits, launches), (captured_waits, captured_launches) = found["never"], found["auto"]
        assert captured_waits == waits == ALLOWED_IN_UPDATE, case
        assert captured_launches <= LAUNCHES_WITH_GRAPH < launches, case


def test_an_update_that_waits_is_not_captured(guard: Path) -> None:
    """It is said, and training goes on with the same numbers."""
    (found,) = run(guard, "refused", [["decoder=luong"]]).values()
    (note,) = found["notes"]
    assert note.startswith("Updates go on without CUDA graphs: operation not permitted when stream is capturing")
    assert found["graphs"] == 0
    assert found["gap"] < 1e-4 < 1e-2 < found["learned"]


#: Operations that compute, of an update with a target of five steps and of a step of a beam; each is a kernel or more.
LAUNCHES_OF_UPDATE = {"bahdanau": 420, "luong": 547}
#: Of a captured update: the graph, the copy of the batch, what is kept of its loss, the optimizer and the average.
LAUNCHES_WITH_GRAPH = 17
LAUNCHES_OF_STEP = {"bahdanau": 116, "luong": 114}
