"""Parameters of older runs under their present names: weights, and an optimizer that goes on as if nothing happened."""

import copy
import itertools
from collections.abc import Mapping

import pytest
import torch
from torch import Tensor, nn

from nmt.compat_weights import upgrade_state, upgrade_weights
from tests.catalogue import attentive, model

Named = Mapping[str, Tensor]
HEADS = 11  # so that "10" has to come after "2"


def old_names(heads: int) -> dict[str, tuple[int, ...]]:
    """Parameters as an older version had them, in its order, with the sizes of a small model."""
    prefix = "decoder.attention."
    sizes = {"source_embedding.weight": (5, 4), "encoder.rnn.bias": (3,)}
    sizes |= {
        f"{prefix}scores.{head}.{name}": size
        for head in range(heads)
        for name, size in (("v", (2,)), ("W.weight", (2, 3)))
    }
    sizes |= {f"{prefix}windows.{head}.v": (3,) for head in range(heads)}
    return sizes | {f"{prefix}query.weight": (7, 4), "output.bias": (5,)}


def drawn(sizes: dict[str, tuple[int, ...]], seed: int) -> Named:
    generator = torch.Generator().manual_seed(seed)
    return {name: torch.randn(size, generator=generator) for name, size in sizes.items()}


def grouped(weights: Named) -> tuple[Named, Named]:
    """Matrices, then embeddings and vectors, as `build_optimizer` has them."""
    matrices = {name: value for name, value in weights.items() if value.ndim > 1 and "embedding" not in name}
    return matrices, {name: value for name, value in weights.items() if name not in matrices}


def optimizer(kind: type[torch.optim.Optimizer], weights: Named) -> torch.optim.Optimizer:
    matrices, others = grouped(weights)
    return kind(
        [
            {"params": list(matrices.values()), "weight_decay": 0.1},
            {"params": list(others.values()), "weight_decay": 0.0},
        ],
        lr=0.1,
    )  # type: ignore[call-arg]


@pytest.mark.parametrize("heads", [1, HEADS])
def test_heads_are_joined_in_their_order(heads: int) -> None:
    old = drawn(old_names(heads), 1)
    shuffled = {name: old[name] for name in sorted(old)}  # as safetensors has them
    for weights in (old, shuffled):
        new = upgrade_weights(weights)
        assert new["decoder.attention.score.W.weight"].shape == (2 * heads, 3)
        for head, (v, window) in enumerate(
            zip(
                new["decoder.attention.score.v"].chunk(heads),
                new["decoder.attention.window.v"].chunk(heads),
                strict=True,
            )
        ):
            assert torch.equal(v, old[f"decoder.attention.scores.{head}.v"])
            assert torch.equal(window, old[f"decoder.attention.windows.{head}.v"])
        assert {name for name in new if "scores" in name or "windows" in name} == set()
        assert new["decoder.attention.query.weight"] is old["decoder.attention.query.weight"]
    assert upgrade_weights(new) == new


def test_what_is_upgraded_fits_a_model_in_its_order() -> None:
    made = attentive(model("attention.heads=3", "attention.coverage=true", "attention/window=local_p")).attention
    heads = [("score", "scores"), ("window", "windows")]
    present = {f"decoder.attention.{name}": value for name, value in made.named_parameters()}
    old: dict[str, Tensor] = {}
    for new_part, old_part in heads:
        for head, (name, value) in itertools.product(range(3), present.items()):
            if f".{new_part}." in name:
                old[name.replace(f".{new_part}.", f".{old_part}.{head}.")] = value.chunk(3)[head]
    old |= {name: value for name, value in present.items() if ".score." not in name and ".window." not in name}
    upgraded = upgrade_weights(old)
    assert list(upgraded) == list(present)
    assert all(torch.equal(upgraded[name], present[name]) for name in present)


@pytest.mark.parametrize("kind", [torch.optim.AdamW, torch.optim.NAdam, torch.optim.Adagrad, torch.optim.SGD])
@pytest.mark.parametrize("heads", [1, 2])
def test_an_optimizer_goes_on_where_it_was(kind: type[torch.optim.Optimizer], heads: int) -> None:
    old = {name: nn.Parameter(value) for name, value in drawn(old_names(heads), 1).items()}
    before = optimizer(kind, old)

    def step(own: torch.optim.Optimizer, weights: Named, gradients: Named) -> None:
        for name, parameter in weights.items():
            parameter.grad = gradients[name].clone()
        own.step()

    for seed in (2, 3):
        step(before, old, drawn(old_names(heads), seed))
    mean = {f"module.{name}": value.detach() for name, value in old.items()} | {"n_averaged": torch.tensor(3)}
    state = {
        "model": {name: value.detach().clone() for name, value in old.items()},
        "optimizer": copy.deepcopy(before.state_dict()),
        "averaging": {
            "kind": "ema",
            "averaged": mean,
            "recent": [{name: value.detach() for name, value in old.items()}],
        },
        "step": 2,
    }
    upgraded = upgrade_state(state)
    assert upgraded["step"] == 2
    new = {name: nn.Parameter(value) for name, value in upgraded["model"].items()}
    after = optimizer(kind, new)
    after.load_state_dict(upgraded["optimizer"])
    gradients = drawn(old_names(heads), 4)
    step(before, old, gradients)
    step(after, new, upgrade_weights(gradients))
    for name, value in upgrade_weights({name: value.detach() for name, value in old.items()}).items():
        torch.testing.assert_close(new[name].detach(), value, rtol=0, atol=0)
    averaging = upgraded["averaging"]
    assert set(averaging["averaged"]) == {"n_averaged", *(f"module.{name}" for name in new)}
    assert [list(recent) for recent in averaging["recent"]] == [list(new)]


def test_a_present_state_stays_as_it_is() -> None:
    state = {"model": {"decoder.attention.score.v": torch.ones(2)}, "optimizer": None, "averaging": None}
    assert upgrade_state(state) is state
    assert upgrade_state({"no": "model"}) == {"no": "model"}
