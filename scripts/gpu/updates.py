"""Speed of updates with and without CUDA graphs and Triton kernels, and the difference between their weights."""

import time
from typing import Any, Literal
from unittest import mock

import torch

from nmt.build.parts import assemble, build_optimizer, build_schedule, build_trainer
from nmt.config.composition import compose
from nmt.data.batch import Batch, make_batch
from nmt.kernels import gpu
from nmt.system.compute import Compute
from nmt.training.learner import Learner

Json = dict[str, Any]
_PIECES, _FEW_PIECES, _LENGTHS = 8000, 400, (13, 16)
#: The ways to compute updates: (with CUDA graphs, with Triton kernels).
_WAYS = {"eager": (False, False), "triton": (False, True), "graphs": (True, False), "both": (True, True)}
_SMALL = (
    "model.embedding_size=32",
    "encoder.size=32",
    "decoder.size=32",
    "attention.size=32",
    "decoder.readout.size=32",
)


def updates(device: torch.device, sizes: list[int], count: int, small: bool) -> Json:
    """Measure target tokens per second of `count` updates for each batch size and each way of `_WAYS`, with notes.

    Also measure the largest difference between the weights after ten updates in the first and in the last way, without
    dropout. Ways with Triton are left out where it is not usable.

    Args:
        device: "cuda", or "cpu" for a test, where batches are padded as for graphs, but no graph is used.
        sizes: sentences per batch.
        count: number of timed updates; all their batches have one shape.
        small: whether to use a small model, for a test.
    """
    with_graphs: Literal["auto", "always"] = "auto" if device.type == "cuda" else "always"
    usable = gpu.usable(torch.empty(0, device=device))
    speeds: Json = {}
    for size in sizes:
        batches = [_batch(size, seed) for seed in range(10)]
        row: Json = {}
        for name, (graphs, triton) in _WAYS.items():
            if triton and not usable:
                continue
            with mock.patch.object(gpu, "usable", lambda numbers, use=triton: use):
                learner = _learner(device, with_graphs if graphs else "never", small, "precision=auto")
                for step in range(len(batches)):  # warm-up; the second update captures a graph
                    learner.update([batches[step]], step, 0.0)
                learner.read()
                began, tokens = time.perf_counter(), 0
                for step in range(count):
                    batch = batches[step % len(batches)]
                    learner.update([batch], step, 0.0)
                    tokens += int(batch.target_mask.sum())
                learner.read()  # waits for the device
                row[name] = tokens / (time.perf_counter() - began)
            notes = learner.take_notes()
            if notes:
                row["notes"] = notes
        speeds[str(size)] = row
    batches = [_batch(8, seed) for seed in range(10)]
    weights = []
    for setting, triton in (("never", False), (with_graphs, usable)):
        with mock.patch.object(gpu, "usable", lambda numbers, use=triton: use):
            learner = _learner(device, setting, True, "precision=float32", "model.dropout=0", "optimizer.eps=1e-3")
            for step, batch in enumerate(batches):
                learner.update([batch], step, 0.0)
        weights.append([parameter.detach().cpu() for parameter in learner.model.parameters()])
    gaps = [(one - other).abs().max().item() for one, other in zip(*weights, strict=True)]
    return {"tokens_per_second": speeds, "weights": max(gaps)}


def _learner(device: torch.device, graphs: str, small: bool, *overrides: str) -> Learner:
    torch.manual_seed(1)
    words = [*overrides, *(_SMALL if small else ()), f"trainer.graphs={graphs}", f"device={device}"]
    config = compose("train", words)
    compute = Compute.choose(str(device), config.precision)
    pieces = _FEW_PIECES if small else _PIECES
    model = assemble(config, pieces, pieces, joint=True).to(compute.device).train()
    optimizer, schedule = build_optimizer(config, model), build_schedule(config)
    return Learner(model, optimizer, schedule, build_trainer(config), compute)


def _batch(size: int, seed: int) -> Batch:
    """A batch of random pairs; all batches of a size have the same shape."""
    generator = torch.Generator().manual_seed(seed)

    def side() -> list[list[int]]:
        lengths = torch.randint(_LENGTHS[0] - 1, _LENGTHS[1], (size,), generator=generator).tolist()
        lengths[0] = _LENGTHS[1] - 1  # with EOS
        return [torch.randint(4, _FEW_PIECES, (length,), generator=generator).tolist() for length in lengths]

    return make_batch(side(), side())
