"""The heads of the yaml files: comments about keys and choices, for the command line.

    # paths: input output      keys of paths: any character is allowed, and `~/` is the home folder
    # texts: name              keys of text: `name=1e3` is not a number
    # lists: run               keys that take one value or several: run=a, run=[a,b]
    # also: bahdanau mlp       aliases of the choice
    # shown: run input         keys that `--help` explains
    #   python -m nmt.train    an example, indented

They are in the yaml files because a value must be quoted before Hydra parses it and before any class is imported.
"""

import functools
from pathlib import Path
from typing import Final, NamedTuple

# Text keys that have one value for all runs of a sweep.
SHARED_KEYS: Final = frozenset({"name", "checkpoints", "cache"})
MULTIRUN: Final = ("-m", "--multirun")

_NOTES: Final = ("paths", "texts", "lists", "also", "shown")


class Head(NamedTuple):
    """The comment at the beginning of a yaml file.

    Attributes:
        summary: one sentence about the file.
        examples: command lines, with their indented continuations.
        notes: keyword -> its words.
    """

    summary: str
    examples: list[str]
    notes: dict[str, list[str]]


class Keys(NamedTuple):
    """Keys by how the command line treats them."""

    paths: frozenset[str]
    texts: frozenset[str]
    lists: frozenset[str]


def read_head(path: Path) -> Head:
    """Read the head of a yaml file."""
    summary, examples, notes = list[str](), list[str](), dict[str, list[str]]()
    with path.open(encoding="utf-8") as file:
        for line in file:
            if not line.startswith("#"):
                break
            text = line[1:].rstrip()
            keyword, colon, words = text.strip().partition(":")
            if text.startswith("   "):
                examples.append(text[3:])
            elif colon and keyword in _NOTES:
                notes.setdefault(keyword, []).extend(words.split())
            elif not text.startswith(" @package"):
                summary.append(text.strip())
    return Head(" ".join(filter(None, summary)), examples, notes)


@functools.cache
def keys_of(folder: Path) -> Keys:
    """Collect the keys that the files of a folder mark as paths, texts and lists."""
    marked: dict[str, set[str]] = {"paths": set(), "texts": set(), "lists": set()}
    for path in folder.rglob("*.yaml"):
        group = path.parent.relative_to(folder).as_posix()
        prefix = "" if group == "." else f"{group.replace('/', '.')}."
        notes = read_head(path).notes
        for keyword, keys in marked.items():
            keys.update(prefix + name for name in notes.get(keyword, []))
    paths, lists = frozenset(marked["paths"]), frozenset(marked["lists"])
    return Keys(paths, frozenset(marked["texts"]) | paths, lists)


@functools.cache
def aliases_of(folder: Path, group: str) -> dict[str, str]:
    """Collect the aliases of a group's choices, from papers and other toolkits."""
    return {
        alias: path.stem
        for path in sorted((folder / group).glob("*.yaml"))
        for alias in read_head(path).notes.get("also", [])
    }
