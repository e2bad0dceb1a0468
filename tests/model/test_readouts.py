"""Readouts by hand."""

import pytest
import torch
from torch import nn

from nmt.model.recurrent.readouts import Maxout
from tests.catalogue import READOUTS, model, recurrent


def test_maxout_takes_the_larger_unit_of_each_pair() -> None:
    """The four units are 3, -1, -2 and -8 before their pairs' maxima: s = 1, E y = -2, c = 3."""
    readout = Maxout(state_size=1, embedding_size=1, context_size=1, size=2)
    assert isinstance(readout.linear, nn.Linear)
    with torch.no_grad():
        readout.linear.weight.copy_(torch.tensor([[2.0, 1, 1], [1, 1, 0], [0, 2, 0.5], [0, 1, -2]]))
        readout.linear.bias.copy_(torch.tensor([0.0, 0, 0.5, 0]))
    features = readout(torch.tensor([1.0]), torch.tensor([-2.0]), torch.tensor([3.0]))
    torch.testing.assert_close(features, torch.tensor([3.0, -2.0]))


@pytest.mark.parametrize("choice", READOUTS)
def test_a_readout_is_the_sum_of_its_parts(choice: str) -> None:
    readout = recurrent(model("decoder=conditional", f"decoder/readout={choice}")).readout
    parts, generator = readout.parts(), torch.Generator().manual_seed(3)
    inputs = [torch.randn(4, size, dtype=torch.float64, generator=generator) for size in (10, 7, 10)]
    products = [
        product(vectors)
        for product, vectors in zip((parts.state, parts.word, parts.context), inputs, strict=True)
        if product is not None
    ]
    units = torch.stack(products).sum(0) + (0 if parts.bias is None else parts.bias)
    torch.testing.assert_close(readout.activate(units), readout(*inputs))
