"""The table of mutants: each one still applies to the code, and its tests are there."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import mutants

pytestmark = pytest.mark.long


def test_every_mutant_of_the_table_applies() -> None:
    table = mutants.parse(mutants.TABLE.read_text(encoding="utf-8"))
    assert len({mutant.title for mutant in table}) == len(table)
    stale = [found for found in mutants.locate_all(table, mutants.ROOT) if found.status != "applies"]
    assert not stale, "re-point these lines of tests/mutants.txt"
    for mutant in table:
        assert all((mutants.ROOT / "tests" / test).exists() for test in mutant.tests), mutant
