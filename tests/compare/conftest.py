"""The comparisons that most tests of this room look at: one of runs made by hand, one of trained runs."""

from pathlib import Path

import pytest

from nmt.compare.variants import Comparison, compare
from tests.compare.runs import NEW, OLD, PLAIN, runs_of
from tests.small import QUICK, call, words


@pytest.fixture(scope="module")
def found() -> Comparison:
    runs = [*runs_of(OLD, 0.8), *runs_of(NEW, 0.81), *runs_of(PLAIN, 0.5, weights=False)]
    return compare(runs, trials=400)


@pytest.fixture(scope="session")
def swept(text: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants with two seeds each, scored: one has learnt the language, one has learnt nothing."""
    folder = tmp_path_factory.mktemp("sweep")
    for name, more in (("bahdanau", ["trainer.steps=400"]), ("none", ["decoder=none", "trainer.steps=2"])):
        for seed in (1, 2):
            # One validation each: what is compared is the test.
            line = words(text, folder, f"name={name}-{seed}", f"seed={seed}", "trainer.validate_every=1000", *more)
            assert call("train", *line) == 0
    assert call("compare", f"runs={folder}", *QUICK) == 0
    return folder
