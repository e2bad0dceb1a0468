"""Lines that stop matching are noticed; text that matches is left alone."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nmt.data.builtin import BuiltIn
from nmt.data.misalignment import find_shift

Text = tuple[list[str], list[str]]


def language(seed: int, count: int, spaced: bool = True, length: int = 0) -> Text:
    """Sentences of an invented language and their translations, whose words have other lengths and another order."""
    chance = random.Random(seed)
    words = [("".join(chance.choices("abcdefgh", k=chance.randint(2, 8)))) for _ in range(300)]
    other = {
        word: "".join(chance.choices("みかさたなはまら" if not spaced else "rstuvwxyz", k=chance.randint(2, 7)))
        for word in words
    }
    weights = [1 / (rank + 3) for rank in range(len(words))]
    source, target = [], []
    for _ in range(count):
        sentence = chance.choices(words, weights, k=length or chance.randint(2, 12))
        source.append(" ".join(sentence))
        target.append((" " if spaced else "").join(other[word] for word in sentence[::-1]))
    return source, target


def shifted(text: Text, row: int, side: int, lines: int = 1) -> Text:
    """The text with lines inserted on one side, and as many cut off at its end."""
    sides = [list(text[0]), list(text[1])]
    sides[side][row:row] = [sides[side][at] for at in range(lines)]
    del sides[side][-lines:]
    return sides[0], sides[1]


@pytest.mark.long
@settings(deadline=None, max_examples=20)
@given(
    seed=st.integers(0, 999),
    share=st.floats(0, 0.8),
    side=st.integers(0, 1),
    lines=st.integers(1, 2),
    kind=st.sampled_from([(True, 0), (False, 0), (True, 6)]),  # text without spaces, and of constant length
)
def test_inserted_lines_are_noticed(seed: int, share: float, side: int, lines: int, kind: tuple[bool, int]) -> None:
    text = language(seed, 1000, *kind)
    assert find_shift(*text) is None
    row = int(share * 1000)
    found = find_shift(*shifted(text, row, side, lines))
    assert found is not None
    assert abs(found.offset) == lines
    assert (found.offset > 0) == (side == 1)
    assert abs(found.first - row) <= 15
    assert found.last > 900


def test_a_line_lost_and_another_lost_later_end_the_shift() -> None:
    text = language(1, 3000)
    source, target = shifted(text, 1000, 1)
    del target[2000]
    source.pop()
    found = find_shift(source, target)
    assert found is not None
    assert (abs(found.first - 1000) < 15, abs(found.last - 2000) < 15) == (True, True)


def test_sides_that_do_not_belong_together() -> None:
    source, target = language(2, 1000)
    random.Random(1).shuffle(target)
    found = find_shift(source, target)
    assert found is not None
    assert found.offset == 0


@pytest.mark.long
def test_a_long_text_is_looked_at_in_parts() -> None:
    text = language(3, 60_000, length=5)
    found = find_shift(*shifted(text, 40_000, 0))
    assert found is not None
    assert abs(found.first - 40_000) <= 60_000 / 40
    assert find_shift(*text) is None


@pytest.mark.parametrize(
    "text",
    [
        ([f"satz {row}" for row in range(900)], [f"sentence {row}" for row in range(900)]),
        (["same"] * 900, ["gleich"] * 900),
        ([f"{'ab' * (row % 5)}{row}" for row in range(900)], [f"{row}" for row in range(900)]),
        (["a", ""] * 450, ["b", ""] * 450),
        ([f"w{row % 7}" for row in range(900)], [f"v{row % 7}" for row in range(900)]),
        ([], []),
    ],
    ids=["numbers", "same", "words", "blank", "few", "empty"],
)
def test_no_alarm_where_nothing_can_be_told(text: Text) -> None:
    assert find_shift(*text) is None


def test_no_alarm_on_the_built_in_corpus() -> None:
    train = BuiltIn(train_pairs=3000).read("train")
    assert find_shift(train.source, train.target) is None
    assert find_shift(*shifted((list(train.source), list(train.target)), 1500, 0)) is not None
