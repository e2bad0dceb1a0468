"""The interface of an export format, such as CTranslate2 and ONNX, and the checks of attention that both share."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from nmt.attention import Attention, Score
from nmt.attention.normalisers import Softmax
from nmt.attention.score_forms import AdditiveForm, Product
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
        name: the value of the setting format=.
        packages: Python packages that are needed to write the format.
        quantizations: supported values of quantization=.
        settings: entries for manifest.json that only this format has.
        refusals: function (model, choices by group) -> the settings that the format does not support.
        save: function (folder, model, tokenizer, quantization) that writes the model.
        log_probs: function (folder, tokenizer, batch) -> [W] natural-log probability of each target piece, row by row.
        only_allowed: whether probabilities are normalised over the pieces that search may produce.
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
    """A copy of the values in float32; a copy because quantisation works in place."""
    return np.array(tensor.detach().cpu().float().numpy())


def key_weight(score: Score) -> Tensor | None:
    """The matrix U [A, Dk] by which a score with one head computes keys U v from v; None if it is the identity."""
    values = torch.eye(score.key_size)
    with torch.no_grad():
        keys = score.prepare(values)
    return None if keys.equal(values) else keys.T


def unsupported(key: str, attention: Attention, *, scaled_dot_only: bool = False) -> Iterator[tuple[str, str]]:
    """Yield each part of the attention at `key` that cannot be exported: its name, and the supported choices.

    With `scaled_dot_only`, the only supported score is q . k / sqrt(Dk).
    """
    score, form = attention.score, attention.score.form
    if scaled_dot_only:
        scaled = isinstance(form, Product) and form.scale == score.key_size**-0.5
        if not scaled or key_weight(score) is not None:
            yield "score", "scaled_dot"
    elif not isinstance(form, Product | AdditiveForm):
        yield "score", "additive, concat, dot, general or scaled_dot"
    if not attention.window.is_everything:
        yield "window", "global"
    if not attention.normaliser.is_softmax:
        tempered = isinstance(attention.normaliser, Softmax)
        yield "normaliser", f"softmax {key}.normaliser.temperature=1" if tempered else "softmax"
    if not attention.read.is_sum:
        yield "read", "soft"
