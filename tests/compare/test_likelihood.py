"""References under forced decoding, by hand."""

import pytest

from nmt.compare.likelihood import by_frequency, calibration, calibration_error
from nmt.compare.results import ForcedReference, WordFacts
from tests.compare.texts import scored, texts, values

SOURCES, REFERENCES = ["1", "2"], ["the dog", "the"]
WORDS = {"the": WordFacts(500, 1), "dog": WordFacts(0, 1)}


def forced(line: int, log_probs: list[float], best: list[float], right: list[bool]) -> ForcedReference:
    return ForcedReference(line, log_probs, None, best, right)


def test_likelihood_by_frequency() -> None:
    first = [forced(1, [-1.0, -4.0], [], []), forced(2, [-2.0], [], [])]
    second = [forced(1, [-2.0, -8.0], [], [])]
    runs = [scored(SOURCES, REFERENCES, REFERENCES, forced=rows) for rows in (first, second)]
    found = by_frequency(texts([[runs[0]]]), WORDS)
    assert found is not None
    assert values(found.rows) == [[-4.0, None, None, None, None, -1.5, None]]
    # The second run was not forced to line 2, so that line 2 is not compared.
    both = by_frequency(texts([[runs[0]], [runs[1]]]), WORDS)
    assert both is not None
    assert values(both.rows) == [[-4.0, *[None] * 4, -1.0, None], [-8.0, *[None] * 4, -2.0, None]]
    assert by_frequency(texts([[scored(SOURCES, REFERENCES, REFERENCES)]]), WORDS) is None
    assert by_frequency(texts([[runs[0]]]), {"the": WordFacts(None, 1)}) is None


def test_calibration_by_hand() -> None:
    best, right = [0.05, 0.95, 0.95, 1.0], [False, True, True, False]
    run = scored(
        SOURCES, REFERENCES, REFERENCES, forced=[forced(1, [], best[:2], right[:2]), forced(2, [], best[2:], right[2:])]
    )
    found = calibration(texts([[run]]))
    assert found is not None
    assert values(found.rows) == [[0.0, None, None, None, pytest.approx(200 / 3)]]
    assert calibration(texts([[scored(SOURCES, REFERENCES, REFERENCES)]])) is None


def test_calibration_error_by_hand() -> None:
    """One piece of 4 is 0.05 off, and three have a mean probability of 2.9 / 3 where 2 / 3 are right."""
    best, right = [0.05, 0.95, 0.95, 1.0], [False, True, True, False]
    assert calibration_error(best, right) == pytest.approx(100 * (0.05 / 4 + 0.9 / 3 * 3 / 4))
    assert calibration_error([0.25] * 4, [True, False, False, False]) == pytest.approx(0)
    assert calibration_error([], []) == 0
