"""What must hold for every encoder, found through its yaml, under every wiring."""

import itertools

import pytest
import torch
from torch import nn

from nmt.attention import observing
from nmt.config.composition import compose
from nmt.data.batch import make_batch
from nmt.model import Seq2Seq, Source
from nmt.model.positions import looked_up_sinusoids, sinusoids
from nmt.model.stacked import Stacked
from nmt.system.errors import UserError
from nmt.training.loss import batch_loss
from tests.catalogue import DECODERS, ENCODERS, assembled, sentences, small, thinned

LENGTHS = [6, 1, 4]
PAIRS = thinned(itertools.product(ENCODERS, DECODERS), 3)
every = pytest.mark.parametrize("pair", PAIRS, ids="-".join)


def encoded_by(encoder: str, wiring: str = "bahdanau", *overrides: str, train: bool = False) -> Seq2Seq:
    """A small model with this encoder."""
    words = small(f"encoder={encoder}", f"decoder={wiring}", "attention/score=additive", *overrides)
    return assembled(compose("train", words), train=train)


@every
def test_padding_changes_nothing_and_a_batch_is_its_sentences(pair: tuple[str, str]) -> None:
    made = encoded_by(*pair)
    source, mask, lengths = sentences(LENGTHS, 23)
    target = sentences([5] * 3, 29, seed=9)[0]
    features = made(Source(source, mask, lengths), target).features
    wide_mask = nn.functional.pad(mask, (0, 2))
    wide = nn.functional.pad(source, (0, 2)).masked_fill(~wide_mask, 17)
    torch.testing.assert_close(made(Source(wide, wide_mask, lengths), target).features, features)
    values = made.encoder(made.source_embedding(wide), wide_mask, lengths).values
    assert not values[~wide_mask].any()
    assert values.shape[2] == made.encoder.size
    for row, length in enumerate(LENGTHS):
        one = slice(row, row + 1)
        alone = made(Source(source[one, :length], mask[one, :length], lengths[one]), target[one]).features
        torch.testing.assert_close(alone, features[one])


@every
def test_every_encoder_trains_a_step_under_every_wiring(pair: tuple[str, str]) -> None:
    made = encoded_by(*pair, train=True)
    batch_loss(made, make_batch([[5, 6, 7], [8]], [[9, 4], [5, 6]])).total.backward()
    assert [name for name, parameter in made.named_parameters() if parameter.grad is None] == []


def test_embeddings_know_no_neighbours_and_their_positions() -> None:
    made = encoded_by("embeddings")
    source, mask, lengths = sentences([3], 23)
    values = made.encoder(made.source_embedding(source), mask, lengths).values
    other = source.clone()
    other[0, 1] = 4 + (other[0, 1] - 3) % 19
    changed = made.encoder(made.source_embedding(other), mask, lengths).values
    assert (values != changed).any(2)[0].tolist() == [False, True, False]
    expected = made.source_embedding(source) + sinusoids(torch.arange(3), 7) * 7**-0.5
    torch.testing.assert_close(values, expected, check_dtype=False)


def test_a_stack_is_one_encoder_after_the_other() -> None:
    made = encoded_by(
        *("stacked", "luong", "encoder/first=transformer", "encoder.first.self_attention.heads=1"),
        *("positions@encoder.first.positions=learned", "encoder.first.positions.count=9"),
    )
    stack = made.encoder
    assert isinstance(stack, Stacked)
    source, mask, lengths = sentences(LENGTHS, 23)
    embedded = made.source_embedding(source)
    encoded = stack.then(stack.first(embedded, mask, lengths).values, mask, lengths)
    torch.testing.assert_close(stack(embedded, mask, lengths).values, encoded.values)
    with observing(stack) as seen:
        stack(embedded, mask, lengths)
    assert [name.split(".")[0] for name in seen] == ["first"] * 3 + ["then"]
    assert list(stack.heads) == ["1.1", "2.1", "3.1", "4.1", "4.2", "4.3"]
    assert stack.learned_positions == 9


@pytest.mark.parametrize(
    "positions", [torch.arange(9).expand(2, 9), torch.tensor([[4], [0]]), torch.zeros(3, 0).long()]
)
def test_sinusoids_are_looked_up(positions: torch.Tensor) -> None:
    """Also in search, whose tensors training cannot use."""
    with torch.inference_mode():
        looked_up_sinusoids(positions, 7)
    looked_up = looked_up_sinusoids(positions, 7)
    torch.testing.assert_close(looked_up, sinusoids(positions, 7))
    assert looked_up.is_inference() is False


def test_sinusoids_by_hand() -> None:
    expected = torch.tensor([[0.0, 1.0, 0.0, 1.0], [0.841471, 0.540302, 0.0099998, 0.99995]])
    torch.testing.assert_close(sinusoids(torch.arange(2), 4), expected, atol=1e-6, rtol=0)


@pytest.mark.parametrize("encoder", ["embeddings", "transformer", "conv"])
@pytest.mark.parametrize("kind", ["backward", "last"])
def test_a_first_state_that_the_encoder_does_not_have_is_refused_with_its_cure(kind: str, encoder: str) -> None:
    with pytest.raises(UserError, match=rf"decoder.first_state={kind}: .*Give auto, mean or zero"):
        encoded_by(encoder, "luong", f"decoder.first_state={kind}")


@pytest.mark.parametrize(("encoder", "kind"), [("gru", "last"), ("embeddings", "mean")])
def test_auto_is_the_first_state_of_the_paper_where_there_is_one(encoder: str, kind: str) -> None:
    assert f"first decoder state: the encoder's {kind};" in encoded_by(encoder, "luong").decoder.describe()
