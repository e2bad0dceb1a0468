"""The pages for readers, their code blocks and the commands in them."""

import re
import shlex
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)
#: How a line of a code block begins if it is a command.
_COMMAND = re.compile(r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?(?:python|pip|make|cat|echo|source|tensorboard|mkdocs|paste) ")


class Command(NamedTuple):
    """A command of a page, continuation lines joined."""

    page: str
    line: str

    @property
    def words(self) -> list[str]:
        """Its words, without the comment at its end."""
        return shlex.split(self.line, comments=True)

    @property
    def verb(self) -> str:
        """The command of nmt that it calls, such as "train"; "" for other programs, and in a shell's pipe."""
        found = re.match(r"python -m nmt\.(\w+)", self.line)
        return found[1] if found and not {"|", ">"} & {*self.words} else ""


def blocks(text: str, kind: str) -> list[str]:
    """The fenced code blocks of a language, such as "python"."""
    return [found[2] for found in _FENCED.finditer(text) if found[1] == kind]


def commands(page: Path) -> list[Command]:
    """The commands in the indented code blocks of a page, in their order."""
    text = re.sub(r" *\\\n +", " ", _FENCED.sub("", page.read_text(encoding="utf-8")))
    lines = [line[4:] for found in _INDENTED.finditer(text) for line in found[0].splitlines()]
    return [Command(page.name, line) for line in lines if _COMMAND.match(line)]
