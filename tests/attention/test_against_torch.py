"""Scores, heads and precision against torch's own attention."""

from typing import Any

import pytest
import torch
from torch import nn

from nmt.attention import Attended
from nmt.attention.scores import General
from tests.attention.test_by_hand import F64
from tests.catalogue import SCORES, attention


def test_scaled_dot_agrees_with_torch() -> None:
    made = attention("scaled_dot", query_size=10, value_size=10, project=False)
    queries, values = torch.randn(3, 5, 10, dtype=F64), torch.randn(3, 7, 10, dtype=F64)
    mask = torch.arange(7) < torch.tensor([7, 4, 2])[:, None]
    attended = made(queries, made.remember(values, mask), torch.zeros(3, 5, dtype=torch.int64))
    expected = nn.functional.scaled_dot_product_attention(queries, values, values, attn_mask=mask[:, None])
    torch.testing.assert_close(attended.context, expected)


@pytest.mark.parametrize(
    ("window", "settings"), [("global", {}), ("local_m", {"radius": 1}), ("forced", {"slots": [0, [1, 2]]})]
)
def test_dot_in_a_window_agrees_with_torch(window: str, settings: dict[str, Any]) -> None:
    made = attention("dot", window, query_size=10, value_size=10, **settings)
    queries, values = torch.randn(3, 2, 10, dtype=F64), torch.randn(3, 7, 10, dtype=F64)
    mask = torch.arange(7) < torch.tensor([7, 4, 3])[:, None]
    shown = {"global": [[0, 1, 2, 3, 4, 5, 6]] * 2, "local_m": [[0, 1], [0, 1, 2]], "forced": [[0], [1, 2]]}[window]
    visible = torch.stack([torch.isin(torch.arange(7), torch.tensor(slots)) for slots in shown]) & mask[:, None]
    attended = made(queries, made.remember(values, mask), torch.arange(2).expand(3, 2))
    expected = nn.functional.scaled_dot_product_attention(queries, values, values, attn_mask=visible, scale=1.0)
    torch.testing.assert_close(attended.context, expected)


def test_general_agrees_with_torch() -> None:
    score = General(3, 5, 6).double()
    reference = nn.Bilinear(3, 5, 1, bias=False, dtype=F64)
    with torch.no_grad():
        reference.weight.copy_(score.W.weight.unsqueeze(0))
    queries, values = torch.randn(2, 4, 3, dtype=F64), torch.randn(2, 7, 5, dtype=F64)
    pairs = (queries.unsqueeze(2).expand(2, 4, 7, 3), values.unsqueeze(1).expand(2, 4, 7, 5))
    expected = reference(*(part.contiguous() for part in pairs)).squeeze(-1)
    torch.testing.assert_close(score(queries, score.prepare(values)), expected)


@pytest.mark.parametrize("score", SCORES)
def test_energies_are_float32_under_autocast(score: str) -> None:
    """They are not rounded themselves, whatever became of queries and keys on the way."""
    made = attention(score).float().score
    queries, values = 3 * torch.randn(4, 10), 3 * torch.randn(6, 10)
    with torch.autocast("cpu", torch.bfloat16):
        energies = made(queries, made.prepare(values))
    assert energies.dtype is torch.float32
    assert not energies.bfloat16().float().equal(energies)
    if not hasattr(made, "W"):  # what is compared is given, and may be in bfloat16 itself
        with torch.autocast("cpu", torch.bfloat16):
            rounded = made(queries.bfloat16(), made.prepare(values.bfloat16()))
        expected = made(queries.bfloat16().float(), made.prepare(values.bfloat16().float()))
        torch.testing.assert_close(rounded, expected)


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_heads_agree_with_torch(heads: int) -> None:
    size = 6
    made = attention("scaled_dot", query_size=size, value_size=size, size=size, heads=heads)
    reference = nn.MultiheadAttention(size, heads, bias=False, batch_first=True, dtype=F64)
    assert made.query is not None
    assert made.key is not None
    assert made.value is not None
    assert made.out is not None
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([made.query.weight, made.key.weight, made.value.weight]))
        reference.out_proj.weight.copy_(made.out.weight)
    queries, values = torch.randn(3, 5, size, dtype=F64), torch.randn(3, 7, size, dtype=F64)
    mask = torch.arange(7) < torch.tensor([7, 4, 2])[:, None]
    attended: Attended = made(queries, made.remember(values, mask), torch.zeros(3, 5, dtype=torch.int64))
    context, weights = reference(queries, values, values, key_padding_mask=~mask, average_attn_weights=False)
    torch.testing.assert_close(attended.context, context)
    torch.testing.assert_close(attended.weights, weights)


def test_causal_self_attention_agrees_with_torch() -> None:
    """Source = target: queries, keys and values are projections of one sequence, and a step sees what is behind it."""
    size, heads, steps = 6, 2, 5
    made = attention("scaled_dot", "causal", query_size=size, value_size=size, size=size, heads=heads)
    reference = nn.MultiheadAttention(size, heads, bias=False, batch_first=True, dtype=F64)
    projections = (made.query, made.key, made.value)
    with torch.no_grad():
        reference.in_proj_weight.copy_(torch.cat([part.weight for part in projections if part is not None]))
        reference.out_proj.weight.copy_(made.out.weight)  # type: ignore[union-attr]
    sequence = torch.randn(3, steps, size, dtype=F64)
    real = torch.arange(steps) < torch.tensor([5, 4, 2])[:, None]
    attended: Attended = made(sequence, made.remember(sequence, real), torch.arange(steps).expand(3, steps))
    ahead = torch.ones(steps, steps, dtype=torch.bool).triu(1)
    context, weights = reference(
        sequence, sequence, sequence, key_padding_mask=~real, attn_mask=ahead, average_attn_weights=False
    )
    torch.testing.assert_close(attended.context, context)
    torch.testing.assert_close(attended.weights, weights)


def test_keys_of_their_own_agree_with_torch() -> None:
    made = attention("scaled_dot", "causal", query_size=4, value_size=4, project=False)
    queries, keys, values = torch.randn(3, 2, 5, 4, dtype=F64)
    memory = made.remember(values, torch.ones(2, 5, dtype=torch.bool), keys)
    attended = made(queries, memory, torch.arange(5).expand(2, 5))
    expected = nn.functional.scaled_dot_product_attention(queries, keys, values, is_causal=True)
    torch.testing.assert_close(attended.context, expected)
