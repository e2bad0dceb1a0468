"""What padding and terms do to the loss of a batch."""

import pytest

from nmt.data.batch import make_batch
from nmt.training.loss import batch_loss
from tests.catalogue import model


def test_a_batch_is_the_sum_of_its_sentences() -> None:
    made = model()
    sources, targets = [[5, 6, 7], [8]], [[9, 4], [5, 6, 7, 8, 9]]
    together = batch_loss(made, make_batch(sources, targets), 0.1)
    alone = [batch_loss(made, make_batch([source], [target]), 0.1) for source, target in zip(sources, targets)]
    assert together.tokens == 3 + 6  # with the end of sentence
    assert together.total.item() == pytest.approx(sum(loss.total.item() for loss in alone), abs=1e-4)
