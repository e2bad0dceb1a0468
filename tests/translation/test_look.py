"""`forced_passes.look`: the weights of all three kinds of attention, against torch's, and what must hold of them."""

from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from nmt.alignment.units import source_units, target_units
from nmt.alignment.word_weights import word_weights
from nmt.attention import observing
from nmt.data.batch import make_batch
from nmt.model import Source
from nmt.model.transformer.transformer_decoder import TransformerDecoder
from nmt.model.transformer.transformer_encoder import TransformerEncoder
from nmt.search import GreedySearch
from nmt.text.tokenizer_trainer import TokenizerTrainer
from nmt.translation import forced_passes
from nmt.translation.translator import Translator
from tests.catalogue import ENCODERS, WIRINGS, model, thinned
from tests.model.test_transformer import BOTH, SCALED, layers_of, torch_state, torch_weights

SOURCES, TARGETS = [[5, 6, 7], [8], [9, 10, 11, 12, 13]], [[9, 4], [5, 6, 7, 8, 9, 10], [14]]
BATCH = make_batch(SOURCES, TARGETS)
LOOKED = [
    BOTH,
    (*BOTH, "encoder.norm=post", "decoder.norm=post"),
    (*BOTH, "attention.coverage=true"),
    (*BOTH, "attention/read=hard"),
    (*BOTH, "encoder/positions=relative", "decoder/positions=relative"),
    (*BOTH, "encoder/score=additive", "decoder/score=general"),
    (*BOTH, "encoder/window=local_m", "encoder.self_attention.window.radius=1"),
]
every = pytest.mark.parametrize("overrides", LOOKED, ids=" ".join)


def multihead(own: Any, size: int, value_size: int) -> nn.MultiheadAttention:
    """torch's attention with the weights of ours."""
    theirs = nn.MultiheadAttention(
        size, own.heads, kdim=value_size, vdim=value_size, batch_first=True, dtype=torch.float64
    )
    theirs.load_state_dict(torch_weights(own))
    return theirs


def weights_of(theirs: nn.MultiheadAttention, queries: Tensor, values: Tensor, **masks: Tensor) -> Tensor:
    """[B, H, T, S]."""
    weights: Tensor = theirs(queries, values, values, need_weights=True, average_attn_weights=False, **masks)[1]
    return weights


@pytest.mark.parametrize("norm", ["pre", "post"])
def test_weights_are_those_of_torch_in_every_layer(norm: str) -> None:
    """Layer by layer, torch's own layers compute the inputs, and torch's attention says its weights."""
    made = model(*BOTH, *SCALED, f"encoder.norm={norm}", f"decoder.norm={norm}", "encoder.size=15")
    assert isinstance(made.encoder, TransformerEncoder)
    assert isinstance(made.decoder, TransformerDecoder)
    looks = forced_passes.look(made, BATCH)
    padded, pre = ~BATCH.source_mask, norm == "pre"
    settings: dict[str, Any] = {"dropout": 0.0, "batch_first": True, "norm_first": pre, "dtype": torch.float64}
    layers, decoder_layers = layers_of(made)
    expected: dict[str, list[Tensor]] = {"encoder": [], "decoder": [], "cross": []}
    with torch.no_grad():
        steps = torch.arange(BATCH.source.shape[1]).expand(BATCH.source.shape)
        x = made.encoder.entrance(made.source_embedding(BATCH.source), steps)
        for layer in layers:
            inner = layer.around_self.norm(x) if pre else x
            own = multihead(layer.self_attention, 15, 15)
            expected["encoder"].append(weights_of(own, inner, inner, key_padding_mask=padded))
            theirs = nn.TransformerEncoderLayer(15, 3, 60, **settings)
            theirs.load_state_dict(torch_state(layer))
            x = theirs.train()(x, src_key_padding_mask=padded)  # in evaluation it would zero padded rows
        values = made.encoder.norm(x) * BATCH.source_mask.unsqueeze(-1)
        count = BATCH.target_in.shape[1]
        future = torch.ones(count, count, dtype=torch.bool).triu(1)
        y = made.decoder.entrance(
            made.target_embedding(BATCH.target_in), torch.arange(count).expand(BATCH.target_in.shape)
        )
        for decoder_layer in decoder_layers:
            inner = decoder_layer.around_self.norm(y) if pre else y
            own = multihead(decoder_layer.self_attention, 10, 10)
            expected["decoder"].append(weights_of(own, inner, inner, attn_mask=future))
            middle = decoder_layer.around_self.after(y, own(inner, inner, inner, attn_mask=future)[0])
            queries = decoder_layer.around_attention.norm(middle) if pre else middle
            cross = multihead(decoder_layer.attention, 10, 15)
            expected["cross"].append(weights_of(cross, queries, values, key_padding_mask=padded))
            y = decoder_layer.transform(
                decoder_layer.around_attention.after(middle, cross(queries, values, values, padded)[0])
            )
    assert made.encoder.heads == ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3")
    assert made.decoder.self_heads[::5] == ("1.1", "2.1")
    assert len(made.decoder.heads) == 10
    for kind, weights in expected.items():
        seen = getattr(looks, kind)
        assert seen.dtype == torch.float64
        rows = BATCH.source_mask if kind == "encoder" else BATCH.target_mask  # of real queries
        everything = torch.cat(weights, 1)
        assert seen.shape == everything.shape
        torch.testing.assert_close(seen.transpose(1, 2)[rows], everything.transpose(1, 2)[rows])


@every
def test_rows_sum_to_one_padding_gets_nothing_and_the_future_is_hidden(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    looks = forced_passes.look(made, BATCH)
    assert looks.encoder is not None
    assert looks.decoder is not None
    assert looks.cross is not None
    assert looks.encoder.shape == (3, len(made.encoder.heads), 6, 6) == (3, 6, 6, 6)
    assert looks.decoder.shape == (3, len(made.decoder.self_heads), 7, 7) == (3, 10, 7, 7)
    assert looks.cross.shape == (3, len(made.decoder.heads), 7, 6) == (3, 4, 7, 6)
    assert looks.context is None  # of previous sentences, which there are none
    for weights in looks[:3]:
        assert weights is not None
        assert (weights >= 0).all()
        torch.testing.assert_close(weights.sum(-1), torch.ones(weights.shape[:3], dtype=weights.dtype))
    for weights in (looks.encoder, looks.cross):
        assert (weights.masked_select(~BATCH.source_mask[:, None, None]) == 0).all()
    future = torch.ones(7, 7, dtype=torch.bool).triu(1)
    assert (looks.decoder[..., future] == 0).all()
    assert (looks.decoder[..., ~future] > 0).all()


@every
def test_looking_changes_nothing_and_a_batch_equals_its_sentences(overrides: tuple[str, ...]) -> None:
    made = model(*overrides)
    looks = forced_passes.look(made, BATCH)
    torch.testing.assert_close(looks.cross, forced_passes.attention(made, BATCH).weights)
    source = Source.of(BATCH), BATCH.target_in
    with torch.no_grad(), observing(made):
        looked = made(*source, weights=False)
    decoded = made(*source, weights=False)
    torch.testing.assert_close(looked.features, decoded.features)
    assert decoded.weights is None
    for row, pair in enumerate(zip(SOURCES, TARGETS)):
        alone = forced_passes.look(made, make_batch([pair[0]], [pair[1]]))
        for together, single in zip(looks[:3], alone[:3], strict=True):
            assert together is not None
            assert single is not None
            torch.testing.assert_close(together[row : row + 1, :, : single.shape[2], : single.shape[3]], single)


def test_a_step_at_a_time_sees_the_same_as_all_at_once() -> None:
    """Coverage makes training go step by step; with w = 0 it changes nothing else."""
    at_once = model(*BOTH)
    by_step = model(*BOTH, "attention.coverage=true")
    missing = by_step.load_state_dict(at_once.state_dict(), strict=False).missing_keys
    assert missing
    with torch.no_grad():
        for name in missing:
            by_step.get_parameter(name).zero_()
    for expected, seen in zip(forced_passes.look(at_once, BATCH), forced_passes.look(by_step, BATCH)):
        torch.testing.assert_close(seen, expected)


@pytest.mark.parametrize("encoder", thinned(ENCODERS, 2))
@pytest.mark.parametrize("decoder", [*WIRINGS, "transformer"])
def test_what_a_model_does_not_have_is_none(encoder: str, decoder: str) -> None:
    made = model(f"encoder={encoder}", f"decoder={decoder}")
    looks = forced_passes.look(made, BATCH)
    for weights, heads in zip(
        looks[:3], (made.encoder.heads, made.decoder.self_heads, made.decoder.heads), strict=True
    ):
        assert (0 if weights is None else weights.shape[1]) == len(heads)
    assert (looks.encoder is not None) == (encoder in ("transformer", "stacked"))
    assert (looks.decoder is not None) == (decoder == "transformer")
    assert (looks.cross is not None) == (decoder != "none")


PAIRS = [("ein rotes Haus", "a red house"), ("zwei Wörter", "two words"), ("drei", "three"), ("vier Häuser", "four")]


@pytest.fixture(scope="module")
def translator() -> Translator:
    """An untrained Transformer with a tokenizer of four pairs."""
    tokenizer = TokenizerTrainer(model_type="char", vocabulary_size=100).train(*zip(*PAIRS, strict=True))[0]
    made = model(*BOTH, pieces=(tokenizer.source.size, tokenizer.target.size)).float()
    return Translator([made], tokenizer, GreedySearch(), batch_sentences=3, max_source_length=20)


def test_views_show_the_search_that_made_the_translation(translator: Translator) -> None:
    """The weights of each step of search, and pieces and words of the right side on each axis."""
    translations = [best[0] for best in translator.translate([source for source, _ in PAIRS])]
    for translation, views in zip(translations, translator.look(translations), strict=True):
        assert views is not None
        assert views.encoder is not None
        assert views.decoder is not None
        assert views.cross is not None
        assert translation.weights is not None
        assert views.cross.weights is not None
        np.testing.assert_allclose(views.cross.weights, translation.weights, atol=1e-5)
        assert views.cross.heads == translation.heads
        assert views.encoder.pieces == views.encoder.source_pieces == translation.source_pieces
        assert views.decoder.pieces == translation.pieces
        assert views.decoder.source_pieces == ["<s>", *translation.pieces[:-1]]
        for view, heads in zip(views[:3], (6, 10, 4), strict=True):
            assert view is not None
            assert view.weights is not None
            assert view.weights.shape == (heads, len(view.pieces), len(view.source_pieces))
            assert len(view.heads) == heads
            assert word_weights(view, "1.1").shape == tuple(
                len(each.labels) for each in (target_units(view), source_units(view))
            )


def test_lines_in_parts_and_empty_lines_have_no_view(translator: Translator) -> None:
    lines = ["", "ein rotes Haus zwei Wörter drei", "drei"]
    translations = [best[0] for best in translator.translate(lines)]
    assert [views is None for views in translator.look(translations)] == [True, True, False]
