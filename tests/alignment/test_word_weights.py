"""Word-level weights and the links read off them: worked by hand, and by property."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.units import spelled
from nmt.alignment.word_weights import best_links, links, saliency_weights, word_weights
from nmt.system.errors import UserError
from tests.alignment.by_hand import EMPTY, WORKED, even


@pytest.mark.parametrize(
    ("head", "shift", "expected"),
    [
        # Rows hou and ses: (das, Ha + us, brennt) = (.1, .7, .1) and (0, .8, .2), their mean; row burn as it is.
        (0, 0, [[0.05, 0.75, 0.15], [0.1, 0.2, 0.6]]),
        # Second head: hou (.5, .3, .1), ses (.4, .2, .2): mean (.45, .25, .15); burn (.3, .2, .4). Mean of both heads.
        ("auto", 0, [[0.25, 0.5, 0.15], [0.2, 0.2, 0.5]]),
        # Row ses now belongs to hou, row burn to ses, row </s> to burn: (0, .8, .2) and (.1, .2, .6); (0, 0, .2).
        (0, 1, [[0.05, 0.5, 0.4], [0.0, 0.0, 0.2]]),
        # Second head: ses (.4, .2, .2) and burn (.3, .2, .4); </s> (.2, .4, .2). Mean of both heads.
        ("auto", 1, [[0.2, 0.35, 0.35], [0.1, 0.2, 0.2]]),
    ],
)
def test_words_by_hand(head: int | str, shift: int, expected: list[list[float]]) -> None:
    np.testing.assert_allclose(word_weights(WORKED, head=head, shift=shift), expected, atol=1e-6)


def test_links_by_hand() -> None:
    assert links(WORKED, head=0) == [(1, 0), (2, 1)]
    assert links(WORKED, head=1) == [(0, 0), (2, 1)]
    assert links(WORKED, head=0, shift=1) == [(1, 0), (2, 1)]


def test_a_word_cut_by_the_length_limit_has_no_shifted_row() -> None:
    assert WORKED.weights is not None
    cut = WORKED._replace(pieces=WORKED.pieces[:3], spans=WORKED.spans[:3], weights=WORKED.weights[:, :3])
    shifted = word_weights(cut, head=0, shift=1)
    np.testing.assert_allclose(shifted[1], [0, 0, 0])
    assert links(cut, head=0, shift=1) == [(1, 0)]


@given(st.integers(1, 5), st.integers(1, 7), st.integers(1, 3), st.integers(0, 2**32 - 1))
def test_rows_of_words_sum_to_what_did_not_fall_on_the_end(t: int, s: int, heads: int, seed: int) -> None:
    generator = np.random.default_rng(seed)
    source, target = " ".join("x" * s), " ".join("y" * t)
    found = even(source, target, heads)
    weights = generator.dirichlet(np.ones(len(found.source_pieces)), size=(heads, len(found.pieces)))
    found = found._replace(weights=weights.astype(np.float32))
    # A single word is spelled one piece a character by `even`, so that sums over pieces are met as well.
    rows = word_weights(found)
    assert rows.shape == (t, s)
    np.testing.assert_allclose(rows.sum(axis=1), 1 - weights.mean(axis=0)[:t, -1], atol=1e-5)


def test_an_empty_line_has_no_words_and_no_links() -> None:
    assert links(EMPTY) == []
    assert word_weights(EMPTY).shape == (0, 0)


def test_words_that_are_given_take_the_place_of_those_of_the_text() -> None:
    """Two characters a piece: `us` and `ses` share the weight of their pieces among their letters."""
    source = spelled(WORKED.source, WORKED.source_spans, list("dasHausbrennt"))
    target = spelled(WORKED.text, WORKED.spans, ["houses", "burn"])
    found = word_weights(WORKED, head=0, units=(source, target))
    # Row hou and ses: das (.1, .0), Ha (.3, .5), us (.4, .3), brennt (.1, .2), each over its letters.
    expected = [0.05 / 3] * 3 + [0.4 / 2] * 2 + [0.35 / 2] * 2 + [0.15 / 6] * 6
    np.testing.assert_allclose(found[0], expected, atol=1e-6)


def test_saliency_by_hand() -> None:
    """Signed sums over pieces; what speaks against a word counts as zero; the rest are shares."""
    signed = np.array([[[3, -1, 2, -4, 9], [1, 0, 3, -1, 9], [-2, -1, 0, -1, 9], [0, 0, 0, 0, 9]]], dtype=np.float32)
    found = saliency_weights(WORKED._replace(weights=signed))
    # Word 0: das (3 + 1), Haus (-1 + 2 + 0 + 3), brennt (-4 - 1); word 1: nothing speaks for it.
    np.testing.assert_allclose(found, [[0.5, 0.5, 0.0], [0.0, 0.0, 0.0]])
    assert best_links(found) == [(0, 0)]


def test_links_above_a_threshold() -> None:
    weights = np.array([[0.3, 0.5, 0.2], [0.1, 0.1, 0.1], [0.0, 0.0, 0.0]], dtype=np.float32)
    assert best_links(weights) == [(1, 0), (0, 1)]
    assert best_links(weights, threshold=0.25) == [(0, 0), (1, 0)]
    assert best_links(weights, threshold=0.9) == []


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head": 2}, "head=2 does not exist. Give mean or one from 0 to 1"),
        ({"head": -1}, "head=-1 does not exist. Give mean or one from 0 to 1"),
        ({"shift": 2}, "shift=2"),
    ],
)
def test_a_head_or_shift_that_does_not_exist_is_named(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        word_weights(WORKED, **settings)
    with pytest.raises(UserError, match="There are no attention weights"):
        word_weights(WORKED._replace(weights=None))
