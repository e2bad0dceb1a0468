"""Is attention an explanation? The weights beside two measures of what the prediction depends on.

Rows are words of the translation, columns words of the source.

attention: the weights.
gradient: gradient times input, the sum over the pieces (`nmt.translation.forcing.saliency`); with a sign.
erasure: how much the log-probability of a word falls if a source word is left out (Li, Monroe, Jurafsky 2016,
    "Understanding neural networks through representation erasure"); with a sign.

For a model with context, all measures are taken with the sentences before, which stay as they are. The erasure of these
sentences is measured beside.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt

from nmt.alignment.weights import word_weights
from nmt.alignment.words import source_units, target_units, word_number
from nmt.errors import UserError
from nmt.inspection.details import documented
from nmt.inspection.document import DIGITS, Json, Style
from nmt.inspection.forced import context_of, inspect, tokens_of
from nmt.text.canonical import shows_nothing
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
    translator: Translator,
    text: str,
    target: str | None,
    style: Style,
    methods: Sequence[Method] = METHODS,
    context: Sequence[str] = (),
    word: int | str | None = None,
) -> Json:
    """Which source words does each word of a translation depend on?

    Args:
        translator: translates; of an ensemble, `gradient` shows the first model.
        text: one line that is not blank.
        target: a translation of it; None for the translator's own.
        style: how the translation is written.
        methods: of the measures.
        context: the sentences before the text, the nearest one last.
        word: of the translation, by its number from 0 or its spelling; None for all words.

    Returns:
        `translation`, a document. `words`: those of `source`, and those of `target` that are explained. `word`: the
        `number` and `text` of the word that was asked for; None for all. `methods`: a matrix for each, None for the
        weights of a model without attention. `correlation`: for each pair of methods Spearman's rank correlation over
        the source words, for each target word, and its mean. `context`, with sentences before the text and the method
        `erasure`: the `sentences` that the model saw, and `erasure`, a row for each target word with the fall of its
        log-probability if each of them is left out; otherwise None. `caution`: how to read this.

    Raises:
        UserError: a text is blank or too long, the model has no such head, or the translation no such word.
    """
    if target is None:
        ((translation, *_),) = translator.translate_chunk([text], contexts=[context])
    else:
        (translation,) = translator.force([text], [target], [context])
    if not can_look(translation) or shows_nothing(text) or shows_nothing(translation.text):
        raise UserError(
            "text: must be one line with words that the model can translate as a whole. Give a shorter sentence."
        )
    labels = target_units(translation).labels
    number = None if word is None else word_number(labels, word, "word")
    rows = slice(None) if number is None else slice(number, number + 1)
    measured = {method: _measured(translator, translation, method, style) for method in methods}
    matrices = {method: None if matrix is None else matrix[rows] for method, matrix in measured.items()}
    return {
        "translation": documented(translator, [translation], style, frozenset({"alignment"})),
        "words": {"source": source_units(translation).labels, "target": labels[rows]},
        "word": None if number is None else {"number": number, "text": labels[number]},
        "methods": {
            method: None if matrix is None else matrix.round(DIGITS).tolist() for method, matrix in matrices.items()
        },
        "correlation": [
            correlated((first, one), (second, two))
            for (first, one), (second, two) in combinations(matrices.items(), 2)
            if one is not None and two is not None
        ],
        "context": _context(translator, translation, rows) if translation.context and "erasure" in methods else None,
        "caution": CAUTION,
    }


def _measured(translator: Translator, translation: Translation, method: Method, style: Style) -> Matrix | None:
    if method == "erasure":
        return erasure(translator, translation)
    if method == "attention":
        if translation.weights is None:
            return None
        return word_weights(translation, style.head, style.shift).astype(np.float64)
    before = [sentence.text for sentence in translation.context]
    (salient,) = translator.saliency([translation.source], [translation.text], [before])
    target, source = target_units(salient).members, source_units(salient).members
    assert salient.weights is not None
    by_word: Matrix = target.T.astype(np.float64) @ salient.weights[0] @ source
    return by_word


def erasure(translator: Translator, translation: Translation) -> Matrix:
    """[Tw, Sw] log p(target word) minus its log-probability without the source word."""
    source, target = source_units(translation), target_units(translation)
    tokens, pieces = tokens_of(translator.tokenizer, translation)
    context = context_of(translator.tokenizer, translation)
    whole = _log_probs(translator, tokens, pieces, context)
    columns = []
    for word in range(len(source.labels)):
        left = [token for token, members in zip(tokens, source.members) if members[word] == 0]
        columns.append(target.members.T @ (whole - _log_probs(translator, left, pieces, context)))
    return np.stack(columns, 1) if columns else np.zeros((len(target.labels), 0))


def erasure_of_context(translator: Translator, translation: Translation) -> Matrix:
    """[Tw, K] log p(target word) minus its log-probability without each of the K sentences before the source."""
    tokens, pieces = tokens_of(translator.tokenizer, translation)
    context, members = context_of(translator.tokenizer, translation), target_units(translation).members
    whole = _log_probs(translator, tokens, pieces, context)
    left = [[sentence for place, sentence in enumerate(context) if place != out] for out in range(len(context))]
    return np.stack([members.T @ (whole - _log_probs(translator, tokens, pieces, each)) for each in left], 1)


def _log_probs(
    translator: Translator, source: Sequence[int], target: Sequence[int], context: Sequence[Sequence[int]]
) -> Matrix:
    """[T] the log-probability of each target piece."""
    arguments = translator.stepper, source, target, translator.compute
    return np.array(inspect(*arguments, context=context, pins=translator.pins).of_pieces)


def _context(translator: Translator, translation: Translation, rows: slice) -> Json:
    """The sentences before the source with their erasure for these target words."""
    return {
        "sentences": [sentence.text for sentence in translation.context],
        "erasure": erasure_of_context(translator, translation)[rows].round(DIGITS).tolist(),
    }


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
