"""A format of exported models: what `nmt.export` asks of CTranslate2 and of ONNX."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from torch import Tensor

from nmt.data.batch import Batch
from nmt.model import Seq2Seq
from nmt.text.tokenizer import Tokenizer

Floats = npt.NDArray[np.float32]


class Refusal(NamedTuple):
    """A setting that a format does not support, and the setting to train with."""

    setting: str
    cure: str


class ExportFormat(NamedTuple):
    """A format of exported models; `NAME_program.py` and `NAME.md` become an export's `translate.py` and README.

    Attributes:
        name: of the setting format=.
        packages: that nmt needs to write it.
        quantizations: that it supports.
        settings: that only this format's manifest.json has.
        refusals: (model, choices by group) -> the settings that it does not support.
        save: (folder, model, tokenizer, quantization) writes the model.
        log_probs: (folder, tokenizer, batch) -> [W] the natural-log probability of each target word, row by row.
        only_allowed: whether its probabilities are shares of the pieces that search may produce.
    """

    name: str
    packages: tuple[str, ...]
    quantizations: tuple[str, ...]
    settings: Mapping[str, Any]
    refusals: Callable[[Seq2Seq, Mapping[str, str]], Iterator[Refusal]]
    save: Callable[[Path, Seq2Seq, Tokenizer, str], None]
    log_probs: Callable[[Path, Tokenizer, Batch], Floats]
    only_allowed: bool


def array(tensor: Tensor) -> Floats:
    """A copy of the values in float32: quantisation works in place."""
    return np.array(tensor.detach().cpu().float().numpy())
