"""The page on messages: each message that it quotes is one of the program's."""

import ast
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8")
if not find_spec("nmt.export"):  # which can be deleted
    PAGE = re.sub(r"^## Export$.*?(?=^## |\Z)", "", PAGE, flags=re.MULTILINE | re.DOTALL)
QUOTED = re.findall(r"^### `(.*)`$", PAGE, re.MULTILINE)
#: What stands for an expression in the text of an f-string.
GAP = "\0"


def texts(tree: ast.AST) -> Iterator[str]:
    """Every string of a module, with a gap for each expression in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value
        elif isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else GAP for part in node.values)


@pytest.fixture(scope="module")
def messages() -> str:
    """All strings of the program, one after the other."""
    trees = (ast.parse(path.read_text(encoding="utf-8")) for path in sorted((ROOT / "nmt").rglob("*.py")))
    return "\n".join(text.replace("\n", " ") for tree in trees for text in texts(tree))


def pattern(quoted: str) -> str:
    """The quoted message as a regular expression: `...` is anything in one string, at least an expression or a word."""
    return ".+?".join(re.escape(part) for part in quoted.removeprefix("...").split("..."))


@pytest.mark.parametrize("quoted", QUOTED)
def test_a_quoted_message_is_in_the_program(quoted: str, messages: str) -> None:
    assert re.search(pattern(quoted), messages), "the message has changed: change the page as well"


def test_a_message_that_is_not_in_the_program_is_noticed(messages: str) -> None:
    assert re.search(pattern("... has no key. Did you mean run=...?"), messages)
    assert not re.search(pattern("... has no lock. Did you mean run=...?"), messages)
    assert not re.search(pattern("There is no run ... is damaged"), messages)
