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
#: Input feeding with the energies of a dot product.
DOT = ["decoder=luong", "attention/score=general"]
#: Where the host may wait for the device in an update: nowhere; and where it reads losses and norms of many updates.
ALLOWED_IN_UPDATE: dict[str, int] = {}
ALLOWED_IN_READING = {"training/learner.py read: copy": 1}
#: Where it may wait in one more step of a beam.
ALLOWED_IN_STEP = {"search/beam.py _rows_to_go_on: nonzero": 1}
#: Where it may wait in four more steps that are replayed.
ALLOWED_IN_REPLAYS = {"search/replayed.py __call__: number": 1}


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


DISTANCES = ["encoder=transformer", "encoder/positions=relative"]
#: What has no graphs.
UNCAPTURED = [
    *([f"context={context}", "context.sentences=2"] for context in ("concat", "segments", "hierarchical")),
    *([*DISTANCES, f"context={context}", "context.sentences=2"] for context in ("concat", "segments", "hierarchical")),
    ["context=segments", "context.sentences=2", "encoder.cell=lstm"],
    ["decoder=luong", "model.fast=false"],
]

MECHANISMS = [
    *([f"decoder={wiring}", f"attention/score={score}"] for wiring in WITH_ATTENTION for score in SCORES),
    *(case for window in WINDOWED for case in wired(*window)),
    *(case for read in READS for case in wired(f"attention/read={read}")),
    *wired("attention.heads=2"),
    *wired("attention.coverage=true"),
    *UNCAPTURED[:6],
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
    """Train, resume, translate and evaluate there; translate and resume on the CPU; then resume on the GPU again."""
    found = run(guard, "pipeline", str(tmp_path))
    assert found["statuses"] == [0] * 7
    assert found["texts"][0] == found["texts"][1]
    assert found["launches"] > 1000
    assert found["replays"] > 3  # of the steps of the beam
    assert "on cuda (" in found["log"]
    assert found["log"].count("The saved state is of another device") == 2


@pytest.fixture(scope="module")
def costs(guard: Path) -> dict[str, Any]:
    """Waits and launches of an update and of beams of several lengths."""
    return run(guard, "costs", [*wired(), DOT])


@pytest.mark.parametrize("wiring", ["bahdanau", "luong", "luong attention/score=general"])
def test_an_update_waits_only_where_it_may(wiring: str, costs: dict[str, Any]) -> None:
    found = costs[f"decoder={wiring}"]
    assert found["update"] == ALLOWED_IN_UPDATE
    assert found["reading"] == ALLOWED_IN_READING
    assert found["launches"] <= LAUNCHES_OF_UPDATE[wiring]


def test_an_update_without_graphs_waits_nowhere_either(guard: Path) -> None:
    """Lengths of previous sentences are those that the host has counted."""
    results = run(guard, "costs", UNCAPTURED)
    assert len(results) == len(UNCAPTURED)
    for case, found in results.items():
        assert found["update"] == ALLOWED_IN_UPDATE, case
        assert found["reading"] == ALLOWED_IN_READING, case
        assert sum(found["planted"].values()) == 1, case


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_a_wait_that_is_added_is_noticed(wiring: str, costs: dict[str, Any]) -> None:
    """A reading of logits in the middle of an update."""
    planted = costs[f"decoder={wiring}"]["planted"]
    assert planted == {**ALLOWED_IN_UPDATE, "model/seq2seq.py logits: number": 1}


@pytest.mark.parametrize("wiring", ["bahdanau", "luong"])
def test_a_step_of_a_beam_waits_only_where_it_may(wiring: str, costs: dict[str, Any]) -> None:
    waits, launches = more(costs[f"decoder={wiring}"]["beams"])
    assert waits == ALLOWED_IN_STEP
    assert launches <= LAUNCHES_OF_STEP[wiring]


REPLAYED = [
    ["decoder=bahdanau"],
    DOT,
    ["decoder=conditional", "attention.coverage=true"],
    ["decoder=none"],
    ["decoder=bahdanau", "attention/read=hard"],
    ["encoder=conv", "decoder=conv"],
    ["encoder=transformer", "decoder=transformer"],
    ["decoder=transformer", "positions@decoder.positions=relative"],
    ["decoder=transformer", "positions@decoder.positions=transformer_xl"],
    ["decoder=bahdanau", "bf16"],
    ["encoder=transformer", "decoder=transformer", "bf16"],
]


def more(costs: list[Any]) -> tuple[dict[str, int], int]:
    """The waits and launches that the second of two searches has more than the first."""
    (fewer, few_launches), (more_waits, more_launches) = costs
    waits = {place: count - fewer.get(place, 0) for place, count in more_waits.items() if count != fewer.get(place)}
    return waits, more_launches - few_launches


@pytest.mark.parametrize("cases", [REPLAYED[:6], REPLAYED[6:]], ids=["recurrent", "others"])
def test_a_step_that_is_replayed_is_one_launch_without_a_wait(cases: list[list[str]], guard: Path) -> None:
    """Captured in the first search of a shape; texts and scores are those of the ordinary search, of any sentences."""
    results = run(guard, "replayed", cases)
    assert len(results) == len(cases)
    for case, found in results.items():
        assert (found["graphs"], found["notes"]) == (2, []), case  # with weights and without
        for replayed, ordinary in found["same"]:
            for one, other in zip(replayed, ordinary, strict=True):
                assert [tokens for tokens, _ in one] == [tokens for tokens, _ in other], case
                assert [score for _, score in one] == pytest.approx([score for _, score in other], abs=1e-5), case
        costs = found["costs"]
        assert more(costs[1:3]) == more(costs[2:4]) == (ALLOWED_IN_REPLAYS, 4), case
        # With weights, one copy more: of those that are in the result.
        assert sum(costs[6][0].values()) - sum(costs[2][0].values()) <= 1, case
        assert costs[6][1] < found["ordinary"] / 3, case


def test_a_launch_and_a_wait_that_are_added_to_a_replayed_step_are_noticed(guard: Path) -> None:
    (found,) = run(guard, "replayed", [["decoder=luong"]]).values()
    waits, launches = more(found["planted"])
    assert launches == 8
    assert waits != ALLOWED_IN_REPLAYS


CAPTURED = [
    ["decoder=bahdanau"],
    DOT,
    ["decoder=luong"],
    ["decoder=conditional", "attention.coverage=true"],
    ["decoder=none"],
    ["encoder=transformer", "decoder=transformer"],
    ["encoder=conv", "decoder=conv"],
    ["decoder=luong", "trainer.r_drop=2"],
    ["decoder=luong", "trainer.simcut=2"],
    ["decoder=luong", "trainer.scheduled_sampling=1e-9"],
    ["decoder=bahdanau", "attention/read=hard", "attention.read.expected=1"],  # nothing is drawn that is used
    ["decoder=bahdanau", "attention/read=hard", "attention.read.objective=enumerate"],
    ["encoder.cell=lstm", "encoder.layers=2", "decoder=luong"],
]
#: With word links, which are one copy more.
GUIDED = [
    ["decoder=bahdanau", "trainer.guided_alignment=0.5"],
    ["encoder=transformer", "decoder=transformer", "trainer.guided_alignment=0.5", "trainer.r_drop=2"],
]


def is_the_same(found: dict[str, Any]) -> bool:
    """Whether captured updates have learned what ordinary ones have; gradients are up to 127."""
    gaps = found["gaps"]
    same: bool = max(gaps["weights"], gaps["averages"]) < 3e-4 < 1e-2 < found["learned"] and gaps["state"] < 1e-3
    return same


def test_a_captured_update_is_the_ordinary_one(guard: Path) -> None:
    """Graphs of one update, replayed with others, make the same weights, averages and state of the optimizer.

    They wait no more, and launch less. The learning rate falls from update to update.
    """
    results = run(guard, "captured", CAPTURED + GUIDED)
    assert len(results) == len(CAPTURED + GUIDED)
    for case, found in results.items():
        never, auto = found["never"], found["auto"]
        assert never["notes"] == auto["notes"] == [], case
        assert (never["graphs"], auto["graphs"]) == (0, 2), case
        assert is_the_same(found), case
        (waits, launches), (captured_waits, captured_launches) = never["costs"], auto["costs"]
        assert captured_waits == waits == ALLOWED_IN_UPDATE, case
        assert captured_launches == LAUNCHES_WITH_GRAPH + ("guided" in case) < launches, case


SHAPED = [
    ["decoder=luong"],
    ["encoder=transformer", "decoder=transformer", "trainer.r_drop=2"],
    ["encoder=transformer", "decoder=transformer", "trainer.simcut=3"],
    ["decoder=bahdanau", "attention/read=hard"],
    ["decoder=bahdanau", "attention/read=hard", "attention.read.objective=enumerate"],
    ["encoder.cell=lstm", "decoder=luong"],
    ["decoder=conditional", "trainer.scheduled_sampling=0.5"],
    ["encoder=conv", "decoder=conv"],
]


def test_each_shape_is_captured_once_and_waits_no_more(guard: Path) -> None:
    """The first batch of a shape is an ordinary update, the second is captured; only the first graph is checked.

    A batch that no shape holds is an ordinary update, and captures nothing.
    """
    for case, found in run(guard, "shaped", SHAPED).items():
        assert found["notes"] == [], case
        assert (found["graphs"], found["finite"], found["count"]) == (4, True, 14), case
        waiting = [step for step, (waits, _) in enumerate(found["costs"]) if waits]
        assert waiting == [1, 3], case  # the graphs of the step and of the first gradient are compared
        replayed = [launches for _, launches in found["costs"][6:]]
        unshaped = [replayed.pop(6), replayed.pop(2)]
        assert set(replayed) == {LAUNCHES_WITH_GRAPH}, case
        assert min(unshaped) > 100, case


def test_a_transformer_casts_little_under_autocast(guard: Path) -> None:
    """Keys and values reach torch's product as their layers leave them; dropout of weights is part of that product."""
    case = ["encoder=transformer", "decoder=transformer"]
    plain, dropping = run(guard, "autocast", [case, [*case, "attention.dropout=0.1"]]).values()
    assert plain["casts"] <= CASTS_OF_TRANSFORMER
    assert plain["launches"] <= LAUNCHES_OF_TRANSFORMER
    assert dropping["casts"] == plain["casts"]
    assert dropping["launches"] <= LAUNCHES_OF_TRANSFORMER + 4


def test_a_launch_that_is_added_to_a_captured_update_is_noticed(guard: Path) -> None:
    """One beside the graphs."""
    (found,) = run(guard, "captured", [["decoder=luong"]]).values()
    assert found["auto"]["planted"] == LAUNCHES_WITH_GRAPH + 1


def test_captured_updates_of_several_batches_are_the_ordinary_ones(guard: Path) -> None:
    """The last one has fewer batches than the others."""
    results = run(guard, "accumulated", CAPTURED[:2])
    for case, found in results.items():
        assert found["auto"]["notes"] == [], case
        assert found["auto"]["graphs"] == 2, case
        assert is_the_same(found), case
        for update, ordinary in zip(found["auto"]["read"], found["never"]["read"], strict=True):
            assert update == pytest.approx(ordinary, rel=1e-4), case
        assert found["auto"]["costs"] == [ALLOWED_IN_UPDATE, LAUNCHES_WITH_GRAPH], case


def test_a_captured_update_without_a_finite_loss_is_skipped(guard: Path) -> None:
    """By the device, as an ordinary one; the next update is made."""
    (found,) = run(guard, "overflowing", [["decoder=luong"]]).values()
    for way in ("never", "auto"):
        assert [skipped for _, _, skipped in found[way]["read"]] == [False, False, False, True, False]
    assert found["auto"]["graphs"] == 2
    assert is_the_same(found)


def test_a_captured_training_goes_on_from_a_saved_state(guard: Path) -> None:
    """The optimizer has other tensors then. What is saved has plain numbers."""
    (found,) = run(guard, "restored", [["decoder=luong"]]).values()
    assert found["auto"]["graphs"] == 3
    assert is_the_same(found)
    assert found["auto"]["groups"] == [{"lr": pytest.approx(0.005), "capturable": False}]


def test_an_update_that_waits_is_not_captured(guard: Path) -> None:
    """It is said, and training goes on with the same numbers."""
    (found,) = run(guard, "refused", [["decoder=luong"]]).values()
    (note,) = found["auto"]["notes"]
    assert note.startswith("Updates go on without further CUDA graphs: operation not permitted when stream is captur")
    assert found["auto"]["graphs"] == 0
    assert is_the_same(found)


#: Operations that compute, of an update with a target of five steps and of a step of a beam; each is a kernel or more.
LAUNCHES_OF_UPDATE = {"bahdanau": 422, "luong": 431, "luong attention/score=general": 402}
#: Of a captured update: the copies of the batch and of the learning rate, the graphs of the gradient and of the step,
#: and what is kept of loss and norm.
LAUNCHES_WITH_GRAPH = 5
#: Of the forward and the backward pass of a Transformer under autocast.
LAUNCHES_OF_TRANSFORMER, CASTS_OF_TRANSFORMER = 847, 266
LAUNCHES_OF_STEP = {"bahdanau": 112, "luong": 110}
