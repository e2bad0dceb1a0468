"""LSTMs over whole sentences that use a mask instead of lengths on the host, so that a CUDA graph can contain them."""

from collections.abc import Sequence

import torch
from torch import Tensor, nn

from nmt.kernels.dropout import dropout


def masked_lstm_layers(rnn: nn.LSTM, inputs: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
    """Run `rnn` over inputs [B, T, I] step by step; where mask [B, T] is false, states do not change.

    Returns the top layer's states [B, T, R * D] for R directions, zero at padding, and each layer's hidden states
    [L * R, B, D] after the last real step, like torch's packed layers.
    """
    real, lasts = mask.unsqueeze(-1), []
    parameters = iter(rnn.all_weights)
    for layer in range(rnn.num_layers):
        inputs = dropout(inputs, rnn.dropout, rnn.training) if layer else inputs
        sides = []
        for backward in (False, True)[: 2 if rnn.bidirectional else 1]:
            sides.append(_direction(next(parameters), inputs, real, backward))
            lasts.append(sides[-1][:, 0 if backward else -1])
        inputs = torch.cat(sides, -1)
    return inputs * real, torch.stack(lasts)


def _direction(parameters: Sequence[Tensor], inputs: Tensor, real: Tensor, backward: bool) -> Tensor:
    """The states [B, T, D] of a layer in one direction, in the order of the steps.

    i, f, g, o = W x + b + U h_before + d; c = sigmoid(f) c_before + sigmoid(i) tanh(g); h = sigmoid(o) tanh(c).
    """
    weight_ih, weight_hh, bias_ih, bias_hh = parameters
    gates = nn.functional.linear(inputs, weight_ih, bias_ih)
    hidden = cell = weight_hh.new_zeros(len(inputs), weight_hh.shape[1])
    steps = [*zip(gates.unbind(1), real.unbind(1), strict=True)]
    states = []
    for of_step, is_real in reversed(steps) if backward else steps:
        total = of_step.to(hidden.dtype) + nn.functional.linear(hidden, weight_hh, bias_hh).to(hidden.dtype)
        into, keep, new, out = total.chunk(4, 1)
        cells = keep.sigmoid() * cell + into.sigmoid() * new.tanh()
        hidden = torch.where(is_real, out.sigmoid() * cells.tanh(), hidden)
        cell = torch.where(is_real, cells, cell)
        states.append(hidden)
    return torch.stack(states[::-1] if backward else states, 1)
