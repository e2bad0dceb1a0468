"""The fused attentive recurrence against its definition, one step after the other."""

import pytest
import torch

from nmt.attention.attention import masked_softmax
from nmt.kernels.attentive_gru import Parameters, ProjectedMemory, fast_attentive_gru, plain_attentive_gru

BATCH, STEPS, SLOTS, SIZE, SPACE = 3, 5, 7, 11, 13


def arguments() -> list[torch.Tensor]:
    """Inputs, first, shares, keys, query weight, v, weight and bias, all with a gradient."""
    shapes = [
        *((BATCH, STEPS, 3 * SIZE), (BATCH, SIZE), (BATCH, SLOTS, 3 * SIZE), (BATCH, SLOTS, SPACE)),
        *((SPACE, SIZE), (SPACE,), (3 * SIZE, SIZE), (3 * SIZE,)),
    ]
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 4], [3, 0, 7]], ids=str)
def test_states_weights_and_gradients_are_those_of_the_plain_recurrence(lengths: list[int]) -> None:
    mask = torch.arange(SLOTS) < torch.tensor(lengths)[:, None]
    inputs, first, shares, keys, *rest = values = arguments()
    results = []
    for compute in (plain_attentive_gru, fast_attentive_gru):
        states, weights = compute(inputs, first, ProjectedMemory(shares, keys, mask), Parameters(*rest), masked_softmax)
        loss = (states**3).sum() + (weights**2).sum()
        results.append((states, weights, *torch.autograd.grad(loss, values)))
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain)
