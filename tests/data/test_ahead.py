"""Values that are computed ahead are the same ones, and the thread ends whatever happens."""

import threading
from collections.abc import Iterator

import pytest

from nmt.data.prefetch import READY, ahead


def threads() -> int:
    return sum(thread.name.startswith("batches") for thread in threading.enumerate())


def test_the_values_and_their_order_are_the_same() -> None:
    with ahead(iter(range(100))) as values:
        assert list(values) == list(range(100))
        assert list(values) == []
    with ahead(iter(range(0))) as none:
        assert list(none) == []
    assert threads() == 0


def test_few_values_are_computed_ahead_and_none_after_the_end() -> None:
    computed: list[int] = []
    one = threading.Event()

    def counting() -> Iterator[int]:
        for number in range(1000):
            computed.append(number)
            if number == READY - 1:
                one.set()
            yield number

    with ahead(counting()) as values:
        assert one.wait(10), "values are computed before they are asked for"
        assert next(values) == 0
        assert threads() == 1
    assert threads() == 0
    assert len(computed) <= 2 * READY + 4


def test_an_error_comes_in_its_place() -> None:
    def failing() -> Iterator[int]:
        yield 1
        raise OSError("disk")

    with ahead(failing()) as values:
        assert next(values) == 1
        with pytest.raises(OSError, match="disk"):
            next(values)
    assert threads() == 0


def test_an_error_of_the_caller_ends_the_thread() -> None:
    def interrupted() -> None:
        with ahead(iter(range(1000))) as values:
            next(values)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert threads() == 0
