"""Windows against numbers worked by hand: the visible slots, centres, factors, and slots that a person names."""

import math
from typing import Any

import pytest
import torch
from torch import Tensor

from nmt.attention import View
from nmt.attention.windows import Causal, LocalMonotonic, LocalPredictive, Pinned
from nmt.kernels.energies import masked_softmax
from nmt.system.errors import UserError
from tests.attention.test_by_hand import F64, tensor
from tests.catalogue import attention


def test_local_monotonic_slots_are_t_plus_minus_d_held_at_the_end() -> None:
    mask = torch.tensor([[True] * 5 + [False]])
    steps = torch.tensor([[0, 2, 9]])
    visible, _, factor, _ = LocalMonotonic(1, radius=1)(torch.zeros(1, 3, 1), steps, mask)
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
    visible, _, factor, _ = predictive(2)(tensor([[[1], [-1]]] * 2), torch.zeros(2, 2, dtype=torch.int64), mask)
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
        visible, _, factor, _ = window(own.view(1, 1, 1), torch.zeros(1, 1, dtype=torch.int64), mask)
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
    visible, _, factor, _ = Pinned(1, [2, [0, 3], None, []])(torch.zeros(2, 5, 1), torch.arange(5).expand(2, 5), mask)
    assert factor is None
    assert visible[0].int().tolist() == [[0, 0, 1, 0], [1, 0, 0, 1], [1, 1, 1, 1], [0, 0, 0, 0], [1, 1, 1, 1]]
    assert visible[1].int().tolist() == [[0, 0, 0, 0], [1, 0, 0, 0], [1, 1, 0, 0], [0, 0, 0, 0], [1, 1, 0, 0]]


@pytest.mark.parametrize("slots", [3, [], ["a"], [1.0], [True], [-1], [[0, -2]], [[[0]]]])
def test_slots_that_name_nothing_are_refused(slots: object) -> None:
    with pytest.raises(UserError, match=r"\[0,\[1,2\],null\]"):
        Pinned(1, slots)  # type: ignore[arg-type]


@pytest.mark.parametrize(("settings", "message"), [
    ({"heads": 0}, r"attention\.heads=0: must be at least 1"),
    ({"dropout": 1.0}, r"attention\.dropout=1\.0: must be at least 0 and less than 1"),
    ({"window": "local_m", "radius": -1}, r"attention\.window\.radius=-1: must be at least 0"),
    ({"window": "local_p", "radius": 0}, r"attention\.window\.radius=0: must be at least 1"),
    *(({"window": "relative", "values": True, **more},
       r"attention\.window\.values=true: needs a soft read, .*attention\.project=true .*give attention\.window\.val")
      for more in ({"read": "hard"}, {"value_size": 9})),
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
    assert (View(one.visible) & View(one.visible))[1:] == (None, None, None)
