"""What must hold for every mechanism of the catalogue, found through its yaml."""

import itertools

import pytest
import torch
from torch import Tensor

from nmt.attention import Attended, Attention
from tests.catalogue import READS, SCORES, WINDOWS, attention

B, T, S, D = 3, 5, 7, 10
LENGTHS = [7, 4, 1]
HEADS = [1, 2, 3]

every = pytest.mark.parametrize(
    ("score", "window", "read", "heads"), list(itertools.product(SCORES, WINDOWS, READS, HEADS))
)


def inputs(seed: int = 1) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Queries, values, mask, steps."""
    generator = torch.Generator().manual_seed(seed)
    queries = torch.randn(B, T, D, generator=generator, dtype=torch.float64)
    values = torch.randn(B, S, D, generator=generator, dtype=torch.float64)
    mask = torch.arange(S) < torch.tensor(LENGTHS)[:, None]
    steps = torch.arange(T).expand(B, T)
    return queries, values, mask, steps


def attend(made: Attention, queries: Tensor, values: Tensor, mask: Tensor, steps: Tensor) -> Attended:
    memory = made.remember(values, mask)
    result: Attended = made(queries, memory, steps, made.start(memory))
    return result


@every
def test_padding_changes_nothing(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads, radius=2)
    queries, values, mask, steps = inputs()
    before = attend(made, queries, values, mask, steps)
    other = torch.where(mask.unsqueeze(-1), values, torch.full_like(values, 123.0))
    after = attend(made, queries, other, mask, steps)
    torch.testing.assert_close(before.context, after.context, rtol=0, atol=0)
    torch.testing.assert_close(before.weights, after.weights, rtol=0, atol=0)
    assert (before.weights.masked_select(~mask[:, None, None]) == 0).all()


@every
def test_weights_are_a_distribution_over_real_slots(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads, radius=2)
    weights = attend(made, *inputs()).weights
    assert weights.shape == (B, heads, T, S)
    assert (weights >= 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(B, heads, T, dtype=torch.float64))


@every
def test_a_row_with_nothing_to_look_at_gives_zeros(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads)
    queries, values, mask, steps = inputs()
    mask = mask.clone()
    mask[1] = False
    values.requires_grad_()
    attended = attend(made, queries, values, mask, steps)
    assert (attended.weights[1] == 0).all()
    assert (attended.context[1] == 0).all()
    attended.context.sum().backward()
    assert values.grad is not None
    assert torch.isfinite(values.grad).all()


@every
def test_steps_one_by_one_equal_all_at_once(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads, radius=2)
    queries, values, mask, steps = inputs()
    whole = attend(made, queries, values, mask, steps)
    memory = made.remember(values, mask)
    state = made.start(memory)
    for t in range(T):
        now = made(queries[:, t : t + 1], memory, steps[:, t : t + 1], state)
        state = now.state
        torch.testing.assert_close(now.context[:, 0], whole.context[:, t])
        torch.testing.assert_close(now.weights[:, :, 0], whole.weights[:, :, t])


@every
def test_a_batch_equals_its_sentences_one_by_one(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads, radius=2)
    queries, values, mask, steps = inputs()
    whole = attend(made, queries, values, mask, steps)
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        alone = attend(made, queries[one], values[one, :length], mask[one, :length], steps[one])
        torch.testing.assert_close(alone.context[0], whole.context[row])
        torch.testing.assert_close(alone.weights[0], whole.weights[row, ..., :length])


@every
def test_gradients_agree_with_finite_differences(score: str, window: str, read: str, heads: int) -> None:
    made = attention(score, window, read, heads=heads, size=6, radius=2)
    queries, values, mask, steps = inputs()
    queries, values = queries[:2, :2].clone().requires_grad_(), values[:2, :4].clone().requires_grad_()

    def context(own_queries: Tensor, own_values: Tensor, *_: Tensor) -> Tensor:
        return attend(made, own_queries, own_values, mask[:2, :4], steps[:2, :2]).context

    assert torch.autograd.gradcheck(context, (queries, values, *made.parameters()))
