"""Kernels for NVIDIA GPUs, written in Triton. The modules beside this one import Triton, this one does not."""

import functools
import importlib.util

import torch
from torch import Tensor

#: The most slots whose energies fit into the registers of a program of `attentive_gru`.
MOST_SLOTS = 1024


def usable(numbers: Tensor) -> bool:
    """Whether the kernels can compute with these: they are on an NVIDIA GPU, not float64, and Triton is installed."""
    on_gpu = numbers.device.type == "cuda" and torch.version.cuda is not None
    return on_gpu and numbers.dtype != torch.float64 and _has_triton()


@functools.cache
def _has_triton() -> bool:
    return importlib.util.find_spec("triton") is not None
