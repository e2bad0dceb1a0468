"""Numbers worked by hand from the papers' equations."""

import copy
import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import AttentionSettings, View, Window
from nmt.attention.normalisers import Softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat, Cosine, Dot, General, Location, ScaledDot
from nmt.kernels.energies import masked_softmax
from nmt.model.context.hierarchical import OverAttention
from nmt.system.errors import UserError
from tests.catalogue import SCORES, attention

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


@pytest.mark.parametrize("spread", [0.01, 1.0, 30.0], ids="spread {}".format)
@pytest.mark.parametrize("coverage", [False, True], ids=["plain", "coverage"])
def test_additive_in_float32_goes_by_the_sigmoid_to_the_same_numbers(spread: float, coverage: bool) -> None:
    torch.manual_seed(7)
    score = Additive(query_size=5, key_size=3, size=7)
    if coverage:
        score.cover()
    with torch.no_grad():
        for parameter in score.parameters():
            parameter.normal_(std=spread if parameter.ndim == 2 else 1.0)
    queries, values, covered = torch.randn(2, 4, 5), torch.randn(2, 6, 3), torch.rand(2, 4, 6)
    energies, gradients = [], []
    for own, kind in (
        (score, torch.float32),
        (copy.deepcopy(score).double(), F64),
    ):  # in double precision it is the tanh itself
        more = [covered.to(kind)] if coverage else []
        energies.append(own(queries.to(kind), own.prepare(values.to(kind)), *more))
        gradients.append(torch.autograd.grad(energies[-1].sin().sum(), list(own.parameters())))
        with torch.no_grad():
            again = own(queries.to(kind), own.prepare(values.to(kind)), *more)
        torch.testing.assert_close(again, energies[-1].detach())
    for ours, exact in zip((energies[0], *gradients[0]), (energies[1], *gradients[1]), strict=True):
        torch.testing.assert_close(ours.double(), exact, rtol=2e-5, atol=2e-5)


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


def test_cosine_goes_by_the_angle_alone() -> None:
    score = Cosine(2, 2, 1).double()
    with torch.no_grad():
        score.s.fill_(math.log(3))
    queries, values = tensor([[3, 4]]), tensor([[10, 0], [-3, -4], [8, -6]])
    # strength sqrt(2) * 3; cosines 3/5, -1 and 0
    expected = math.sqrt(2) * 3 * tensor([[0.6, -1, 0]])
    torch.testing.assert_close(score(queries, score.prepare(values)), expected)
    independent = nn.functional.cosine_similarity(queries.unsqueeze(1), values.unsqueeze(0), dim=-1)
    torch.testing.assert_close(score(queries, score.prepare(values)), math.sqrt(2) * 3 * independent)


def test_dot_names_the_cure_where_sizes_differ() -> None:
    with pytest.raises(UserError, match=r"512.*decoder\.size=512.*attention\.project=true.*attention/score=general"):
        Dot(256, 512, 256)


def test_location_goes_by_positions_and_ends_with_its_table() -> None:
    score = Location(query_size=2, key_size=1, size=9, positions=3).double()
    with torch.no_grad():
        score.W.weight.copy_(tensor([[1, 0], [0, 2], [3, 3]]))
    queries, five, two = tensor([[1, 10]]), tensor([[7.0]] * 5), tensor([[7.0], [8.0]])
    energies = score(queries, score.prepare(five))
    assert energies.tolist() == [[1, 20, 33, -math.inf, -math.inf]]
    assert score(queries, score.prepare(two)).tolist() == [[1, 20]]
    weights = masked_softmax(energies, torch.tensor([[False, False, True, True, True]]))
    assert weights.tolist() == [[0, 0, 1, 0, 0]]
    beyond = masked_softmax(energies, torch.tensor([[False, False, False, True, True]]))
    assert beyond.tolist() == [[0] * 5]


def test_coverage_is_the_sum_of_the_weights_so_far_inside_the_tanh() -> None:
    made = attention(coverage=True, query_size=1, value_size=1, size=1)
    score = made.score
    assert isinstance(score, Additive)
    assert score.w is not None
    with torch.no_grad():
        score.W.weight.fill_(0.5)
        score.U.weight.fill_(2)
        score.v.fill_(3)
        score.w.fill_(-1)
    memory = made.remember(tensor([[[0.1], [0.2]]]), torch.ones(1, 2, dtype=torch.bool))
    state = made.start(memory)
    seen = tensor([0.0, 0.0])
    for t, query in enumerate((0.4, -0.6, 1.0)):
        attended = made(tensor([[[query]]]), memory, torch.tensor([[t]]), state)
        energies = torch.stack([3 * torch.tanh(0.5 * query + 2 * slot - sum_) for slot, sum_ in zip((0.1, 0.2), seen)])
        expected = torch.exp(energies) / torch.exp(energies).sum()
        torch.testing.assert_close(attended.weights[0, 0, 0], expected)
        seen = seen + expected
        state = attended.state
        torch.testing.assert_close(state[0][0, 0], seen)


@pytest.mark.parametrize("heads", [1, 2])
def test_coverage_loss_is_the_weight_that_slots_get_again(heads: int) -> None:
    """See et al. 2017, eq. 12: the sum over slots of the smaller of weight and coverage; heads are averaged."""
    made = attention(coverage=True, coverage_loss=0.5, heads=heads, query_size=2, value_size=2, size=2).train()
    memory = made.remember(torch.rand(3, 4, 2, dtype=F64), torch.ones(3, 4, dtype=torch.bool))
    state = made.start(memory)
    covered = torch.zeros(3, heads, 4, dtype=F64)
    for t in range(3):
        attended = made(torch.rand(3, 1, 2, dtype=F64), memory, torch.full((3, 1), t), state)
        assert attended.weights is not None
        weights = attended.weights[:, :, 0]
        again = torch.tensor(
            [
                [sum(min(*both) for both in zip(*rows, strict=True)) for rows in zip(*head, strict=True)]
                for head in zip(weights.tolist(), covered.tolist(), strict=True)
            ],
            dtype=F64,
        )
        torch.testing.assert_close(attended.terms["coverage"][:, 0], 0.5 * again.mean(1))
        covered, state = covered + weights, attended.state
    assert (attended.terms["coverage"] > 0).all()
    made.eval()
    assert not made(torch.rand(3, 1, 2, dtype=F64), memory, torch.full((3, 1), 3), state).terms


def test_a_coverage_loss_needs_coverage() -> None:
    with pytest.raises(UserError, match=r"attention\.coverage_loss=0\.5: must be 0 without.*attention\.coverage=true"):
        attention(coverage_loss=0.5)


@pytest.mark.parametrize("score", [name for name in SCORES if name != "additive"])
def test_coverage_of_another_score_is_refused(score: str) -> None:
    with pytest.raises(UserError, match=r"attention\.coverage=true: only the additive.*attention/score=add"):
        attention(score, coverage=True)


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


class Leaning(Window):
    """Adds j ln 2 to the energy of slot j, and hides the last slot."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        positions = torch.arange(mask.shape[-1])
        return View(mask.unsqueeze(-2) & (positions < mask.shape[-1] - 1), bias=positions * math.log(2))


@pytest.mark.parametrize("heads", [1, 2])
def test_a_bias_is_added_to_the_energies_before_the_softmax(heads: int) -> None:
    made = AttentionSettings(heads=heads).make(Dot, Leaning, Softmax, Soft, query_size=4, value_size=4).double()
    queries = torch.zeros(1, 2, 4, dtype=F64)  # so that the bias alone decides
    memory = made.remember(torch.randn(1, 4, 4, dtype=F64), torch.ones(1, 4, dtype=torch.bool))
    weights = made(queries, memory, torch.arange(2).unsqueeze(0)).weights
    torch.testing.assert_close(weights, tensor([1 / 7, 2 / 7, 4 / 7, 0]).expand(1, heads, 2, 4))


def test_dropout_acts_on_what_is_read_not_on_what_is_shown() -> None:
    made = attention("additive")
    made.dropout.p = 0.9
    made.train()
    values = torch.randn(1, 7, 10, dtype=F64)
    memory = made.remember(values, torch.ones(1, 7, dtype=torch.bool))
    attended = made(torch.randn(1, 5, 10, dtype=F64), memory, torch.zeros(1, 5, dtype=torch.int64))
    torch.testing.assert_close(attended.weights.sum(-1), torch.ones(1, 1, 5, dtype=F64))
    assert not torch.allclose(attended.context, (attended.weights[:, 0] @ values))


def test_attention_over_attention_weighs_words_by_both_directions() -> None:
    """Cui et al. 2017, section 3: two slots k = 0 and 1, two queries q = 0 and ln 3, and energies q k."""
    mechanism = attention("dot", query_size=1, value_size=1, size=1)
    memory = mechanism.remember(torch.tensor([[[0.0], [1.0]]]).double(), torch.ones(1, 2, dtype=torch.bool))
    queries = torch.tensor([[[0.0], [math.log(3)]]]).double()
    attended = OverAttention()(mechanism, queries, torch.ones(1, 2, dtype=torch.bool), memory)
    # M = [[0, 0], [0, ln 3]] (slots x queries). alpha(1) = (1/2, 1/2), alpha(2) = (1/4, 3/4).
    # beta(1) = (1/2, 1/2), beta(2) = (1/4, 3/4), so beta = (3/8, 5/8).
    # s = 3/8 (1/2, 1/2) + 5/8 (1/4, 3/4) = (11/32, 21/32).
    torch.testing.assert_close(attended.weights, torch.tensor([[[[11 / 32, 21 / 32]]]]).double())
    torch.testing.assert_close(attended.context, torch.tensor([[[21 / 32]]]).double())


def test_attention_over_attention_ignores_what_is_padded() -> None:
    mechanism = attention("additive", query_size=3, value_size=5, heads=2, project=True)
    generator = torch.Generator().manual_seed(1)
    values, queries = (torch.randn(1, *shape, generator=generator).double() for shape in ((4, 5), (3, 3)))
    mask, real = torch.tensor([[True, True, False, False]]), torch.tensor([[True, True, False]])
    over = OverAttention()
    padded = over(mechanism, queries, real, mechanism.remember(values, mask))
    plain = over(mechanism, queries[:, :2], real[:, :2], mechanism.remember(values[:, :2], mask[:, :2]))
    torch.testing.assert_close(padded[0], plain[0])
    torch.testing.assert_close(padded[1][..., :2], plain[1])
    torch.testing.assert_close(plain[1].sum(-1), torch.ones(1, 2, 1).double())
    assert not padded[1][..., 2:].any()
    nothing = over(mechanism, queries, real, mechanism.remember(values, torch.zeros_like(mask)))
    assert not nothing[1].any()
