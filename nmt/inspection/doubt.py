"""Word-level quality estimation: the confidence of each word, by a logistic regression on the model's own features.

A model's probabilities and attention judge its words about as well as models trained on human judgements (Fomicheva et
al. 2020, "Unsupervised quality estimation for neural machine translation"; Rikters and Fishel 2017, "Confidence through
attention"). The regression is fitted on a validation set, where a word is right if the alignment with the fewest edits
links it to the same word of the reference.
"""

import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.alignment.units import target_units
from nmt.alignment.word_weights import UNATTENDED, piece_weights, word_weights
from nmt.text.canonical import canonical
from nmt.text.scripts import unspaced
from nmt.translation.predictions import predict_again
from nmt.translation.translator import Translator
from nmt.translation.types import Doubt, Translation

Matrix = npt.NDArray[np.float64]
#: Features of every model: the lowest and the mean log-probability of a word's pieces, their smallest margin over other
#: pieces, the mean log-probability of the sentence's pieces, the lowest of the words before and after, the number of
#: pieces, whether the word repeats.
OF_PIECES = ("lowest", "mean", "margin", "sentence", "before", "after", "pieces", "repeated")
#: Features of attention: the entropy of the weights in nats, the weight on the end of the source, the share of heads
#: that agree on the piece, the total weight that the word's source word receives, the share of unattended source words.
OF_ATTENTION = ("entropy", "end", "agreement", "received", "unattended")
FLOOR = -20.0  # lower bound of log-probabilities
LEAST = 20  # minimum number of right words, and of wrong words, for a fit
FOLDS, BINS = 5, 10
RIDGE = 1.0  # factor of the L2 penalty on the weights of standardised features


class DoubtEvidence(NamedTuple):
    """The agreement of confidences with the correctness of words.

    Attributes:
        words: number of words.
        right: share of right words.
        auc: probability that a right word has a higher confidence than a wrong word; None without words of both kinds.
        calibration: (number of words, mean confidence, share of right words) for each non-empty tenth of confidence.
    """

    words: int
    right: float
    auc: float | None
    calibration: Sequence[tuple[int, float, float]]


@dataclass(frozen=True)
class DoubtModel:
    """A fitted logistic regression.

    Attributes:
        features: {feature: (mean, standard deviation, weight)}.
        intercept: the log-odds of a word whose features are all at their means.
        sentences: number of validation sentences used for the fit.
        evidence: the agreement on these sentences, by cross-validation.
    """

    features: Mapping[str, tuple[float, float, float]]
    intercept: float
    sentences: int
    evidence: DoubtEvidence

    def confidences(self, rows: Matrix) -> Matrix:
        """The confidences [W] of words with features [W, F]."""
        means, deviations, weights = np.array(list(self.features.values())).T
        odds = (rows - means) / deviations @ weights + self.intercept
        shares: Matrix = 1 / (1 + np.exp(-np.clip(odds, -50, 50)))
        return shares

    def of(self, translation: Translation) -> Doubt | None:
        """The doubt of a translation that was predicted again; None if probabilities or fitted features are missing.

        A translation from the memory has no doubt, because a person wrote it.
        """
        rows = features(translation)
        if translation.remembered or rows.shape[1] != len(self.features):
            return None
        unattended = _unattended(translation)
        return Doubt(self.confidences(rows).round(4).tolist(), np.flatnonzero(unattended).tolist())

    def add(self, translator: Translator, nbest_lists: Sequence[Sequence[Translation]]) -> list[list[Translation]]:
        """Add doubts to all translations in n-best lists."""
        again = iter(predict_again(translator, [each for ranked in nbest_lists for each in ranked]))
        return [[each._replace(doubt=self.of(next(again))) for each in ranked] for ranked in nbest_lists]


def features(translation: Translation) -> Matrix:
    """The features [W, F] of the words of a translation that was predicted again; F is 0 without probabilities.

    The columns are OF_PIECES, followed by OF_ATTENTION if the translation has weights.
    """
    members = target_units(translation).members.T > 0  # [W, T]
    if not len(translation.log_probs):
        return np.zeros((len(members), 0))
    log_probs = np.maximum(translation.log_probs, FLOOR)
    margins = np.clip(np.subtract(log_probs, np.maximum(translation.other_log_probs, FLOOR)), FLOOR, -FLOOR)
    words = [at.nonzero()[0] if at.any() else np.arange(len(log_probs)) for at in members]
    lowest = np.array([log_probs[at].min() for at in words])
    rows = [
        lowest,
        [log_probs[at].mean() for at in words],
        [margins[at].min() for at in words],
        np.full(len(words), log_probs.mean()),
        np.concatenate([[0.0], lowest[:-1]])[: len(words)],
        np.concatenate([lowest[1:], [log_probs[-1]]])[: len(words)],
        [len(at) for at in words],
        list(_repeated(target_units(translation).labels)),
    ]
    if translation.weights is not None:
        rows += _of_attention(translation, words)
    return np.array(rows, dtype=np.float64).reshape(len(rows), len(words)).T


def _repeated(words: Sequence[str]) -> Iterator[bool]:
    """Whether each word equals the previous word, or the pair of both occurred earlier."""
    seen = set[tuple[str, str]]()
    for pair in pairwise(["", *(word.lower() for word in words)]):
        yield pair[0] == pair[1] or pair in seen
        seen.add(pair)


def _of_attention(translation: Translation, words: Sequence[npt.NDArray[np.int64]]) -> list[Any]:
    """The features OF_ATTENTION of each word, one list for each feature; `words` are the indices of their pieces."""
    assert translation.weights is not None
    rows = piece_weights(translation).astype(np.float64)
    shares = rows / np.maximum(rows.sum(1, keepdims=True), 1e-12)
    entropies = -(shares * np.log(np.maximum(shares, 1e-12))).sum(1)
    agreement = (translation.weights.argmax(2) == rows.argmax(1)).mean(0)
    received = word_weights(translation)
    totals = received.sum(0)
    heaviest = [totals[row.argmax()] if row.any() else 0.0 for row in received]
    of_pieces = [[values[at].mean() for at in words] for values in (entropies, rows[:, -1], agreement)]
    unattended = _unattended(translation)
    return [*of_pieces, heaviest, np.full(len(words), unattended.mean() if len(unattended) else 0.0)]


def _unattended(translation: Translation) -> npt.NDArray[np.bool_]:
    """Whether each source word is unattended (`UNATTENDED`); empty without attention."""
    if translation.weights is None:
        return np.zeros(0, dtype=np.bool_)
    few: npt.NDArray[np.bool_] = word_weights(translation).sum(0) < UNATTENDED
    return few


def right_words(translation: Translation, reference: str) -> npt.NDArray[np.bool_]:
    """Whether each word [W] is right: the alignment with the fewest edits links it to the same reference word.

    Punctuation around a word is ignored. Text without spaces is aligned by characters, and a piece is right if all its
    characters are right. As in shared tasks of quality estimation, words are not moved (TER without shifts).
    """
    words = target_units(translation).labels
    if not unspaced(translation.text):
        ours, theirs = ([_bare(canonical(word)) for word in side] for side in (words, reference.split()))
        return _matches(ours, theirs)
    matches = _matches(list("".join(words)), list("".join(reference.split())))
    ends = np.cumsum([len(word) for word in words])[:-1]
    return np.array([part.all() for part in np.split(matches, ends)], dtype=np.bool_)[: len(words)]


def _bare(word: str) -> str:
    """A word without surrounding punctuation; a token of punctuation only is unchanged."""
    inside = [at for at, char in enumerate(word) if unicodedata.category(char)[0] in "LMN"]
    return word[inside[0] : inside[-1] + 1] if inside else word


def _matches(ours: Sequence[str], theirs: Sequence[str]) -> npt.NDArray[np.bool_]:
    """Whether each token of `ours` is kept by an alignment with the fewest insertions, deletions and substitutions."""
    table = np.zeros((len(ours) + 1, len(theirs) + 1), dtype=np.int64)
    places = np.arange(len(theirs) + 1)
    table[0] = places
    numbers: dict[str, int] = {}
    first, second = (np.array([numbers.setdefault(token, len(numbers)) for token in side]) for side in (ours, theirs))
    for row, token in enumerate(first, 1):
        table[row] = table[row - 1] + 1
        table[row, 1:] = np.minimum(table[row, 1:], table[row - 1, :-1] + (second != token))
        table[row] = np.minimum.accumulate(table[row] - places) + places  # insertions
    matches, row, column = np.zeros(len(ours), dtype=np.bool_), len(ours), len(theirs)
    while row and column:
        equal = first[row - 1] == second[column - 1]
        if table[row, column] == table[row - 1, column - 1] + (not equal):
            row, column = row - 1, column - 1
            matches[row] = equal
        elif table[row, column] == table[row - 1, column] + 1:
            row -= 1
        else:
            column -= 1
    return matches


def fit(translations: Sequence[Translation], references: Sequence[str]) -> DoubtModel | None:
    """Fit a model on translations that were predicted again; None with fewer than `LEAST` right or wrong words."""
    rows, right, sentences = _observed(translations, references)
    if min(right.sum(), (~right).sum()) < LEAST:
        return None
    names = (*OF_PIECES, *OF_ATTENTION)[: rows.shape[1]]
    held_out = np.zeros(len(right))
    for fold in range(FOLDS):
        test = sentences % FOLDS == fold
        held_out[test] = _fitted(rows[~test], right[~test], names).confidences(rows[test])
    fitted = _fitted(rows, right, names)
    return DoubtModel(fitted.features, fitted.intercept, len(translations), evidence(held_out, right))


def measured(translations: Sequence[Translation], references: Sequence[str]) -> DoubtEvidence:
    """The agreement of the translations' doubts with their references."""
    pairs = [(each, right_words(each, line)) for each, line in zip(translations, references, strict=True) if each.doubt]
    confidences = [value for each, _ in pairs if each.doubt for value in each.doubt.confidence]
    return evidence(np.array(confidences), np.concatenate([np.zeros(0, np.bool_), *(right for _, right in pairs)]))


def _observed(
    translations: Sequence[Translation], references: Sequence[str]
) -> tuple[Matrix, npt.NDArray[np.bool_], npt.NDArray[np.int64]]:
    """For N words: their features [N, F], whether each is right [N], and the indices of their sentences [N]."""
    examples = [(features(each), right_words(each, line)) for each, line in zip(translations, references, strict=True)]
    most = max((rows.shape[1] for rows, _ in examples), default=0)  # a line without probabilities has fewer features
    of_sentences = [(at, *each) for at, each in enumerate(examples) if each[0].shape[1] == most]
    return (
        np.concatenate([np.zeros((0, most)), *(rows for _, rows, _ in of_sentences)]),
        np.concatenate([np.zeros(0, np.bool_), *(right for _, _, right in of_sentences)]),
        np.concatenate([np.zeros(0, np.int64), *(np.full(len(right), at) for at, _, right in of_sentences)]),
    )


def _fitted(rows: Matrix, right: npt.NDArray[np.bool_], names: Sequence[str]) -> DoubtModel:
    """Fit the regression on standardised features by penalised maximum likelihood; its evidence is empty."""
    from scipy.optimize import minimize  # type: ignore[import-untyped]  # loads slowly

    means, deviations = rows.mean(0), rows.std(0)
    deviations[deviations < 1e-6] = 1.0  # constant features
    inputs = np.column_stack([(rows - means) / deviations, np.ones(len(rows))])
    signs = np.where(right, 1.0, -1.0)

    def loss(weights: Matrix) -> tuple[float, Matrix]:
        leads = signs * (inputs @ weights)
        wrong = 1 / (1 + np.exp(np.clip(leads, -50, 50)))
        value = np.logaddexp(0, -leads).sum() + RIDGE / 2 * weights @ weights
        return float(value), RIDGE * weights - inputs.T @ (signs * wrong)

    *weights, intercept = minimize(loss, np.zeros(inputs.shape[1]), jac=True, method="L-BFGS-B").x.tolist()
    by_name = zip(names, zip(means.tolist(), deviations.tolist(), weights, strict=True), strict=True)
    return DoubtModel(dict(by_name), intercept, 0, DoubtEvidence(0, 0.0, None, ()))


def evidence(confidences: Matrix, right: npt.NDArray[np.bool_]) -> DoubtEvidence:
    """The agreement of the confidences [N] of words with their correctness [N]."""
    from scipy.stats import rankdata  # type: ignore[import-untyped]  # loads slowly

    wins, count = right.sum(), len(right)
    auc = None
    if 0 < wins < count:  # Mann and Whitney's U
        above = rankdata(confidences)[right].sum() - wins * (wins + 1) / 2
        auc = round(float(above / (wins * (count - wins))), 4)
    bins = np.minimum((confidences * BINS).astype(int), BINS - 1)
    members = [bins == number for number in range(BINS)]
    calibration = [
        (int(at.sum()), round(float(confidences[at].mean()), 4), round(float(right[at].mean()), 4))
        for at in members
        if at.any()
    ]
    return DoubtEvidence(count, round(float(right.mean()), 4) if count else 0.0, auc, calibration)
