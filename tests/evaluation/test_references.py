"""Perplexity and entropy by hand, and which references are shown."""

import math
import re

import numpy as np
import pytest

from nmt.evaluation.references import attention_maps, entropy, hidden_share, perplexity
from nmt.translation.types import Translation
from tests.alignment.by_hand import EMPTY, WORKED, even


def forced(weights: list[list[list[float]]] | None, log_prob: float = 0.0, words: int = 1) -> Translation:
    """A sentence of so many words of one piece each, with these weights [H, T, S]."""
    text = " ".join(f"w{number}" for number in range(words))
    pieces = [*(f"▁{word}" for word in text.split()), "</s>"]
    spans = [*(match.span() for match in re.finditer(r"\S+", text)), None]
    array = None if weights is None else np.array(weights, dtype=np.float32)
    return Translation(text, text, log_prob, log_prob, pieces, pieces, spans, spans, array)


def test_perplexity_by_hand() -> None:
    # Two pieces each (the end counts) with probabilities 1/2, 1/2 and 1/8, 1/8: the geometric mean is 1/4.
    sentences = [forced(None, 2 * math.log(1 / 2)), forced(None, 2 * math.log(1 / 8))]
    assert perplexity(sentences) == pytest.approx(4)


def test_entropy_by_hand() -> None:
    # One-hot, even over two, even over two of a quarter of the mass (as under local-p's factor),
    # and a row without weight.
    assert entropy([forced([[[1, 0], [0.5, 0.5]]])]) == pytest.approx(math.log(2) / 2)
    assert entropy([forced([[[0.125, 0.125], [0.125, 0.125]]])]) == pytest.approx(math.log(2))
    assert entropy([forced([[[0.5, 0.5], [0, 0]]])]) == pytest.approx(math.log(2))
    # Heads count alike: one looks at one place, the other at two.
    assert entropy([forced([[[1, 0], [1, 0]], [[0.5, 0.5], [0.5, 0.5]]])]) == pytest.approx(math.log(2) / 2)
    assert entropy([forced(None)]) is None


def test_the_shown_references_are_of_a_handy_length() -> None:
    sentences = [even(" ".join("ab"[: words % 2 + 1] for _ in range(words)), "x " * words) for words in (1, 6, 30, 7)]
    found = attention_maps(sentences, [4, 8, 15, 16], 2)
    assert [look["line"] for look in found] == [8, 16]
    assert len(found[0]["weights"]) == len(found[0]["target"]) == 6
    assert {len(row) for row in found[0]["weights"]} == {len(found[0]["source"])}
    assert all(0 <= weight <= 1000 for row in found[0]["weights"] for weight in row)
    assert [look["line"] for look in attention_maps(sentences, [4, 8, 15, 16], 9)] == [4, 8, 15, 16]
    assert attention_maps([forced(None)], [1], 2) == []


def test_the_share_of_slots_without_weight() -> None:
    # WORKED: two heads of 4 x 5 slots, five of them zero. even: nothing is hidden.
    assert hidden_share([WORKED]) == 5 / 40
    looked = even("ein Satz", "a sentence")
    assert looked.weights is not None
    assert hidden_share([WORKED, EMPTY, looked]) == 5 / (40 + looked.weights.size)
    assert hidden_share([EMPTY]) is None
