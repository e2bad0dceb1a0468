"""Kernels for NVIDIA GPUs, written in Triton. The modules of this package import Triton; this file does not."""

import functools
import importlib.util

import torch
from torch import Tensor

#: The largest number of slots whose energies fit into the registers of a program of `triton_attentive_gru`.
MOST_SLOTS = 1024


def usable(numbers: Tensor) -> bool:
    """Whether the kernels can run on these numbers: on an NVIDIA GPU, not float64, and with Triton installed."""
    on_gpu = numbers.device.type == "cuda" and torch.version.cuda is not None
    return on_gpu and numbers.dtype != torch.float64 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
