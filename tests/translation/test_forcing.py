"""What a forced word came from: saliency against finite differences, for every wiring, and the log-probabilities."""

import pytest
import torch
from torch import Tensor

from nmt.data.batch import Batch, make_batch
from nmt.model import Seq2Seq, Source
from nmt.translation import forced_passes
from tests.catalogue import DECODERS, model

SOURCES, TARGETS = [[5, 6, 7], [8], [9, 10, 11, 12, 13]], [[9, 4], [5, 6, 7, 8], [14]]
MIXED = [("encoder=transformer", "decoder=transformer"), ("encoder=transformer", "decoder=luong"), ("encoder=conv",)]
KINDS = [*((f"decoder={wiring}",) for wiring in DECODERS), ("decoder=bahdanau", "attention.heads=2"), *MIXED]
every = pytest.mark.parametrize("overrides", KINDS, ids=" ".join)


def log_probs(made: Seq2Seq, batch: Batch, scales: Tensor) -> Tensor:
    """log p of each target piece [B, T] with the embedding of each source piece scaled [B, S]."""
    embedded = made.source_embedding(batch.source) * scales.unsqueeze(2)
    memory, state = made.encode(Source(embedded, batch.source_mask, batch.source_lengths))
    decoded = made.decoder(made.target_embedding(batch.target_in), state, memory)
    found = torch.log_softmax(made.logits(decoded.features), -1)
    return found.gather(2, batch.target_out.unsqueeze(2)).squeeze(2) * batch.target_mask


@pytest.mark.parametrize("overrides", [words for words in KINDS if "transformer" not in " ".join(words)], ids=" ".join)
def test_saliency_is_the_slope_of_a_switch_on_each_source_piece(overrides: tuple[str, ...]) -> None:
    """Scaling an embedding by 1 + h changes log p(y_t) by h psi(x_j, y_t): Ding et al. 2019."""
    made, batch = model(*overrides), make_batch(SOURCES, TARGETS)
    found = forced_passes.saliency(made, batch)
    assert found.weights is not None
    assert found.weights.shape == (3, 1, 5, 6)
    ones, step = torch.ones(batch.source.shape, dtype=torch.float64), 1e-5
    # Logits are rounded to single precision on the way, as the search has them: gradients are not.
    with torch.no_grad():
        for position in range(batch.source.shape[1]):
            nudge = torch.zeros_like(ones)
            nudge[:, position] = step
            slope = (log_probs(made, batch, ones + nudge) - log_probs(made, batch, ones - nudge)) / (2 * step)
            torch.testing.assert_close(found.weights[:, 0, :, position].double(), slope, atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_the_deviations_of_layer_normalisation_are_constants(norm: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ali et al. 2022: the gradient is that of a model that divides by the deviations of this sentence."""
    made = model("encoder=transformer", "decoder=transformer", f"encoder.norm={norm}", f"decoder.norm={norm}")
    batch = make_batch(SOURCES, TARGETS)
    plain = forced_passes.attention(made, batch).log_probs
    found = forced_passes.saliency(made, batch)
    torch.testing.assert_close(found.log_probs, plain)
    torch.testing.assert_close(forced_passes.attention(made, batch).log_probs, plain, rtol=0, atol=0)

    def divided(norm: torch.nn.LayerNorm, values: torch.Tensor) -> torch.Tensor:
        deviation = (values.var(-1, correction=0, keepdim=True) + norm.eps) ** 0.5
        return (values - values.mean(-1, keepdim=True)) / deviation.detach() * norm.weight + norm.bias

    monkeypatch.setattr(torch.nn.LayerNorm, "forward", divided)
    embedded = made.source_embedding(batch.source).detach().requires_grad_()
    memory, state = made.encode(Source(embedded, batch.source_mask, batch.source_lengths, batch.context))
    logits = made.logits(made.decoder(made.target_embedding(batch.target_in), state, memory).features)
    first = torch.log_softmax(logits[:, 0], -1).gather(1, batch.target_out[:, :1]).sum()
    (gradient,) = torch.autograd.grad(first, embedded)
    assert found.weights is not None
    torch.testing.assert_close(
        found.weights[:, 0, 0].double(), (gradient * embedded).sum(-1).detach(), atol=1e-4, rtol=1e-3
    )


@every
def test_padding_and_other_sentences_have_no_part_in_it(overrides: tuple[str, ...]) -> None:
    made, batch = model(*overrides), make_batch(SOURCES, TARGETS)
    found = forced_passes.saliency(made, batch).weights
    assert found is not None
    assert (found.masked_select(~batch.source_mask[:, None, None]) == 0).all()
    assert (found.masked_select(~batch.target_mask[:, None, :, None]) == 0).all()
    for row, (source, target) in enumerate(zip(SOURCES, TARGETS)):
        alone = forced_passes.saliency(made, make_batch([source], [target])).weights
        assert alone is not None
        here = found[row : row + 1, :, : alone.shape[2], : alone.shape[3]]
        torch.testing.assert_close(here, alone, atol=1e-5, rtol=1e-4)


@every
def test_both_give_the_same_log_probabilities(overrides: tuple[str, ...]) -> None:
    made, batch = model(*overrides), make_batch(SOURCES, TARGETS)
    found = forced_passes.attention(made, batch)
    torch.testing.assert_close(found.log_probs, forced_passes.saliency(made, batch).log_probs)
    expected = log_probs(made, batch, torch.ones(batch.source.shape, dtype=torch.float64))
    torch.testing.assert_close(found.log_probs.double(), expected, atol=1e-5, rtol=1e-5)
    assert (found.weights is None) == (overrides == ("decoder=none",))


def test_a_model_keeps_its_gradients_to_itself() -> None:
    made = model()
    forced_passes.saliency(made, make_batch(SOURCES, TARGETS))
    assert all(parameter.grad is None for parameter in made.parameters())
