"""The closed forms of the losses of R-Drop and SimCut against autograd, and against numbers worked by hand."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor

from nmt.kernels import plain
from nmt.kernels.r_drop import r_drop_loss

Kernels = Callable[[], AbstractContextManager[None]]


def losses(kernels: Kernels, smoothing: float, cut: bool, real: Tensor | None = None) -> list[Tensor]:
    """The loss, the likelihoods, and the gradient of three times the loss."""
    generator = torch.Generator().manual_seed(6)
    logits = (2 * torch.randn(10, 7, generator=generator, dtype=torch.float64)).requires_grad_()
    targets = torch.randint(7, (5,), generator=generator).repeat(2)
    with kernels():
        loss, of_rows = r_drop_loss(logits, targets, smoothing, 3.0, None if real is None else real.repeat(2), cut)
    return [loss, of_rows, *torch.autograd.grad(3 * loss, logits)]


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("real", [None, torch.tensor([True, False, True, True, False])])
@pytest.mark.parametrize("cut", [False, True])
def test_the_closed_form_is_autograds(smoothing: float, real: Tensor | None, cut: bool) -> None:
    both = (losses(kernels, smoothing, cut, real) for kernels in (contextlib.nullcontext, plain))
    for own, expected in zip(*both, strict=True):
        torch.testing.assert_close(own, expected)


@pytest.mark.parametrize("kernels", [contextlib.nullcontext, plain])
@pytest.mark.parametrize("cut", [False, True])
def test_rows_that_are_not_real_count_as_zero(kernels: Kernels, cut: bool) -> None:
    generator = torch.Generator().manual_seed(7)
    logits = torch.randn(8, 6, generator=generator, dtype=torch.float64)
    targets, real = torch.tensor([0, 5, 2, 3]).repeat(2), torch.tensor([True, False, True, True]).repeat(2)
    with kernels():
        loss, of_rows = r_drop_loss(logits, targets, 0.1, 2.0, real, cut)
        alone, _ = r_drop_loss(logits[real], targets[real], 0.1, 2.0, cut=cut)
    torch.testing.assert_close(loss, alone)
    assert of_rows[~real].tolist() == [0, 0]


@pytest.mark.parametrize("kernels", [contextlib.nullcontext, plain])
def test_two_passes_by_hand(kernels: Kernels) -> None:
    """p = (0.5, 0.25, 0.25), q = (0.25, 0.5, 0.25), the first word is right: ln 2 and 2 ln 2; KL both 0.25 ln 2."""
    logits = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25]]).log() + torch.tensor([[3.0], [0.0]])
    with kernels():
        loss, of_rows = r_drop_loss(logits, torch.tensor([0, 0]), 0.0, 4.0)
    ln2 = 0.6931472
    assert of_rows.tolist() == pytest.approx([ln2, 2 * ln2])
    assert loss.item() == pytest.approx(3 * ln2 + 4 * 0.25 * ln2)


@pytest.mark.parametrize("kernels", [contextlib.nullcontext, plain])
def test_a_cut_pass_by_hand(kernels: Kernels) -> None:
    """p = (1/2, 1/4, 1/4), q = (1/4, 1/4, 1/2), the first word is right: ln 2; KL(p || q) = (1/2 - 1/4) ln 2.

    With d = (ln 2, 0, -ln 2) the gradient is p (1 + 4 (d - E_p d)) less the right word's 1, and 4 (q - p).
    """
    p, q = torch.tensor([0.5, 0.25, 0.25]), torch.tensor([0.25, 0.25, 0.5])
    logits = (torch.stack([p, q]).log() + torch.tensor([[3.0], [0.0]])).requires_grad_()
    with kernels():
        loss, of_rows = r_drop_loss(logits, torch.tensor([0, 0]), 0.0, 4.0, cut=True)
    (gradient,) = torch.autograd.grad(loss, logits)
    ln2 = 0.6931472
    assert loss.item() == pytest.approx(ln2 + 4 * 0.25 * ln2)
    assert of_rows.tolist() == pytest.approx([ln2, 2 * ln2])
    of_first = [0.5 * (1 + 3 * ln2) - 1, 0.25 * (1 - ln2), 0.25 * (1 - 5 * ln2)]
    assert gradient.tolist() == [pytest.approx(of_first, abs=1e-6), pytest.approx([-1, 0, 1], abs=1e-6)]


def test_the_gradient_can_be_taken_once() -> None:
    logits = torch.randn(6, 4, requires_grad=True)
    loss, _ = r_drop_loss(logits, torch.tensor([0, 1, 2, 0, 1, 2]), 0.1, 1.0)
    torch.autograd.grad(loss, logits, retain_graph=True)
    with pytest.raises(RuntimeError, match="once"):
        torch.autograd.grad(loss, logits)
