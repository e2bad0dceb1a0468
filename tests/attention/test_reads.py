"""Reads by hand: soft and hard, sampled and enumerated."""

import math

import pytest
import torch

from nmt.attention import LOG_PROB
from nmt.attention.reads import OBJECTIVES, Hard, Objective
from tests.attention.test_by_hand import F64, tensor

# Two heads over three slots at one step; the second head's factor has left 0.8 of it.
WEIGHTS = tensor([[[[0.25, 0.75, 0.0]], [[0.5, 0.1, 0.2]]]])
VALUES = tensor([[[[1.0], [2.0], [4.0]], [[10.0], [20.0], [40.0]]]])


def test_hard_reads_the_most_probable_slot_in_translation() -> None:
    reading = Hard("sampled").eval()(WEIGHTS, VALUES)
    assert reading.terms == {}
    assert reading.context.flatten().tolist() == [2, 10]


def test_enumerate_keeps_the_soft_context_and_offers_every_slot_in_translation_too() -> None:
    """Search and whoever scores a given target take them all."""
    reading = Hard("enumerate").eval()(WEIGHTS[:, :1], VALUES[:, :1])
    assert reading.terms == {}
    assert reading.context.tolist() == [[[[0.25 + 1.5]]]]
    assert reading.choices.contexts.tolist() == [[[[1], [2], [4]]]]
    torch.testing.assert_close(reading.choices.log_weights.exp(), WEIGHTS[:, 0])


def test_enumerate_with_nothing_to_look_at_reads_nothing() -> None:
    reading = Hard("enumerate").eval()(torch.zeros_like(WEIGHTS[:, :1]), VALUES[:, :1])
    assert reading.context.tolist() == [[[[0]]]]
    torch.testing.assert_close(reading.choices.log_weights.exp().sum(-1), torch.ones(1, 1, dtype=F64))


def test_hard_draws_in_proportion_to_the_weights_each_head_on_its_own() -> None:
    torch.manual_seed(1)
    many = 20000
    reading = Hard(entropy=0.5).train()(WEIGHTS.expand(many, 2, 1, 3), VALUES.expand(many, 2, 3, 1))
    first, second = reading.context[:, 0, 0, 0], reading.context[:, 1, 0, 0]
    for drawn, share in ((first == 2, 0.75), (second == 10, 0.625), (second == 20, 0.125)):
        deviation = math.sqrt(share * (1 - share) / many)
        assert abs(drawn.double().mean().item() - share) < 5 * deviation
    both = ((first == 2) & (second == 10)).double().mean().item()
    assert abs(both - 0.75 * 0.625) < 5 * math.sqrt(0.25 / many)
    shares = {1.0: 0.25, 2.0: 0.75, 10.0: 0.625, 20.0: 0.125, 40.0: 0.25}
    expected = tensor([math.log(shares[a]) + math.log(shares[b]) for a, b in zip(first.tolist(), second.tolist())])
    torch.testing.assert_close(reading.terms[LOG_PROB][:, 0], expected)
    entropy = -sum(share * math.log(share) for share in shares.values())
    torch.testing.assert_close(reading.terms["entropy"], torch.full((many, 1), -0.5 * entropy, dtype=F64))


def test_hard_reads_the_expected_value_at_a_share_of_the_steps() -> None:
    """There the weights learn by back-propagation, and no draw is judged; all heads of a step do the same."""
    torch.manual_seed(1)
    many, share = 20000, 0.3
    weights = WEIGHTS.expand(many, 2, 1, 3)
    reading = Hard(expected=share).train()(weights, VALUES.expand(many, 2, 3, 1))
    first, second = reading.context[:, 0, 0, 0], reading.context[:, 1, 0, 0]
    whole = (first - 1.75).abs() < 1e-9
    assert torch.equal(whole, (second - (6.25 + 2.5 + 10)).abs() < 1e-9)
    assert abs(whole.double().mean().item() - share) < 5 * math.sqrt(share * (1 - share) / many)
    assert set(first[~whole].tolist()) == {1, 2}
    assert set(second[~whole].tolist()) == {10, 20, 40}
    log_prob = reading.terms[LOG_PROB][:, 0]
    assert (log_prob[whole] == 0).all()
    assert (log_prob[~whole] < 0).all()
    torch.manual_seed(1)
    halved = Hard(expected=share, reward=0.5).train()(weights, VALUES.expand(many, 2, 3, 1))
    torch.testing.assert_close(halved.terms[LOG_PROB][:, 0], log_prob / 2)
    assert Hard(expected=share).eval()(WEIGHTS, VALUES).context.flatten().tolist() == [2, 10]
    nothing = Hard(expected=1).train()(torch.zeros_like(WEIGHTS), VALUES)
    assert nothing.context.flatten().tolist() == [0, 0]


@pytest.mark.parametrize("objective", OBJECTIVES)
def test_hard_lets_weights_that_are_no_numbers_show_in_the_loss(objective: Objective) -> None:
    reading = Hard(objective).train()(torch.full((1, 1, 1, 3), math.nan, dtype=F64), VALUES[:, :1])
    found = reading.terms.values() if reading.choices is None else [reading.choices.log_weights]
    assert all(part.isnan().all() for part in found)


def test_enumerate_leaves_every_slot_to_the_readout() -> None:
    reading = Hard("enumerate").train()(WEIGHTS[:, 1:], VALUES[:, 1:])
    torch.testing.assert_close(reading.context, tensor([[[[5.0 + 2.0 + 8.0]]]]))
    assert reading.choices is not None
    assert reading.choices.contexts.tolist() == [[[[10], [20], [40]]]]
    torch.testing.assert_close(reading.choices.log_weights.exp(), tensor([[[0.625, 0.125, 0.25]]]))
    assert Hard("enumerate").train()(WEIGHTS[:, :1], VALUES[:, :1]).choices.log_weights[0, 0, 2] == -math.inf
