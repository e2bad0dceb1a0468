"""What padding and terms do to the loss of a batch."""

import pytest
import torch

from nmt.data.batch import Batch, make_batch
from nmt.kernels.r_drop import divergences
from nmt.model import Seq2Seq, Source
from nmt.model.contract import Decoded
from nmt.system.compute import Compute
from nmt.training.learner import Learner
from nmt.training.loss import batch_loss
from nmt.training.schedules import Constant
from tests.catalogue import model
from tests.training.test_trainer import trainer


def test_a_batch_is_the_sum_of_its_sentences() -> None:
    made = model()
    sources, targets = [[5, 6, 7], [8]], [[9, 4], [5, 6, 7, 8, 9]]
    together = batch_loss(made, make_batch(sources, targets), 0.1)
    alone = [batch_loss(made, make_batch([source], [target]), 0.1) for source, target in zip(sources, targets)]
    assert together.tokens == 3 + 6  # with the end of sentence
    assert together.total.item() == pytest.approx(sum(loss.total.item() for loss in alone), abs=1e-4)


@pytest.mark.parametrize(
    "words",
    [
        ("decoder=luong",),
        ("decoder=bahdanau", "attention/read=hard", "attention.read.baseline=soft"),
        ("decoder=luong", "decoder.input_feeding=false", "attention/read=hard", "attention.read.objective=enumerate"),
    ],
    ids=" ".join,
)
def test_a_loss_that_computes_padding_leaves_it_out(words: tuple[str, ...]) -> None:
    made, batch = model(*words).train(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6, 7, 8, 9]])
    losses, gradients = [], []
    for each in (batch, batch.with_every_place()):
        torch.manual_seed(1)
        losses.append(batch_loss(made, each, 0.1))
        made.zero_grad()
        losses[-1].total.backward()
        gradients.append([parameter.grad for parameter in made.parameters()])
    assert losses[1].total.item() == pytest.approx(losses[0].total.item(), rel=1e-5)
    assert losses[1].negative_log_likelihood.item() == pytest.approx(losses[0].negative_log_likelihood.item(), rel=1e-5)
    for one, other in zip(*gradients, strict=True):
        assert (one is None) == (other is None)
        if one is not None and other is not None:
            torch.testing.assert_close(other, one, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(("dtype", "rows"), [(None, 9), (torch.bfloat16, 12)])
def test_products_in_bfloat16_have_the_whole_batch(dtype: torch.dtype | None, rows: int) -> None:
    """Of 9 target tokens in 12 places; float32 leaves the padding out."""
    made, batch = model().float(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6, 7, 8, 9]])
    seen: list[int] = []
    made.output.register_forward_hook(lambda *call: seen.append(len(call[2])))
    compute = Compute(torch.device("cpu"), dtype)
    learner = Learner(made, torch.optim.SGD(made.parameters()), Constant(0), trainer(steps=1), compute)
    update = learner.update([batch], 1, 0.0)
    assert update is not None
    assert update.tokens == 9
    assert seen == [rows]


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


def test_simcut_adds_the_divergence_of_a_pass_without_some_tokens(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of seven source and nine target tokens the third and the fifth, and the second, are cut by hand."""
    made, batch = model().eval(), make_batch([[5, 6, 7], [8, 9]], [[9, 4], [5, 6, 7]])
    draws = [torch.ones(2, 4), torch.ones(2, 4)]
    draws[0][0, 2] = draws[0][1, 0] = draws[1][0, 1] = 0.01
    given = iter(draws)
    monkeypatch.setattr(torch, "rand", lambda *_size, **_settings: next(given))
    found = batch_loss(made, batch, 0.1, simcut=3)
    monkeypatch.undo()
    whole = made.target_logits(_decode(made, batch), batch.target_mask)
    # The same by embeddings: a source may be given as such, and a target token whose embedding is zero.
    embedded = made.source_embedding(batch.source) * (draws[0] > 0.05).unsqueeze(-1)
    tokens = made.target_embedding(batch.target_in) * (draws[1] > 0.05).unsqueeze(-1)
    memory, state = made.encode(Source(embedded, batch.source_mask, batch.source_lengths))
    cut = made.target_logits(made.decoder(tokens, state, memory), batch.target_mask)
    plain = batch_loss(made, batch, 0.1)
    divergence = divergences(whole, cut, both=False).item()
    assert divergence > 1e-4
    assert found.total.item() == pytest.approx(plain.total.item() + 3 * divergence, rel=1e-5)
    assert found.negative_log_likelihood.item() == pytest.approx(plain.negative_log_likelihood.item())
    assert found.tokens == plain.tokens


def test_simcut_leaves_the_model_as_it_was() -> None:
    made, batch = model().train(), make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6, 7]])
    batch_loss(made, batch, 0.1, simcut=3).total.backward()
    made.eval()
    assert batch_loss(made, batch).total.item() == batch_loss(made, batch).total.item()


def _decode(made: Seq2Seq, batch: Batch) -> Decoded:
    decoded: Decoded = made(Source.of(batch), batch.target_in, 0.0)
    return decoded
