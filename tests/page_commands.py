"""The pages for readers, their code blocks and the commands in them."""

import re
import shlex
import textwrap
from importlib.util import find_spec
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
_INDENTED = re.compile(r"(?:^ {4}.*\n|^\n(?= {4}))+", re.MULTILINE)
#: How a line of a code block begins if it is a command.
_COMMAND = re.compile(
    r"(?:[A-Z_]+=\S+ )*(?:\.venv/bin/)?"
    r"(?:python|pip|pre-commit|\.ci/run|make|cat|echo|source|tensorboard|mkdocs|paste|torchrun|curl) "
)
_FENCE = re.compile(r"^ *(?:```|~~~)", re.MULTILINE)


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


class Block(NamedTuple):
    """A code block of a page.

    Attributes:
        page: the file's name.
        kind: the language of a fenced block; of an indented one "script" (it names its interpreter), "commands" (each
            line is a command or a comment) or "".
        text: without the indentation.
    """

    page: str
    kind: str
    text: str


def all_blocks(page: Path) -> list[Block]:
    """Every code block of a page.

    Raises:
        ValueError: a fence that is not one of ours, such as an indented one, would hide its block.
    """
    text = page.read_text(encoding="utf-8")
    fenced = [Block(page.name, found[1], found[2]) for found in _FENCED.finditer(text)]
    if len(_FENCE.findall(text)) != 2 * len(fenced) or "<pre" in text:
        raise ValueError(f"{page}: write code blocks indented by four spaces, or between lines of ``` and a language.")
    indented = [textwrap.dedent(found[0]).strip("\n") for found in _INDENTED.finditer(_FENCED.sub("", text))]
    return [*fenced, *(Block(page.name, _kind(block), block) for block in indented)]


def _kind(block: str) -> str:
    """What an indented block is."""
    if block.startswith("#!"):
        return "script"
    lines = [line for line in joined(block).splitlines() if line.strip() and not line.startswith("#")]
    return "commands" if all(_COMMAND.match(line) for line in lines) else ""


def joined(text: str) -> str:
    """A text with continuation lines joined."""
    return re.sub(r" *\\\n +", " ", text)


def blocks(text: str, kind: str) -> list[str]:
    """The fenced code blocks of a language, such as "python"."""
    return [found[2] for found in _FENCED.finditer(text) if found[1] == kind]


def commands(page: Path) -> list[Command]:
    """The commands in the indented code blocks of a page, in their order, without those of deleted packages."""
    lines = [line for block in all_blocks(page) if block.kind == "commands" for line in joined(block.text).splitlines()]
    found = [Command(page.name, line) for line in lines if _COMMAND.match(line)]
    return [command for command in found if not command.verb or find_spec(f"nmt.{command.verb}")]
