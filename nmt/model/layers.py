"""Recurrent layers as torch has them, kept in float32."""

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
