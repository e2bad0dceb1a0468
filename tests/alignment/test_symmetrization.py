"""Links of two directions made one: by hand, and by what contains what."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from nmt.alignment.symmetrization import LEAST_AGREEMENT, SYMMETRIZATIONS, agreement, symmetrize
from nmt.alignment.word_weights import Weights, best_links
from nmt.system.errors import UserError

FORWARD = {(0, 0), (1, 1), (2, 2), (4, 6)}


BACKWARD = {(0, 0), (1, 1), (1, 0), (4, 4)}


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("intersection", {(0, 0), (1, 1)}),
        ("union", FORWARD | BACKWARD),
        # (2, 2) touches (1, 1) and both its words are free; both words of (1, 0) have links already.
        ("grow-diag", {(0, 0), (1, 1), (2, 2)}),
        # (4, 6) touches nothing and is added in the end, first of the forward links; then (4, 4), for target 4 is free.
        ("grow-diag-final", {(0, 0), (1, 1), (2, 2), (4, 6), (4, 4)}),
        # Here (4, 4) comes too late: source 4 has (4, 6).
        ("grow-diag-final-and", {(0, 0), (1, 1), (2, 2), (4, 6)}),
    ],
)
def test_symmetrisation_by_hand(how: str, expected: set[tuple[int, int]]) -> None:
    assert symmetrize(FORWARD, BACKWARD, how) == expected


def test_the_forward_links_come_first() -> None:
    assert symmetrize({(0, 1)}, {(0, 5)}, "grow-diag-final-and") == {(0, 1)}
    assert symmetrize({(0, 5)}, {(0, 1)}, "grow-diag-final-and") == {(0, 5)}


@pytest.mark.parametrize("seed", [(0, 0), (4, 4)])
def test_growing_goes_on_until_nothing_is_added(seed: tuple[int, int]) -> None:
    """A diagonal of links, with the one that both directions have at either end; a link beyond a gap stays out."""
    diagonal = {(at, at) for at in range(5)}
    assert symmetrize(diagonal | {(6, 6)}, {seed}, "grow-diag") == diagonal


def test_a_symmetrisation_that_does_not_exist_is_named() -> None:
    with pytest.raises(UserError, match=r"symmetrize=grow is not known\. Give symmetrize= one of intersection, union"):
        symmetrize([], [], "grow")


_LINKS = st.frozensets(st.tuples(st.integers(0, 5), st.integers(0, 5)), max_size=12)


@given(_LINKS, _LINKS)
def test_symmetrisations_contain_each_other(
    forward: frozenset[tuple[int, int]], backward: frozenset[tuple[int, int]]
) -> None:
    found = {how: symmetrize(forward, backward, how) for how in SYMMETRIZATIONS}
    assert found["intersection"] <= found["grow-diag"] <= found["grow-diag-final"] <= found["union"]
    assert found["grow-diag"] <= found["grow-diag-final-and"] <= found["union"]
    # In the end no link of the union is left of which a word is free.
    sources, targets = ({link[side] for link in found["grow-diag-final"]} for side in (0, 1))
    assert all(link[0] in sources and link[1] in targets for link in found["union"])
    turned = symmetrize({(t, s) for s, t in backward}, {(t, s) for s, t in forward}, "intersection")
    assert {(s, t) for t, s in turned} == found["intersection"]


def test_agreement_by_hand() -> None:
    """Both target words give most weight to source word 0, but the other direction sends its word 1 to word 1."""
    one = np.array([[0.8, 0.2], [0.6, 0.4]], dtype=np.float32)
    other = np.array([[0.5, 0], [0.5, 1]], dtype=np.float32)  # the product is [[0.4, 0], [0.3, 0.4]]
    agreed = agreement(one, other)
    np.testing.assert_allclose(agreement(one, other), np.array([[1, 0], [0.75, 1]]), rtol=1e-6)
    assert best_links(one) == [(0, 0), (0, 1)]
    assert best_links(agreement(one, other), LEAST_AGREEMENT) == [(0, 0), (1, 1)]
    # The product is [[0.4, 0.1], [0.3, 0.4]]: 0.1 and 0.3 are divided by 0.4, the best of their rows and columns.
    agreed = agreement(one, np.array([[0.5, 0.5], [0.5, 1]], dtype=np.float32))
    np.testing.assert_allclose(agreed, np.array([[1, 0.25], [0.75, 1]]), rtol=1e-6)


def test_a_phrase_agrees_in_full() -> None:
    """As characters of a piece do, and words that one word of the other language stands for."""
    one, other = np.full((5, 4), 1 / 4, dtype=np.float32), np.full((5, 4), 1 / 5, dtype=np.float32)
    assert agreement(one, other) == pytest.approx(1)


def test_words_without_weight_have_no_agreement() -> None:
    one = np.array([[1, 0], [0, 0]], dtype=np.float32)
    assert agreement(one, one).tolist() == one.tolist()
    assert agreement(one, np.zeros((0, 0), dtype=np.float32)).shape == (0, 0)


def _rows(values: Weights) -> Weights:
    rows: Weights = values / np.maximum(values.sum(1, keepdims=True), 1)
    return rows


_MATRIX = arrays.arrays(np.float32, (3, 4), elements=st.floats(0, 1, width=32)).map(_rows)


@given(_MATRIX, _MATRIX)
def test_agreement_is_the_same_from_either_side(one: Weights, other: Weights) -> None:
    agreed = agreement(one, other)
    assert ((agreed >= 0) & (agreed <= 1 + 1e-6)).all()
    np.testing.assert_allclose(agreement(other, one), agreed, atol=1e-6)
    np.testing.assert_allclose(agreement(one.T, other.T).T, agreed, atol=1e-6)
    assert not agreed[one == 0].any()
    joint = one * other
    if joint.max() > 1e-6:
        assert agreed.ravel()[joint.argmax()] == pytest.approx(1)
