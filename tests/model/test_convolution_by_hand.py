"""Convolutions against numbers worked by hand: layers, how they start, and what a layer keeps for the next step."""

import math

import pytest
import torch
from torch import Tensor, nn

from nmt.attention import Attended
from nmt.model import Encoded, Source
from nmt.model.convolutional.convolutional_decoder import ConvolutionalDecoder, ConvolutionState
from nmt.model.convolutional.convolutional_encoder import ConvolutionalEncoder
from nmt.model.convolutional.convolutional_layer import GatedConvolution, NormalLinear, normalise_weights
from nmt.model.layered import LayeredMemory, of_all_layers
from tests.catalogue import model, sentences
from tests.model.test_initialise import fresh

DOT = ("encoder=conv", "decoder=conv", "attention/score=dot")


def test_what_is_kept_for_the_next_step_is_the_last_inputs_of_each_layer() -> None:
    made = model(*DOT, "decoder.kernel_size=3")
    source, mask, lengths = sentences([6, 1, 4], 23)
    memory, state = made.encode(Source(source, mask, lengths))
    assert isinstance(memory, LayeredMemory)
    assert isinstance(state, ConvolutionState)
    assert state.inputs.shape == (3, 2, 2, 10)
    assert not state.inputs.any()
    first = made.step(torch.tensor([5, 6, 7]), state, memory).state
    second = made.step(torch.tensor([8, 9, 4]), first, memory).state
    assert isinstance(first, ConvolutionState)
    assert isinstance(second, ConvolutionState)
    assert first.inputs[:, :, 1].all(), "the word that was read comes last"
    torch.testing.assert_close(second.inputs[:, :, 0], first.inputs[:, :, 1])
    assert second.steps.tolist() == [2, 2, 2]
    rows = torch.tensor([2, 0, 0])
    torch.testing.assert_close(second.select(rows).inputs, second.inputs[rows])


def set_to(parameter: Tensor, numbers: list[float] | list[list[float]]) -> None:
    with torch.no_grad():
        parameter.copy_(torch.tensor(numbers))


def sigmoid(x: float) -> float:
    return 1 / (1 + math.exp(-x))


def test_a_gated_convolution_by_hand() -> None:
    """Words 1, 2 and 3 with one number each, k = 3, zero padding: v([a; b]) = a sigmoid(b), plus the word."""
    layer = GatedConvolution(1, 3, 0.0)
    set_to(layer.linear.weight, [[1.0, 10.0, 100.0], [0.1, 0.2, 0.3]])
    set_to(layer.linear.bias, [0.5, -1.0])
    x = torch.tensor([[[1.0], [2.0], [3.0]]])
    expected = [
        # left neighbour + 10 word + 100 right neighbour + 0.5, and the same of the gate
        (210.5 * sigmoid(0.2 + 0.6 - 1) + 1) * 0.5**0.5,
        (321.5 * sigmoid(0.1 + 0.4 + 0.9 - 1) + 2) * 0.5**0.5,
        (32.5 * sigmoid(0.2 + 0.6 - 1) + 3) * 0.5**0.5,
    ]
    around = nn.functional.pad(x, (0, 0, 1, 1))
    torch.testing.assert_close(layer.convolve(around, x)[0, :, 0], torch.tensor(expected))
    before = nn.functional.pad(x, (0, 0, 2, 0))
    first = (100.5 * sigmoid(0.3 - 1) + 1) * 0.5**0.5  # there is nothing before the first word
    torch.testing.assert_close(layer.convolve(before, x)[0, 0, 0], torch.tensor(first))


def test_weight_normalisation_by_hand() -> None:
    """Rows are g v / |v|; torch's own agrees, and so do finite differences."""
    layer = NormalLinear(2, 2)
    normalise_weights(layer)
    assert layer.g is not None
    torch.testing.assert_close(layer.g, layer.weight.norm(dim=1))
    set_to(layer.weight, [[3.0, 4.0], [0.0, -2.0]])
    set_to(layer.g, [10.0, 3.0])
    set_to(layer.bias, [0.5, 0.0])
    x = torch.tensor([1.0, 2.0])
    assert layer(x).tolist() == pytest.approx([6 + 2 * 8 + 0.5, -6.0])
    other = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    other.load_state_dict({"bias": layer.bias, "parametrizations.weight.original0": layer.g[:, None],
                           "parametrizations.weight.original1": layer.weight})  # fmt: skip
    torch.testing.assert_close(layer(x), other(x))
    layer.double()
    assert torch.autograd.gradcheck(lambda *_: layer(x.double()), [*layer.parameters()])


def test_weight_normalisation_is_of_all_layers_and_changes_no_fresh_model() -> None:
    words = ("encoder.weight_norm=true", "decoder.weight_norm=true")
    plain, made = fresh(*DOT, "encoder.size=40"), fresh(*DOT, "encoder.size=40", *words)
    lengths = {name for name, _ in made.named_parameters()} - {name for name, _ in plain.named_parameters()}
    layers = [name for name, layer in made.named_modules() if isinstance(layer, NormalLinear)]
    assert lengths == {f"{name}.g" for name in layers}
    source, mask, sizes = sentences([4, 3], 23)
    found, expected = (one.eval()(Source(source, mask, sizes), source).features for one in (made, plain))
    torch.testing.assert_close(found, expected)


def identity(layer: NormalLinear) -> None:
    nn.init.eye_(layer.weight)
    nn.init.zeros_(layer.bias)


def test_a_step_of_the_decoder_by_hand() -> None:
    """Two layers with k = 2 and one number a vector: equations 1 and 2 of the paper in each, with the scales of 3.4."""
    sizes = ("model.embedding_size=1", "decoder.size=1", "encoder.size=1")
    made = model(*DOT, *sizes, "decoder.kernel_size=2", "decoder/positions=none")
    decoder = made.decoder
    assert isinstance(decoder, ConvolutionalDecoder)
    identity(decoder.entrance.linear)
    identity(decoder.exit)
    for layer in decoder.layers:
        set_to(layer.linear.weight, [[0.5, 2.0], [0.0, 0.0]])
        set_to(layer.linear.bias, [0.0, 0.0])  # the gate is a half
        set_to(layer.query.weight, [[3.0]])
        set_to(layer.query.bias, [0.25])
    keys, values = torch.tensor([[[1.0], [-1.0], [9.0]]]), torch.tensor([[[10.0], [5.0], [9.0]]])
    mask = torch.tensor([[True, True, False]])
    memory, state = decoder.start(Encoded(values.double(), mask, keys.double()))
    words = [0.2, -0.1]
    decoded = decoder(torch.tensor([[[words[0]], [words[1]]]], dtype=torch.float64), state, memory)
    inputs, half = [0.0, *words], 0.5**0.5
    for number in range(2):
        outputs = [0.0]
        for step in (1, 2):
            h = half * (0.5 * (0.5 * inputs[step - 1] + 2 * inputs[step]) + inputs[step])
            d = 3 * h + 0.25 + words[step - 1]
            share = sigmoid(2 * d)  # softmax of d and -d
            torch.testing.assert_close(
                decoded.weights[0, number, step - 1].tolist(), [share, 1 - share, 0.0], rtol=1e-6, atol=1e-6
            )
            context = share * 10 + (1 - share) * 5
            outputs.append(half * (h + 2 * (1 / 2) ** 0.5 * context))  # S (1 / S)^1/2 for the two real words
        inputs = outputs
    torch.testing.assert_close(decoded.features[0, :, 0].tolist(), inputs[1:], rtol=1e-6, atol=1e-6)


def test_the_encoder_by_hand() -> None:
    """e_j is the word and its position; z_j = W h_j + b are the keys, z_j + e_j the values."""
    made = model(*DOT, "encoder.layers=1", "encoder/positions=learned", "encoder.positions.count=4")
    encoder = made.encoder
    assert isinstance(encoder, ConvolutionalEncoder)
    source, mask, lengths = sentences([5, 3], 23)
    encoded = encoder(made.source_embedding(source), mask, lengths)
    table = encoder.get_parameter("entrance.positions.table.weight")
    e = (made.source_embedding(source) + table[[0, 1, 2, 3, 3]])[1, :3]
    entrance, leaving, convolution = encoder.entrance.linear, encoder.exit, encoder.layers[0].linear
    x = e @ entrance.weight.T + entrance.bias
    kernel = convolution.weight.unflatten(1, (3, 12)).transpose(1, 2)  # torch's [outputs, inputs, k]
    gates = nn.functional.conv1d(x.T, kernel, convolution.bias, padding=1).T
    h = 0.5**0.5 * (gates[:, :12] * torch.sigmoid(gates[:, 12:]) + x)
    z = h @ leaving.weight.T + leaving.bias
    torch.testing.assert_close(encoded.keys[1, :3], z)
    torch.testing.assert_close(encoded.values[1, :3], z + e)
    assert not encoded.keys[1, 3:].any()
    assert not encoded.values[1, 3:].any()


def test_dropout_is_that_of_the_inputs_of_a_layer() -> None:
    """What is left is scaled; the residual is not dropped."""
    layer = GatedConvolution(400, 1, 0.25).train()
    x = torch.ones(1, 100, 400)
    inputs = layer.dropout(x)
    assert inputs.unique().tolist() == pytest.approx([0, 4 / 3])
    assert inputs.mean().item() == pytest.approx(1, abs=0.02)
    with torch.no_grad():
        layer.linear.weight.zero_()
    torch.testing.assert_close(layer.convolve(inputs, x), x * 0.5**0.5)


def test_layers_start_as_the_paper_has_it() -> None:
    """Section 3.5: deviations (4 p / n)^1/2 before a gate, (p / n)^1/2 after dropout, else (1 / n)^1/2; biases zero."""
    sizes = ("model.embedding_size=96", "encoder.size=128", "decoder.size=160", "model.dropout=0.3")
    made = fresh(*DOT, *sizes)
    assert isinstance(made.encoder, ConvolutionalEncoder)
    assert isinstance(made.decoder, ConvolutionalDecoder)
    layers = {
        made.encoder.entrance.linear: (0.7 / 96) ** 0.5,
        made.encoder.layers[1].linear: (4 * 0.7 / (3 * 128)) ** 0.5,
        made.encoder.exit: (1 / 128) ** 0.5,
        made.decoder.entrance.linear: (0.7 / 96) ** 0.5,
        made.decoder.layers[1].linear: (4 * 0.7 / (3 * 160)) ** 0.5,
        made.decoder.layers[1].query: (1 / 160) ** 0.5,
        made.decoder.exit: (1 / 160) ** 0.5,
    }
    for layer, deviation in layers.items():
        assert layer.weight.std().item() == pytest.approx(deviation, rel=0.05)
        assert not layer.bias.any()


@pytest.mark.parametrize("size", [64, 256])
@pytest.mark.parametrize("layers", [1, 10])
@pytest.mark.parametrize("positions", ["learned", "sinusoidal"])
def test_variance_stays_and_the_softmax_starts_neither_flat_nor_sharp(positions: str, layers: int, size: int) -> None:
    places = [f"{place}/positions={positions}" for place in ("encoder", "decoder")]
    made = fresh(
        *DOT, *places, f"model.embedding_size={size}", f"encoder.layers={layers}", f"decoder.layers={layers}"
    ).eval()
    source, mask, lengths = sentences([17, 13, 11], 1009)
    target = sentences([13, 17, 11], 1009, seed=3)[0]
    with torch.no_grad():
        embedded = made.source_embedding(source)
        values = made.encoder(embedded, mask, lengths).keys[mask]
        logits = made.logits(made(Source(source, mask, lengths), target).features)
    assert 0.3 < values.std() / embedded[mask].std() < 3
    assert 0.2 < logits.std().item() < 1.2


def test_weights_of_all_layers_stand_side_by_side_and_their_terms_add_up() -> None:
    layers = [
        Attended(
            torch.zeros(2, 3, 5), torch.full((2, heads, 3, 4), 1.0 * heads), (), {"log_prob": torch.ones(2, 3)}, None
        )
        for heads in (1, 2)
    ]
    weights, terms = of_all_layers(layers)
    assert weights is not None
    assert weights[0, :, 0, 0].tolist() == [1.0, 2.0, 2.0]
    assert terms["log_prob"].tolist() == [[2.0] * 3] * 2
    assert of_all_layers([own._replace(weights=None) for own in layers])[0] is None
