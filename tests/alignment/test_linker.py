"""Links for tags, worked by hand."""

from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.alignment.linker import Linker, in_order
from nmt.text.lexicon import Lexicon
from nmt.translation.translator import empty
from nmt.translation.types import Translation

#: Of "a b c" for "X Y Z": b gets most weight from every word.
WEIGHTS = np.array([[[0.4, 0.5, 0.1, 0], [0.1, 0.8, 0.1, 0], [0.1, 0.5, 0.4, 0], [0, 0, 0, 1]]], np.float32)


def translation(weights: Any = WEIGHTS) -> Translation:
    spans = [(0, 1), (2, 3), (4, 5), None]
    sides = ["a", "b", "c", "</s>"], ["X", "Y", "Z", "</s>"]
    return Translation("a b c", "X Y Z", -1.0, -1.0, *sides, spans, spans, weights)


def vocabulary(letters: str) -> Any:
    return SimpleNamespace(ids=lambda pieces: [0 if piece == "</s>" else 1 + letters.index(piece) for piece in pieces])


#: X translates c, Y and Z nothing; piece 0 is the end of sentence.
KNOWN = Linker(
    lexicon=Lexicon(np.array([[-1, -1], [-1, -1], [-1, -1], [1, -1]], np.int32), np.zeros(0, np.int32)),
    tokenizer=SimpleNamespace(source=vocabulary("abc"), target=vocabulary("XYZ")),  # type: ignore[arg-type]
)


def test_a_word_that_attracts_every_step_takes_no_link_from_its_neighbours() -> None:
    assert Linker().links(translation()) == [(0, 0), (1, 1), (2, 2)]


def test_the_lexicon_counts_beside_attention() -> None:
    weights = WEIGHTS.copy()
    weights[0, 0] = [0.15, 0.65, 0.2, 0]  # of what a gives, 0.15 of 0.35; of c, 0.2 of 0.7, or 0.6 of 1.1
    assert Linker().links(translation(weights)) == [(0, 0), (1, 1), (2, 2)]
    assert KNOWN.links(translation(weights)) == [(0, 0), (2, 0), (1, 1), (2, 2)]  # X is the best for a, too
    assert KNOWN.known(translation(), (units(0), units(1))).tolist() == [[0, 0, 1], [0, 0, 0], [0, 0, 0]]


def test_of_shares_that_differ_little_the_next_word_counts() -> None:
    """Y has 0.47 of c and 0.43 of b: from a to c and from c to c are jumps."""
    rows = [[0.8, 0.2, 0, 0], [0, 0.3, 0.7, 0], [0, 0.2, 0.8, 0], [0, 0, 0, 1]]
    assert Linker().links(translation(np.array([rows], np.float32))) == [(0, 0), (1, 1), (2, 2)]


def test_a_source_word_that_remains_is_linked_to_its_best_word() -> None:
    rows = [[0.95, 0.05, 0, 0], [0, 0.6, 0.4, 0], [0, 0, 0, 1], [0, 0, 0, 1]]
    assert Linker().links(translation(np.array([rows], np.float32))) == [(0, 0), (1, 1), (2, 1)]


def units(side: int) -> Any:
    return SimpleNamespace(members=np.eye(4, 3, dtype=np.float32))


def test_an_empty_line_has_no_links() -> None:
    assert Linker().links(empty("")) == KNOWN.links(empty("")) == []


@pytest.mark.parametrize("shift", [0, 1])
def test_the_shift_and_the_head_that_agree_with_the_lexicon_are_chosen(shift: int) -> None:
    on_c, even = np.full((4, 4), 0.1), np.full((4, 4), 0.25)
    on_c[shift, 2] = 0.9  # the row of X, or the one after it
    on_c[1 - shift, 0] = 0.9
    both = np.stack([even, on_c]).astype(np.float32)
    chosen = KNOWN.best_by_lexicon([translation(both), empty("")], ["0", "1"])
    assert (chosen.head, chosen.shift) == ("1", shift)


@given(st.integers(1, 9), st.integers(1, 23), st.integers(0, 10**6))
def test_the_path_is_the_best_one_whatever_jumps_it_takes(targets: int, sources: int, seed: int) -> None:
    """Beside a search over all pairs of words: the cost of a jump grows up to five words."""
    shares = np.random.default_rng(seed).dirichlet(np.full(sources, 0.3), targets).round(3).astype(np.float32)
    values = np.log(np.maximum(shares, 1e-3))
    jumps = 0.1 * np.minimum(np.abs(np.subtract.outer(np.arange(sources) + 1, np.arange(sources))), 5)
    best = values[0]
    for row in values[1:]:
        best = row + (best[:, None] - jumps).max(0)
    path = {target: source for source, target in in_order(shares)}
    if len(path) == targets:  # words without any share have no link
        steps = zip(range(targets), range(1, targets), strict=False)
        total = sum(values[target, source] for target, source in path.items())
        total -= sum(jumps[path[one], path[other]] for one, other in steps)
        assert total == pytest.approx(best.max())


def test_a_translation_of_nothing_has_no_links() -> None:
    assert in_order(np.zeros((3, 0), np.float32)) == []
