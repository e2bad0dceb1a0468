"""Search's folded step against the step as it is written, for everything that can be folded."""

import pytest
import torch

from nmt.model.folding import can_fold, fold
from tests.catalogue import model, sentences
from tests.model.test_wirings import COMBINATIONS, LENGTHS


def test_what_is_folded() -> None:
    """The plain mechanisms, so that the comparison below is not one of nothing."""
    folded = [own for own in COMBINATIONS if can_fold(model(*own).decoder)]
    for wiring in ("bahdanau", "luong", "conditional"):
        assert any(f"decoder={wiring}" in own for own in folded)
    for own in folded:
        assert not {"attention.heads=2", "decoder.layers=3", "decoder=none"} & set(own)
    assert not can_fold(model("decoder=bahdanau", "decoder.fast=false").decoder)


@pytest.mark.parametrize("overrides", [own for own in COMBINATIONS if can_fold(model(*own).decoder)], ids=" ".join)
def test_folded_steps_equal_the_reference(overrides: tuple[str, ...]) -> None:
    """Three hypotheses a sentence, some with the same word, re-ordered between the steps."""
    made = model(*overrides)
    source, mask, lengths = sentences(LENGTHS, 23)
    generator = torch.Generator().manual_seed(8)
    memory, state = made.encode(source, mask, lengths)
    first = torch.arange(len(LENGTHS)).repeat_interleave(3)
    reference = folded = state.select(first)
    shares = fold(made.decoder, memory)
    for _ in range(4):
        tokens = torch.randint(4, 9, (len(first),), generator=generator)
        expected = made.step(tokens, reference, memory)
        found = made.folded_step(tokens, folded, shares)
        torch.testing.assert_close(found.log_probs, expected.log_probs)
        torch.testing.assert_close(found.weights, expected.weights)
        rows = first * 3 + torch.randint(0, 3, (len(first),), generator=generator)
        reference, folded = expected.state.select(rows), found.state.select(rows)
        for own, other in zip(folded.attention, reference.attention, strict=True):
            torch.testing.assert_close(own, other)
        torch.testing.assert_close(folded.hidden, reference.hidden)
        torch.testing.assert_close(folded.feed, reference.feed)
        assert torch.equal(folded.steps, reference.steps)
