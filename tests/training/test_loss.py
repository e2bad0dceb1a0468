"""What padding and terms do to the loss of a batch."""

import pytest
import torch

from nmt.data.batch import Batch, make_batch
from nmt.kernels.r_drop import divergences
from nmt.model import Seq2Seq
from nmt.model.contract import Decoded
from nmt.training.loss import batch_loss
from tests.catalogue import model


def test_a_batch_is_the_sum_of_its_sentences() -> None:
    made = model()
    sources, targets = [[5, 6, 7], [8]], [[9, 4], [5, 6, 7, 8, 9]]
    together = batch_loss(made, make_batch(sources, targets), 0.1)
    alone = [batch_loss(made, make_batch([source], [target]), 0.1) for source, target in zip(sources, targets)]
    assert together.tokens == 3 + 6  # with the end of sentence
    assert together.total.item() == pytest.approx(sum(loss.total.item() for loss in alone), abs=1e-4)


def test_both_divergences_by_hand() -> None:
    p, q = torch.tensor([[0.5, 0.25, 0.25], [0.2, 0.4, 0.4]]), torch.tensor([[0.25, 0.5, 0.25], [0.2, 0.4, 0.4]])
    logits = p.log() + torch.tensor([[3.0], [-1.0]]), q.log()
    # KL(p || q) = 0.5 ln 2 - 0.25 ln 2, KL(q || p) the same; the second row has none.
    assert divergences(*logits).item() == pytest.approx(0.5 * 0.6931472, abs=1e-6)


@pytest.mark.parametrize("places", ["none", "real", "every"])
def test_r_drop_without_dropout_changes_nothing(places: str) -> None:
    made, batch = model().eval(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6, 7]])
    mask = batch.target_mask.flatten()
    if places != "none":  # as on a GPU
        batch = batch._replace(target_places=(mask if places == "real" else mask | True).nonzero().squeeze(1))
    plain, twice = batch_loss(made, batch, 0.1), batch_loss(made, batch, 0.1, r_drop=5)
    assert twice.total.item() == pytest.approx(plain.total.item())
    assert twice.tokens == plain.tokens
    assert twice.negative_log_likelihood.item() == pytest.approx(plain.negative_log_likelihood.item())


def test_r_drop_adds_the_divergence_of_two_passes() -> None:
    made, batch = model("model.dropout=0.5").train(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6, 7]])
    twice = batch.twice()
    torch.manual_seed(1)
    first, second = made.target_logits(_decode(made, twice), twice.target_mask).chunk(2)
    torch.manual_seed(1)
    alone = batch_loss(made, twice, 0.1).total.item()
    torch.manual_seed(1)
    found = batch_loss(made, batch, 0.1, r_drop=3).total.item()
    assert divergences(first, second).item() > 0.01
    assert found == pytest.approx(alone / 2 + 3 / 4 * divergences(first, second).item(), rel=1e-6)


def _decode(made: Seq2Seq, batch: Batch) -> Decoded:
    decoded: Decoded = made(batch.source, batch.source_mask, batch.source_lengths, batch.target_in, 0.0)
    return decoded
