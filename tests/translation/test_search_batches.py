"""The batches of a translation, searched by several threads."""

import threading
import time
from collections.abc import Iterator, Sequence
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from nmt.model import Seq2Seq
from nmt.search import BeamSearch, Hypothesis
from nmt.system.compute import CPU, Compute
from nmt.system.processes import ALONE
from nmt.translation.batches import search_batches, split
from nmt.translation.translator import Translator
from tests.test_configs import tokenizer
from tests.translation.test_translator import small

LINES = [" ".join(["eins", "zwei", "drei", "vier", "rot", "blau"][: 1 + number % 6]) for number in range(20)]


@pytest.fixture
def two_threads() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield
    torch.set_num_threads(before)


@given(st.integers(0, 300), st.integers(1, 70), st.integers(1, 5))
def test_searches_get_equally_many_batches_of_almost_one_size(rows: int, most: int, searches: int) -> None:
    batches = split(range(rows), most, searches)
    assert [row for batch in batches for row in batch] == list(range(rows))
    sizes = [len(batch) for batch in batches]
    assert max(sizes, default=0) <= most
    if searches == 1:
        assert sizes == [most] * (rows // most) + [rows % most] * (rows % most > 0)
    elif rows > searches * most:
        assert max(sizes[:-1]) == min(sizes[:-1])
        assert len(sizes) <= -(-rows // most) + searches - 1


def search(batch: Sequence[int]) -> list[list[Hypothesis]]:
    return [[Hypothesis([number], 0.0, 0.0, None)] for number in batch]


@pytest.mark.parametrize(("threads", "searches"), [(1, 1), (3, 3), (16, 4)])
def test_searches_share_the_threads(threads: int, searches: int, two_threads: None) -> None:
    torch.set_num_threads(threads)
    assert CPU.parallel_searches == searches
    widths: list[int] = []

    def counted(batch: Sequence[int]) -> list[list[Hypothesis]]:
        widths.append(torch.get_num_threads())
        return search(batch)

    search_batches([[number] for number in range(8)], counted, ALONE, CPU.parallel_searches)
    assert set(widths) == {threads // searches}
    assert torch.get_num_threads() == threads
    assert Compute(torch.device("cuda")).parallel_searches == 1


def test_each_thread_searches_alone_and_results_stay_in_order(two_threads: None) -> None:
    both = threading.Barrier(2, timeout=60)  # nobody passes it alone
    widths = []

    def watched(batch: Sequence[int]) -> list[list[Hypothesis]]:
        both.wait()
        widths.append(torch.get_num_threads())
        return search(batch)

    batches = [[1, 2], [3], [4, 5], [6]]
    results = search_batches(batches, watched, ALONE, 2)
    assert [[nbest[0].tokens[0] for nbest in lists] for lists in results] == batches
    assert widths == [1] * 4
    assert torch.get_num_threads() == 2


def test_a_search_that_fails_ends_the_others(two_threads: None) -> None:
    searched: list[Any] = []

    def failing(batch: Sequence[int]) -> list[list[Hypothesis]]:
        searched.append(batch)
        time.sleep(0.01)  # as a small search: a thousand that fail at once may be done before one is noticed
        raise MemoryError

    with pytest.raises(MemoryError):
        search_batches([[number] for number in range(1000)], failing, ALONE, 2)
    assert len(searched) < 1000
    assert torch.get_num_threads() == 2


@pytest.mark.parametrize(
    "overrides", [(), ("encoder=transformer", "decoder=transformer"), ("encoder=conv", "decoder=conv")]
)
def test_translations_are_those_of_one_thread(overrides: tuple[str, ...], two_threads: None) -> None:
    network: Seq2Seq = small(*overrides)
    translator = Translator([network], tokenizer("unigram"), BeamSearch(3, nbest=2), batch_sentences=4)
    assert translator.compute.parallel_searches == 2
    two = list(translator.translate(LINES))
    torch.set_num_threads(1)
    one = list(translator.translate(LINES))
    for first, second in zip(two, one, strict=True):
        assert [each.text for each in first] == [each.text for each in second]
        assert [each.score for each in first] == pytest.approx([each.score for each in second], abs=1e-4)
