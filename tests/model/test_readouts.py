"""Readouts by hand."""

import torch
from torch import nn

from nmt.model.recurrent.readouts import Maxout


def test_maxout_takes_the_larger_unit_of_each_pair() -> None:
    """The four units are 3, -1, -2 and -8 before their pairs' maxima: s = 1, E y = -2, c = 3."""
    readout = Maxout(state_size=1, embedding_size=1, context_size=1, size=2)
    assert isinstance(readout.linear, nn.Linear)
    with torch.no_grad():
        readout.linear.weight.copy_(torch.tensor([[2.0, 1, 1], [1, 1, 0], [0, 2, 0.5], [0, 1, -2]]))
        readout.linear.bias.copy_(torch.tensor([0.0, 0, 0.5, 0]))
    features = readout(torch.tensor([1.0]), torch.tensor([-2.0]), torch.tensor([3.0]))
    torch.testing.assert_close(features, torch.tensor([3.0, -2.0]))
