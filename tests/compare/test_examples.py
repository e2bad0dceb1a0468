"""Scores of single sentences: examples and points."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from nmt.compare.examples import MOST_TEXTS, examples, examples_table, scatter

PERCENT = st.floats(0, 100, allow_nan=False)


def test_examples_by_hand() -> None:
    first, second = np.array([10.0, 50, 30, 20, 10]), np.array([40.0, 20, 30, 25, 40])
    found = examples(first, second, ["a", "b", "c", "d", "a"], [3, 1])
    drawn = found.pop("random")
    assert found == {"largest gain": [1, 4], "largest loss": [2], "largest disagreement": [3, 1]}, (
        "line 5 repeats line 1, line 3 is no loss"
    )
    assert len(drawn) == 2
    assert set(drawn) <= {1, 2, 3, 4}


@given(st.lists(st.tuples(PERCENT, PERCENT, st.integers(0, 3)), max_size=12), st.integers(0, 5))
def test_a_loss_is_never_called_a_gain(rows: list[tuple[float, float, int]], most: int) -> None:
    first, second = (np.array([row[side] for row in rows]) for side in (0, 1))
    found = examples(first, second, [row[2] for row in rows], range(most))
    assert all(second[line - 1] > first[line - 1] for line in found["largest gain"])
    assert all(second[line - 1] < first[line - 1] for line in found["largest loss"])
    del found["largest disagreement"]
    for lines in found.values():
        assert len({rows[line - 1][2] for line in lines}) == len(lines) <= most


def test_the_table_of_examples() -> None:
    first, second = np.array([10.0, 50]), np.array([40.0, 20])
    found = {**examples(first, second, ["a", "b"], [2]), "random": []}
    table = examples_table(found, (first, second), ("one", "two"), ["a", "b"])
    assert table.rows == [
        ["largest gain", "1", "10", "40", "+30", "a"],
        ["largest loss", "2", "50", "20", "-30", "b"],
        ["largest disagreement", "2", "50", "20", "-30", "b"],
    ]
    assert table.rows[0][1].lines == (1,)  # type: ignore[attr-defined]


def test_points_are_all_sentences_or_an_even_part() -> None:
    few = scatter([np.arange(5.0), np.arange(5.0) * 2], ["a", "b"], (1, 0))
    assert (few.names, few.shown, few.lines) == (["a", "b"], (1, 0), [1, 2, 3, 4, 5])
    assert few.values == [[0, 1, 2, 3, 4], [0, 2, 4, 6, 8]]
    many = scatter([np.zeros(5000)] * 16, ["a"] * 16, (0, 1))
    assert len(many.lines) * 18 <= MOST_TEXTS
    assert (many.lines[0], many.lines[-1]) == (1, 5000)
    assert len(set(np.diff(many.lines))) <= 2
