"""Dropout that draws sixteen bits a place."""

import pytest
import torch

from nmt.kernels.dropout import Dropout


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
def test_the_share_that_is_dropped_and_the_mean_are_kept(dtype: torch.dtype) -> None:
    torch.manual_seed(3)
    layer = Dropout(0.3)
    dropped = layer(torch.ones(301, 1001, dtype=dtype))
    assert (dropped == 0).double().mean().item() == pytest.approx(0.3, abs=0.004)  # 0.0008 deviates the mean of so many
    assert dropped[dropped != 0].unique().item() == pytest.approx(1 / 0.7, rel=0.01)
    # No place goes by its neighbours, nor by those whose bits come from the same integer.
    kept = (dropped != 0).double().flatten()
    for lag in (1, 2, 3, 4):
        assert (kept[lag:] * kept[:-lag]).mean().item() == pytest.approx(0.49, abs=0.006)


def test_what_was_dropped_has_no_gradient_and_the_rest_the_scale() -> None:
    inputs = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    dropped = Dropout(0.5)(inputs)
    (gradient,) = torch.autograd.grad(dropped.sum(), inputs)
    torch.testing.assert_close(gradient, torch.where(dropped == 0, 0.0, 2.0).double())


def test_the_same_seed_drops_the_same_places() -> None:
    layer = Dropout(0.4)
    torch.manual_seed(8)
    first, second = layer(torch.ones(50)), layer(torch.ones(50))
    torch.manual_seed(8)
    assert torch.equal(layer(torch.ones(50)), first)
    assert torch.equal(layer(torch.ones(50)), second)
    assert not torch.equal(first, second)


@pytest.mark.parametrize(("p", "kept"), [(0.0, 1.0), (1e-9, 1.0), (1.0, 0.0), (1 - 1e-9, 0.0)])
def test_all_and_nothing(p: float, kept: float) -> None:
    assert torch.equal(Dropout(p)(torch.ones(64)).round(), torch.full((64,), kept))


def test_nothing_is_dropped_when_it_is_not_training() -> None:
    inputs = torch.randn(9)
    assert torch.equal(Dropout(0.9).eval()(inputs), inputs)
    assert Dropout(0.9)(torch.empty(0, 3)).shape == (0, 3)
