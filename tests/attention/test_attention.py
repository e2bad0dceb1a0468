"""Heads, dropout and the softmax of the whole mechanism."""

import pytest
import torch

from nmt.kernels.energies import masked_softmax
from tests.catalogue import attention

F64 = torch.float64


@pytest.mark.parametrize("head", [0, 1, 2])
def test_a_head_sees_its_own_coverage_and_no_other(head: int) -> None:
    made = attention("additive", heads=3, coverage=True)
    values, queries, steps = torch.randn(2, 5, 10, dtype=F64), torch.randn(2, 1, 10, dtype=F64), torch.zeros(2, 1)
    memory = made.remember(values, torch.ones(2, 5, dtype=torch.bool))
    (coverage,) = made.start(memory)
    coverage = coverage + torch.rand(2, 3, 5, dtype=F64)
    other = coverage.clone()
    other[:, head] = torch.rand(2, 5, dtype=F64)
    before, after = (made(queries, memory, steps.long(), (state,)).weights for state in (coverage, other))
    changed = (before - after).abs().amax((2, 3)) > 1e-6  # [B, H]
    assert changed.tolist() == [[index == head for index in range(3)]] * 2


def test_dropout_keeps_the_expected_weight() -> None:
    """Slots that hold the unit vectors hand out the weights themselves: zero, or divided by 1 - p."""
    made = attention("additive", value_size=40)
    made.dropout.p = 0.75
    made.train()
    torch.manual_seed(5)
    memory = made.remember(torch.eye(40, dtype=F64).unsqueeze(0), torch.ones(1, 40, dtype=torch.bool))
    attended = made(torch.randn(1, 5, 10, dtype=F64), memory, torch.zeros(1, 5, dtype=torch.int64))
    read = attended.context != 0
    # A quarter of 200, within four standard deviations.
    assert 25 <= int(read.sum()) <= 75
    torch.testing.assert_close(attended.context, torch.where(read, 4 * attended.weights[:, 0], 0.0))


def test_energies_in_bfloat16_become_weights_in_float32() -> None:
    """Weights of a few slots would be off by up to 2^-9 of their size, and their sum from 1, in bfloat16."""
    torch.manual_seed(1)
    energies = torch.randn(3, 7).bfloat16()
    weights = masked_softmax(energies, torch.ones(3, 7, dtype=torch.bool))
    torch.testing.assert_close(weights, torch.softmax(energies.float(), -1))
    assert not torch.equal(weights, weights.bfloat16().float())
