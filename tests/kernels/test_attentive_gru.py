"""The fused recurrences with attention against their definitions, one step after the other."""

from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from nmt.kernels import attentive_gru, input_feeding_gru
from nmt.kernels.attentive_gru import Inner, fast_attentive_gru, plain_attentive_gru
from nmt.kernels.energies import ProjectedMemory, Query
from nmt.kernels.input_feeding_gru import Start, WordShares, fast_input_feeding_gru, plain_input_feeding_gru

BATCH, STEPS, SLOTS, SIZE, SPACE, FEATURES = 3, 5, 7, 11, 13, 6
Run = Callable[[bool], tuple[Tensor, Tensor]]


def numbers(*shapes: tuple[int, ...]) -> list[Tensor]:
    """Tensors of these shapes, with a gradient."""
    generator = torch.Generator().manual_seed(3)
    return [torch.randn(shape, generator=generator, dtype=torch.float64, requires_grad=True) for shape in shapes]


def asking(additive: bool) -> list[Tensor]:
    """Keys, and with an additive score the weight of the query and v."""
    if not additive:
        return numbers((BATCH, SLOTS, SIZE))
    return numbers((BATCH, SLOTS, SPACE), (SPACE, SIZE), (SPACE,))


def masked(lengths: list[int]) -> Tensor:
    """A mask of slots."""
    return torch.arange(SLOTS) < torch.tensor(lengths)[:, None]


def attentive(additive: bool, inner: bool, mask: Tensor) -> tuple[list[Tensor], Run]:
    """The arguments of a recurrence, and what runs its fast or its plain form on them."""
    keys, *query = asking(additive)
    inputs, first, shares, weight, bias, *more = numbers(
        *((BATCH, STEPS, 3 * SIZE), (BATCH, SIZE), (BATCH, SLOTS, 3 * SIZE), (3 * SIZE, SIZE), (3 * SIZE,)),
        *(((3 * SIZE, SIZE), (3 * SIZE,), (3 * SIZE,)) if inner else ()),
    )
    memory = ProjectedMemory(shares, keys, mask)
    parameters = attentive_gru.Parameters(
        Query(*query) if additive else None, weight, bias, Inner(*more) if inner else None
    )

    def run(fast: bool) -> tuple[Tensor, Tensor]:
        return (fast_attentive_gru if fast else plain_attentive_gru)(inputs, first, memory, parameters)

    return [inputs, first, shares, keys, *query, weight, bias, *more], run


def feeding(additive: bool, word: bool, mask: Tensor) -> tuple[list[Tensor], Run]:
    """The same of the recurrence with input feeding."""
    keys, *query = asking(additive)
    inputs, first, feed, shares, *rest, units = numbers(
        *((BATCH, STEPS, 3 * SIZE), (BATCH, SIZE), (BATCH, FEATURES), (BATCH, SLOTS, FEATURES)),
        *((3 * SIZE, SIZE), (3 * SIZE,), (3 * SIZE, FEATURES), (FEATURES, SIZE), (BATCH, STEPS, FEATURES)),
    )
    words, start, memory = (
        WordShares(inputs, units if word else None),
        Start(first, feed),
        ProjectedMemory(shares, keys, mask),
    )
    parameters = input_feeding_gru.FeedingParameters(Query(*query) if additive else None, *rest)

    def run(fast: bool) -> tuple[Tensor, Tensor]:
        form = fast_input_feeding_gru if fast else plain_input_feeding_gru
        return form(words, start, memory, parameters)

    return [inputs, first, feed, shares, keys, *query, *rest, *([units] if word else [])], run


@pytest.mark.parametrize("made", [attentive, feeding])
@pytest.mark.parametrize("also", [True, False])
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
@pytest.mark.parametrize("lengths", [[7, 7, 7], [7, 1, 4], [3, 0, 7]], ids=str)
def test_results_weights_and_gradients_are_those_of_the_plain_recurrence(
    made: Callable[[bool, bool, Tensor], tuple[list[Tensor], Run]], also: bool, additive: bool, lengths: list[int]
) -> None:
    values, run = made(additive, also, masked(lengths))
    results = []
    for fast in (False, True):
        steps, weights = run(fast)
        loss = (steps**3).sum() + (weights**2).sum()
        results.append((steps, weights, *torch.autograd.grad(loss, values)))
    for plain, quick in zip(*results, strict=True):
        torch.testing.assert_close(quick, plain)


@pytest.mark.parametrize("made", [attentive, feeding])
@pytest.mark.parametrize("additive", [True, False], ids=["additive", "dot"])
def test_without_gradients_the_numbers_are_the_same(
    made: Callable[[bool, bool, Tensor], tuple[list[Tensor], Run]], additive: bool
) -> None:
    _, run = made(additive, True, masked([7, 2, 5]))
    with torch.inference_mode():
        ours = run(True)
    for found, wanted in zip(ours, run(False), strict=True):
        torch.testing.assert_close(found, wanted)


def test_bfloat16_rounds_products_alone() -> None:
    def smaller(values: list[Tensor]) -> list[Tensor]:
        return [(value / 3).detach().float() for value in values]

    keys, inputs, first, feed, shares, *rest, units = smaller(
        numbers(
            *((BATCH, SLOTS, SIZE), (BATCH, STEPS, 3 * SIZE), (BATCH, SIZE), (BATCH, FEATURES)),
            *((BATCH, SLOTS, FEATURES), (3 * SIZE, SIZE), (3 * SIZE,), (3 * SIZE, FEATURES), (FEATURES, SIZE)),
            (BATCH, STEPS, FEATURES),
        )
    )
    memory, parameters = (
        ProjectedMemory(shares, keys, masked([7, 7, 7])),
        input_feeding_gru.FeedingParameters(None, *rest),
    )
    given = WordShares(inputs, units), Start(first, feed), memory, parameters
    exact = plain_input_feeding_gru(*given)
    with torch.autocast("cpu", torch.bfloat16):
        rounded = fast_input_feeding_gru(*given)
    for ours, theirs in zip(rounded, exact, strict=True):
        assert ours.dtype is torch.float32
        assert not torch.equal(ours, theirs)
        torch.testing.assert_close(ours, theirs, rtol=0.05, atol=0.05)
