"""What the tests run in processes of their own: models on the played GPU beside the same models on the CPU."""

from __future__ import annotations

import copy
import functools
import json
import math
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any
from unittest import mock

import torch

from nmt.data.batch import Batch, make_batch
from nmt.data.document_lines import context_tensor
from nmt.data.shapes import Shape
from nmt.model import Seq2Seq, Source
from nmt.search import BeamSearch, Limits
from nmt.search.replayed import Replays, Room
from nmt.system.compute import CPU, Compute
from nmt.system.graphs import Graphs
from nmt.training.learner import Learner
from nmt.training.loss import batch_loss, cut_tokens
from nmt.training.schedules import Constant, CosineDecay
from nmt.translation.stepper import Stepper, cast_once
from tests import catalogue
from tests.cuda.device import PlayedGpu, PlayedGraph
from tests.small import call, words, write_lines, write_text
from tests.training.test_trainer import trainer

GPU = Compute(torch.device("cuda", 0))
#: The most tokens of a translation in beams of fixed shapes.
STEPS = 12
SOURCES, TARGETS = [[5, 6, 7, 8], [9, 10], [11, 12, 13]], [[4, 5, 6], [7, 8, 9, 10], [11, 12]]


def batch(model: Seq2Seq | None = None) -> Batch:
    """Three pairs whose lengths differ; with previous sentences, for a model that sees some."""
    made = make_batch(SOURCES, TARGETS)
    if model is None or not model.context_sentences:
        return made
    return made._replace(context=context_tensor([[[5, 6, 7], [8, 9]], [], [[10]]]))


def searched(
    model: Seq2Seq,
    compute: Compute,
    longest: int = 5,
    replays: Replays | None = None,
    sources: list[list[int]] = SOURCES,
    weights: bool = True,
) -> list[list[tuple[list[int], float]]]:
    """Tokens and scores of a beam of three, by beams of fixed shapes if there are any."""
    moved = make_batch(sources).to(compute.device)
    lengths = torch.tensor([longest] * len(sources)).to(compute.device)
    limits = Limits(1, 2, (0, 3), lengths, moved.source_mask)
    stepper, search = Stepper([model.eval()], weights=weights), BeamSearch(3, nbest=2)
    with torch.inference_mode(), compute.autocast():
        if replays is None:
            found = search(stepper, stepper.start(Source.of(moved)), limits)
        else:
            state = stepper.start(Source.of(moved), room=STEPS)
            found = replays(search, stepper, state, limits, Room(len(sources), moved.source.shape[1], STEPS), longest)
    return [[(hypothesis.tokens, hypothesis.score) for hypothesis in nbest] for nbest in found]


def replay_and_count(graph: Any, count: torch.Tensor) -> None:
    """A replay with one launch more, and with a wait."""
    count.add_(1).item()
    PlayedGraph.replay(graph)


def replayed(cases: list[list[str]]) -> dict[str, Any]:
    """Beams whose steps are replayed, beside ordinary ones: with other sentences, longer, without weights, planted."""
    results: dict[str, Any] = {}
    others = [[5, 9, 9], [9, 10, 4, 6], [11, 12]]
    for case in cases:
        compute = GPU if "bf16" not in case else Compute(GPU.device, torch.bfloat16)
        model = catalogue.model(*(word for word in case if word != "bf16")).float()
        torch.nn.init.constant_(model.output.bias[2:3], -9.0)  # hypotheses do not end early
        notes: list[str] = []
        with PlayedGpu() as gpu:
            model = cast_once(model.to(GPU.device), compute)
            replays = Replays(Graphs(True, notes.append, "Searches"))
            costs, same = [], []
            for longest, sources, weights in (
                *((longest, SOURCES, False) for longest in (STEPS, 4, 8, 12)),
                *((longest, sources, True) for longest in (6, 8) for sources in (SOURCES, others)),
            ):
                gpu.clear()
                found = searched(model, compute, longest, replays, sources, weights)
                costs.append((dict(gpu.waits), gpu.launches))
                gpu.clear()
                same.append((found, searched(model, compute, longest, None, sources, weights)))
            ordinary = gpu.launches
            planted = []
            for graph in (beam.graph for beam in replays.beams.values()):
                vars(graph)["replay"] = functools.partial(replay_and_count, graph, torch.zeros((), device=GPU.device))
            for longest in (8, 12):
                gpu.clear()
                searched(model, compute, longest, replays, SOURCES, False)
                planted.append((dict(gpu.waits), gpu.launches))
        results[" ".join(case)] = {
            "costs": costs,
            "same": same,
            "ordinary": ordinary,
            "planted": planted,
            "graphs": replays.graphs.count,
            "notes": notes,
        }
    return results


def learned(model: Seq2Seq, compute: Compute) -> tuple[float, list[torch.Tensor]]:
    """The loss of a batch and the gradients of all parameters."""
    torch.manual_seed(3)  # of draws
    loss = batch_loss(model.train(), batch(model).to(compute.device), 0.1).total
    loss.backward()
    return loss.item(), [torch.zeros(1) if p.grad is None else p.grad.cpu() for p in model.parameters()]


def differences(overrides: Iterable[str]) -> dict[str, Any]:
    """How the GPU's loss and gradients differ from the CPU's, relatively, and whether its beam does."""
    model = catalogue.model(*overrides).float()
    loss, gradients = learned(copy.deepcopy(model), CPU)
    found = searched(copy.deepcopy(model), CPU)
    with PlayedGpu() as gpu:
        gpu_loss, gpu_gradients = learned(copy.deepcopy(model).to(GPU.device), GPU)
        gpu_found = searched(copy.deepcopy(model).to(GPU.device), GPU)
        assert gpu.launches
    gaps = [((a - b).abs().max() / (b.abs().max() + 1)).item() for a, b in zip(gpu_gradients, gradients, strict=True)]
    return {
        "loss": abs(gpu_loss - loss) / abs(loss),
        "gradients": max(gaps),
        "nonzero": max(gradient.abs().max().item() for gradient in gradients),
        "tokens": [[tokens for tokens, _ in nbest] for nbest in gpu_found]
        == [[tokens for tokens, _ in nbest] for nbest in found],
    }


def parity(cases: list[list[str]]) -> dict[str, Any]:
    """`differences` of each case, or the error that it ended with."""
    results: dict[str, Any] = {}
    for case in cases:
        try:
            results[" ".join(case)] = differences(case)
        except Exception as error:
            results[" ".join(case)] = {"error": f"{type(error).__name__}: {error}"}
    return results


def read_it(_: torch.nn.Module, __: object, output: torch.Tensor) -> None:
    """A hook that makes the host wait for a result."""
    output.sum().item()


def costs(cases: list[list[str]]) -> dict[str, Any]:
    """The waits and launches of an update and of a beam's steps, for each case."""
    results: dict[str, Any] = {}
    for case in cases:
        model = catalogue.model(*case, "model.dropout=0.1").float()
        with PlayedGpu() as gpu:
            model = model.to(GPU.device)
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            learner = Learner(model.train(), optimizer, Constant(0), trainer(steps=9, average="ema"), GPU)
            learner.update([batch(model)], 0, 0.0)
            gpu.clear()
            learner.update([batch(model)], 1, 0.1)
            update, launches = dict(gpu.waits), gpu.launches
            gpu.clear()
            assert len(learner.read()) == 2
            reading = dict(gpu.waits)
            gpu.clear()
            hook = model.output.register_forward_hook(read_it)
            learner.update([batch(model)], 2, 0.2)
            hook.remove()
            planted = dict(gpu.waits)
            torch.nn.init.constant_(model.output.bias[2:3], -99.0)  # no hypothesis ends early: rows would leave
            beams = []
            for longest in (3, 4):  # the difference is one step
                gpu.clear()
                searched(model, GPU, longest)
                beams.append((dict(gpu.waits), gpu.launches))
        found = {"update": update, "reading": reading, "launches": launches, "planted": planted, "beams": beams}
        results[" ".join(case)] = found
    return results


def autocast(cases: list[list[str]]) -> dict[str, Any]:
    """What forward and backward pass launch under autocast, and how many of them are casts."""
    results: dict[str, Any] = {}
    for case in cases:
        with PlayedGpu() as gpu:
            model = catalogue.model(*case).float().to(GPU.device).train()
            moved = batch().to(GPU.device)
            with torch.autocast("cuda", torch.bfloat16):
                loss = batch_loss(model, moved, 0.1)
            loss.total.backward()
            results[" ".join(case)] = {"launches": gpu.launches, "casts": gpu.casts}
    return results


def other_batch(number: int) -> Batch:
    """Pairs of other lengths and pieces that are padded to the shape of `batch`."""
    lengths = [(3, 1), (4 - number % 2, 4), (1, 2)]
    pairs = [
        [[4 + (number * 5 + row * 3 + place) % 19 for place in range(length)] for row, length in enumerate(side)]
        for side in zip(*lengths, strict=True)
    ]
    batch = make_batch(pairs[0] + SOURCES[: number % 3], pairs[1] + TARGETS[: number % 3])
    links = torch.eye(batch.target_out.shape[1], batch.source.shape[1]) * batch.target_mask.unsqueeze(2)
    return batch._replace(links=links)


def kept(learner: Learner) -> dict[str, list[torch.Tensor]]:
    """Weights, averages and the optimizer's state, on the CPU."""
    parts = {
        "weights": learner.model.parameters(),
        "averages": learner.averaging.best_guess.parameters(),
        "state": [value for state in learner.optimizer.state.values() for value in state.values()],
    }
    return {name: [tensor.detach().cpu() for tensor in tensors] for name, tensors in parts.items()}


def gap(some: Iterable[torch.Tensor], others: Iterable[torch.Tensor]) -> float:
    """The largest difference between two lists of tensors."""
    return max((one - other).abs().max().item() for one, other in zip(some, others, strict=True))


def trained(original: Seq2Seq, gpu: PlayedGpu, graphs: str, changes: dict[str, Any], plant: str) -> dict[str, Any]:
    """Five updates, the last one of a single batch: what they leave, and what the last one costs.

    Args:
        original: a model on the CPU, which is copied.
        gpu: the one that trains.
        graphs: "never" or "auto".
        changes: settings of the trainer that are not the usual ones.
        plant: "wait" makes the host wait in each update, "overflow" makes the losses of the fourth one infinite,
            "restore" continues it from a saved state.
    """
    model = copy.deepcopy(original).to(GPU.device)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01, fused=True, eps=1e-3)
    settings = trainer(steps=9, average="ema", graphs=graphs, **changes)
    accumulate = settings.accumulate
    learner = Learner(model.train(), optimizer, CosineDecay(0), settings, GPU)
    factor = torch.ones((), device=GPU.device)
    if plant == "wait":
        model.output.register_forward_hook(read_it)
    elif plant == "overflow":
        model.output.register_forward_hook(lambda _, __, output: output * factor)
    for step in range(5):
        numbers = [5] if step == 4 else range(step * accumulate, (step + 1) * accumulate)
        factor.fill_(math.inf if step == 3 else 1.0)
        if step == 3 and plant == "restore":
            learner.restore(copy.deepcopy(learner.state()))
        gpu.clear()
        learner.update([other_batch(number) for number in numbers], step, step / 9)
    costs, states = (dict(gpu.waits), gpu.launches), kept(learner)
    read = [(update.loss, update.gradient_norm, update.skipped) for update in learner.read()]
    gpu.clear()
    with mock.patch.object(learner.averaging, "count_update", side_effect=lambda: factor.add_(1)):  # one launch more
        learner.update([other_batch(5)], 5, 0.5)
    return {
        "states": states,
        "costs": costs,
        "read": read,
        "planted": gpu.launches,
        "graphs": 0 if learner.fixed is None else learner.fixed.graphs.count,
        "notes": learner.take_notes(),
        "groups": [{key: group[key] for key in ("lr", "capturable")} for group in optimizer.param_groups],
    }


def divided(case: list[str]) -> tuple[list[str], dict[str, Any]]:
    """The words of a case that make its model, and its settings of the trainer, "trainer.KEY=VALUE"."""
    settings = dict(word.removeprefix("trainer.").split("=") for word in case if word.startswith("trainer."))
    model = [word for word in case if not word.startswith("trainer.")]
    return model, {key: json.loads(value) for key, value in settings.items()}


def captured(cases: list[list[str]], accumulate: int = 1, plant: str = "") -> dict[str, Any]:
    """Updates with CUDA graphs beside ordinary ones: `trained` of both, and how far their states are apart."""
    results: dict[str, Any] = {}
    for case in cases:
        words, changes = divided(case)
        original = catalogue.model(*words).float()
        with PlayedGpu() as gpu:
            changes |= {"accumulate": accumulate}
            # Nothing is drawn that both must agree on: SimCut cuts no token.
            with mock.patch("nmt.training.loss.cut_tokens", functools.partial(cut_tokens, share=0.0)):
                never, auto = (trained(original, gpu, graphs, changes, plant) for graphs in ("never", "auto"))
        states, others = never.pop("states"), auto.pop("states")
        results[" ".join(case)] = {
            "gaps": {name: gap(states[name], others[name]) for name in states},
            "learned": gap(states["weights"], original.parameters()),
            "never": never,
            "auto": auto,
        }
    return results


def shaped(cases: list[list[str]]) -> dict[str, Any]:
    """What each of 14 updates costs whose batches have three chosen shapes in turn, and now and then none of them."""
    results: dict[str, Any] = {}
    for case in cases:
        words, changes = divided(case)
        torch.manual_seed(1)  # dropout and draws differ between an update and its graph
        model = catalogue.model(*words, "model.dropout=0.1").float()
        with PlayedGpu() as gpu:
            model = model.to(GPU.device).train()
            optimizer = torch.optim.AdamW(model.parameters(), fused=True)
            learner = Learner(
                model, optimizer, Constant(0), trainer(steps=99, average="ema", graphs="auto", **changes), GPU
            )
            assert learner.fixed is not None
            learner.fixed.shapes = [Shape(4, 3, 3), Shape(4, 5, 4), Shape(5, 5, 6)]
            sizes = [2, 4, 5, 2, 4, 5, 2, 4, 9, 5, 2, 4, 9, 5]  # tokens of the longest target
            costs = []
            for step, longest in enumerate(sizes):
                rows = 3 + (longest == 5)
                pairs = [[4 + (step + place) % 19 for place in range(longest - 1)] for _ in range(rows)]
                made = make_batch([pair[:3] for pair in pairs], pairs)
                links = torch.zeros(rows, longest, made.source.shape[1])
                gpu.clear()
                learner.update([made._replace(links=links)], step, 0.0)
                costs.append((dict(gpu.waits), gpu.launches))
            read = learner.read()
        graphs = learner.fixed.graphs.count
        finite = all(math.isfinite(update.loss) and not update.skipped for update in read)
        results[" ".join(case)] = {
            "costs": costs,
            "graphs": graphs,
            "notes": learner.take_notes(),
            "finite": finite,
            "count": len(read),
        }
    return results


def accumulated(cases: list[list[str]]) -> dict[str, Any]:
    """`captured` of updates of two batches."""
    return captured(cases, accumulate=2)


def overflowing(cases: list[list[str]]) -> dict[str, Any]:
    """`captured` of a model that computes infinite losses in one update."""
    return captured(cases, plant="overflow")


def restored(cases: list[list[str]]) -> dict[str, Any]:
    """`captured` of a training that continues from a saved state."""
    return captured(cases, plant="restore")


def refused(cases: list[list[str]]) -> dict[str, Any]:
    """`captured` of a model that makes the host wait in the middle of an update."""
    return captured(cases, plant="wait")


def pipeline(folder: str) -> dict[str, Any]:
    """Train, resume, translate and evaluate on the GPU, then resume on the CPU and on the GPU: statuses and texts."""
    here = Path(folder)
    text = write_text(here / "text")
    line = words(text, here, "name=run", "trainer.save_minutes=0", "trainer.validate_every=2")
    source = write_lines(here / "in.txt", ["eins zwei", "rot und blau", "haus"])
    asked = [f"run={here / 'run'}", f"input={source}", "search.beam_size=3"]
    statuses = []
    with PlayedGpu() as gpu:
        statuses.append(call("train", *line, "device=cuda", "trainer.steps=3"))
        statuses.append(call("train", *line, "device=cuda", "trainer.steps=4", "resume=true"))
        replays = gpu.replays
        statuses.append(call("translate", *asked, f"output={here / 'gpu.txt'}", "device=cuda", "precision=float32"))
        replays = gpu.replays - replays
        statuses.append(call("evaluate", f"run={here / 'run'}", "device=cuda", "split=test", "search.beam_size=2"))
        launches = gpu.launches
    statuses.append(call("translate", *asked, f"output={here / 'cpu.txt'}", "device=cpu"))
    statuses.append(call("train", *line, "device=cpu", "trainer.steps=5", "resume=true"))
    with PlayedGpu():
        statuses.append(call("train", *line, "device=cuda", "trainer.steps=6", "resume=true"))
    texts = [(here / f"{device}.txt").read_text() for device in ("gpu", "cpu")]
    log = (here / "run" / "train.log").read_text() if (here / "run" / "train.log").exists() else ""
    return {"statuses": statuses, "texts": texts, "launches": launches, "replays": replays, "log": log}


def main(task: str, cases: str) -> None:
    """Print the results of a task as JSON."""
    tasks: dict[str, Callable[[Any], dict[str, Any]]] = {"parity": parity, "costs": costs, "pipeline": pipeline}
    tasks.update(captured=captured, accumulated=accumulated, overflowing=overflowing)
    tasks.update(restored=restored, refused=refused, shaped=shaped, autocast=autocast, replayed=replayed)
    print(json.dumps(tasks[task](json.loads(cases))))
