"""Positions as vectors."""

import torch
from torch import Tensor


def sinusoids(count: int, size: int, device: torch.device | None = None) -> Tensor:
    """Sines and cosines of positions 0, 1, ... [count, size]. Vaswani et al. 2017, section 3.5.

    PE(t, 2i) = sin(t / 10000^(2i / size)), PE(t, 2i + 1) = cos(t / 10000^(2i / size)).
    """
    columns = torch.arange(size, device=device)
    angles = torch.arange(count, device=device).unsqueeze(1) / 10000 ** ((columns - columns % 2) / size)
    return torch.where(columns % 2 == 0, angles.sin(), angles.cos())
