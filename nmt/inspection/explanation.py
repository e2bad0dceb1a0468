"""Attention weights compared with two attribution measures of the source words: gradient and erasure.

Rows are words of the translation, columns are words of the source.

attention: the weights.
gradient: gradient times input, summed over pieces (`nmt.translation.forced_passes.saliency`); signed.
erasure: the fall of a word's log-probability if a source word is left out (Li, Monroe, Jurafsky 2016,
    "Understanding neural networks through representation erasure"); signed.

Weights have no sign, and a source word that lowers a probability is also important. Therefore measures are compared by
absolute value, as in Jain and Wallace 2019, "Attention is not explanation". Word links are a different purpose:
`nmt.alignment.word_weights.saliency_weights` uses only positive contributions, as Ding et al. 2019 do.

For a model with context, all measures are taken with the unchanged context. The erasure of each context sentence is
measured separately.
"""

from collections.abc import Sequence
from itertools import combinations
from typing import Any, Final, Literal, get_args

import numpy as np
import numpy.typing as npt
import torch

from nmt.alignment.units import source_units, target_units, word_number
from nmt.alignment.word_weights import names_of_heads, word_weights
from nmt.data.batch import make_batch
from nmt.data.document_lines import context_tensor
from nmt.inspection.details import documented
from nmt.inspection.document import DIGITS, Json, Style
from nmt.inspection.steps import ForcedSource, piece_log_probs, tokens_of
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.forced_passes import saliency
from nmt.translation.kept_words import keep_words
from nmt.translation.named_heads import AUTO, Heads
from nmt.translation.request import Request
from nmt.translation.stepper import evaluating
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import can_look, ids_of

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
    *,
    keeps: bool = False,
) -> Json:
    """Measure how much each word of a translation depends on each source word.

    Args:
        translator: the translator; for an ensemble, `gradient` and the weights for `target` are the first model's.
        text: one line that is not blank.
        target: a translation of the text; None uses the translator's translation.
        style: the style of the document.
        methods: the measures to take.
        context: the sentences before the text, the nearest last.
        word: a word of the translation, by its number from 0 or its spelling; None for all words.
        keeps: keep the words before the translator's first pin as they are without pins (`keep_words`).

    Returns:
        `translation`: a document. `words`: the words of `source`, and the explained words of `target`. `word`: the
        `number` and `text` of the given word; None for all words. `head`, `shift`: head and shift of the weights as in
        `style`, with "auto" resolved to a selection; the head is None without attention. `methods`: {method: matrix},
        with None for the weights of a model without attention. `correlation`: for each pair of methods, Spearman's rank
        correlation of absolute values over the source words, for each target word, and its mean. `strongest`: for each
        target word, whether all methods have their largest absolute value at the `same` source word, and the number of
        such words (`count`); None with fewer than two methods. `context`: for `erasure` with context, the `sentences`
        that the model saw, and `erasure`, a row for each target word with the fall of its log-probability if each
        sentence is left out; otherwise None. `caution`: a note on interpretation.

    Raises:
        UserError: a text is blank or too long, or the head or the word does not exist.
    """
    if target is None:
        requests = [Request(text, context=context)]
        ((translation, *_),) = translator.translate_chunk(keep_words(translator, requests) if keeps else requests)
    else:
        (translation,) = translator.force([text], [target], [context])
    if not can_look(translation) or shows_nothing(text):
        raise UserError(
            "text: must be one line with words that the model can translate as a whole. Give a shorter sentence."
        )
    if shows_nothing(translation.text):
        blank = "text: its translation has no words" if target is None else "target: has no words"
        raise UserError(f"{blank}, so there is nothing to explain. Give another one.")
    labels, head = target_units(translation).labels, style.head if translator.attends else None
    if head == AUTO:
        head = Heads(names_of_heads(translation)).default
    number = None if word is None else word_number(labels, word, "word")
    rows = slice(None) if number is None else slice(number, number + 1)
    matrices = {method: _measured(translator, translation, method, style, rows) for method in methods}
    before = [sentence.text for sentence in translation.context] if "erasure" in methods else []
    erased = erasure_of_context(translator, translation, rows) if before else np.zeros(0)
    return {
        "translation": documented(translator, [translation], style, frozenset({"alignment"})),
        "words": {"source": source_units(translation).labels, "target": labels[rows]},
        "word": None if number is None else {"number": number, "text": labels[number]},
        "head": head,
        "shift": style.shift,
        "methods": {
            method: None if matrix is None else matrix.round(DIGITS).tolist() for method, matrix in matrices.items()
        },
        "correlation": [
            correlated((first, one), (second, two))
            for (first, one), (second, two) in combinations(matrices.items(), 2)
            if one is not None and two is not None
        ],
        "strongest": agreement([matrix for matrix in matrices.values() if matrix is not None]),
        "context": {"sentences": before, "erasure": erased.round(DIGITS).tolist()} if before else None,
        "caution": CAUTION,
    }


def _measured(
    translator: Translator, translation: Translation, method: Method, style: Style, rows: slice
) -> Matrix | None:
    """A measure [Tw, Sw] for the target words `rows`; None for the weights of a model without attention."""
    if method == "erasure":
        return erasure(translator, translation, rows)
    if method == "gradient":
        return gradient(translator, translation, rows)
    if translation.weights is None:
        return None
    return word_weights(translation, style.head, style.shift).astype(np.float64)[rows]


def gradient(translator: Translator, translation: Translation, rows: slice = slice(None)) -> Matrix:
    """Gradient times input [Tw, Sw] for the target words `rows`."""
    source, target, before = ids_of(translator.tokenizer, translation)
    batch = make_batch([source], [target], [0])._replace(context=context_tensor([before])).to(translator.compute.device)
    shares = torch.zeros(len(target_units(translation).labels), len(target) + 1)
    shares[:, : len(translation.pieces)] = torch.from_numpy(target_units(translation).members.T)
    with evaluating(translator.models):
        words, check = shares[rows].to(translator.compute.device), translator.check
        salient = saliency(translator.models[0], batch, [translation.pins], words, check).weights
    assert salient is not None
    by_word: Matrix = salient[0, 0, :, : len(source) + 1].double().cpu().numpy() @ source_units(translation).members
    return by_word


def erasure(translator: Translator, translation: Translation, rows: slice = slice(None)) -> Matrix:
    """The fall of log p(target word) if a source word is left out, [Tw, Sw], for the target words `rows`."""
    source = source_units(translation)
    tokens, _, context = ids_of(translator.tokenizer, translation)
    left = [
        [token for token, members in zip(tokens, source.members) if members[word] == 0]
        for word in range(len(source.labels))
    ]
    return _falls(translator, translation, rows, [ForcedSource(each, context) for each in (tokens, *left)])


def erasure_of_context(translator: Translator, translation: Translation, rows: slice = slice(None)) -> Matrix:
    """The fall of log p(target word) if each of the K context sentences is left out, [Tw, K]."""
    tokens, _, context = ids_of(translator.tokenizer, translation)
    left = [[sentence for place, sentence in enumerate(context) if place != out] for out in range(len(context))]
    return _falls(translator, translation, rows, [ForcedSource(tokens, each) for each in (context, *left)])


def _falls(translator: Translator, translation: Translation, words: slice, rows: Sequence[ForcedSource]) -> Matrix:
    """The fall of each target word's log-probability from the first row to each of the N other rows, [Tw, N]."""
    members = target_units(translation).members[:, words]
    # Pieces after the last explained word have no effect.
    count = 1 + int(np.flatnonzero(members.any(1)).max(initial=0))
    pieces = tokens_of(translator.tokenizer, translation)[1][:count]
    pinned = [row._replace(pins=translation.pins) for row in rows]
    whole, *others = piece_log_probs(translator, pieces, pinned).double().numpy()
    falls: Matrix = members[:count].T.astype(np.float64) @ (whole - np.array(others).reshape(-1, count)).T
    return falls


def correlated(one: tuple[str, Matrix], other: tuple[str, Matrix]) -> dict[str, Any]:
    """Spearman's rank correlation of the absolute values of two measures, for each target word, and its mean."""
    rows = zip(np.abs(one[1]), np.abs(other[1]), strict=True)
    by_word = [rank_correlation(first, second) for first, second in rows]
    known = [value for value in by_word if value is not None]
    mean = round(sum(known) / len(known), DIGITS) if known else None
    return {"methods": [one[0], other[0]], "by_word": by_word, "mean": mean}


def agreement(matrices: Sequence[Matrix]) -> dict[str, Any] | None:
    """Whether all measures have the largest absolute value at the same source word; None for fewer than two."""
    if len(matrices) < 2 or not matrices[0].size:
        return None
    tops = np.array([np.abs(matrix).argmax(1) for matrix in matrices])
    same = (tops == tops[0]).all(0)
    return {"same": same.tolist(), "count": int(same.sum())}


def rank_correlation(one: npt.NDArray[Any], other: npt.NDArray[Any]) -> float | None:
    """Spearman's rank correlation of two lists of numbers; None if a list is constant."""
    from scipy.stats import spearmanr  # type: ignore[import-untyped]

    if not len(one) or np.ptp(one) == 0 or np.ptp(other) == 0:
        return None
    return round(float(spearmanr(one, other).statistic), DIGITS)
