"""Word links as text: both forms, read and written, and what is wrong with a file named."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.links import GoldLinks, check_range, format_links, looks_based_on_one, parse_file, parse_links, parse_numbered
from nmt.system.errors import UserError


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
    with pytest.raises(UserError, match="'1:2' is not a word link"):
        parse_links("0-0 1:2")


NAACL = ["0001 1 1 S", "0001 2 3 P", "", "3 2 1", "3 1 0 S", "03 4 2 P 0.7"]


def test_the_naacl_form() -> None:
    """Sentence 1 has a sure and a possible link, sentence 2 none; `1 0` says that a word has no partner."""
    found = parse_file(NAACL, "gold", base=1, pairs=3)
    assert [own.sure for own in found] == [{(0, 0)}, set(), {(1, 0)}]
    assert [own.possible for own in found] == [{(0, 0), (1, 2)}, set(), {(1, 0), (3, 1)}]
    assert len(parse_file(NAACL, "gold", base=1, pairs=5)) == 5
    assert parse_file(["1 0 0"], "gold", pairs=1)[0].sure == {(0, 0)}


def test_numbers_of_sentences_may_be_any() -> None:
    """Such as dates: what is between them is not there."""
    found = parse_numbered(["20030101 1 2 S", "999999999 2 0 P"], "gold")
    assert found == {20030101: links({(1, 2)}, {(1, 2)}), 999999999: links(set(), {(2, 0)})}
    assert parse_numbered(["7 0 1"], "gold", base=1) == {7: links(set(), set())}, "it is named, and has no link"


def links(sure: set[tuple[int, int]], possible: set[tuple[int, int]]) -> GoldLinks:
    return GoldLinks(frozenset(sure), frozenset(possible))


def test_both_forms_say_the_same() -> None:
    pharaoh = ["1-1 2p3", "", "2-1 4p2"]
    assert parse_file(pharaoh, "gold", base=1, pairs=3) == parse_file(NAACL, "gold", base=1, pairs=3)


def test_a_file_without_links_has_its_lines() -> None:
    assert parse_file(["", " "], "gold", pairs=2) == [links(set(), set())] * 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["0-0", "0-0 1_2"], "gold, line 2: '1_2' is not a word link"),
        (["0-0", "0-1", "1-1"], "gold has 3 lines and the text has 2 lines"),
        (["1 0 0 S", "2 1 S"], "gold, line 2: '2 1 S' is not a word link. Write SENTENCE SOURCE TARGET"),
        (["1 0 0 S", "1 0 0 X"], "gold, line 2: '1 0 0 X' is not a word link"),
        (["1 0 0", "3 0 0"], "gold, line 2: sentence 3 has a link, but there are 2 sentence pairs"),
        (["0 1 1"], "gold, line 1: '0 1 1' is not a word link. .* numbered from 1"),
        (["0-0", f"{'9' * 5000}-1"], "gold, line 2: '9+-1' is not a word link"),
    ],
)
def test_what_is_wrong_with_a_file_is_named(lines: list[str], message: str) -> None:
    with pytest.raises(UserError, match=message):
        parse_file(lines, "gold", pairs=2)


def test_a_link_between_nothing_and_nothing_tells_the_wrong_base() -> None:
    with pytest.raises(UserError, match=r"gold, line 2: .* links word 0 to word 0, but the setting says"):
        parse_file(["1 1 1 S", "2 0 0 S"], "gold", base=1, pairs=2)


def test_a_link_beyond_its_sentence_is_named() -> None:
    found = parse_file(["0-0", "1-0 2p1"], "gold", pairs=2)
    check_range(found, [1, 3], [1, 2], "gold", "words=whitespace")
    with pytest.raises(
        UserError, match=r"gold, sentence pair 2: the link 2-1 .* word 2 of the source, which has 2 words"
    ):
        check_range(found, [1, 2], [1, 2], "gold", "words=whitespace")
    with pytest.raises(UserError, match=r"the link 2-1 .* word 1 of the target, which has 1 word "):
        check_range(found, [1, 3], [1, 1], "gold", "words=whitespace")


def test_links_that_count_from_one_are_noticed() -> None:
    line = " ".join(f"{word}-{word}" for word in range(1, 26))
    assert looks_based_on_one(parse_file([line], "gold", pairs=1), numbered=False)
    assert not looks_based_on_one(parse_file([line], "gold", base=1, pairs=1), numbered=False)
    assert not looks_based_on_one(parse_file(["1-1"], "gold", pairs=1), numbered=False)  # too little to say so


def test_words_without_a_partner_do_not_hide_that_links_count_from_one() -> None:
    lines = [*(f"1 {word} {word}" for word in range(1, 26)), "1 0 26", "1 26 0"]
    assert looks_based_on_one(parse_numbered(lines, "gold").values(), numbered=True)
    assert not looks_based_on_one(parse_numbered([*lines, "2 0 0"], "gold").values(), numbered=True)
