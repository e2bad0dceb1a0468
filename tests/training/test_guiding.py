"""The guided-alignment loss: by hand, against finite differences, and what it does to a model."""

import math

import pytest
import torch

from nmt.data.batch import make_batch
from nmt.model import Source
from nmt.system.errors import SettingError
from nmt.training.guidance import LEAST, guided_alignment, guided_heads
from nmt.training.loss import batch_loss
from tests.catalogue import ATTENTIVE, model, thinned


def test_it_is_the_cross_entropy_by_hand() -> None:
    """One row linked to two pieces alike, one to a single piece, one to none; the mean of two heads."""
    links = torch.tensor([[[0.5, 0.5, 0.0], [0.0, 0.0, 1.0], [0.0, 0.0, 0.0]]])
    heads = [
        [[0.2, 0.7, 0.1], [0.5, 0.5, 0.0], [1.0, 0.0, 0.0]],
        [[0.6, 0.3, 0.1], [0.0, 0.5, 0.5], [0.0, 1.0, 0.0]],
    ]
    found = guided_alignment(torch.tensor([heads]), links)
    assert found.shape == (1, 3)
    expected = [-0.5 * math.log(0.4) - 0.5 * math.log(0.5), -math.log(0.25), 0.0]
    assert found[0].tolist() == pytest.approx(expected)


def test_heads_that_are_not_selected_do_not_count() -> None:
    links = torch.tensor([[[0.0, 1.0]]])
    weights = torch.tensor([[[[0.9, 0.1]], [[0.2, 0.8]], [[0.6, 0.4]]]])
    for heads, share in (([1], 0.8), ([0, 2], 0.25), ([0, 1, 2], 1.3 / 3), (None, 1.3 / 3)):
        assert guided_alignment(weights, links, heads).item() == pytest.approx(-math.log(share))


@pytest.mark.parametrize(
    ("heads", "selection", "positions"),
    [
        (["0"], None, [0]),
        (["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"], None, [2]),
        (["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"], "3.2", [5]),
        (["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"], "2.mean", [2, 3]),
        (["1.1", "1.2", "2.1", "2.2", "3.1", "3.2"], "mean", [0, 1, 2, 3, 4, 5]),
        ([f"{layer}.{head}" for layer in (1, 2) for head in range(1, 13)], "2.10", [21]),
        (["1.1", "1.2"], None, [0, 1]),
    ],
)
def test_it_trains_one_head_of_the_penultimate_layer(
    heads: list[str], selection: str | None, positions: list[int]
) -> None:
    """Garg et al. 2019; the mean where there is one layer."""
    assert guided_heads(heads, selection) == positions


def test_a_head_that_is_not_there_is_named() -> None:
    with pytest.raises(SettingError, match=r"trainer.guided_head=3.1: does not exist. Give mean, 2.mean or one from 1"):
        guided_heads(["1.1", "1.2", "2.1", "2.2"], "3.1")


def test_its_gradient_by_hand() -> None:
    """With a = softmax(e) the gradient with respect to e is a - G; a row without links has none."""
    energies = torch.randn(1, 1, 3, 4, dtype=torch.float64, requires_grad=True)
    links = torch.tensor([[[0.5, 0.0, 0.5, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]], dtype=torch.float64)
    weights = torch.softmax(energies, -1)
    guided_alignment(weights, links).sum().backward()
    assert energies.grad is not None
    expected = (weights[:, 0] - links).detach()
    expected[:, 2] = 0
    torch.testing.assert_close(energies.grad[:, 0], expected, atol=1e-6, rtol=1e-5)


@pytest.mark.parametrize("gap", [19.0, 40.0])
def test_attention_that_is_surely_wrong_is_drawn_back(gap: float) -> None:
    """a - G in single precision, where the linked position has next to no weight: e^-19, e^-40."""
    energies = torch.tensor([[[[gap, 0.0]]]], requires_grad=True)
    found = guided_alignment(torch.softmax(energies, -1), torch.tensor([[[0.0, 1.0]]]))
    assert found.item() == pytest.approx(gap)
    found.sum().backward()
    assert energies.grad is not None
    assert energies.grad.flatten().tolist() == pytest.approx([1, -1])


def test_a_hidden_position_leaves_it_finite() -> None:
    weights = torch.tensor([[[[1.0, 0.0]]]], requires_grad=True)
    loss = guided_alignment(weights, torch.tensor([[[0.0, 1.0]]]))
    assert loss.item() == pytest.approx(-math.log(LEAST))
    loss.sum().backward()
    assert weights.grad is not None
    assert weights.grad.tolist() == [[[[0.0, 0.0]]]]


@pytest.mark.parametrize("wiring", thinned(ATTENTIVE, 2))
def test_it_adds_its_share_to_the_loss_and_draws_the_weights(wiring: str) -> None:
    """Some steps draw the weights to links that go from the end of the source to its beginning."""
    torch.manual_seed(2)
    made = model(f"decoder={wiring}", train=True)
    plain = make_batch([[5, 6, 7], [8, 9, 10]], [[11, 12, 13], [14, 15, 16]])
    links = torch.zeros(2, 4, 4)
    links[:, [0, 1, 2], [2, 1, 0]] = 1
    batch = plain._replace(links=links)
    weights = made(Source.of(batch), batch.target_in).weights
    without, found = batch_loss(made, batch), batch_loss(made, batch, guided=0.5, guided_head="mean")
    assert found.tokens == without.tokens
    assert found.negative_log_likelihood.item() == pytest.approx(without.negative_log_likelihood.item())
    one = batch_loss(made, batch, guided=0.5).total - without.total
    share = 0.5 * guided_alignment(weights, links, [0]).sum().item()  # the first head, of the first of two layers
    assert one.item() == pytest.approx(share, rel=1e-4)
    share = 0.5 * guided_alignment(weights, links).sum().item()
    assert found.total.item() == pytest.approx(without.total.item() + share, rel=1e-5)
    assert batch_loss(made, plain, guided=0.5).total.item() == pytest.approx(without.total.item())
    optimizer = torch.optim.Adam(made.parameters(), lr=0.01)
    for _ in range(200):
        optimizer.zero_grad()
        guided_alignment(made(Source.of(batch), batch.target_in).weights, links).sum().backward()
        optimizer.step()
    drawn = made(Source.of(batch), batch.target_in).weights.mean(1)
    assert drawn[:, :3].argmax(2).tolist() == [[2, 1, 0]] * 2
