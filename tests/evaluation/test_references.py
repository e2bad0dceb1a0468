"""Perplexity and entropy by hand, and which references are shown."""

import math
import re

import numpy as np
import pytest

from nmt.evaluation.references import attention_maps, by_head, entropy, forced_rows, hidden_share, perplexity
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
    # Of two heads with two rows of two, one looks at one place in each row, the other in one of them.
    sparse = forced([[[1, 0], [0, 1]], [[0.5, 0.5], [1, 0]]])
    assert by_head([sparse, sparse], hidden_share) == {"0": 0.5, "1": 0.25}
    assert by_head([looked], hidden_share) is None, "one head"


def test_only_an_exact_zero_is_zero_thousandths() -> None:
    weights = [[[1e-6, 0.0, 0.9996], [0.0, 0.4, 0.6], [1.0, 0.0, 0.0]]]
    (shown,) = attention_maps([forced(weights, words=2)], [1], 1)
    assert shown["weights"] == [[1, 0], [0, 400]]


def test_a_row_by_hand() -> None:
    """Pieces "x", "y." and the end: the second piece is half of the word y and half of the full stop."""
    weights = np.array([[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]]], dtype=np.float32)
    reference = even("a b", "x y.")._replace(
        source_pieces=["▁a", "▁b", "</s>"],
        source_spans=[(0, 1), (2, 3), None],
        pieces=["▁x", "▁y.", "</s>"],
        spans=[(0, 1), (2, 4), None],
        weights=weights,
        log_probs=[math.log(0.5), math.log(0.25), math.log(0.125)],
        best_log_probs=[math.log(0.5), math.log(0.75), math.log(0.125)],
    )
    half = round(math.log(0.25) / 2, 3)
    row = {
        "line": 7,
        "log_probs": [-0.693, half, half],
        "links": "0-0 1-1 1-2",
        "best": [500, 750, 125],
        "right": "101",
    }
    assert list(forced_rows([reference], [7], (False, False))) == [row]
    (without,) = forced_rows([reference._replace(weights=None)], [7], (False, False))
    assert without == {**row, "links": None}


def test_words_of_forced_references_are_characters_without_spaces() -> None:
    weights = np.array([[[0.9, 0.1], [0.9, 0.1], [0.0, 1.0]]], dtype=np.float32)
    reference = even("a", "我爱")._replace(
        source_pieces=["▁a", "</s>"],
        source_spans=[(0, 1), None],
        pieces=["我", "爱", "</s>"],
        spans=[(0, 1), (1, 2), None],
        weights=weights,
        log_probs=[-1.0, -2.0, -0.5],
        best_log_probs=[-1.0, -1.0, -0.5],
    )
    (row,) = forced_rows([reference], [1], (False, True))
    assert (row["log_probs"], row["links"], row["right"]) == ([-1.0, -2.0], "0-0 0-1", "101")


def test_a_row_for_each_reference() -> None:
    ended = EMPTY._replace(pieces=["</s>"], spans=[None], log_probs=[-1.0], best_log_probs=[-1.0])
    (row,) = forced_rows([ended], [3], (False, False))
    assert (row["log_probs"], row["right"]) == ([], "1")
    with pytest.raises(ValueError, match="zip"):
        list(forced_rows([ended], [3, 4], (False, False)))
