"""The composition root: what the optimiser does to which parameters."""

import pytest
import torch

from nmt.build.parts import assemble, build_optimizer
from nmt.config.composition import compose
from nmt.system.errors import UserError
from tests.catalogue import SMALL, assembled


@pytest.mark.parametrize("tie", ["none", "target", "all"])
def test_weight_decay_shrinks_matrices_and_leaves_embeddings_and_vectors_alone(tie: str) -> None:
    """AdamW with a gradient of zero multiplies by 1 - lr * weight_decay, and does nothing else."""
    overrides = [f"model.tie_embeddings={tie}", "decoder.readout.size=7", "optimizer.lr=0.1"]
    config = compose("train", [*SMALL, *overrides, "optimizer=adamw", "optimizer.weight_decay=0.5"])
    model = assembled(config, pieces=(23, 23), joint=True)
    before = {name: parameter.detach().clone() for name, parameter in model.named_parameters()}
    embeddings = {id(model.source_embedding.weight), id(model.target_embedding.weight)}
    optimizer = build_optimizer(config, model)
    for parameter in model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    optimizer.step()
    for name, parameter in model.named_parameters():
        shrinks = parameter.ndim > 1 and id(parameter) not in embeddings
        torch.testing.assert_close(parameter.detach(), before[name] * (0.95 if shrinks else 1.0), msg=name)
    assert (id(model.output.weight) in embeddings) == (tie != "none")


@pytest.mark.parametrize(
    "words",
    [
        ["encoder.size=100000000"],
        ["model.embedding_size=1000000000000"],
        ["decoder=bahdanau", "attention/score=additive", "attention.size=1000000000000"],
        ["encoder=transformer", "encoder/positions=learned", "encoder.positions.count=1000000000000"],
        ["encoder=conv", "encoder.kernel_size=1000000000001"],
    ],
    ids=" ".join,
)
def test_a_model_that_no_machine_holds_is_counted_before_it_is_made(words: list[str]) -> None:
    with pytest.raises(UserError, match=r"The model would have [\d,]{10,} parameters, which need [\d,]{4,} GB"):
        assemble(compose("train", words), 100, 100, joint=True)


def test_a_million_layers_are_refused() -> None:
    with pytest.raises(UserError, match=r"encoder\.layers=1000000: must be from 1 to 1,000"):
        assemble(compose("train", ["encoder.layers=1000000"]), 100, 100, joint=True)
