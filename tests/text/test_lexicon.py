"""IBM Model 1 by hand and against its definition, and the file that keeps what it found."""

from collections import defaultdict
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from nmt.system.errors import UserError
from nmt.text import lexicon as module
from nmt.text.lexicon import Lexicon, learn_lexicon, load_lexicon, merged

Pairs = list[tuple[list[int], list[int]]]


def learn(pairs: Pairs, size: int = 9) -> Lexicon:
    sides = [
        (np.array([token for own in side for token in own], dtype=np.int32), np.array([len(own) for own in side]))
        for side in zip(*pairs, strict=True)
    ]
    return learn_lexicon(*sides[0], *sides[1], size)


def by_definition(pairs: Pairs) -> dict[int, dict[int, float]]:
    """t(f | e) after the rounds of Brown et al. 1993, section 4.2, without the empty word."""
    table: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(lambda: 1.0))
    for _ in range(module.ROUNDS):
        got: dict[int, dict[int, float]] = defaultdict(lambda: defaultdict(float))
        for source, target in pairs:
            for f in target:
                total = sum(table[e][f] for e in source)
                for e in source:
                    got[e][f] += table[e][f] / total
        table = defaultdict(dict, {e: {f: own[f] / sum(own.values()) for f in own} for e, own in got.items()})
    return table


def test_the_house_and_the_book_are_told_apart() -> None:
    the, house, book, a = 4, 5, 6, 7
    das, haus, buch, ein = 1, 2, 3, 4
    found = learn([([das, haus], [the, house]), ([das, buch], [the, book]), ([ein, buch], [a, book])], size=6)
    assert found.translations[[das, haus, buch, ein], 0].tolist() == [the, house, book, a]
    assert found.translations[das, :4].tolist() == [the, house, book, -1]  # a never stood beside it
    assert (found.translations[[0, 5]] == -1).all()
    assert found.common.tolist() == [the, book, house, a]


@given(
    st.lists(
        st.tuples(
            st.lists(st.integers(0, 5), min_size=1, max_size=4), st.lists(st.integers(0, 5), min_size=1, max_size=4)
        ),
        min_size=1,
        max_size=5,
    ),
    st.sampled_from([1, 7, module.PART]),
)
def test_the_order_is_that_of_the_model(pairs: Pairs, part: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "PART", part)
        found = learn(pairs, size=6)
    for source, likely in by_definition(pairs).items():
        row = [token for token in found.translations[source].tolist() if token >= 0]
        assert sorted(row) == sorted(likely)
        values = [likely[token] for token in row]
        np.testing.assert_allclose(values, sorted(values, reverse=True), rtol=1e-9)


def test_a_piece_keeps_no_more_than_its_likeliest_translations(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "TRANSLATIONS", 2)
    found = learn([([1], [3, 4, 4, 4, 5, 5])])
    assert found.translations[1].tolist() == [4, 5]


def test_the_first_of_two_lexicons_comes_first() -> None:
    first = Lexicon(np.array([[5, 6], [7, -1], [-1, -1]], np.int32), np.array([6, 5], np.int32))
    second = Lexicon(np.array([[6, 8, 5], [-1, -1, -1], [9, -1, -1]], np.int32), np.array([8, 6, 9], np.int32))
    both = merged(first, second)
    assert both.translations.tolist() == [[5, 6, 8, -1, -1], [7, -1, -1, -1, -1], [9, -1, -1, -1, -1]]
    assert both.common.tolist() == [6, 8, 5, 9]
    assert [part.dtype for part in both] == [np.int32, np.int32]


def test_a_file_gives_back_what_was_saved_and_refuses_what_is_not_it(tmp_path: Path) -> None:
    path = tmp_path / "lexicon.safetensors"
    found = learn([([1, 2], [3, 4])], size=7)
    found.save(path)
    again = load_lexicon(path, 7, 5)
    for ours, theirs in zip(found, again, strict=True):
        np.testing.assert_array_equal(ours, theirs)
    for sizes in ((6, 5), (7, 4)):
        with pytest.raises(UserError, match="belongs to other vocabularies"):
            load_lexicon(path, *sizes)
    found.save(path, "fingerprint")
    load_lexicon(path, 7, 5, "fingerprint")
    with pytest.raises(UserError, match="belongs to other vocabularies"):
        load_lexicon(path, 7, 5, "of another")
    path.write_bytes(path.read_bytes()[:50])
    with pytest.raises(UserError, match="is damaged"):
        load_lexicon(path, 7, 5)
    path.unlink()
    with pytest.raises(UserError, match=r"lexicon\.safetensors is missing.*Give shortlist=0"):
        load_lexicon(path, 7, 5)
