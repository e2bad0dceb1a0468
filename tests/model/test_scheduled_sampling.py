"""Scheduled sampling: a model is fed its own draws, as often as it is told to."""

import math

import pytest
import torch
from torch import Tensor

from nmt.model import Source
from tests.catalogue import model, recurrent, sentences
from tests.model.test_wirings import LENGTHS, run, targets


def test_scheduled_sampling_at_probability_one_feeds_the_models_own_draws() -> None:
    made = model(train=True)
    source, mask, _ = sentences(LENGTHS, 23)
    one, other = targets(), targets()
    other[:, 1:] = 5  # all but the first input is replaced, so the reference does not matter
    results = []
    for target in (one, other):
        torch.manual_seed(1)
        results.append(made(Source(source, mask), target, 1.0).features)
    torch.testing.assert_close(results[0], results[1])
    torch.manual_seed(1)
    assert not torch.allclose(made(Source(source, mask), one, 0.0).features, results[0])


@pytest.mark.parametrize("own", [(), ("attention/read=hard", "attention.read.objective=enumerate")], ids=" ".join)
@pytest.mark.parametrize("sampling", [0.5, 1.0])
def test_scheduled_sampling_draws_as_often_as_the_model_says(own: tuple[str, ...], sampling: float) -> None:
    """One sentence thousands of times: how often each piece is the second input, within four deviations."""
    made, times = model(*own, train=True), 20_000
    with torch.no_grad():  # so that slots differ, and their mixture from what is read off the soft context
        for weight in recurrent(made).readout.parameters():
            weight.mul_(4)
    source, mask, _ = sentences([4], 23)
    target = targets(1, 2)
    given = int(target[0, 1])
    expected = sampling * run(made, source, mask, target)[0][0, 0].exp().detach().double()
    expected[given] += 1 - sampling
    inputs: list[Tensor] = []
    made.target_embedding.register_forward_hook(lambda _, arguments, __: inputs.append(arguments[0]))
    torch.manual_seed(4)
    with torch.no_grad():
        made(Source(source.expand(times, -1), mask.expand(times, -1)), target.expand(times, -1), sampling)
    found = torch.bincount(inputs[1], minlength=29) / times
    assert ((found - expected).abs() <= 4 * (expected * (1 - expected) / times).sqrt() + 1e-4).all()


def test_scheduled_sampling_lets_a_model_that_has_diverged_through() -> None:
    """The trainer says that the loss is no number; drawing must not end the run before."""
    made = model(train=True)
    with torch.no_grad():
        made.output.bias.fill_(math.nan)
    source, mask, _ = sentences(LENGTHS, 23)
    decoded = made(Source(source, mask), targets(), 1.0)
    assert made.target_logits(decoded, torch.ones(3, 5, dtype=torch.bool)).isnan().all()
