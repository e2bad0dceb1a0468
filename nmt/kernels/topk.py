"""The largest values of long rows, in two steps.

For a vocabulary of 8,000, this is several times as fast as `torch.topk` on a CPU.
"""

import torch
from torch import Tensor

from nmt.kernels import is_fast

BLOCK = 64  # `fast_largest` takes one maximum per block


def plain_largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """`torch.topk`."""
    return values.topk(count, 1)


def fast_largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """Search the remainder and the `count` blocks with the largest maxima, which contain all `count` largest values."""
    rows, width = values.shape
    blocks = width // BLOCK
    whole = blocks * BLOCK
    _, best_blocks = values[:, :whole].view(rows, blocks, BLOCK).amax(2).topk(count, 1)
    columns = (best_blocks.unsqueeze(2) * BLOCK + torch.arange(BLOCK)).flatten(1)
    if whole < width:
        columns = torch.cat([columns, torch.arange(whole, width).expand(rows, -1)], 1)
    largest_values, order = values.gather(1, columns).topk(count, 1)
    return largest_values, columns.gather(1, order)


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The `count` largest of each row [N, V], largest first, and their columns. Ties are broken arbitrarily."""
    if is_fast() and values.device.type == "cpu" and values.shape[1] // BLOCK > count:
        return fast_largest(values, count)
    return plain_largest(values, count)
