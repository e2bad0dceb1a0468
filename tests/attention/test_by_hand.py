"""Numbers worked by hand from the papers' equations, and agreement with independent implementations."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attended
from nmt.attention.attention import masked_softmax
from nmt.attention.scores import Additive, Concat, Dot, General, ScaledDot
from nmt.attention.windows import Causal, LocalMonotonic
from nmt.errors import UserError
from tests.catalogue import attention

F64 = torch.float64


def tensor(values: object) -> Tensor:
    return torch.tensor(values, dtype=F64)


def test_additive_is_v_tanh_wq_plus_uk() -> None:
    score = Additive(query_size=2, key_size=1, size=2).double()
    with torch.no_grad():
        score.W.weight.copy_(tensor([[1, 0], [0, 2]]))
        score.U.weight.copy_(tensor([[1], [-1]]))
        score.v.copy_(tensor([3, 5]))
    queries, values = tensor([[0.5, 0.25]]), tensor([[0.5], [-1.0]])
    energies = score(queries, score.prepare(values))
    # slot 0: W q + U k = (1, 0); slot 1: (-0.5, 1.5)
    expected = tensor([[3 * math.tanh(1.0), 3 * math.tanh(-0.5) + 5 * math.tanh(1.5)]])
    torch.testing.assert_close(energies, expected)


def test_concat_is_v_tanh_w_of_both() -> None:
    score = Concat(query_size=2, key_size=1, size=1).double()
    with torch.no_grad():
        score.W.weight.copy_(tensor([[1, -1, 2]]))
        score.v.copy_(tensor([4]))
    energies = score(tensor([[0.5, 0.25]]), score.prepare(tensor([[0.5], [-1.0]])))
    torch.testing.assert_close(energies, tensor([[4 * math.tanh(1.25), 4 * math.tanh(-1.75)]]))


def test_concat_and_additive_are_one_function_class() -> None:
    additive, concat = Additive(3, 2, 5).double(), Concat(3, 2, 5).double()
    with torch.no_grad():
        for parameter in additive.parameters():
            nn.init.normal_(parameter)
        concat.W.weight.copy_(torch.cat([additive.W.weight, additive.U.weight], 1))
        concat.v.copy_(additive.v)
    queries, values = torch.randn(4, 3, dtype=F64), torch.randn(7, 2, dtype=F64)
    torch.testing.assert_close(concat(queries, concat.prepare(values)), additive(queries, additive.prepare(values)))


def test_general_is_q_w_k() -> None:
    score = General(query_size=2, key_size=1, size=9).double()
    with torch.no_grad():
        score.W.weight.copy_(tensor([[2], [3]]))
    # q^T W k = (1 * 2 + 10 * 3) k
    torch.testing.assert_close(score(tensor([[1, 10]]), score.prepare(tensor([[1], [-2]]))), tensor([[32, -64]]))


def test_dot_and_scaled_dot() -> None:
    queries, keys = tensor([[1, 2, 3, 4]]), tensor([[1, 0, 1, 0], [2, 2, 2, 2]])
    torch.testing.assert_close(Dot(4, 4, 1)(queries, keys), tensor([[4, 20]]))
    # divided by the root of the size of a key, 4, not by its norm
    torch.testing.assert_close(ScaledDot(4, 4, 1)(queries, keys), tensor([[2, 10]]))


def test_dot_names_the_cure_where_sizes_differ() -> None:
    with pytest.raises(UserError, match=r"512.*decoder\.size=512.*attention\.heads.*attention/score=general"):
        Dot(256, 512, 256)


def test_a_softmax_of_logs_gives_the_shares() -> None:
    energies = tensor([[0.0, math.log(3.0), 100.0]])
    weights = masked_softmax(energies, torch.tensor([[True, True, False]]))
    torch.testing.assert_close(weights, tensor([[0.25, 0.75, 0.0]]))


def test_the_context_is_the_expected_value() -> None:
    made = attention("dot", query_size=2, value_size=2)
    values = tensor([[[0.0, 1.0], [math.log(3.0), 5.0]]])
    memory = made.remember(values, torch.ones(1, 2, dtype=torch.bool))
    attended = made(tensor([[[1.0, 0.0]]]), memory, torch.zeros(1, 1, dtype=torch.int64))
    torch.testing.assert_close(attended.weights, tensor([[[[0.25, 0.75]]]]))
    torch.testing.assert_close(attended.context, tensor([[[0.75 * math.log(3.0), 0.25 + 3.75]]]))


def test_local_monotonic_slots_are_t_plus_minus_d_held_at_the_end() -> None:
    mask = torch.tensor([[True] * 5 + [False]])
    steps = torch.tensor([[0, 2, 9]])
    visible, factor = LocalMonotonic(1, radius=1)(torch.zeros(1, 3, 1), steps, mask)
    assert factor is None
    assert visible.int().tolist() == [[[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0]]]


def test_causal_slots_are_up_to_t() -> None:
    visible, _ = Causal(1)(torch.zeros(1, 2, 1), torch.tensor([[0, 2]]), torch.tensor([[True] * 3 + [False]]))
    assert visible.int().tolist() == [[[1, 0, 0, 0], [1, 1, 1, 0]]]


def test_scaled_dot_agrees_with_torch() -> None:
    made = attention("scaled_dot", query_size=10, value_size=10)
    queries, values = torch.randn(3, 5, 10, dtype=F64), torch.randn(3, 7, 10, dtype=F64)
    mask = torch.arange(7) < torch.tensor([7, 4, 2])[:, None]
    attended = made(queries, made.remember(values, mask), torch.zeros(3, 5, dtype=torch.int64))
    expected = nn.functional.scaled_dot_product_attention(queries, values, values, attn_mask=mask[:, None])
    torch.testing.assert_close(attended.context, expected)


@pytest.mark.parametrize("heads", [2, 3])
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


def test_heads_must_divide_the_size() -> None:
    with pytest.raises(UserError, match=r"attention\.size must be a multiple of attention\.heads.*6.*4"):
        attention(size=6, heads=4)


def test_dropout_acts_on_what_is_read_not_on_what_is_shown() -> None:
    made = attention("additive")
    made.dropout.p = 0.9
    made.train()
    values = torch.randn(1, 7, 10, dtype=F64)
    memory = made.remember(values, torch.ones(1, 7, dtype=torch.bool))
    attended = made(torch.randn(1, 5, 10, dtype=F64), memory, torch.zeros(1, 5, dtype=torch.int64))
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones(1, 1, 5, dtype=F64))
    assert not torch.allclose(attended.context, (attended.weights[:, 0] @ values))
