"""Convolutions: what must hold of every decoder, what a word sees, and what is refused."""

from collections.abc import Callable

import pytest
import torch

from nmt.model import Encoded
from nmt.model.convolutional.convolutional_decoder import ConvolutionalDecoder
from nmt.system.errors import UserError
from tests.catalogue import (
    ATTENTIVE,
    ENCODERS,
    READS,
    SCORES,
    WINDOWED,
    WITH_ATTENTION,
    model,
    options,
    sentences,
    thinned,
)
from tests.model import test_wirings as properties

BOTH = ("encoder=conv", "decoder=conv")
DOT = (*BOTH, "attention/score=dot")
POSITIONS = [own for own in options("positions") if own not in ("relative", "transformer_xl")]
COMBINATIONS = [
    *((*BOTH, f"attention/score={score}") for score in SCORES),
    *((*DOT, *window) for window in WINDOWED),
    *((*DOT, f"attention/read={read}") for read in READS),
    *((*DOT, f"{place}/positions={own}") for place in ("encoder", "decoder") for own in POSITIONS),
    *((f"encoder={encoder}", "decoder=conv", "attention/score=dot") for encoder in ENCODERS),
    (*BOTH, "attention.coverage=true"),
    (*BOTH, "attention.coverage=true", "attention.heads=2"),
    (*DOT, "attention.heads=3"),
    (*DOT, "attention/window=local_m", "attention.window.radius=1"),
    (*DOT, "attention/window=forced", "attention.window.slots=[0,[1,2],null,5]"),
    (*DOT, "encoder.layers=1", "decoder.layers=1"),
    (*DOT, "encoder.kernel_size=4", "decoder.kernel_size=2"),
    (*DOT, "encoder.kernel_size=1", "decoder.kernel_size=1"),
    (*DOT, "encoder.kernel_size=9", "decoder.kernel_size=8"),
    (*DOT, "encoder.size=7", "decoder.size=7"),
    *(("encoder=conv", f"decoder={wiring}") for wiring in ("bahdanau", "luong", "conditional", "none", "transformer")),
    ("encoder=conv", "decoder=luong", "attention/score=general", "decoder.input_feeding=false"),
]
every = pytest.mark.parametrize("overrides", thinned(COMBINATIONS, 3), ids=" ".join)
CONVOLUTIONAL = [own for own in COMBINATIONS if "decoder=conv" in own]


@every
@properties.every_property
def test_what_holds_for_every_decoder(holds: Callable[[tuple[str, ...]], None], overrides: tuple[str, ...]) -> None:
    holds(overrides)


@pytest.mark.parametrize("overrides", [own for own in COMBINATIONS if "attention/read=hard" not in own], ids=" ".join)
def test_every_parameter_gets_a_gradient(overrides: tuple[str, ...]) -> None:
    properties.test_every_parameter_gets_a_gradient(overrides)


@pytest.mark.parametrize("overrides", CONVOLUTIONAL, ids=" ".join)
def test_changing_a_word_changes_no_feature_before_it(overrides: tuple[str, ...]) -> None:
    properties.sees_no_later_word(overrides)


@pytest.mark.parametrize(("layers", "kernel_size"), [(1, 3), (2, 2), (2, 3), (3, 1)])
def test_a_step_sees_as_many_words_as_the_layers_reach(layers: int, kernel_size: int) -> None:
    made = model(*DOT, f"decoder.layers={layers}", f"decoder.kernel_size={kernel_size}")
    reach = layers * (kernel_size - 1) + 1
    changed = properties.changed_by_a_word(made, 1, steps=7)
    assert changed[:, 1 : 1 + reach].all()
    assert not changed[:, 1 + reach :].any()


@pytest.mark.parametrize(
    ("layers", "kernel_size", "before", "after"), [(1, 3, 1, 1), (2, 3, 2, 2), (2, 2, 0, 2), (1, 4, 1, 2)]
)
def test_a_slot_holds_its_neighbours(layers: int, kernel_size: int, before: int, after: int) -> None:
    """Keys see the neighbours; what a value has beyond its key is its own word and its position."""
    made = model(*DOT, f"encoder.layers={layers}", f"encoder.kernel_size={kernel_size}")
    source, mask, lengths = sentences([9], 23)
    other = source.clone()
    other[0, 4] = 4 + (source[0, 4] - 3) % 19
    one, two = (made.encoder(made.source_embedding(words), mask, lengths) for words in (source, other))
    changed = (one.keys != two.keys).any(2)[0].tolist()
    assert changed == [4 - after <= slot <= 4 + before for slot in range(9)]
    beyond = ((one.values - one.keys) - (two.values - two.keys)).abs().amax(2)[0] > 1e-12
    assert beyond.tolist() == [slot == 4 for slot in range(9)]


def test_gradients_agree_with_finite_differences() -> None:
    properties.agrees_with_finite_differences(
        model(*DOT, "decoder.kernel_size=2", pieces=(7, 5)),
        *("encoder.layers.0.linear.bias", "encoder.entrance.linear.bias", "encoder.exit.bias"),
        *("decoder.entrance.positions.table.weight", "decoder.layers.0.linear.weight", "decoder.layers.1.query.bias"),
    )


@pytest.mark.parametrize(
    "overrides",
    [
        *((f"decoder={decoder}", "attention/score=additive") for decoder in ATTENTIVE),
        *((f"decoder={wiring}", "decoder.layers=2", "decoder.multi_step=true") for wiring in WITH_ATTENTION),
    ],
    ids=" ".join,
)
def test_every_decoder_finds_slots_by_their_keys(overrides: tuple[str, ...]) -> None:
    """Where all keys are equal, so are all weights, whatever the values."""
    made = model("encoder=conv", *overrides)
    mask = torch.tensor([[True] * 5, [True] * 4 + [False]])
    values, keys = torch.randn(2, 5, 7, dtype=torch.float64), torch.zeros(2, 5, 7, dtype=torch.float64)
    memory, state = made.decoder.start(Encoded(values, mask, keys))
    weights = made.decoder(torch.randn(2, 3, 7, dtype=torch.float64), state, memory).weights
    even = (mask / mask.sum(1, keepdim=True)).double()
    torch.testing.assert_close(weights, even[:, None, None].expand_as(weights), rtol=1e-6, atol=1e-6)


def test_slots_of_another_size_pass_through_a_linear_layer_and_those_of_an_embedding_do_not() -> None:
    decoders = {encoder: model(f"encoder={encoder}", *DOT[1:]).decoder for encoder in ("conv", "embeddings", "gru")}
    for encoder, decoder in decoders.items():
        assert isinstance(decoder, ConvolutionalDecoder)
        assert (decoder.bridge is not None) == (encoder == "gru")


def test_heads_have_the_names_of_their_layers() -> None:
    made = model(*DOT, "attention.heads=3", "decoder.layers=2")
    assert made.decoder.heads == ("1.1", "1.2", "1.3", "2.1", "2.2", "2.3")
    assert model(*DOT).decoder.heads == ("1.1", "2.1")


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (
            ("encoder/positions=relative",),
            r"encoder\.positions=relative: is a bias in self-attention.*Give encoder/positions=learned, sinusoidal or",
        ),
        (("decoder/positions=relative",), r"decoder\.positions=relative: .*Give decoder/positions=learned, sinusoidal"),
        (
            ("attention/read=hard", "attention.read.objective=enumerate"),
            r"decoder=conv has no readout. Give attention\.read\.objective=sampled",
        ),
        (("encoder.kernel_size=0",), r"encoder\.kernel_size=0: must be at least 1"),
        (("decoder.layers=0",), r"decoder\.layers=0: must be from 1 to 1,000"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_cannot_be_is_refused_with_its_cure(overrides: tuple[str, ...], message: str) -> None:
    with pytest.raises(UserError, match=message):
        model(*DOT, *overrides)
