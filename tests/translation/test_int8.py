"""The output layer of search in int8: close to the exact one, row by row, whatever rows are beside it."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from nmt.model import Source
from nmt.system.compute import Compute, has_int8
from nmt.translation.int8 import Int8Linear
from nmt.translation.shortlist import Candidates
from nmt.translation.stepper import Stepper
from tests.catalogue import model, sentences

pytestmark = pytest.mark.skipif(not has_int8(), reason="this processor does not multiply int8")
INT8 = Compute(torch.device("cpu"), int8=True)


def layer(features: int, pieces: int, seed: int) -> nn.Linear:
    """A linear layer whose rows have very different sizes."""
    generator = torch.Generator().manual_seed(seed)
    made = nn.Linear(features, pieces)
    with torch.no_grad():
        sizes = 10 ** torch.empty(pieces, 1).uniform_(-3, 1, generator=generator)
        made.weight.copy_(torch.randn(pieces, features, generator=generator) * sizes)
        made.bias.copy_(torch.randn(pieces, generator=generator))
    return made


@pytest.mark.parametrize("vnni", [True, False])
@given(st.integers(1, 9), st.integers(1, 80), st.integers(1, 70), st.integers(0, 2**31))
def test_each_number_is_as_close_as_rounding_allows(
    vnni: bool, rows: int, features: int, pieces: int, seed: int
) -> None:
    exact = layer(features, pieces, seed)
    own = Int8Linear(exact)
    if not vnni:
        own.levels = 63
    numbers = torch.randn(rows, features, generator=torch.Generator().manual_seed(seed)) * 5
    # Each of F products is off by at most half a step of either factor.
    most = numbers.abs().amax(1, keepdim=True)
    largest = exact.weight.abs().amax(1)
    allowed = features * most * largest * (0.5 / own.levels + 0.5 / 127 + 0.25 / (127 * own.levels)) + 1e-4
    with torch.inference_mode():
        error = (own(numbers) - exact(numbers)).abs()
    assert (error <= allowed * 1.001).all()


def test_a_row_does_not_depend_on_the_rows_beside_it() -> None:
    own = Int8Linear(layer(64, 100, 1))
    numbers = torch.randn(7, 64) * torch.logspace(-2, 2, 7).unsqueeze(1)
    with torch.inference_mode():
        together = own(numbers)
        assert all(torch.equal(own(row.unsqueeze(0))[0], among) for row, among in zip(numbers, together, strict=True))
        assert torch.equal(own(numbers.view(7, 1, 64)), together.view(7, 1, 100))


def test_rows_and_features_of_zeros_give_the_bias() -> None:
    exact = layer(8, 5, 2)
    with torch.no_grad():
        exact.weight[3] = 0
    own = Int8Linear(exact)
    with torch.inference_mode():
        assert torch.equal(own(torch.zeros(2, 8)), exact.bias.expand(2, 5))
        assert torch.equal(own(torch.randn(2, 8))[:, 3], exact.bias[3].expand(2))


@pytest.mark.parametrize("decoder", ["bahdanau", "luong", "none", "transformer", "conv"])
@pytest.mark.parametrize("dtype", [None, torch.bfloat16], ids=["float32", "bf16"])
def test_search_has_the_log_probabilities_of_float32_but_for_rounding(decoder: str, dtype: torch.dtype | None) -> None:
    made = model(f"decoder={decoder}", "model.tie_embeddings=none").float()
    source, mask, counts = sentences([5, 2, 7], 23, 4)
    tokens = torch.tensor([5, 11, 4])
    compute = Compute(torch.device("cpu"), dtype, int8=True)
    exact, own = Stepper([made]), Stepper([made], compute)
    with torch.inference_mode():
        theirs = exact(tokens, exact.start(Source(source, mask, counts)))[0]
        with compute.autocast():
            ours = own(tokens, own.start(Source(source, mask, counts)))[0]
    assert isinstance(own.models[0].output, Int8Linear)
    assert type(made.output) is nn.Linear
    assert {parameter.dtype for parameter in made.parameters()} == {torch.float32}
    torch.testing.assert_close(ours.logsumexp(-1), torch.zeros(3), rtol=0, atol=1e-5)
    assert not torch.equal(ours, theirs)
    # Features have half as many levels where products are added up in 16 bits.
    allowed = 0.03 if Int8Linear(made.output).levels == 127 else 0.06
    torch.testing.assert_close(ours, theirs, rtol=allowed, atol=allowed)


def test_a_shortlist_takes_exact_rows() -> None:
    made = model("decoder=luong").float()
    own = Stepper([made], INT8).models[0]
    ids = torch.tensor([0, 3, 9])
    weight, biases = Candidates(ids, torch.tensor([[True, True, False]])).output(own.output)
    assert torch.equal(weight, made.output.weight[ids])
    assert biases.tolist() == [[*made.output.bias[ids[:2]].tolist(), float("-inf")]]


def test_without_fast_kernels_nothing_is_rounded() -> None:
    made = model("decoder=luong", "model.fast=false").float()
    assert Stepper([made], INT8).models[0] is made
