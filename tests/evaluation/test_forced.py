"""References under forced decoding, worked by hand."""

import math

import numpy as np
import pytest

from nmt.evaluation.references import forced_rows as rows
from tests.alignment.by_hand import EMPTY, even


def test_a_row_by_hand() -> None:
    """Pieces "x", "y." and the end: the second piece is half of the word y and half of the full stop."""
    weights = np.array([[[0.9, 0.1, 0.0], [0.2, 0.8, 0.0], [0.0, 0.0, 1.0]]], dtype=np.float32)
    forced = even("a b", "x y.")._replace(
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
    assert list(rows([forced], [7], (False, False))) == [row]
    (without,) = rows([forced._replace(weights=None)], [7], (False, False))
    assert without == {**row, "links": None}


def test_words_are_characters_without_spaces() -> None:
    weights = np.array([[[0.9, 0.1], [0.9, 0.1], [0.0, 1.0]]], dtype=np.float32)
    forced = even("a", "我爱")._replace(
        source_pieces=["▁a", "</s>"],
        source_spans=[(0, 1), None],
        pieces=["我", "爱", "</s>"],
        spans=[(0, 1), (1, 2), None],
        weights=weights,
        log_probs=[-1.0, -2.0, -0.5],
        best_log_probs=[-1.0, -1.0, -0.5],
    )
    (row,) = rows([forced], [1], (False, True))
    assert (row["log_probs"], row["links"], row["right"]) == ([-1.0, -2.0], "0-0 0-1", "101")


def test_a_row_for_each_reference() -> None:
    ended = EMPTY._replace(pieces=["</s>"], spans=[None], log_probs=[-1.0], best_log_probs=[-1.0])
    (row,) = rows([ended], [3], (False, False))
    assert (row["log_probs"], row["right"]) == ([], "1")
    with pytest.raises(ValueError, match="zip"):
        list(rows([ended], [3, 4], (False, False)))
