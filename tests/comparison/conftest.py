"""The comparison that most tests of this room look at."""

import pytest

from nmt.comparison.variants import Comparison, compare
from tests.comparison.runs import NEW, OLD, PLAIN, runs_of


@pytest.fixture(scope="module")
def found() -> Comparison:
    runs = [*runs_of(OLD, 0.8), *runs_of(NEW, 0.81), *runs_of(PLAIN, 0.5, weights=False)]
    return compare(runs, trials=400)
