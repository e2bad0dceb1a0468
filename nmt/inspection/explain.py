"""Is attention an explanation? The weights beside two measures of what the prediction depends on.

Rows are words of the translation, columns words of the source.

attention: the weights.
gradient: gradient times input, the sum over the pieces (`nmt.translation.forcing.saliency`); with a sign.
erasure: how much the log-probability of a word falls if a source word is left out (Li, Monroe, Jurafsky 2016,
    "Understanding neural networks through representation erasure"); with a sign.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from nmt.alignment.weights import word_weights
from nmt.alignment.words import source_units, target_units
from nmt.errors import UserError
from nmt.inspection.details import documented
from nmt.inspection.document import DIGITS, Json, Style
from nmt.inspection.forced import inspect, tokens_of
from nmt.translation.looking import can_look
from nmt.translation.translator import Translator
from nmt.translation.types import Translation

Method = Literal["attention", "gradient", "erasure"]
METHODS: Final[tuple[Method, ...]] = get_args(Method)
CAUTION = (
    "Attention weights show where the model looked, not why it chose a word; where the three measures disagree, none "
    "of them is the explanation."
)
Matrix = npt.NDArray[np.float64]


def explain(
    translator: Translator, text: str, target: str | None, style: Style, methods: Sequence[Method] = METHODS
) -> Json:
    """Which source words does each word of a translation depend on?

    Args:
        translator: translates; of an ensemble, `gradient` shows the first model.
        text: one line that is not blank.
        target: a translation of it; None for the translator's own.
        style: how the translation is written.
        methods: of the measures.

    Returns:
        `translation`, a document. `words`: those of `source` and `target`. `methods`: a matrix for each, None for the
        weights of a model without attention. `correlation`: for each pair of methods Spearman's rank correlation over
        the source words, for each target word, and its mean. `caution`: how to read this.

    Raises:
        UserError: a text is blank or too long, or the model has no such head.
    """
    if target is None:
        ((translation, *_),) = translator.translate_chunk([text])
    else:
        (translation,) = translator.force([text], [target])
    if not can_look(translation) or not translation.text.strip():
        raise UserError("text: must be one line with words, short enough to be translated as a whole.")
    matrices = {method: _measured(translator, translation, method, style) for method in methods}
    return {
        "translation": documented(translator, [translation], style, frozenset({"alignment"})),
        "words": {"source": source_units(translation).labels, "target": target_units(translation).labels},
        "methods": {
            method: None if matrix is None else matrix.round(DIGITS).tolist() for method, matrix in matrices.items()
        },
        "correlation": [
            correlated((first, one), (second, two))
            for (first, one), (second, two) in combinations(matrices.items(), 2)
            if one is not None and two is not None
        ],
        "caution": CAUTION,
    }


def _measured(translator: Translator, translation: Translation, method: Method, style: Style) -> Matrix | None:
    if method == "erasure":
        return erasure(translator, translation)
    if method == "attention":
        if translation.weights is None:
            return None
        return word_weights(translation, style.head, style.shift).astype(np.float64)
    (salient,) = translator.saliency([translation.source], [translation.text])
    target, source = target_units(salient).members, source_units(salient).members
    assert salient.weights is not None
    by_word: Matrix = target.T.astype(np.float64) @ salient.weights[0] @ source
    return by_word


def erasure(translator: Translator, translation: Translation) -> Matrix:
    """[Tw, Sw] log p(target word) minus its log-probability without the source word."""
    source, target = source_units(translation), target_units(translation)
    tokens, pieces = tokens_of(translator.tokenizer, translation)
    whole = np.array(inspect(translator.stepper, tokens, pieces, translator.compute).of_pieces)
    columns = []
    for word in range(len(source.labels)):
        left = [token for token, members in zip(tokens, source.members) if members[word] == 0]
        without = np.array(inspect(translator.stepper, left, pieces, translator.compute).of_pieces)
        columns.append(target.members.T @ (whole - without))
    return np.stack(columns, 1) if columns else np.zeros((len(target.labels), 0))


def correlated(one: tuple[str, Matrix], other: tuple[str, Matrix]) -> dict[str, Any]:
    """Spearman's rank correlation of two measures over the source words, for each target word, and its mean."""
    by_word = [spearman(first, second) for first, second in zip(one[1], other[1], strict=True)]
    known = [value for value in by_word if value is not None]
    mean = round(sum(known) / len(known), DIGITS) if known else None
    return {"methods": [one[0], other[0]], "by_word": by_word, "mean": mean}


def spearman(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float | None:
    """The correlation of the ranks of two lists of numbers; None if one of them is constant."""
    if not len(one):
        return None
    centred = [ranks - ranks.mean() for ranks in (_ranks(one), _ranks(other))]
    scale = float(np.sqrt((centred[0] ** 2).sum() * (centred[1] ** 2).sum()))
    return None if scale == 0 else round(float((centred[0] * centred[1]).sum()) / scale, DIGITS)


def _ranks(values: npt.NDArray[Any]) -> Matrix:
    """Ranks from 0; equal values share the mean of theirs."""
    _, which, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    mean: Matrix = (last - counts + last - 1) / 2
    return mean[which]
