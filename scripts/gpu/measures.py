"""Measurements on a GPU besides training and translating: the limits of the card, and the parity with the CPU."""

import contextlib
import copy
import functools
import platform
import time
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import torch
from torch import Tensor, nn

from nmt.build.parts import assemble
from nmt.config.composition import compose
from nmt.data.batch import Batch, make_batch
from nmt.model import Seq2Seq, Source
from nmt.model.recurrent.readouts import Maxout
from nmt.search import BeamSearch, Limits
from nmt.system.compute import CPU, Compute
from nmt.training.loss import batch_loss
from nmt.translation.stepper import Stepper

Json = dict[str, Any]
#: The variants that are compared with the CPU: name -> overrides.
VARIANTS = {
    "bahdanau, additive": ("decoder=bahdanau", "attention/score=additive"),
    "bahdanau, additive, plain": ("decoder=bahdanau", "attention/score=additive", "model.fast=false"),
    "luong, general": ("decoder=luong", "attention/score=general"),
    "conditional, 4 heads": ("decoder=conditional", "attention.heads=4"),
    "transformer": ("encoder=transformer", "decoder=transformer"),
    "conv": ("encoder=conv", "decoder=conv"),
}
_SIZES = ("model.embedding_size=64", "model.dropout=0")
_PIECES, _SENTENCES, _LONGEST = 400, 32, 20
#: Maximum difference of a gradient from the CPU's, as a share of its largest absolute value.
MOST_DIFFERENT = 1e-4


def ceilings(device: torch.device, size: int) -> Json:
    """The card and its limits: speed of matrix products and of copies in memory, time of launches and waits.

    Args:
        device: "cuda", or "cpu" to test the script.
        size: rows and columns of the matrices.
    """
    facts: Json = {"torch": str(torch.__version__), "python": platform.python_version(), "device": str(device)}
    if device.type == "cuda":
        about = torch.cuda.get_device_properties(device)
        facts |= {"name": about.name, "memory_gb": about.total_memory / 1e9, "cuda": str(torch.version.cuda)}
    for name, kind in (("bf16", torch.bfloat16), ("float32", torch.float32)):
        one, other = (torch.randn(size, size, device=device, dtype=kind) for _ in range(2))
        facts[f"tflops_{name}"] = 2 * size**3 / _seconds(functools.partial(torch.matmul, one, other), device) / 1e12
    block = torch.empty(size * size, device=device)
    facts["copy_gb_per_second"] = 2 * 4 * size * size / _seconds(block.clone, device) / 1e9
    few = torch.zeros(8, device=device)
    facts["launch_microseconds"] = 1e6 * _seconds(lambda: few.add_(1), device, 1000)
    facts["wait_microseconds"] = 1e6 * _seconds(lambda: few.add_(1)[0].item(), device, 1000)
    return facts


def _seconds(work: Callable[[], object], device: torch.device, repeats: int = 20) -> float:
    """Seconds of one call: the minimum over four rounds of `repeats` calls, the first of which is a warm-up."""
    best = float("inf")
    for _ in range(4):
        _finish(device)
        began = time.perf_counter()
        for _ in range(repeats):
            work()
        _finish(device)
        best = min(best, (time.perf_counter() - began) / repeats)
    return best


def _finish(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def parity(device: torch.device) -> Json:
    """Differences of each variant's loss, gradients and beams from the CPU's in float32, or the error of a variant."""
    place = Compute.choose(str(device), precision="float32")
    differences: Json = {}
    for name, words in VARIANTS.items():
        torch.manual_seed(1)
        config = compose("train", [*_SIZES, *words])
        model = assemble(config, _PIECES, _PIECES, joint=True)
        try:
            with _smooth():
                differences[name] = _difference(model, place)
        except RuntimeError as error:
            differences[name] = {"error": str(error).splitlines()[0]}
    return differences


@contextlib.contextmanager
def _smooth() -> Iterator[None]:
    """Replace ReLU and maxout by smooth functions while the context is open.

    At a kink, rounding decides on which side of zero a sum falls, and the gradient jumps: one unit of the Transformer
    changes it by 1.8e-2 between float32 and float64 on the same CPU.
    """

    def relu(units: Tensor) -> Tensor:
        return nn.functional.softplus(units)

    def maxout(self: Maxout, units: Tensor) -> Tensor:
        return torch.logsumexp(units.unflatten(-1, (self.size, 2)), -1)

    with mock.patch.object(Tensor, "relu_", relu), mock.patch.object(Maxout, "activate", maxout):
        yield


def _difference(model: Seq2Seq, place: Compute) -> Json:
    generator = torch.Generator().manual_seed(2)
    lengths = torch.randint(1, _LONGEST, (2, _SENTENCES), generator=generator).tolist()
    source, target = (
        [torch.randint(4, _PIECES, (length,), generator=generator).tolist() for length in side] for side in lengths
    )
    batch = make_batch(source, target)
    results = [_computed(copy.deepcopy(model), batch, where) for where in (CPU, place)]
    (loss, gradients, beams), (their_loss, their_gradients, their_beams) = results
    largest = {name: ours.abs().max().item() for name, ours in gradients.items()}
    # Some gradients, such as those of the keys' biases, are zero except for rounding errors.
    scales = {
        name: peak if peak > 1e-6 * max(largest.values()) else max(largest.values()) for name, peak in largest.items()
    }
    gaps = {name: (ours - their_gradients[name]).abs().max().item() / scales[name] for name, ours in gradients.items()}
    worst = max(gaps, key=gaps.__getitem__)
    same = sum(ours == theirs for ours, theirs in zip(beams, their_beams, strict=True))
    figures = {"loss": abs(their_loss - loss) / abs(loss), "gradients": gaps[worst], "parameter": worst}
    return {**figures, "beams": same, "of": len(beams)}


def _computed(model: Seq2Seq, batch: Batch, where: Compute) -> tuple[float, dict[str, Tensor], list[list[int]]]:
    """The loss, the gradients by parameter, and the best tokens of each sentence with a beam of 5."""
    model, batch = model.to(where.device), batch.to(where.device)
    total = batch_loss(model.train(), batch, 0.1).total
    total.backward()
    gradients = {name: p.grad.cpu() for name, p in model.named_parameters() if p.grad is not None}
    stepper = Stepper([model.eval()])
    longest = torch.full((len(batch.rows),), _LONGEST, device=where.device)
    with torch.inference_mode():
        state = stepper.start(Source.of(batch))
        hypotheses = BeamSearch(5)(stepper, state, Limits(1, 2, (0, 3), longest, batch.source_mask))
    return total.item(), gradients, [nbest[0].tokens for nbest in hypotheses]
