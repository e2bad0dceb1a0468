"""Search with values that are multiplied once, against the step as it is written, for everything that can be folded."""

import pytest
import torch

from nmt.model import Source
from nmt.model.recurrent.first_state import FirstState
from tests.catalogue import WITH_ATTENTION, model, recurrent, sentences, started
from tests.model.test_wirings import COMBINATIONS, LENGTHS

#: Readouts that are their input as it is, which they are where sizes are equal.
IDENTITIES = [
    ("decoder=bahdanau", "decoder/readout=state", "decoder.readout.size=10"),
    ("decoder=luong", "decoder/readout=context", "decoder.readout.size=10"),
]


def folds(*overrides: str) -> bool:
    """Whether search folds the memory of a model."""
    memory, _ = model(*overrides).encode(Source(*sentences([3], 23)), searching=True)
    return bool(getattr(memory, "folded", False))


def test_what_is_folded() -> None:
    """The plain mechanisms, so that the comparison below is not one of nothing."""
    folded = [own for own in COMBINATIONS if folds(*own)]
    for wiring in ("bahdanau", "luong", "conditional"):
        assert any(f"decoder={wiring}" in own for own in folded)
    for own in folded:
        assert not {"attention.heads=2", "decoder=none"} & set(own)
    assert not folds("decoder=bahdanau", "model.fast=false")
    assert not model("decoder=bahdanau").encode(Source(*sentences([3], 23)))[0].folded  # type: ignore[attr-defined]
    for own in IDENTITIES:
        assert folds(*own)
        assert not list(recurrent(model(*own)).readout.parameters())


@pytest.mark.parametrize("overrides", [own for own in [*COMBINATIONS, *IDENTITIES] if folds(*own)], ids=" ".join)
def test_folded_steps_equal_the_reference(overrides: tuple[str, ...]) -> None:
    """Three hypotheses a sentence, some with the same word, re-ordered between the steps."""
    made = model(*overrides)
    source, mask, lengths = sentences(LENGTHS, 23)
    generator = torch.Generator().manual_seed(8)
    memory, state = started(made, Source(source, mask, lengths))
    shares, same = started(made, Source(source, mask, lengths), searching=True)
    first = torch.arange(len(LENGTHS)).repeat_interleave(3)
    reference, folded = state.select(first), same.select(first)
    for _ in range(4):
        tokens = torch.randint(4, 9, (len(first),), generator=generator)
        expected = made.step(tokens, reference, memory)
        found = made.step(tokens, folded, shares)
        torch.testing.assert_close(found.log_probs, expected.log_probs)
        torch.testing.assert_close(found.weights, expected.weights)
        rows = first * 3 + torch.randint(0, 3, (len(first),), generator=generator)
        reference, folded = expected.state.select(rows), found.state.select(rows)  # type: ignore[assignment]
        for own, other in zip(folded.attention, reference.attention, strict=True):
            torch.testing.assert_close(own, other)
        torch.testing.assert_close(folded.hidden, reference.hidden)
        torch.testing.assert_close(folded.feed, reference.feed)
        assert torch.equal(folded.steps, reference.steps)


@pytest.mark.parametrize("wiring", WITH_ATTENTION)
@pytest.mark.parametrize("kind", FirstState.KINDS)
def test_states_and_weights_stay_in_single_precision_under_autocast(wiring: str, kind: str) -> None:
    made = model(f"decoder={wiring}", f"decoder.first_state={kind}").float()
    source, mask, lengths = sentences(LENGTHS, 23)
    tokens = torch.tensor([5, 6, 7])
    with torch.inference_mode(), torch.autocast("cpu", torch.bfloat16):
        for searching in (False, True):
            memory, state = started(made, Source(source, mask, lengths), searching)
            assert state.hidden.dtype == torch.float32
            assert searching or memory.attention.values.dtype == torch.float32
            found = made.step(tokens, state, memory)
            assert found.state.hidden.dtype == found.log_probs.dtype == torch.float32  # type: ignore[attr-defined]
            assert found.weights is not None
            assert found.weights.dtype == torch.float32
