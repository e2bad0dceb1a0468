"""v^T tanh(x): both forms against the equation, and which of them runs."""

import contextlib
from collections.abc import Callable
from contextlib import AbstractContextManager

import pytest
import torch
from torch import Tensor

from nmt.kernels import dot_tanh as kernel
from nmt.kernels import plain
from nmt.kernels.dot_tanh import dot_tanh, fast_dot_tanh, plain_dot_tanh

B, H, T, S, A = 2, 3, 5, 7, 11


def drawn(heads: int | None, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor, Tensor]:
    """v, queries and keys; without `heads` there is no head axis."""
    generator = torch.Generator().manual_seed(1)
    axis = [] if heads is None else [heads]
    shapes = ([*axis, A], [B, *axis, T, 1, A], [B, *axis, 1, S, A])
    v, queries, keys = (torch.randn(shape, generator=generator, dtype=dtype) for shape in shapes)
    return v, queries, keys


@pytest.mark.parametrize("form", [plain_dot_tanh, fast_dot_tanh, dot_tanh])
@pytest.mark.parametrize("heads", [None, 1, H])
def test_both_forms_agree_with_the_equation(form: Callable[..., Tensor], heads: int | None) -> None:
    v, queries, keys = drawn(heads)
    vectors = v if heads is None else v[:, None, None]
    torch.testing.assert_close(form(v, queries, keys), (torch.tanh(queries + keys) * vectors).sum(-1))


@pytest.mark.parametrize("heads", [None, 1, H])
@pytest.mark.parametrize("block", [1, 500, 10**6])
def test_blocks_change_nothing(block: int, heads: int | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of one row, of some rows and of all; one term is the same for all rows, another has no axis for them."""
    v, queries, keys = drawn(heads)
    whole = fast_dot_tanh(v, queries, keys, keys[:1], keys[0])
    monkeypatch.setattr(kernel, "BLOCK", block)
    torch.testing.assert_close(fast_dot_tanh(v, queries, keys, keys[:1], keys[0]), whole)


@pytest.mark.parametrize("heads", [None, 1, H])
def test_gradients_of_the_fast_form_agree_with_finite_differences(heads: int | None) -> None:
    leaves = tuple(part.requires_grad_() for part in drawn(heads, torch.float64))
    assert torch.autograd.gradcheck(fast_dot_tanh, leaves, fast_mode=True)


@pytest.mark.parametrize(("kernels", "dtype", "wanted"), [
    (contextlib.nullcontext, torch.float32, "fast_dot_tanh"),
    (plain, torch.float32, "plain_dot_tanh"),
    (contextlib.nullcontext, torch.float64, "plain_dot_tanh"),
])  # fmt: skip
def test_the_fast_form_is_for_float32_and_can_be_refused(
    kernels: Callable[[], AbstractContextManager[None]],
    dtype: torch.dtype,
    wanted: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kernel, wanted, lambda v, *terms: "called")
    with kernels():
        assert dot_tanh(*drawn(None, dtype)) == "called"


def test_terms_of_bfloat16_are_added_in_float32() -> None:
    v, queries, keys = drawn(None)
    rounded = (queries.bfloat16(), keys.bfloat16())
    with torch.autocast("cpu", torch.bfloat16):
        energies = dot_tanh(v, *rounded)
    assert energies.dtype is torch.float32
    torch.testing.assert_close(energies, dot_tanh(v, *(part.float() for part in rounded)), rtol=0, atol=0)
