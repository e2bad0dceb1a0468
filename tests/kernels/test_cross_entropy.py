"""Label-smoothed cross-entropy against torch's own, and its gradient."""

import contextlib
import math
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor, nn

from nmt.kernels import plain
from nmt.kernels.cross_entropy import smoothed_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_it_is_torchs_cross_entropy(smoothing: float) -> None:
    logits = torch.randn(7, 5, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 4, 2, 2, 1, 3, 0])
    loss, of_rows = smoothed_cross_entropy(logits, targets, smoothing)
    expected = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(of_rows, nn.functional.cross_entropy(logits, targets, reduction="none"))
    tripled = 3 * loss
    own = torch.autograd.grad(tripled, logits, retain_graph=True)[0]
    torch.testing.assert_close(own, torch.autograd.grad(3 * expected, logits)[0])
    with pytest.raises(RuntimeError, match="once"):
        torch.autograd.grad(tripled, logits)


def test_its_gradient_agrees_with_finite_differences() -> None:
    logits = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([1, 3, 0])

    def loss(own: Tensor) -> Tensor:
        return smoothed_cross_entropy(own, targets, 0.2)[0]

    loss(logits).backward()
    assert logits.grad is not None
    for row, column in ((0, 0), (0, 1), (2, 3)):
        nudge = torch.zeros_like(logits)
        nudge[row, column] = 1e-5
        slope = (loss(logits + nudge) - loss(logits - nudge)) / 2e-5
        assert logits.grad[row, column].item() == pytest.approx(slope.item(), abs=1e-8)


def test_smoothing_by_hand() -> None:
    """Two words of probability 3/4 and 1/4, the first is right, eps = 0.2: q = (0.9, 0.1)."""
    logits = torch.tensor([[math.log(3.0), 0.0]], dtype=torch.float64)
    loss, of_rows = smoothed_cross_entropy(logits, torch.tensor([0]), 0.2)
    assert of_rows.item() == pytest.approx(-math.log(0.75))
    assert loss.item() == pytest.approx(-0.9 * math.log(0.75) - 0.1 * math.log(0.25))


@pytest.mark.parametrize("gap", [60.0, 70.0, 85.0, 95.0, 300.0])
def test_a_target_whose_probability_float32_cannot_hold_keeps_its_likelihood(gap: float) -> None:
    logits = torch.tensor([[gap, 0.0, -1.0], [0.5, 0.0, 0.25]], requires_grad=True)
    targets = torch.tensor([1, 2])
    loss, of_rows = smoothed_cross_entropy(logits, targets, 0.1)
    torch.testing.assert_close(of_rows, nn.functional.cross_entropy(logits, targets, reduction="none"))
    expected = nn.functional.cross_entropy(logits, targets, reduction="sum", label_smoothing=0.1)
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(torch.autograd.grad(loss, logits)[0], torch.autograd.grad(expected, logits)[0])


@pytest.mark.parametrize("kernels", [contextlib.nullcontext, plain])
def test_rows_that_are_not_real_count_as_zero(kernels: Callable[[], AbstractContextManager[None]]) -> None:
    """Loss, likelihoods and gradients are those of the other rows alone, whatever these hold."""
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(6, 9, generator=generator, dtype=torch.float64)
    targets = torch.randint(9, (6,), generator=generator)
    real = torch.tensor([True, False, True, True, False, True])
    own, others = logits.clone().requires_grad_(), logits[real].clone().requires_grad_()
    with kernels():
        loss, of_rows = smoothed_cross_entropy(own, targets, 0.2, real)
        expected, expected_rows = smoothed_cross_entropy(others, targets[real], 0.2)
    loss.backward()
    expected.backward()
    torch.testing.assert_close(loss, expected)
    torch.testing.assert_close(of_rows, torch.zeros(6, dtype=torch.float64).masked_scatter(real, expected_rows))
    assert own.grad is not None
    torch.testing.assert_close(own.grad[real], others.grad)
    assert not own.grad[~real].any()
