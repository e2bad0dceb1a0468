"""Dropout with cheap random numbers.

On a CPU, torch draws a Bernoulli variable for each number. Measured: docs/benchmarks.md, "dropout of [80, 16, 256]".
"""

import torch
from torch import Tensor, nn

from nmt.kernels import is_fast


def plain_dropout(inputs: Tensor, p: float) -> Tensor:
    """`torch.nn.functional.dropout`."""
    return nn.functional.dropout(inputs, p)


def fast_dropout(inputs: Tensor, p: float) -> Tensor:
    """Dropout with 16 random bits per number: p is rounded to a multiple of 2^-16, also in the scale."""
    threshold = round(p * 2**16)
    count = inputs.numel()
    words = torch.empty((count + 3) // 4, dtype=torch.int64).random_(-(2**63), None)
    bits = words.view(torch.int16)[:count].view(inputs.shape)
    # torch vectorises the comparison in place, but not a comparison into a bool tensor.
    return inputs * bits.ge_(threshold - 2**15).to(inputs.dtype).mul_(2**16 / (2**16 - threshold))


def dropout(inputs: Tensor, p: float, training: bool) -> Tensor:
    """In training, set each number to zero with probability p, and scale the others by 1 / (1 - p)."""
    if not training or p == 0:
        return inputs
    if inputs.device.type == "cpu" and 0 < round(p * 2**16) < 2**16 and is_fast():
        return fast_dropout(inputs, p)
    return plain_dropout(inputs, p)


class Dropout(nn.Dropout):
    """`dropout` as a layer."""

    def forward(self, input: Tensor) -> Tensor:  # noqa: A002  torch's name
        return dropout(input, self.p, self.training)
