"""Pins: each sentence's own, against the window that has the same slots for all, and numbers worked by hand."""

from typing import Any

import pytest
import torch

from nmt.attention import Attention, Memory, PinnedSteps, View
from nmt.attention.windows import Pin, Pins
from tests.attention.test_by_hand import F64
from tests.attention.test_properties import NARROW
from tests.catalogue import SCORES, WINDOWS, attention

#: Of three sentences: several steps, none, one that may look at nothing.
PINS: list[Pins] = [{0: [5], 2: [1, 3]}, {}, {1: []}]
MASK = torch.arange(7) < torch.tensor([7, 5, 3])[:, None]
STEPS = torch.arange(5).expand(3, 5)


def remembered(made: Attention, pins: list[Pins] | None) -> Memory:
    values = torch.randn(3, 7, 10, dtype=F64, generator=torch.Generator().manual_seed(7))
    return made.remember(values, MASK, pins=None if pins is None else PinnedSteps.of(pins, MASK))


def queries() -> torch.Tensor:
    return torch.randn(3, 5, 10, dtype=F64, generator=torch.Generator().manual_seed(8))


def test_a_pinned_step_sees_the_slots_of_its_sentence() -> None:
    pins = PinnedSteps.of([{0: [2, 9], 2: [0, 3]}, {1: [1, 2]}], torch.arange(4) < torch.tensor([4, 2])[:, None])
    view = View(torch.ones(2, 1, 1, 4, dtype=torch.bool), torch.ones(4), torch.full((4,), 2.0))
    visible, bias, factor, _ = pins.restrict(view, torch.tensor([[0, 1, 2, 3]] * 2))
    assert visible[0, 0].int().tolist() == [[0, 0, 1, 0], [1, 1, 1, 1], [1, 0, 0, 1], [1, 1, 1, 1]]
    assert visible[1, 0].int().tolist() == [[1, 1, 1, 1], [0, 1, 0, 0], [1, 1, 1, 1], [1, 1, 1, 1]]
    assert bias is not None
    assert factor is not None
    assert bias[1, 0, :, 0].tolist() == [1, 0, 1, 1], "a pinned step has no window"
    assert factor[1, 0, :, 0].tolist() == [2, 1, 2, 2]
    visible, *_ = pins.select(torch.tensor([1, 1])).restrict(view, torch.tensor([[1], [7]]))
    assert visible[:, 0, 0].int().tolist() == [[0, 1, 0, 0], [1, 1, 1, 1]]


@pytest.mark.parametrize("heads", [1, 2])
@pytest.mark.parametrize("score", SCORES)
def test_pins_are_those_of_the_window_with_these_slots(score: str, heads: int) -> None:
    slots = [[5], None, [1, 3]]
    sizes: dict[str, Any] = {"score": score, "heads": heads, **({"positions": 7} if score == "location" else {})}
    free, forced = attention(**sizes), attention(**sizes, window="forced", slots=slots)
    for weights in (True, False):
        one = free(queries(), remembered(free, [PINS[0]] * 3), STEPS, weights=weights)
        other = forced(queries(), remembered(forced, None), STEPS, weights=weights)
        torch.testing.assert_close(one.context, other.context)
        torch.testing.assert_close(one.weights, other.weights)


@pytest.mark.parametrize("window", WINDOWS)
def test_steps_that_are_not_pinned_keep_their_window(window: str) -> None:
    settings: dict[str, Any] = {name: value for name, value in NARROW.items() if name != "positions"}
    settings |= {"distance": 2} if window == "relative" else {}
    made = attention("general", window, heads=2, **settings)
    before, after = (made(queries(), remembered(made, pins), STEPS).weights for pins in (None, PINS))
    free = torch.ones(3, 5, dtype=torch.bool)
    free[0, [0, 2]] = free[2, 1] = False
    torch.testing.assert_close(after.transpose(1, 2)[free], before.transpose(1, 2)[free])
    assert (after[0, :, 0, 5] == 1).all()
    torch.testing.assert_close(after[0, :, 2, [1, 3]].sum(-1), torch.ones(2, dtype=F64))
    assert not after[2, :, 1].any()


@pytest.mark.parametrize(
    ("usual", "pinned", "slots", "weight", "expected"),
    [
        ([0.5, 0.3, 0.2], [0, 0, 1], [2], 0.5, [0.3125, 0.1875, 0.5]),  # 0.5 * 0.5 / 0.8, 0.5 * 0.3 / 0.8
        ([0.5, 0.3, 0.2], [0, 0, 1], [2], 0.0, [0.625, 0.375, 0]),
        ([0.5, 0.3, 0.2], [0, 0, 1], [2], 1.0, [0, 0, 1]),
        ([0.5, 0.3, 0.2], [0, 0.6, 0.4], [1, 2], 0.5, [0.5, 0.3, 0.2]),
        ([0.5, 0.3, 0.2], [0, 0.6, 0.4], [1, 2], 0.75, [0.25, 0.45, 0.3]),
        ([0.25, 0.25, 0], [0, 0, 1], [2], 0.5, [0.25, 0.25, 0.5]),  # a factor of the window has left a half
        ([0, 0, 1], [0, 0, 1], [2], 0.5, [0, 0, 1]),  # sparsemax gives the others nothing to share
    ],
)
def test_a_pin_of_a_part_by_hand(
    usual: list[float], pinned: list[float], slots: list[int], weight: float, expected: list[float]
) -> None:
    pins = PinnedSteps.of([{1: Pin(slots, weight)}], torch.ones(1, 3, dtype=torch.bool))
    alone, free = (torch.tensor([[[each, each]]], dtype=F64) for each in (pinned, usual))
    shared = pins.shared(alone, free, torch.tensor([[0, 1]]))
    torch.testing.assert_close(shared[0, 0, 1], torch.tensor(expected, dtype=F64))
    assert shared[0, 0, 0].tolist() == pinned, "a step that is not pinned"


@pytest.mark.parametrize("normaliser", ["softmax", "sparsemax"])
@pytest.mark.parametrize("weights", [True, False])
def test_half_a_weight_of_an_attention_by_hand(normaliser: str, weights: bool) -> None:
    """Energies log 5, log 3, log 2 give the softmax 0.5, 0.3, 0.2. Sparsemax takes off 0.854; the third is below."""
    made = attention("dot", normaliser=normaliser)
    values = torch.zeros(1, 3, 10, dtype=F64)
    values[0, :, 0] = torch.tensor([5.0, 3.0, 2.0], dtype=F64).log()
    values[0, :, 1] = torch.tensor([1.0, 10.0, 100.0])
    query = torch.zeros(1, 1, 10, dtype=F64)
    query[..., 0] = 1
    pins = PinnedSteps.of([{0: Pin([1], 0.5)}], torch.ones(1, 3, dtype=torch.bool))
    memory = made.remember(values, torch.ones(1, 3, dtype=torch.bool), pins=pins)
    attended = made(query, memory, torch.zeros(1, 1, dtype=torch.long), weights=weights)
    expected = {"softmax": [5 / 14, 0.5, 1 / 7], "sparsemax": [0.5, 0.5, 0]}[normaliser]
    torch.testing.assert_close(attended.context[0, 0, 1], torch.tensor(expected, dtype=F64) @ values[0, :, 1])
    if weights:
        torch.testing.assert_close(attended.weights[0, 0, 0], torch.tensor(expected, dtype=F64))
        assert attended.stages.view.visible.all() == (normaliser == "softmax")


@pytest.mark.parametrize("window", WINDOWS)
def test_half_a_weight_leaves_the_other_half_as_it_was(window: str) -> None:
    settings: dict[str, Any] = {name: value for name, value in NARROW.items() if name != "positions"}
    settings |= {"distance": 2} if window == "relative" else {}
    made = attention("general", window, heads=2, **settings)
    half: list[Pins] = [{2: Pin([1], 0.5)}] * 3
    before, after = (made(queries(), remembered(made, pins), STEPS).weights for pins in (None, half))
    torch.testing.assert_close(after[:, :, [0, 1, 3, 4]], before[:, :, [0, 1, 3, 4]])
    torch.testing.assert_close(after[:, :, 2].sum(-1), torch.ones(3, 2, dtype=F64))
    others = [0, 2, 3, 4, 5, 6]
    rest = before[:, :, 2, others].sum(-1, keepdim=True)
    expected = torch.where(rest > 0, before[:, :, 2, others] / (2 * rest), 0)
    torch.testing.assert_close(after[:, :, 2, others], expected, equal_nan=True)
