"""The fused recurrence under autocast: products may be in bfloat16, energies and states may not."""

import math

import torch

from nmt.model import Source
from tests.catalogue import model, recurrent, sentences


def test_first_weights_under_autocast_are_those_of_a_plain_step() -> None:
    """Queries and keys are rounded alike in both; energies of up to 12 would be off by 0.03 in bfloat16."""
    source, mask, lengths = sentences([6, 1, 4], 23)
    target = sentences([2] * 3, 29, seed=9)[0]
    made = model("decoder=bahdanau").float()
    with torch.autocast("cpu", torch.bfloat16):
        weights = made(Source(source, mask, lengths), target).weights
        memory, state = made.encode(Source(source, mask, lengths))
        expected = made.step(target[:, 0], state, memory).weights
    torch.testing.assert_close(weights[:, :, 0], expected, rtol=1e-5, atol=1e-6)


def test_a_state_that_moves_by_less_than_a_step_of_bfloat16_arrives() -> None:
    """An update gate of sigmoid(7) moves the state by 0.1 % of its way: h_t = tanh(2) (1 - sigmoid(7)^t)."""
    steps = 1000
    made = model(
        "decoder=bahdanau", "decoder.first_state=zero", "decoder/readout=state", "decoder.readout.size=10", train=True
    ).float()
    with torch.no_grad():
        for name, parameter in recurrent(made).rnn.named_parameters():
            parameter.zero_()
            if name == "bias_ih_l0":  # of the reset gate, the update gate and the candidate
                parameter[10:20], parameter[20:] = 7, 2
    source, mask, _ = sentences([3], 23)
    with torch.autocast("cpu", torch.bfloat16):
        states = made(Source(source, mask), sentences([steps], 29)[0]).features[0]
    update = 1 / (1 + math.exp(-7))
    expected = math.tanh(2) * (1 - update ** torch.arange(1, steps + 1, dtype=torch.float64))
    torch.testing.assert_close(states.double(), expected.unsqueeze(1).expand(-1, 10), rtol=1e-3, atol=1e-5)
