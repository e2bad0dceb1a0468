"""Figures of the weights, counted by hand."""

from nmt.evaluation.focus import hidden_share
from tests.evaluation.by_hand import EMPTY, WORKED, even


def test_the_share_of_slots_without_weight() -> None:
    # WORKED: two heads of 4 x 5 slots, five of them zero. even: nothing is hidden.
    assert hidden_share([WORKED]) == 5 / 40
    looked = even("ein Satz", "a sentence")
    assert looked.weights is not None
    assert hidden_share([WORKED, EMPTY, looked]) == 5 / (40 + looked.weights.size)
    assert hidden_share([EMPTY]) == 0
