"""The page docs/adding-a-part.md, followed to the letter in a copy of the code: its classes, files and commands."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.page_commands import ROOT, Command, commands
from tests.small import environment, write_lines

pytestmark = pytest.mark.long


PAGE = ROOT / "docs" / "adding-a-part.md"
TEXT = PAGE.read_text(encoding="utf-8")
#: A file that the page names, what to do with it, and the code block that follows.
STEP = re.compile(r"(Append it to|Write) `([\w./]+)`:\n\n```\w+\n(.*?)^```$", re.MULTILINE | re.DOTALL)
COPIED = ("nmt", "configs")


def in_copy(folder: Path, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run Python in the copy."""
    return subprocess.run(
        [sys.executable, *words],
        cwd=folder,
        env={**environment(), "PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
    )


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the code with the parts of the page."""
    folder = tmp_path_factory.mktemp("code")
    for name in COPIED:
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "README.md", folder)  # whose variants tests train
    steps = STEP.findall(TEXT)
    assert len(steps) == 6
    for what, name, code in steps:
        path = folder / name
        assert path.exists() == (what == "Append it to"), name
        path.write_text((path.read_text(encoding="utf-8") + "\n\n" if path.exists() else "") + code, encoding="utf-8")
    write_lines(folder / "new.txt", ["June 6, 1987", "12 kilograms"])
    return folder


def test_the_commands_of_the_page_run(copy: Path) -> None:
    page = [command for command in commands(PAGE) if command.verb]
    assert len(page) == 5
    for command in page:
        # The page's own budget of a few updates; only pictures and curves are left out.
        more = {"train": ["trainer.samples=0", "trainer.tensorboard=false"], "evaluate": ["pictures=0"]}
        done = in_copy(copy, *command.words[1:], *more.get(command.verb, []), "threads=1", "device=cpu")
        assert done.returncode == 0, done.stderr
    assert len((copy / "translated.txt").read_text(encoding="utf-8").splitlines()) == 2


PROGRAM = """
import torch
from nmt.attention.normalisers import Squares
from nmt.attention.scores import Rectified
from nmt.model.averages import AverageEncoder
score = Rectified(query_size=2, key_size=1, size=2)
with torch.no_grad():
    score.W.weight.copy_(torch.tensor([[1.0], [-2.0]]))
energies = score(torch.tensor([[3.0, 1.0], [1.0, 3.0]]), score.prepare(torch.tensor([[2.0]])))
assert energies.tolist() == [[2.0], [0.0]], energies
shares = Squares()(torch.tensor([[[[2.0, -3.0, 9.0]]]]), torch.tensor([[True, True, False]]))
torch.testing.assert_close(shares.flatten(), torch.tensor([1 / 3, 2 / 3, 0.0]))
words, mask = torch.tensor([[[3.0], [6.0], [99.0]]]), torch.tensor([[True, True, False]])
encoded = AverageEncoder(embedding_size=1)(words, mask, mask.sum(-1))
assert encoded.values.flatten().tolist() == [3.0, 3.0, 0.0], encoded
"""


def test_the_parts_compute_their_equations(copy: Path) -> None:
    """By hand: W k = (2, -4), so the queries (3, 1) and (1, 3) have 6 - 4 = 2 and 2 - 12, which becomes 0.

    The visible energies have 1 + 4 and 1 + 9 of 15. The means are (0 + 3 + 6) / 3 and (3 + 6 + 0) / 3: padding counts
    as zero.
    """
    done = in_copy(copy, "-c", PROGRAM)
    assert done.returncode == 0, done.stderr


def pytest_words(command: Command) -> list[str]:
    """The words of a command that runs tests, after pytest's name."""
    return command.words[command.words.index("pytest") + 1 :]


@pytest.mark.slow
def test_the_tests_find_the_parts(copy: Path) -> None:
    shutil.copytree(ROOT / "tests", copy / "tests", ignore=shutil.ignore_patterns("__pycache__"), dirs_exist_ok=True)
    shutil.copy(ROOT / "pyproject.toml", copy)
    page = [pytest_words(command) for command in commands(PAGE) if "pytest" in command.words]
    assert len(page) == 3
    for words in page:
        done = in_copy(copy, "-m", "pytest", "-p", "no:cacheprovider", *words)
        assert done.returncode == 0, done.stdout[-3000:]
        assert int(re.findall(r"(\d+) passed", done.stdout)[-1]) > 10
