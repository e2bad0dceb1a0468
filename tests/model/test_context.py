"""Mechanisms of context: what a model sees of the sentences before its source, whatever the batch."""

import itertools
import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attention, observing
from nmt.data.batch import make_batch
from nmt.data.document_lines import context_tensor
from nmt.model import Seq2Seq, Source
from nmt.model.context.hierarchical import Hierarchical
from nmt.model.context.mechanism import pack, rotate
from nmt.model.context.segments import Segments
from nmt.model.transformer.transformer_encoder import TransformerEncoder
from nmt.system.errors import UserError
from nmt.text.tokenizer import EOS
from nmt.translation import forced_passes
from tests.catalogue import ENCODERS, model, options, sentences

MECHANISMS = options("context")
#: The previous sentences of three sources of 4, 2 and 5 tokens: two, none, one.
BEFORE = [[[5, 6, 7], [8, 9]], [], [[10, 11, 12, 13]]]
LENGTHS = [4, 2, 5]


def with_context(context: str, *overrides: str, train: bool = False) -> Seq2Seq:
    distances = ["encoder/positions=relative"] if "encoder=transformer" in overrides else []
    return model(f"context={context}", "context.sentences=2", *overrides, *distances, train=train)


def log_probs(made: Seq2Seq, source: Tensor, mask: Tensor, lengths: Tensor, context: Tensor | None) -> Tensor:
    target = torch.tensor([[2, 5, 6]]).expand(len(source), 3)
    decoded = made(Source(source, mask, lengths, context), target)
    return made.log_probs(decoded.features)


def test_packing_closes_gaps() -> None:
    embedded = torch.arange(10.0).reshape(2, 5, 1)
    mask = torch.tensor([[True, False, True, False, True], [False, True, True, False, False]])
    packed = pack(embedded, mask, mask.sum(1))
    assert packed.lengths.tolist() == [3, 2]
    assert packed.embedded[0, :, 0].tolist() == [0, 2, 4]
    assert packed.embedded[1, :2, 0].tolist() == [6, 7]
    assert packed.mask.tolist() == [[True] * 3, [True, True, False]]


def test_rotation_moves_the_source_before_its_context() -> None:
    values = torch.tensor([[1, 2, 3, 4, 0], [5, 6, 7, 8, 9]])
    assert rotate(values, torch.tensor([4, 5]), torch.tensor([3, 0])).tolist() == [[4, 1, 2, 3, 0], [5, 6, 7, 8, 9]]


def test_concat_is_the_joined_source() -> None:
    """The encoder sees what a model without context sees of a source that has the context in it."""
    made = with_context("concat")
    source, mask, lengths = sentences([4], 23)
    context = context_tensor([[[5, 6, 7], [8, 9]]])
    joined = torch.cat((torch.tensor([[5, 6, 7, EOS, 8, 9, EOS]]), source), 1)
    plain = made.encoder(made.source_embedding(joined), torch.ones_like(joined, dtype=torch.bool), torch.tensor([11]))
    encoded = made.encoded(Source(made.source_embedding(source), mask, lengths, context))
    torch.testing.assert_close(encoded.values, torch.cat((plain.values[:, 7:], plain.values[:, :7]), 1))
    torch.testing.assert_close(encoded.last, plain.last)
    assert encoded.mask.all()


@pytest.mark.parametrize(
    ("context", "encoder"),
    [pair for pair in itertools.product(MECHANISMS, ENCODERS) if pair != ("segments", "stacked")],
)
def test_a_batch_and_its_sentences_one_by_one(context: str, encoder: str) -> None:
    made = with_context(context, f"encoder={encoder}", "decoder.first_state=mean")
    source, mask, lengths = sentences(LENGTHS, 23)
    together = log_probs(made, source, mask, lengths, context_tensor(BEFORE))
    for row, length in enumerate(LENGTHS):
        alone = context_tensor([BEFORE[row]])
        one = (source[row : row + 1, :length], mask[row : row + 1, :length], lengths[row : row + 1])
        torch.testing.assert_close(log_probs(made, *one, alone)[0], together[row])


@pytest.mark.parametrize("context", MECHANISMS)
def test_the_context_changes_what_is_said_and_its_absence_nothing(context: str) -> None:
    made = with_context(context)
    source, mask, lengths = sentences(LENGTHS, 23)
    without = log_probs(made, source, mask, lengths, None)
    changed = log_probs(made, source, mask, lengths, context_tensor(BEFORE)) - without
    moved = changed.abs().amax((1, 2)) > 1e-4
    assert moved.tolist() == [True, False, True]
    plain = model()
    plain.load_state_dict(made.state_dict(), strict=False)
    torch.testing.assert_close(log_probs(plain, source, mask, lengths, None), without)


@pytest.mark.parametrize("context", MECHANISMS)
def test_context_that_is_off_computes_what_there_was_before(context: str) -> None:
    """The same parameters and the same numbers to the digit, dropout included: nothing but encoder and decoder."""
    off = model(f"context={context}", "context.sentences=0", "model.dropout=0.3", train=True)
    assert off.context is None
    assert off.state_dict().keys() == model("model.dropout=0.3").state_dict().keys()
    source, mask, lengths = sentences(LENGTHS, 23)
    target = torch.tensor([[2, 5, 6]] * 3)
    torch.manual_seed(5)
    features = off(Source(source, mask, lengths, context_tensor([[], [], []])), target).features
    torch.manual_seed(5)
    encoded = off.encoder(off.dropout(off.source_embedding(source)), mask, lengths)
    memory, state = off.decoder.start(encoded, searching=False)
    expected = off.decoder(off.dropout(off.target_embedding(target)), state, memory).features
    assert torch.equal(features, expected)


@pytest.mark.parametrize("context", MECHANISMS)
def test_no_more_sentences_than_trained_are_seen(context: str) -> None:
    made = with_context(context)
    source, mask, lengths = sentences([4], 23)
    two, three = context_tensor([[[5, 6], [7]]]), context_tensor([[[8, 9, 10], [5, 6], [7]]])
    expected = log_probs(made, source, mask, lengths, two)
    torch.testing.assert_close(log_probs(made, source, mask, lengths, three), expected)


@pytest.mark.parametrize("context", MECHANISMS)
def test_search_and_training_agree(context: str) -> None:
    made = with_context(context)
    source, mask, lengths = sentences(LENGTHS, 23)
    target, before = torch.tensor([[2, 5, 6]] * 3), context_tensor(BEFORE)
    expected = log_probs(made, source, mask, lengths, before)
    memory, state = made.encode(Source(source, mask, lengths, before), searching=True)
    for step in range(3):
        stepped = made.step(target[:, step], state, memory)
        torch.testing.assert_close(stepped.log_probs.double(), expected[:, step].double(), rtol=1e-5, atol=1e-5)
        state = stepped.state


@pytest.mark.parametrize("encoder", ["gru", "transformer"])
@pytest.mark.parametrize("context", MECHANISMS)
def test_looking_finds_every_token_of_the_context(context: str, encoder: str) -> None:
    """The weights of the context beside those of the source: as further slots, or through the source's slots."""
    made = with_context(context, f"encoder={encoder}", "decoder.first_state=mean")
    tokens = sentences(LENGTHS, 23)[0]
    batch = make_batch([row[:length].tolist() for row, length in zip(tokens, LENGTHS, strict=True)], [[5, 6]] * 3)
    looks = forced_passes.look(made, batch._replace(context=context_tensor(BEFORE)))
    assert looks.cross is not None
    for row, (own, before) in enumerate(zip([5, 3, 6], [7, 0, 5], strict=True)):
        if looks.context is None:
            seen = looks.cross[row, :, :, own : own + before]
            torch.testing.assert_close(looks.cross[row, ..., : own + before].sum(-1), torch.ones(1, 3).double())
        else:
            seen = looks.context[row, :, :, :before]
            assert not looks.context[row, :, :, before:].any()
        assert (seen > 0).all()
        assert seen.shape == (1, 3, before)


def test_over_attention_is_another_way_to_weigh_words() -> None:
    ways = [with_context("hierarchical", f"context.words={words}") for words in ("attention", "over_attention")]
    ways[1].load_state_dict(ways[0].state_dict())
    source, mask, lengths = sentences(LENGTHS, 23)
    first, second = (log_probs(made, source, mask, lengths, context_tensor(BEFORE)) for made in ways)
    assert ((first - second).abs().amax((1, 2)) > 1e-5).tolist() == [True, False, True]
    alone = log_probs(ways[1], source[:1, :4], mask[:1, :4], lengths[:1], context_tensor(BEFORE[:1]))
    torch.testing.assert_close(alone[0], second[0])


ONE_HEAD = [f"context.{part}_attention.{word}" for part in ("word", "sentence") for word in ("heads=1", "size=null")]


def test_the_four_normalisations_of_hierarchical_attention() -> None:
    """Of the queries of words and of sentences, of the words' summaries, of the result; on vectors of deviation 1."""
    made = with_context("hierarchical", *ONE_HEAD)
    mechanism, size = made.context, made.encoder.size
    assert isinstance(mechanism, Hierarchical)

    def normalised(x: Tensor, number: int) -> Tensor:
        norm = mechanism.norms[number]
        assert isinstance(norm, nn.LayerNorm)
        centred = x - x.mean(-1, keepdim=True)
        scaled: Tensor = centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * norm.weight + norm.bias
        return scaled

    def attended(attention: Attention, query: Tensor, memory: Tensor) -> Tensor:
        parts = (attention.query, attention.key, attention.value, attention.out)
        query_of, key_of, value_of, out = (part for part in parts if part is not None)
        weights = torch.softmax(key_of(memory) @ query_of(query) / size**0.5, 0)
        context: Tensor = out(weights @ value_of(memory))
        return context

    source, mask, lengths = sentences([3], 23)
    encoded = made.encoded(Source(made.source_embedding(source), mask, lengths, context_tensor(BEFORE[:1])))

    def states(tokens: Tensor) -> Tensor:
        real = torch.ones_like(tokens, dtype=torch.bool)
        values: Tensor = made.encoder(made.source_embedding(tokens), real, real.sum(1)).values
        return values[0] * float(size**0.5)

    words = [states(torch.tensor([[*tokens, EOS]])) for tokens in BEFORE[0]]
    for h, value in zip(states(source), encoded.values[0], strict=True):
        query = normalised(h, 0)
        summaries = torch.stack([normalised(attended(mechanism.word_attention, query, each), 2) for each in words])
        read = attended(mechanism.sentence_attention, normalised(h, 1), summaries)
        d = mechanism.outer(mechanism.inner(read).clamp(min=0))
        gate = 1 / (1 + (-mechanism.gate_state(h) - mechanism.gate_context(d)).exp())
        torch.testing.assert_close(value, normalised(gate * h + (1 - gate) * d, 3) / size**0.5)
    norms = [parameter for norm in mechanism.norms for parameter in norm.parameters()]
    assert len(norms) == 8

    arguments = (made.source_embedding(source).detach(), mask, lengths, context_tensor(BEFORE[:1]))
    assert torch.autograd.gradcheck(lambda *_: made.encoded(Source(*arguments)).values, norms, fast_mode=True)


def test_values_by_distance_are_refused_where_weights_have_no_position() -> None:
    window = "attention/window@context.word_attention.window=relative", "context.word_attention.window.values=true"
    with_context("hierarchical", *window)
    with pytest.raises(UserError, match=r"word_attention\.window\.values=true: must be false with .*over_attention"):
        with_context("hierarchical", *window, "context.words=over_attention")


def test_hierarchical_attention_by_hand() -> None:
    """With weights that are even (keys of zero) and all else the identity, d_t is the mean of the sentences' means."""
    made = with_context("hierarchical", "context.layer_norm=false", *ONE_HEAD)
    mechanism = made.context
    assert isinstance(mechanism, Hierarchical)
    size, eye = made.encoder.size, torch.eye(made.encoder.size).double()
    with torch.no_grad():
        for parameter in mechanism.parameters():
            parameter.zero_()
        for attention in (mechanism.word_attention, mechanism.sentence_attention):
            for linear in (attention.value, attention.out):
                assert linear is not None
                linear.weight.copy_(eye)
        # FFN(x) = relu(x + 9) - 9 = x for states above -9.
        mechanism.inner.weight[:size] = eye
        mechanism.inner.bias[:size] = 9
        mechanism.outer.weight[:, :size] = eye
        mechanism.outer.bias.fill_(-9)
        mechanism.gate_state.bias.fill_(math.log(3))  # l = 3/4
    source, mask, lengths = sentences([4], 23)
    batch = make_batch([source[0, :3].tolist()], [[5, 6]])._replace(context=context_tensor(BEFORE[:1]))
    source, mask, lengths = batch.source, batch.source_mask, batch.source_lengths
    encoded, looks = (
        made.encoded(Source(made.source_embedding(source), mask, lengths, batch.context)),
        forced_passes.look(made, batch),
    )
    embed, encode = made.source_embedding, made.encoder
    states = encode(embed(source), mask, lengths).values
    means = []
    for tokens in BEFORE[0]:
        words = torch.tensor([[*tokens, EOS]])
        means.append(
            encode(embed(words), torch.ones_like(words, dtype=torch.bool), torch.tensor([len(words[0])])).mean()
        )
    torch.testing.assert_close(encoded.values, 0.75 * states + 0.25 * (means[0] + means[1]).unsqueeze(1) / 2)
    # Sentences of 4 and 3 tokens: half of the weight for each, even within it.
    expected = torch.tensor([1 / 8] * 4 + [1 / 6] * 3).double().expand(1, 1, 3, 7)
    torch.testing.assert_close(looks.context, expected)


class TestSegments:
    """The segment before is memory in every layer, at its distance, and out of reach of gradients."""

    @pytest.mark.parametrize("positions", ["relative", "transformer_xl"])
    def test_states_are_those_of_the_joined_text_in_one_direction(self, positions: str) -> None:
        """With a layer whose words see only words before them, the source's states are those in the joined text."""
        causal = ("attention/window@encoder.self_attention.window=causal", "encoder.layers=2")
        made = model("encoder=transformer", f"encoder/positions={positions}", *causal)
        encoder, source = made.encoder, sentences([4], 23)[0]
        assert isinstance(encoder, TransformerEncoder)
        past = torch.tensor([[5, 6, 7, 3]])
        joined = made.source_embedding(torch.cat((past, source), 1))
        real = torch.ones(1, 8, dtype=torch.bool)
        expected = encoder(joined, real, torch.tensor([8])).values[:, 4:]
        recalled = encoder.recall(joined[:, 4:], real[:, 4:], joined[:, :4], real[:, :4])
        torch.testing.assert_close(recalled.values, expected)

    @pytest.mark.parametrize("encoder", ["gru", "transformer"])
    def test_no_gradient_reaches_the_segment(self, encoder: str) -> None:
        made = with_context("segments", f"encoder={encoder}", "decoder.first_state=mean")
        source, mask, lengths = sentences([4], 23)
        source.fill_(4)
        log_probs(made, source, mask, lengths, context_tensor([[[5, 6]]])).sum().backward()
        gradient = made.source_embedding.weight.grad
        assert gradient is not None
        assert gradient[4].any()
        assert not gradient[5:7].any()

    def test_positions_that_are_absolute_are_refused(self) -> None:
        with pytest.raises(UserError, match="Give encoder/positions=relative and"):
            model("context=segments", "context.sentences=1", "encoder=transformer")

    def test_weights_of_the_segment(self) -> None:
        made = with_context("segments", "encoder=transformer")
        source, mask, lengths = sentences(LENGTHS, 23)
        context = context_tensor(BEFORE)
        with torch.no_grad(), observing(made.encoder) as seen:
            made.encode(Source(source, mask, lengths, context))
        assert isinstance(made.context, Segments)
        weights, share = made.context.shares(list(seen.values()), [], mask, context.ne(0))
        assert weights is not None
        assert share is not None
        assert (share[0, 0] > 0).tolist() == [True] * 7
        assert (share[2, 0] > 0).tolist() == [True] * 5 + [False] * 2
        torch.testing.assert_close((share.sum(2) + weights.mean(1).sum(2))[mask], torch.ones(11).double())
