"""The closed form of R-Drop's loss against autograd, and against numbers worked by hand."""

import pytest
import torch
from torch import Tensor

from nmt.kernels.r_drop import r_drop_loss


def losses(fast: bool, smoothing: float, real: Tensor | None = None) -> list[Tensor]:
    """The loss, both passes' likelihoods, and the gradients of three times the loss."""
    generator = torch.Generator().manual_seed(6)
    first, second = (2 * torch.randn(5, 7, generator=generator, dtype=torch.float64) for _ in range(2))
    first.requires_grad_()
    second.requires_grad_()
    targets = torch.randint(7, (5,), generator=generator)
    loss, *plains = r_drop_loss(first, second, targets, smoothing, 3.0, fast, real)
    gradients = torch.autograd.grad(3 * loss, (first, second))
    return [loss, *plains, *gradients]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("real", [None, torch.tensor([True, False, True, True, False])])
def test_the_closed_form_is_autograds(smoothing: float, real: Tensor | None) -> None:
    for own, expected in zip(losses(True, smoothing, real), losses(False, smoothing, real), strict=True):
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("fast", [True, False])
def test_rows_that_are_not_real_count_as_zero(fast: bool) -> None:
    generator = torch.Generator().manual_seed(7)
    first, second = torch.randn(2, 4, 6, generator=generator, dtype=torch.float64)
    targets, real = torch.tensor([0, 5, 2, 3]), torch.tensor([True, False, True, True])
    loss, plain, _ = r_drop_loss(first, second, targets, 0.1, 2.0, fast, real)
    alone, *_ = r_drop_loss(first[real], second[real], targets[real], 0.1, 2.0, fast)
    torch.testing.assert_close(loss, alone)
    assert plain[1].item() == 0


@pytest.mark.parametrize("fast", [True, False])
def test_two_passes_by_hand(fast: bool) -> None:
    """p = (0.5, 0.25, 0.25), q = (0.25, 0.5, 0.25), the first word is right: ln 2 and 2 ln 2; KL both 0.25 ln 2."""
    p, q = torch.tensor([[0.5, 0.25, 0.25]]).log() + 3, torch.tensor([[0.25, 0.5, 0.25]]).log()
    loss, first, second = r_drop_loss(p, q, torch.tensor([0]), 0.0, 4.0, fast)
    ln2 = 0.6931472
    assert (first.item(), second.item()) == pytest.approx((ln2, 2 * ln2))
    assert loss.item() == pytest.approx(1.5 * ln2 + 0.5 * ln2)


def test_the_gradient_can_be_taken_once() -> None:
    first, second = torch.randn(2, 3, 4, requires_grad=True)
    loss, *_ = r_drop_loss(first, second, torch.tensor([0, 1, 2]), 0.1, 1.0)
    torch.autograd.grad(loss, first, retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        torch.autograd.grad(loss, first)
