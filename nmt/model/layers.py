"""Layers as torch has them, where something has to be minded: recurrent ones in float32, dropout at its speed."""

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence


def run_rnn(
    rnn: nn.RNNBase, inputs: Tensor | PackedSequence, hidden: Tensor | None = None
) -> tuple[Tensor | PackedSequence, Tensor]:
    """Runs GRU or LSTM layers outside autocast: outputs and the last hidden states [L * directions, B, D].

    On CUDA, autocast would run cuDNN's layers in float16 whatever type it was given: without loss scaling that
    underflows, and it does not mix with bfloat16. Elsewhere the products may run in bfloat16.
    """
    data = inputs.data if isinstance(inputs, PackedSequence) else inputs
    if data.device.type == "cuda":
        with torch.autocast("cuda", enabled=False):
            full = inputs._replace(data=data.float()) if isinstance(inputs, PackedSequence) else data.float()
            outputs, last = rnn(full, None if hidden is None else hidden.float())
    else:
        outputs, last = rnn(inputs, hidden)
    return outputs, last[0] if isinstance(last, tuple) else last


def dropout(inputs: Tensor, p: float, training: bool) -> Tensor:
    """`torch.nn.functional.dropout` whose draws do not take longer than what they are for.

    On a CPU torch draws each place's Bernoulli variable alone, 10 ns a place (docs/benchmarks.md). Here a place takes
    16 bits of a random integer, so that p is met to 2^-17, and the scale is that of the p that was met.
    """
    places = round(p * 2**16)
    if not training or inputs.device.type != "cpu" or not 0 < places < 2**16:
        return nn.functional.dropout(inputs, p, training)
    count = inputs.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:count].view(inputs.shape)
    return inputs * ((bits >= places - 2**15).to(inputs.dtype) * (2**16 / (2**16 - places)))


class Dropout(nn.Dropout):
    """`dropout` as a layer."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  torch's name
        return dropout(input, self.p, self.training)
