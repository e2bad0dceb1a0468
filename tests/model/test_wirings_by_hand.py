"""The wirings, the first states and the encoder against their equations, step by step."""

import math

import torch
from torch import nn

from nmt.model import Encoded, Sizes, Source, Words
from nmt.model.recurrent.conditional import Conditional
from nmt.model.recurrent.first_state import FirstState
from nmt.model.recurrent.readouts import Tanh
from tests.catalogue import (
    attentive,
    model,
    sentences,
    started,
)


def test_bahdanau_by_hand() -> None:
    """c_t = attend(s_{t-1}), then s_t = GRU(s_{t-1}, [y_{t-1}; c_t]), with torch's own GRU cell."""
    made = model("decoder=bahdanau")
    source, mask, lengths = sentences([4], 23)
    memory, state = started(made, Source(source, mask, lengths))
    decoder = attentive(made)
    embedded = made.target_embedding(torch.tensor([8]))
    attended = decoder.attention(state.hidden, memory.attention, torch.zeros(1, 1, dtype=torch.int64))
    cell = nn.GRUCell(17, 10, dtype=torch.float64)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in decoder.rnn.state_dict().items()})
    expected = cell(torch.cat([embedded, attended.context[:, 0]], -1), state.hidden[:, 0])
    decoded, following = decoder.step(Words(embedded), state, memory)
    torch.testing.assert_close(following.hidden[:, 0], expected)
    torch.testing.assert_close(decoded.features, decoder.readout(expected, embedded, attended.context[:, 0]))
    assert following.steps.tolist() == [1]


def test_luong_by_hand() -> None:
    """h_t = GRU(h_{t-1}, [y_{t-1}; htilde_{t-1}]), then c_t = attend(h_t), htilde_t = tanh(W_c [c_t; h_t])."""
    made = model("decoder=luong", "attention/score=dot")
    source, mask, lengths = sentences([4], 23)
    memory, state = started(made, Source(source, mask, lengths))
    decoder = attentive(made)
    assert not state.feed.any()
    state = state._replace(feed=torch.randn(1, 11, dtype=torch.float64))
    embedded = made.target_embedding(torch.tensor([8]))
    cell = nn.GRUCell(18, 10, dtype=torch.float64)
    cell.load_state_dict({name.removesuffix("_l0"): value for name, value in decoder.rnn.state_dict().items()})
    hidden = cell(torch.cat([embedded, state.feed], -1), state.hidden[:, 0])
    values = memory.attention.values[0, 0]
    weights = torch.softmax(values @ hidden[0], -1)
    readout = decoder.readout.linear
    assert isinstance(readout, nn.Linear)
    expected = torch.tanh(readout.weight @ torch.cat([weights @ values, hidden[0]]))
    decoded, following = decoder.step(Words(embedded), state, memory)
    torch.testing.assert_close(decoded.features[0], expected)
    torch.testing.assert_close(following.feed, decoded.features)


def test_conditional_by_hand() -> None:
    """s'_t = GRU_1(s_{t-1}, y_{t-1}), c_t = attend(s'_t), s_t = GRU_2(s'_t, c_t), with torch's own GRU cells."""
    made = model("decoder=conditional", "attention/score=general", "decoder.layers=2")
    source, mask, lengths = sentences([4], 23)
    memory, state = started(made, Source(source, mask, lengths))
    decoder = made.decoder
    assert isinstance(decoder, Conditional)
    embedded = made.target_embedding(torch.tensor([8]))
    states = []
    layer_input = embedded
    for layer, size in enumerate((7, 10)):
        cell = nn.GRUCell(size, 10, dtype=torch.float64)
        weights = decoder.rnn.state_dict()
        cell.load_state_dict({name[:-3]: value for name, value in weights.items() if name.endswith(f"_l{layer}")})
        layer_input = cell(layer_input, state.hidden[:, layer])
        states.append(layer_input)
    energies = memory.attention.keys[0, 0] @ states[-1][0]
    context = torch.softmax(energies, -1) @ memory.attention.values[0, 0]
    second = nn.GRUCell(10, 10, dtype=torch.float64)
    second.load_state_dict({name[:-3]: value for name, value in decoder.second.state_dict().items()})
    expected = second(context.unsqueeze(0), states[-1])
    decoded, following = decoder.step(Words(embedded), state, memory)
    torch.testing.assert_close(following.hidden, torch.stack([states[0], expected], 1))
    torch.testing.assert_close(decoded.features, decoder.readout(expected, embedded, context.unsqueeze(0)))


def test_the_tanh_readout_by_hand() -> None:
    state, word, context = torch.tensor([0.5]), torch.tensor([-2.0]), torch.tensor([3.0, 1.0])
    for sees_word in (False, True):
        readout = Tanh(1, 1, 2, 1, word=sees_word)
        assert isinstance(readout.linear, nn.Linear)
        with torch.no_grad():
            readout.linear.weight.copy_(torch.tensor([[0.1, 0.2, 0.4, 0.8]])[:, : 4 if sees_word else 3])
        # W_c [c; h; E y]
        inner = 0.3 + 0.2 + 0.2 + (-1.6 if sees_word else 0)
        torch.testing.assert_close(readout(state, word, context), torch.tensor([math.tanh(inner)]))


def test_first_states() -> None:
    values = torch.tensor([[[1.0, 2.0], [3.0, 4.0], [0.0, 0.0]]])
    mask = torch.tensor([[True, True, False]])
    encoded = Encoded(values, mask, last=torch.tensor([[[5.0, 6.0], [7.0, 8.0]]]))
    sizes = Sizes(7, 2, directions=2)
    zero = FirstState("zero", "mean", sizes, 1, 2)
    assert zero(encoded).tolist() == [[[0.0, 0.0]]]
    last = FirstState("last", "mean", sizes, 3, 2)
    assert last(encoded).tolist() == [[[5.0, 6.0], [7.0, 8.0], [7.0, 8.0]]]  # top to top, the top repeated
    bridged = FirstState("last", "mean", sizes, 2, 3)
    assert bridged.linear is not None
    with torch.no_grad():
        bridged.linear.weight.copy_(torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 1.0]]))
        bridged.linear.bias.copy_(torch.tensor([0.0, 0.0, 0.5]))
    assert bridged(encoded).tolist() == [[[5.0, 6.0, 11.5], [7.0, 8.0, 15.5]]]  # each layer by the same matrix
    top = FirstState("last", "mean", sizes, 1, 2)
    assert top(encoded).tolist() == [[[7.0, 8.0]]]
    for kind, vector in (("backward", [8.0]), ("mean", [2.0, 3.0])):
        made = FirstState(kind, "mean", sizes, 2, 3)
        assert made.linear is not None
        expected = torch.tanh(made.linear(torch.tensor([vector]))).view(1, 2, 3)
        torch.testing.assert_close(made(encoded), expected)


def test_the_encoder_agrees_with_a_loop_over_cells() -> None:
    made = model()
    source, mask, lengths = sentences([3], 23)
    embedded = made.source_embedding(source)
    encoded = made.encoder(embedded, mask, lengths)
    forward, backward = (nn.GRUCell(7, 5, dtype=torch.float64) for _ in range(2))
    weights = made.encoder.get_submodule("rnn").state_dict()
    forward.load_state_dict({n[:-3]: value for n, value in weights.items() if n.endswith("_l0")})
    backward.load_state_dict({n[: -len("_l0_reverse")]: v for n, v in weights.items() if n.endswith("_reverse")})
    states = {}
    for cell, order, part in ((forward, [0, 1, 2], slice(0, 5)), (backward, [2, 1, 0], slice(5, 10))):
        hidden = torch.zeros(1, 5, dtype=torch.float64)
        for position in order:
            hidden = cell(embedded[:, position], hidden)
            torch.testing.assert_close(encoded.values[:, position, part], hidden)
        states[part.start] = hidden
    torch.testing.assert_close(encoded.last[:, 0], torch.cat([states[0], states[5]], -1))
