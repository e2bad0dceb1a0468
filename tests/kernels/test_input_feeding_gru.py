"""The fused recurrence with input feeding against its definition, one step after the other."""

import pytest
import torch

from nmt.attention.attention import masked_softmax
from nmt.kernels.attentive_gru import ProjectedMemory
from nmt.kernels.input_feeding_gru import Parameters, Start, Words, fast_input_feeding_gru, plain_input_feeding_gru

BATCH, STEPS, SLOTS, SIZE, FEATURES = 3, 5, 7, 11, 6


def arguments() -> list[torch.Tensor]:
    """Inputs, units, first, feed, shares, keys, weight, bias, feed weight and state weight, all with a gradient."""
    shapes = [
        *((BATCH, STEPS, 3 * SIZE), (BATCH, STEPS, FEATURES), (BATCH, SIZE), (BATCH, FEATURES)),
        *((BATCH, SLOTS, FEATURES), (BATCH, SLOTS, SIZE)),
        *((3 * SIZE, SIZE), (3 * SIZE,), (3 * SIZE, FEATURES), (FEATURES, SIZE)),
    ]
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


@pytest.mark.parametrize("word", [True, False], ids=["word", "no word"])
@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 4], [3, 0, 7]], ids=str)
def test_features_weights_and_gradients_are_those_of_the_plain_recurrence(lengths: list[int], word: bool) -> None:
    mask = torch.arange(SLOTS) < torch.tensor(lengths)[:, None]
    inputs, units, first, feed, shares, keys, *rest = values = arguments()
    words = Words(inputs, units if word else None)
    results = []
    for compute in (plain_input_feeding_gru, fast_input_feeding_gru):
        features, weights = compute(
            words, Start(first, feed), ProjectedMemory(shares, keys, mask), Parameters(*rest), masked_softmax
        )
        loss = (features**3).sum() + (weights**2).sum()
        wanted = [value for value in values if word or value is not units]
        results.append((features, weights, *torch.autograd.grad(loss, wanted)))
    for plain, fast in zip(*results, strict=True):
        torch.testing.assert_close(fast, plain)


def test_bfloat16_rounds_products_alone() -> None:
    mask = torch.ones(BATCH, SLOTS, dtype=torch.bool)
    inputs, units, first, feed, shares, keys, *rest = (value.detach().float() for value in arguments())
    given = Words(inputs, units), Start(first, feed), ProjectedMemory(shares, keys / 3, mask), Parameters(*rest)
    exact = plain_input_feeding_gru(*given, masked_softmax)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = fast_input_feeding_gru(*given, masked_softmax)
    for ours, theirs in zip(rounded, exact, strict=True):
        assert ours.dtype is torch.float32
        torch.testing.assert_close(ours, theirs, rtol=0.1, atol=0.1)
