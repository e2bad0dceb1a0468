"""Word-level weights, links and error rates: worked by hand, by property, and on published links."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import UserError
from nmt.evaluation.alignment import (
    SYMMETRIZATIONS,
    alignment_error_rate,
    best_links,
    links,
    piece_weights,
    saliency_weights,
    symmetrize,
    word_weights,
)
from nmt.evaluation.words import spelled
from nmt.links import parse_links
from tests.evaluation.by_hand import EMPTY, WORKED, even, read_corpus


def test_words_by_hand_for_one_head() -> None:
    # Rows hou and ses: (das, Ha + us, brennt) = (.1, .7, .1) and (0, .8, .2), their mean; row burn as it is.
    expected = [[0.05, 0.75, 0.15], [0.1, 0.2, 0.6]]
    np.testing.assert_allclose(word_weights(WORKED, head=0), expected, atol=1e-6)


def test_words_by_hand_for_the_mean_of_heads() -> None:
    # Second head: hou (.5, .3, .1), ses (.4, .2, .2): mean (.45, .25, .15); burn (.3, .2, .4).
    expected = [[0.25, 0.5, 0.15], [0.2, 0.2, 0.5]]
    np.testing.assert_allclose(word_weights(WORKED), expected, atol=1e-6)


def test_words_by_hand_with_shift() -> None:
    # Row ses now belongs to hou, row burn to ses, row </s> to burn: (0, .8, .2) and (.1, .2, .6); (0, 0, .2).
    expected = [[0.05, 0.5, 0.4], [0.0, 0.0, 0.2]]
    np.testing.assert_allclose(word_weights(WORKED, head=0, shift=1), expected, atol=1e-6)


def test_links_by_hand() -> None:
    assert links(WORKED, head=0) == [(1, 0), (2, 1)]
    assert links(WORKED, head=1) == [(0, 0), (2, 1)]
    assert links(WORKED, head=0, shift=1) == [(1, 0), (2, 1)]


def test_a_word_cut_by_the_length_limit_has_no_shifted_row() -> None:
    assert WORKED.weights is not None
    cut = WORKED._replace(pieces=WORKED.pieces[:3], words=[0, 0, 1], weights=WORKED.weights[:, :3])
    shifted = word_weights(cut, head=0, shift=1)
    np.testing.assert_allclose(shifted[1], [0, 0, 0])
    assert links(cut, head=0, shift=1) == [(1, 0)]


def test_piece_weights_are_what_the_decoder_used() -> None:
    assert WORKED.weights is not None
    np.testing.assert_array_equal(piece_weights(WORKED, head=1), WORKED.weights[1])
    np.testing.assert_array_equal(piece_weights(WORKED, head=1, shift=1), WORKED.weights[1, 1:])


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
    source = spelled(WORKED.source_pieces, WORKED.source_words, list("dasHausbrennt"))
    target = spelled(WORKED.pieces, WORKED.words, ["houses", "burn"])
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


@given(_LINKS, _LINKS, _LINKS)
def test_error_rates_lie_between_zero_and_one(
    predicted: frozenset[tuple[int, int]], sure: frozenset[tuple[int, int]], possible: frozenset[tuple[int, int]]
) -> None:
    if predicted or sure:
        found = alignment_error_rate([predicted], [sure], [possible])
        assert math.isnan(found.recall) == (not sure)
        assert all(0 <= figure <= 1 for figure in found if not math.isnan(figure))
        more = alignment_error_rate([predicted], [sure], [possible | predicted])
        assert more.aer <= found.aer
        assert more.precision == 1


def test_no_attention_is_said() -> None:
    with pytest.raises(UserError, match="decoder=none has no attention weights"):
        links(WORKED._replace(weights=None))


@pytest.mark.parametrize("head", [2, -1])
def test_a_head_that_does_not_exist_is_named(head: int) -> None:
    with pytest.raises(UserError, match=f"head={head}: the model has heads 0 to 1"):
        word_weights(WORKED, head=head)


def test_a_shift_that_does_not_exist_is_named() -> None:
    with pytest.raises(UserError, match="shift=2"):
        word_weights(WORKED, shift=2)


def test_error_rate_by_hand() -> None:
    # A = 4 links over two pairs, S = 3, P = S and one more. A and S: 2; A and P: 3.
    predicted = [[(0, 0), (1, 1)], [(0, 0), (5, 5)]]
    sure = [{(0, 0)}, {(0, 0), (1, 1)}]
    possible = [{(1, 1)}, set[tuple[int, int]]()]
    found = alignment_error_rate(predicted, sure, possible)
    assert found.aer == pytest.approx(1 - (2 + 3) / (4 + 3))
    assert found.precision == pytest.approx(3 / 4)
    assert found.recall == pytest.approx(2 / 3)


def test_error_rate_of_the_gold_itself_is_zero() -> None:
    gold = [{(0, 1), (1, 0)}]
    assert alignment_error_rate(gold, gold, gold) == (0.0, 1.0, 1.0)


def test_error_rate_wants_a_line_for_a_line() -> None:
    with pytest.raises(UserError, match="links for 1 sentence pairs, but gold for 2"):
        alignment_error_rate([[]], [set(), set()], [set(), set()])


def test_no_links_at_all_have_no_error_rate() -> None:
    with pytest.raises(UserError, match="no error rate"):
        alignment_error_rate([[]], [set()], [set()])


@pytest.mark.parametrize(("pair", "printed"), [("enfr", "4.1"), ("roen", "20.7")])
def test_published_error_rates(pair: str, printed: str) -> None:
    gold = [parse_links(line, base=1) for line in read_corpus(f"alignments/{pair}/gold.sp")]
    lines = read_corpus(f"alignments/{pair}/awesome-align.pharaoh")
    found = alignment_error_rate(
        [parse_links(line).sure for line in lines],
        [line.sure for line in gold],
        [line.possible for line in gold],
    )
    assert f"{100 * found.aer:.1f}" == printed
