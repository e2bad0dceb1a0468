"""Translations that are kept in a file: the same ones, in memory that does not grow with their weights."""

import errno
import tracemalloc
from collections.abc import Iterator

import numpy as np
import pytest

from nmt.errors import UserError
from nmt.evaluation import stored
from nmt.evaluation.references import entropy, entropy_by_head, hidden_share, perplexity
from nmt.evaluation.sentence_measures import rows
from nmt.evaluation.stored import StoredTranslations
from nmt.translation.types import Translation
from tests.alignment.by_hand import EMPTY, WORKED, even

SENTENCES = [WORKED, EMPTY, even("Zwei Hunde", "two dogs"), EMPTY._replace(weights=None), WORKED]


def equal(one: Translation, other: Translation) -> bool:
    arrays = (one.weights is None, other.weights is None)
    same = one._replace(weights=None) == other._replace(weights=None)
    return same and arrays in ((True, True), (False, False)) and np.array_equal(one.weights, other.weights)  # type: ignore[arg-type]


@pytest.mark.parametrize("in_memory", [0, 2, 4, 5, 9])
def test_it_is_a_list(in_memory: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "IN_MEMORY", in_memory)
    kept = StoredTranslations(iter(SENTENCES))
    assert len(kept) == 5
    for at in (4, 0, 3, -1, -5, 2):
        assert equal(kept[at], SENTENCES[at])
    for _ in range(2):
        assert all(map(equal, kept, SENTENCES))
    assert list(map(equal, kept[1:4:2], SENTENCES[1:4:2])) == [True, True]
    both = zip(kept, kept, strict=True)  # two readers at a time
    assert all(equal(one, other) for one, other in both)
    with pytest.raises(IndexError):
        kept[5]
    assert len(StoredTranslations([])) == 0


def test_measures_are_those_of_a_list(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored, "IN_MEMORY", 1)
    kept, texts = StoredTranslations(SENTENCES), ["houses burn", "", "two dogs", "", "x"]
    for measure in (perplexity, entropy, entropy_by_head, hidden_share):
        assert measure(kept) == measure(SENTENCES)
    assert list(rows(kept, texts, "mean")) == list(rows(SENTENCES, texts, "mean"))


def test_weights_take_no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """3,000 translations with 40 kB of weights each: 120 MB as a list."""
    monkeypatch.setattr(stored, "IN_MEMORY", 10)

    def many() -> Iterator[Translation]:
        for _ in range(3000):
            yield WORKED._replace(weights=np.ones((1, 100, 100), np.float32))

    tracemalloc.start()
    kept = StoredTranslations(many())
    assert entropy(kept) == pytest.approx(np.log(100))
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert most < 3e6


def test_a_full_disk_ends_with_a_message(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(stored, "IN_MEMORY", 1)
    monkeypatch.setattr("nmt.evaluation.stored.pickle.dump", full)
    with pytest.raises(UserError, match=r"No space left on device\. Free some space.*: set TMPDIR="):
        StoredTranslations(SENTENCES)
