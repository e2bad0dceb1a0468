"""The script that tries mutants: its table, what it changes, and what it says of a small tree."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "scripts"))

import mutants
from mutants import Mutant, Stale, apply

pytestmark = pytest.mark.long

CODE = '''"""Numbers."""


class Sum:
    def total(self, numbers):
        return sum(
            abs(number)  # whatever the line breaks
            for number in numbers
        )


def total(numbers):
    first = sum(numbers)
    return first + 0
'''
TABLE = """# Three mutants.
tests: test_numbers.py

signs count
    Sum.total
- abs(number)
+ number

the sum is lost
    total
- first = sum(numbers)
+ first = 0

one is added to nothing
    total
- first + 0
+ first
"""


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A tree whose tests see that signs count, and nothing else."""
    for folder in ("nmt", "tests"):
        (tmp_path / folder).mkdir()
    (tmp_path / "nmt" / "__init__.py").touch()
    (tmp_path / "nmt" / "numbers.py").write_text(CODE)
    (tmp_path / "tests" / "test_numbers.py").write_text(
        "from nmt.numbers import Sum, total\n\n"
        "def test_sums():\n    assert Sum().total([1, -2]) == 3\n    assert total([]) == 0\n"
    )
    (tmp_path / "table.txt").write_text(TABLE)
    return tmp_path


def test_every_mutant_of_the_table_applies() -> None:
    table = mutants.parse(mutants.TABLE.read_text(encoding="utf-8"))
    assert len({mutant.title for mutant in table}) == len(table)
    stale = [result for result in mutants.locate_all(table, mutants.ROOT) if result.status != "applies"]
    assert not stale, "re-point these lines of scripts/mutants.txt"
    for mutant in table:
        assert all((mutants.ROOT / "tests" / test).exists() for test in mutant.tests), mutant


def test_the_change_is_the_one_place_in_the_function(tree: Path) -> None:
    path, text = apply(Mutant("", "Sum.total", "abs(number)", "number", ()), tree / "nmt")
    assert path == tree / "nmt" / "numbers.py"
    assert text == CODE.replace("abs(number)", "(number)")


@pytest.mark.parametrize(
    ("where", "old", "reason"),
    [
        ("Sum.sum", "abs(number)", "there is no such function"),
        ("total", "abs(number)", "the code stands in it 0 times"),
        ("total", "first", "the code stands in it 2 times"),
    ],
)
def test_a_mutant_that_no_longer_applies_is_stale(where: str, old: str, reason: str, tree: Path) -> None:
    (tree / "nmt" / "numbers.py").write_text(CODE.replace("first + 0", "first + first"))
    with pytest.raises(Stale, match=f"{where}: {reason}"):
        apply(Mutant("", where, old, "0", ()), tree / "nmt")


def test_survivors_are_listed_and_the_tree_is_left_alone(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert mutants.main([], tree, tree / "table.txt") == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("killed   signs count (Sum.total): test_numbers.py::test_sums")
    assert lines[1].startswith("SURVIVED the sum is lost (total): test_numbers.py")
    assert lines[2].startswith("SURVIVED one is added to nothing")
    assert lines[3] == "3 mutants: 1 killed, 2 SURVIVED"
    assert (tree / "nmt" / "numbers.py").read_text() == CODE


def test_tests_that_fail_without_a_mutant_end_the_run(tree: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tree / "nmt" / "numbers.py").write_text(CODE.replace("first + 0", "first + 1"))
    assert mutants.main(["--only", "signs"], tree, tree / "table.txt") == 2
    assert "A test fails without any mutant: test_numbers.py::test_sums" in capsys.readouterr().out
