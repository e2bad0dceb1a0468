"""`model.fast=false`: no fast kernel runs, and the numbers agree."""

import importlib
import pkgutil
from types import ModuleType
from typing import Any

import pytest
import torch

from nmt import kernels
from nmt.data.batch import make_batch
from nmt.kernels.energies import masked_softmax
from nmt.model import Seq2Seq, Source
from nmt.search import BeamSearch, Limits
from nmt.training.loss import batch_loss
from nmt.translation.stepper import Stepper
from tests.catalogue import DECODERS, model, sentences

MODULES = [importlib.import_module(f"nmt.kernels.{module.name}") for module in pkgutil.iter_modules(kernels.__path__)]
FAST = [
    (module, name)
    for module in MODULES
    for name, kernel in vars(module).items()
    if name.startswith("fast_") and kernel.__module__ == module.__name__
]


def counted(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of the fast kernels that are called from here on."""
    called: list[str] = []

    def spy(module: ModuleType, name: str) -> Any:
        kernel = getattr(module, name)

        def call(*arguments: Any, **settings: Any) -> Any:
            called.append(name)
            return kernel(*arguments, **settings)

        return call

    for module, name in FAST:
        monkeypatch.setattr(module, name, spy(module, name))
    return called


def everything(made: Seq2Seq) -> dict[str, torch.Tensor]:
    """Loss, gradients and the scores of translations."""
    batch = make_batch([[5, 6, 7], [8], [9, 4]], [[9, 4], [5, 6, 7, 8, 9], [4]])
    loss = batch_loss(made, batch, 0.1)
    loss.total.backward()
    stepper = Stepper([made.eval()])
    source, mask, lengths = sentences([4, 2], 23)
    limits = Limits(2, 3, (0, 1, 2), torch.tensor([6, 6]), mask)
    with torch.inference_mode(), made.kernels():
        hypotheses = BeamSearch(3)(stepper, stepper.start(Source(source, mask, lengths)), limits)
    results = {name: value.grad for name, value in made.named_parameters() if value.grad is not None}
    scores = torch.tensor([[hypothesis.score for hypothesis in nbest] for nbest in hypotheses])
    return {**results, "loss": loss.total, "likelihood": loss.negative_log_likelihood, "scores": scores}


@pytest.mark.parametrize("wiring", DECODERS)
def test_without_fast_only_the_plain_kernels_run_and_the_numbers_agree(
    wiring: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = counted(monkeypatch)
    pieces = (23, 300)  # long enough rows for the fast search of the largest
    fast, plain = (model(f"decoder={wiring}", f"model.fast={fast}", pieces=pieces) for fast in ("true", "false"))
    results = everything(fast)
    assert {"fast_layers", "fast_cross_entropy", "fast_largest"} <= set(called)
    called.clear()
    references = everything(plain)
    assert called == []
    for name, reference in references.items():
        torch.testing.assert_close(results[name], reference, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("branches", ["true", "false"])
def test_a_transformer_trains_without_weights_and_agrees_with_its_plain_form(
    branches: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []

    def softmax(energies: torch.Tensor, visible: torch.Tensor) -> torch.Tensor:
        calls.append(energies.shape[-1])
        return masked_softmax(energies, visible)

    monkeypatch.setattr("nmt.attention.normalisers.masked_softmax", softmax)
    words = ["encoder=transformer", "decoder=transformer", "attention/score=scaled_dot", "attention.size=null"]
    words += [f"encoder.branches={branches}", f"decoder.branches={branches}"]
    batch = make_batch([[5, 6, 7], [8], [9, 4]], [[9, 4], [5, 6, 7, 8, 9], [4]])
    found: list[list[torch.Tensor]] = []
    for fast in ("true", "false"):
        made = model(*words, f"model.fast={fast}", train=True)
        loss = batch_loss(made, batch, 0.1)
        found.append([loss.total, *torch.autograd.grad(loss.total, list(made.parameters()))])
        assert len(calls) == (0 if fast == "true" else 6)  # two layers, with three kinds of attention in all
    for result, reference in zip(*found, strict=True):
        torch.testing.assert_close(result, reference, rtol=1e-5, atol=1e-5)


def test_dropout_without_fast_is_that_of_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    called = counted(monkeypatch)
    source, mask, _ = sentences([4, 2], 23)
    for fast in ("true", "false"):
        called.clear()
        made = model("encoder.layers=2", f"model.fast={fast}", train=True)
        made.dropout.p = 0.5
        made.encoder.get_submodule("rnn").dropout = 0.5  # type: ignore[assignment]
        made(Source(source, mask, mask.sum(1)), sentences([3, 3], 29)[0])
        assert ("fast_dropout" in called) == (fast == "true")


def test_what_the_backward_pass_computes_again_draws_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """The logits of a mixture, whose features have dropped out before; a CUDA graph cannot read the random state."""
    called = counted(monkeypatch)
    words = ["attention/read=hard", "attention.read.objective=enumerate", "model.output_dropout=0.5"]
    for fast in ("true", "false"):
        made = model(*words, f"model.fast={fast}", train=True)
        called.clear()
        loss = batch_loss(made, make_batch([[5, 6, 7], [8]], [[9, 4], [5]])).total
        assert ("fast_dropout" in called) == (fast == "true")
        called.clear()
        loss.backward()
        assert called == []


def test_every_fast_kernel_has_its_plain_one_beside_it() -> None:
    assert FAST
    for module, name in FAST:
        assert callable(getattr(module, name.replace("fast_", "plain_")))
