"""Word-level weights, links and error rates: worked by hand, by property, and on published links."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.errors import UserError
from nmt.evaluation.alignment import (
    alignment_error_rate,
    format_links,
    links,
    parse_links,
    piece_weights,
    source_units,
    target_units,
    unspaced,
    word_weights,
)
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


def test_text_without_spaces_is_counted_in_pieces() -> None:
    found = even("A dog barks", "狗在叫。")
    assert target_units(found).labels == ["狗", "在", "叫", "。"]
    assert not target_units(found).are_words
    assert source_units(found).labels == ["A", "dog", "barks"]
    assert word_weights(found).shape == (4, 3)
    assert word_weights(found, whitespace=True).shape == (1, 3)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("我爱你", True),
        ("我 爱 你", False),  # somebody has segmented it
        ("今日は東京タワーに行きました。", True),
        ("ฉันรักคุณ", True),
        ("I like 东京", False),
        ("나는 너를 사랑해", False),
        ("ولد صغير", False),
        ("", False),
    ],
)
def test_which_text_has_no_spaces(text: str, expected: bool) -> None:
    assert unspaced(text) == expected


def test_a_lone_word_mark_and_the_bytes_of_a_character_make_one_unit() -> None:
    pieces = ["\u2581", "我", "<0xE9>", "<0xBE>", "<0x98>", "叫", "</s>"]
    found = even("a b", "我龘叫")._replace(pieces=pieces, words=[0] * 6 + [-1])
    units = target_units(found)
    assert units.labels == ["我", "龘", "叫"]
    assert units.of_piece == [0, 0, 1, 1, 1, 2, -1]


def test_a_truncated_source_takes_its_words_from_the_pieces() -> None:
    found = even("ein Hund bellt", "a dog")._replace(
        source="ein Hund bellt und rennt", source_pieces=["\u2581ein", "\u2581Hund", "\u2581bellt", "</s>"]
    )
    assert source_units(found).labels == ["ein", "Hund", "bellt"]


def test_an_empty_line_has_no_words_and_no_links() -> None:
    assert links(EMPTY) == []
    assert word_weights(EMPTY).shape == (0, 0)


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


def test_pharaoh_is_written_in_order_and_read_back() -> None:
    line = format_links([(2, 1), (0, 0)], possible=[(2, 1), (10, 2)])
    assert line == "0-0 2-1 10p2"
    gold = parse_links(line)
    assert gold.sure == {(0, 0), (2, 1)}
    assert gold.possible == {(0, 0), (2, 1), (10, 2)}


_LINKS = st.frozensets(st.tuples(st.integers(0, 99), st.integers(0, 99)))


@given(_LINKS, _LINKS)
def test_pharaoh_round_trip(sure: frozenset[tuple[int, int]], possible: frozenset[tuple[int, int]]) -> None:
    assert parse_links(format_links(sure, possible)) == (sure, sure | possible)


def test_pharaoh_from_one() -> None:
    gold = parse_links("1-1 3p2", base=1)
    assert gold.sure == {(0, 0)}
    assert gold.possible == {(0, 0), (2, 1)}
    with pytest.raises(UserError, match="0-1"):
        parse_links("0-1", base=1)


def test_pharaoh_names_what_is_no_link() -> None:
    with pytest.raises(UserError, match="'1:2' is no word link"):
        parse_links("0-0 1:2")


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
