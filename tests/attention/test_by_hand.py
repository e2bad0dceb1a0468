"""Numbers worked by hand from the papers' equations."""

import copy
import math
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attention, View, Window
from nmt.attention.attention import masked_softmax
from nmt.attention.reads import Soft
from nmt.attention.scores import Additive, Concat, Cosine, Dot, General, Location, ScaledDot
from nmt.attention.windows import Causal, LocalMonotonic, LocalPredictive, Pinned
from nmt.errors import UserError
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
        torch.testing.assert_close(state[0][0, 0, 0], seen)


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


def test_local_monotonic_slots_are_t_plus_minus_d_held_at_the_end() -> None:
    mask = torch.tensor([[True] * 5 + [False]])
    steps = torch.tensor([[0, 2, 9]])
    visible, _, factor = LocalMonotonic(1, radius=1)(torch.zeros(1, 3, 1), steps, mask)
    assert factor is None
    assert visible.int().tolist() == [[[1, 1, 0, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 0]]]


def predictive(radius: int) -> LocalPredictive:
    """p_t = S sigmoid(ln 3 tanh(q) / tanh(1)): 3/4 of the length for the query 1, 1/4 for -1, 1/2 for 0."""
    window = LocalPredictive(1, radius).double()
    with torch.no_grad():
        window.W.weight.fill_(1)
        window.v.fill_(math.log(3) / math.tanh(1))
    return window


def test_local_predictive_slots_and_factor_go_by_each_sentences_own_length() -> None:
    mask = torch.arange(8) < torch.tensor([8, 4])[:, None]
    visible, _, factor = predictive(2)(tensor([[[1], [-1]]] * 2), torch.zeros(2, 2, dtype=torch.int64), mask)
    assert factor is not None
    # p = 6 and 2 of eight slots, 3 and 1 of four, D = 2, sigma = 1
    assert visible.int().tolist() == [
        [[0, 0, 0, 0, 1, 1, 1, 1], [1, 1, 1, 1, 1, 0, 0, 0]],
        [[0, 1, 1, 1, 0, 0, 0, 0], [1, 1, 1, 1, 0, 0, 0, 0]],
    ]
    one, two = math.exp(-0.5), math.exp(-2)
    torch.testing.assert_close(factor[0, 0, 4:], tensor([two, one, 1, one]))
    torch.testing.assert_close(factor[1, 1, :4], tensor([one, 1, one, two]))


def test_local_predictive_multiplies_after_the_softmax_and_leaves_it_at_that() -> None:
    made = attention("dot", "local_p", query_size=1, value_size=1, radius=2)
    made.window.load_state_dict(predictive(2).state_dict())
    memory = made.remember(tensor([[[0.0], [math.log(2.0)]]]), torch.ones(1, 2, dtype=torch.bool))
    attended = made(tensor([[[1.0]]]), memory, torch.zeros(1, 1, dtype=torch.int64))
    # The softmax gives 1/3 and 2/3; p = 3/2, so the factors are exp(-9/8) and exp(-1/8).
    expected = tensor([math.exp(-9 / 8) / 3, 2 * math.exp(-1 / 8) / 3])
    torch.testing.assert_close(attended.weights[0, 0, 0], expected)
    assert attended.weights.sum() < 0.8
    torch.testing.assert_close(attended.context[0, 0, 0], expected[1] * math.log(2.0))


def test_the_predicted_position_learns_through_the_factor() -> None:
    """d a_j / d q = a_j (j - p) / sigma^2 dp/dq, dp/dq = S sigmoid' v (1 - tanh^2); finite differences agree."""
    window = predictive(4)  # sigma = 2
    mask = torch.ones(1, 5, dtype=torch.bool)

    def weights(own: Tensor) -> Tensor:
        visible, _, factor = window(own.view(1, 1, 1), torch.zeros(1, 1, dtype=torch.int64), mask)
        assert factor is not None
        found: Tensor = masked_softmax(torch.zeros(1, 1, 5, dtype=F64), visible)[0, 0] * factor[0, 0]
        return found

    query = tensor(0.3).requires_grad_()
    found = torch.autograd.functional.jacobian(weights, query)
    v = window.v.item()
    share = 1 / (1 + math.exp(-v * math.tanh(0.3)))
    slope = 5 * share * (1 - share) * v * (1 - math.tanh(0.3) ** 2)
    by_hand = weights(query) * (torch.arange(5) - 5 * share) / 4 * slope
    torch.testing.assert_close(found, by_hand)
    nudged = (weights(query + 1e-6) - weights(query - 1e-6)) / 2e-6
    torch.testing.assert_close(found, nudged, atol=1e-9, rtol=1e-6)
    for parameter in window.parameters():
        before = parameter.detach().clone()
        wanted = torch.autograd.grad(weights(query)[3], parameter)[0].flatten()
        with torch.no_grad():
            sides = []
            for side in (1e-6, -1e-6):
                parameter.copy_(before + side)
                sides.append(weights(query)[3])
            parameter.copy_(before)
        torch.testing.assert_close(wanted[0], (sides[0] - sides[1]) / 2e-6, atol=1e-9, rtol=1e-6)


def test_forced_slots_are_those_named() -> None:
    mask = torch.arange(4) < torch.tensor([4, 2])[:, None]
    visible, _, factor = Pinned(1, [2, [0, 3], None, []])(torch.zeros(2, 5, 1), torch.arange(5).expand(2, 5), mask)
    assert factor is None
    assert visible[0].int().tolist() == [[0, 0, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert visible[1].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize("heads", [1, 2])
def test_a_finished_mechanism_can_be_pinned(heads: int) -> None:
    made = attention("general", "local_p", heads=heads)
    values = torch.randn(1, 7, 10, dtype=F64)
    memory = made.remember(values, torch.ones(1, 7, dtype=torch.bool))
    queries, steps = torch.randn(1, 2, 10, dtype=F64), torch.arange(2).unsqueeze(0)
    made.pin([5, [1]], torch.device("cpu"))
    weights = made(queries, memory, steps).weights
    assert (weights[0, :, 0, 5] == 1).all()
    assert (weights[0, :, 1, 1] == 1).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(1, heads, 2, dtype=F64))
    assert not [name for name in made.state_dict() if "named" in name or "free" in name], (
        "a pin is no part of the weights"
    )
    made.pin([5, [1]], torch.device("meta"))
    assert {table.device.type for table in made.window.buffers()} == {"meta"}


@pytest.mark.parametrize("window", ["global", "local_m", "local_p", "relative"])
def test_steps_that_are_not_pinned_keep_their_window(window: str) -> None:
    settings: dict[str, Any] = {"distance": 2} if window == "relative" else {} if window == "global" else {"radius": 1}
    made = attention("general", window, heads=2, **settings)
    memory = made.remember(torch.randn(2, 7, 10, dtype=F64), torch.arange(7) < torch.tensor([7, 5])[:, None])
    queries, steps = torch.randn(2, 4, 10, dtype=F64), torch.arange(4).expand(2, 4)
    before = made(queries, memory, steps).weights
    made.pin([None, [4], None], torch.device("cpu"))
    after = made(queries, memory, steps).weights
    torch.testing.assert_close(after[:, :, [0, 2, 3]], before[:, :, [0, 2, 3]])
    assert (after[:, :, 1, 4] == 1).all()
    assert not (before[:, :, 1, 4] == 1).all()


@pytest.mark.parametrize("slots", [3, [], ["a"], [1.0], [True], [-1], [[0, -2]], [[[0]]]])
def test_slots_that_name_nothing_are_refused(slots: object) -> None:
    with pytest.raises(UserError, match=r"\[0,\[1,2\],null\]"):
        Pinned(1, slots)  # type: ignore[arg-type]


@pytest.mark.parametrize(("settings", "message"), [
    ({"heads": 0}, r"attention\.heads=0: must be at least 1"),
    ({"dropout": 1.0}, r"attention\.dropout=1\.0: must be at least 0 and less than 1"),
    ({"window": "local_m", "radius": -1}, r"attention\.window\.radius=-1: must be at least 0"),
    ({"window": "local_p", "radius": 0}, r"attention\.window\.radius=0: must be at least 1"),
    ({"window": "forced", "slots": []}, r"attention\.window\.slots=\[\]: must name .*attention/window=global"),
    ({"score": "location", "positions": 0}, r"attention\.score\.positions=0: must be at least 1"),
    ({"read": "hard", "objective": "both"}, r"attention\.read\.objective=both: must be sampled or enumerate"),
    ({"read": "hard", "entropy": -0.1}, r"attention\.read\.entropy=-0\.1: must be at least 0"),
    ({"read": "hard", "reward": -2.0}, r"attention\.read\.reward=-2\.0: must be at least 0"),
    ({"read": "hard", "expected": 1.5}, r"attention\.read\.expected=1\.5: must be from 0 to 1"),
    ({"read": "hard", "objective": "enumerate", "heads": 2},
     r"attention\.heads=2: must be 1 .* tries every slot of one head.*attention\.heads=1"),
])  # fmt: skip
def test_settings_out_of_range_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        attention(**settings)


def test_causal_slots_are_up_to_t() -> None:
    view = Causal(1)(torch.zeros(1, 2, 1), torch.tensor([[0, 2]]), torch.tensor([[True] * 3 + [False]]))
    assert view.visible.int().tolist() == [[[1, 0, 0, 0], [1, 1, 1, 0]]]


def test_views_intersect() -> None:
    one = View(torch.tensor([True, True, False]), bias=tensor([1, 2, 3]))
    two = View(torch.tensor([[True], [False]]), bias=tensor([[10], [20]]), factor=tensor([4, 5, 6]))
    for both in (one & two, two & one):
        assert both.visible.tolist() == [[True, True, False], [False] * 3]
        assert both.bias is not None
        assert both.bias.tolist() == [[11, 12, 13], [21, 22, 23]]
        assert both.factor is not None
        assert both.factor.tolist() == [4, 5, 6]
    squared = (two & two).factor
    assert squared is not None
    assert squared.tolist() == [16, 25, 36]
    assert (View(one.visible) & View(one.visible))[1:] == (None, None)


class Leaning(Window):
    """Adds j ln 2 to the energy of slot j, and hides the last slot."""

    def forward(self, queries: Tensor, steps: Tensor, mask: Tensor) -> View:
        positions = torch.arange(mask.shape[-1])
        return View(mask.unsqueeze(-2) & (positions < mask.shape[-1] - 1), bias=positions * math.log(2))


@pytest.mark.parametrize("heads", [1, 2])
def test_a_bias_is_added_to_the_energies_before_the_softmax(heads: int) -> None:
    made = Attention(Dot, Leaning, Soft, query_size=4, value_size=4, size=4, heads=heads).double()
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
    context, weights = mechanism.over(queries, torch.ones(1, 2, dtype=torch.bool), memory)
    # M = [[0, 0], [0, ln 3]] (slots x queries). alpha(1) = (1/2, 1/2), alpha(2) = (1/4, 3/4).
    # beta(1) = (1/2, 1/2), beta(2) = (1/4, 3/4), so beta = (3/8, 5/8).
    # s = 3/8 (1/2, 1/2) + 5/8 (1/4, 3/4) = (11/32, 21/32).
    torch.testing.assert_close(weights, torch.tensor([[[11 / 32, 21 / 32]]]).double())
    torch.testing.assert_close(context, torch.tensor([[21 / 32]]).double())


def test_attention_over_attention_ignores_what_is_padded() -> None:
    mechanism = attention("additive", query_size=3, value_size=5, heads=2, project=True)
    generator = torch.Generator().manual_seed(1)
    values, queries = (torch.randn(1, *shape, generator=generator).double() for shape in ((4, 5), (3, 3)))
    mask, real = torch.tensor([[True, True, False, False]]), torch.tensor([[True, True, False]])
    padded = mechanism.over(queries, real, mechanism.remember(values, mask))
    plain = mechanism.over(queries[:, :2], real[:, :2], mechanism.remember(values[:, :2], mask[:, :2]))
    torch.testing.assert_close(padded[0], plain[0])
    torch.testing.assert_close(padded[1][..., :2], plain[1])
    torch.testing.assert_close(plain[1].sum(-1), torch.ones(1, 2).double())
    assert not padded[1][..., 2:].any()
    nothing = mechanism.over(queries, real, mechanism.remember(values, torch.zeros_like(mask)))
    assert not nothing[1].any()
