"""Heads and the projections between which they compare."""

from typing import Any

import pytest
import torch

from nmt.system.errors import UserError
from tests.attention.test_by_hand import F64
from tests.catalogue import attention


@pytest.mark.parametrize(("settings", "projected"), [
    ({}, False),
    ({"project": False}, False),
    ({"project": True}, True),
    ({"heads": 2}, True),
    ({"heads": 2, "project": True}, True),
    ({"score": "scaled_dot"}, True),
    ({"score": "scaled_dot", "project": False}, False),
])  # fmt: skip
def test_projections_are_for_several_heads_and_for_who_wants_them(settings: dict[str, Any], projected: bool) -> None:
    made = attention(**settings)
    for projection in (made.query, made.key, made.value, made.out):
        assert (projection is not None) is projected


def test_projections_of_one_head_fit_vectors_of_different_sizes() -> None:
    made = attention("dot", query_size=3, value_size=5, size=2, project=True)
    shapes = [None if part is None else part.weight.shape for part in (made.query, made.key, made.value, made.out)]
    assert shapes == [(2, 3), (2, 5), (2, 5), (5, 2)]


def test_choices_of_one_projected_head_are_projected_back() -> None:
    """Their mean by the weights is the context."""
    made = attention("additive", read="hard", objective="enumerate", project=True, value_size=5, size=6)
    values, queries = torch.randn(2, 7, 5, dtype=F64), torch.randn(2, 3, 10, dtype=F64)
    memory = made.remember(values, torch.ones(2, 7, dtype=torch.bool))
    attended = made(queries, memory, torch.arange(3).expand(2, 3))
    contexts, log_weights = attended.choices
    torch.testing.assert_close((contexts * log_weights.exp().unsqueeze(-1)).sum(-2), attended.context)


def test_heads_without_projections_are_refused() -> None:
    with pytest.raises(UserError, match=r"attention\.project=false: must be true or null with attention\.heads=2"):
        attention(heads=2, project=False)


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(
        UserError, match=r"attention\.size=6: must be a multiple of attention\.heads=4\. Give attention\.size=8"
    ):
        attention(size=6, heads=4)
