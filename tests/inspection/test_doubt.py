"""Doubts: features worked by hand, which words are right, a regression that finds what it was given."""

import dataclasses
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.inspection.doubt import (
    LEAST,
    OF_ATTENTION,
    OF_PIECES,
    DoubtEvidence,
    DoubtModel,
    evidence,
    features,
    fit,
    measured,
    right_words,
)
from nmt.translation.request import Request
from nmt.translation.types import Doubt, Translation
from tests.alignment.by_hand import EMPTY, WORKED, even
from tests.inspection.small import SENTENCE, translator

assert WORKED.weights is not None
_WEIGHTS = WORKED.weights.copy()
_WEIGHTS[1, 0] = [0.6, 0.1, 0.1, 0.1, 0.1]
#: Means of the two heads: [.35 .2 .25 .1 .1], [.2 .3 .2 .2 .1] and [.2 .1 .1 .5 .1].
PREDICTED = WORKED._replace(
    weights=_WEIGHTS, log_probs=[-1.0, -3.0, -0.5, -0.1], other_log_probs=[-2.0, -0.5, -1.0, -30.0]
)


def entropy(row: list[float]) -> float:
    return -sum(p * math.log(p) for p in row)


def test_features_by_hand() -> None:
    """houses has two pieces, and looks at Haus, which gets 0.475 + 0.2; burn has one, and looks at brennt."""
    houses, burn = (dict(zip(OF_PIECES + OF_ATTENTION, row, strict=True)) for row in features(PREDICTED))
    first, second = [0.35, 0.2, 0.25, 0.1, 0.1], [0.2, 0.3, 0.2, 0.2, 0.1]
    assert houses == pytest.approx(
        {
            "lowest": -3.0,
            "mean": -2.0,
            "margin": -2.5,
            "sentence": -1.15,
            "before": 0.0,
            "after": -0.5,
            "pieces": 2,
            "repeated": 0,
            "entropy": (entropy(first) + entropy(second)) / 2,
            "end": 0.1,
            "agreement": 0.5,
            "received": 0.675,
            "unattended": 0.0,
        }
    )
    changed = {"lowest": -0.5, "mean": -0.5, "margin": 0.5, "before": -3.0, "after": -0.1, "pieces": 1}
    changed |= {"entropy": entropy([0.2, 0.1, 0.1, 0.5, 0.1]), "agreement": 1.0, "received": 0.65}
    assert burn == pytest.approx({**houses, **changed})


def test_without_attention_there_are_the_features_of_pieces() -> None:
    rows = features(PREDICTED._replace(weights=None))
    np.testing.assert_allclose(rows, features(PREDICTED)[:, : len(OF_PIECES)])
    assert features(WORKED).shape == (2, 0), "without probabilities there is nothing"
    assert features(EMPTY).shape == (0, 0)


def test_what_repeats_and_what_nobody_attends_to() -> None:
    text = even("a b c", "x x y x Y")._replace(log_probs=[-1.0] * 6, other_log_probs=[-2.0] * 6)
    rows = features(text)
    assert rows[:, OF_PIECES.index("repeated")].tolist() == [0, 1, 0, 0, 1]
    assert text.weights is not None
    away = np.zeros_like(text.weights)
    away[..., 0] = 1
    rows = features(text._replace(weights=away))
    assert rows[:, len(OF_PIECES) + OF_ATTENTION.index("unattended")] == pytest.approx(2 / 3)
    assert constant(0.0).of(text._replace(weights=away)) == Doubt([0.5] * 5, [1, 2])


@pytest.mark.parametrize(
    ("text", "reference", "expected"),
    [
        ("houses burn", "the houses, burning", [True, False]),
        ("a b c d", "b c d a", [False, True, True, True]),
        ("a b c", "a x c", [True, False, True]),
        ("a , b", "a ; b", [True, False, True]),
        ("a b", "", [False, False]),
        ("a b", "A b", [False, True]),
        ("cafe\u0301 x", "caf\u00e9 x", [True, True]),
        ("का, x", "का x", [True, True]),
        ("का x", "क x", [False, True]),
        ("我爱你", "我恨你", [True, False, True]),
    ],
)
def test_words_are_right_if_the_fewest_edits_keep_them(text: str, reference: str, expected: list[bool]) -> None:
    assert right_words(even("x", text), reference).tolist() == expected


@given(st.lists(st.sampled_from("abc"), max_size=9), st.lists(st.sampled_from("abc"), max_size=9))
def test_right_words_stand_in_the_reference_in_their_order(ours: list[str], theirs: list[str]) -> None:
    right = right_words(even("x", " ".join(ours)), " ".join(theirs))
    kept = [word for word, is_right in zip(ours, right, strict=True) if is_right]
    rest = iter(theirs)
    assert all(word in rest for word in kept)
    assert right.all() == (edits(ours, theirs) == len(theirs) - len(ours))


def edits(ours: list[str], theirs: list[str]) -> int:
    """Levenshtein's distance, by its definition."""
    if not ours or not theirs:
        return len(ours) + len(theirs)
    rest = edits(ours[1:], theirs[1:])
    if ours[0] == theirs[0]:
        return rest
    return 1 + min(rest, edits(ours[1:], theirs), edits(ours, theirs[1:]))


def constant(odds: float, **weights: float) -> DoubtModel:
    """A model with these weights, whose other weights are 0."""
    values = {name: (0.0, 1.0, weights.get(name, 0.0)) for name in OF_PIECES + OF_ATTENTION}
    return DoubtModel(values, odds, 1, DoubtEvidence(0, 0.0, None, ()))


@given(st.text(st.characters(codec="utf-8"), max_size=30), st.text(st.characters(codec="utf-8"), max_size=30))
def test_any_text_has_a_confidence_for_each_word(text: str, reference: str) -> None:
    made = even("a b", text)
    made = made._replace(log_probs=[-math.inf] * len(made.pieces), other_log_probs=[-math.inf] * len(made.pieces))
    doubt = constant(0.0, lowest=2.0, entropy=-1.0).of(made)
    assert doubt is not None
    assert len(doubt.confidence) == len(right_words(made, reference))
    assert all(0 <= value <= 1 for value in doubt.confidence)


def test_a_doubt_names_its_mean_and_its_weakest_word() -> None:
    doubt = constant(0.0, lowest=1.0).of(PREDICTED)
    assert doubt is not None
    assert doubt.confidence == pytest.approx([1 / (1 + math.exp(3)), 1 / (1 + math.exp(0.5))], abs=1e-4)
    assert doubt.mean == pytest.approx(0.2125, abs=1e-4)
    assert (doubt.weakest, doubt.doubtful) == (0, [0, 1])
    assert Doubt(()).as_json() == {"confidence": [], "mean": None, "weakest": None, "doubtful": [], "unattended": []}


def drawn(count: int, slope: float) -> tuple[list[Translation], list[str]]:
    """Sentences of ten words, each right with the probability sigmoid(1 + slope * log-probability)."""
    generator = np.random.default_rng(1)
    translations, references = [], []
    for _ in range(count):
        log_probs = -generator.exponential(1.0, 10)
        right = generator.random(10) < 1 / (1 + np.exp(-1 - slope * log_probs))
        words = [f"w{at}" for at in range(10)]
        made = even("a b", " ".join(words))
        others = [-1.0] * 11
        translations.append(made._replace(log_probs=[*log_probs.tolist(), -0.1], other_log_probs=others))
        references.append(" ".join(word if is_right else "?" for word, is_right in zip(words, right, strict=True)))
    return translations, references


def test_the_regression_finds_what_the_words_were_drawn_from() -> None:
    translations, references = drawn(300, 2.0)
    model = fit(translations, references)
    assert model is not None
    doubts = [each._replace(doubt=model.of(each)) for each in drawn(400, 2.0)[0][300:]]
    other = measured(doubts, drawn(400, 2.0)[1][300:])
    assert other.auc is not None
    assert model.evidence.auc is not None
    assert model.evidence.auc == pytest.approx(other.auc, abs=0.05)
    assert other.auc > 0.75
    assert sum(words for words, *_ in other.calibration) == other.words == 1000
    for words, mean, right in other.calibration:
        assert mean == pytest.approx(right, abs=4 * math.sqrt(mean * (1 - mean) / words) + 0.02), "calibrated"


def test_words_drawn_by_nothing_have_no_better_confidence() -> None:
    model = fit(*drawn(200, 0.0))
    assert model is not None
    assert model.evidence.auc == pytest.approx(0.5, abs=0.05)


def test_too_few_wrong_words_fit_nothing() -> None:
    translations, references = drawn(2 * LEAST, 0.0)
    assert fit(translations, [each.text for each in translations]) is None
    assert fit([], []) is None
    assert fit(translations[:1], references[:1]) is None


def test_auc_and_calibration_by_hand() -> None:
    """The right words 0.9 and 0.3 beat the wrong 0.3 and 0.1 in 3 pairs of 4, and 0.3 against 0.3 is half a pair."""
    found = evidence(np.array([0.9, 0.3, 0.3, 0.1]), np.array([True, True, False, False]))
    assert found == DoubtEvidence(4, 0.5, 0.875, [(1, 0.1, 0.0), (2, 0.3, 0.5), (1, 0.9, 1.0)])
    assert evidence(np.array([0.9]), np.array([True])).auc is None
    assert evidence(np.zeros(0), np.zeros(0, dtype=np.bool_)) == DoubtEvidence(0, 0.0, None, [])


@pytest.mark.parametrize(
    "overrides",
    [
        ("decoder=bahdanau",),
        ("decoder=none",),
        ("encoder=transformer", "decoder=transformer"),
        ("decoder=conv",),
    ],
    ids=" ".join,
)
def test_a_text_has_one_doubt_whatever_is_translated_beside_it(overrides: tuple[str, ...]) -> None:
    made = translator(overrides)
    count = len(OF_PIECES) + (len(OF_ATTENTION) if made.attends else 0)
    model = constant(1.0, lowest=0.2, margin=0.1, entropy=-0.3)
    model = dataclasses.replace(model, features=dict(list(model.features.items())[:count]))
    together = model.add(made, made.translate_chunk([SENTENCE, "", "drei zwei eins eins", SENTENCE]))
    alone = model.add(dataclasses.replace(made, weights=False), made.translate_chunk([Request(SENTENCE)]))
    assert together[1][0].doubt is None, "an empty line"
    for first, last, single in zip(together[0], together[3], alone[0], strict=True):
        assert first.doubt is not None
        assert last.doubt is not None
        assert single.doubt is not None
        assert first.doubt == last.doubt
        assert single.doubt.confidence == pytest.approx(first.doubt.confidence, abs=1e-3)
        assert sum(first.log_probs) == 0, "only the doubt is added"
    cut = dataclasses.replace(made, max_source_length=2)
    (parts,) = model.add(cut, cut.translate_chunk([SENTENCE]))
    assert parts[0].doubt is None, "a line in parts"
