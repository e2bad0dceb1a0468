"""What a data set is to the rest of the program: named splits of sentence pairs.

Between the files (or the Hub, or the built-in corpus) and tokenising.  Every source of data is a
`DataSource`; training, evaluation and the verbs know nothing else about where sentences come from.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.errors import UserError, nearest


class Split(NamedTuple):
    """One split: sentence i of `source` is translated by sentence i of `target`.

    `links` holds the exact word alignments where the data set has them (the built-in corpus), a line a pair
    in Pharaoh form, "0-0 1-2": source word, target word, counted from 0 over whitespace-separated words.
    """

    name: str
    source: Sequence[str]
    target: Sequence[str]
    links: Sequence[str] | None = None

    def fingerprint(self) -> str:
        """SHA-256 of the sentences, to know the text again."""
        digest = hashlib.sha256()
        for source, target in zip(self.source, self.target):
            digest.update(f"{source}\n{target}\n".encode("utf-8", "surrogatepass"))
        return digest.hexdigest()


def links_fingerprint(links: Sequence[str]) -> str:
    """SHA-256 of word links, to know them again."""
    return hashlib.sha256("\n".join(links).encode("utf-8", "surrogatepass")).hexdigest()


def given_split(source: Path, lines: Sequence[str], translations: Sequence[str]) -> Split:
    """A split of two files that a user names; its own name tells it from other text in files of that name."""
    split = Split(source.name, lines, translations)
    return split._replace(name=f"{safe_name(source.name) or 'text'}-{split.fingerprint()[:6]}")


class DataSource(ABC):
    """A data set.  Building one checks cheap things only; `read` does the reading and names what is wrong."""

    #: (source code, target code), such as ("de", "en")
    languages: tuple[str, str]
    #: short and safe in a file name, such as "m30k-de-en"
    name: str
    #: whether every split has exact word links
    has_links: bool = False

    @abstractmethod
    def tests(self) -> list[str]:
        """Names of the test splits, in the order in which they are reported; empty where there are none."""

    @abstractmethod
    def read(self, split: str) -> Split:
        """The split called "train", "valid" or one of `tests()`.

        Raises UserError for any other name and for anything that is wrong with the data.
        """

    def check(self) -> None:
        """Looks whether the files of all splits are there, without reading them (UserError if not)."""
        return

    def notes(self) -> list[str]:
        """What was chosen for the user, a line each, to be shown before training starts."""
        return []

    def splits(self) -> list[str]:
        """Every name that `read` takes."""
        return ["train", "valid", *self.tests()]

    def unknown_split(self, split: str) -> UserError:
        """The error for a split that this data set has not."""
        names = self.splits()
        hint = nearest(split, names)
        return UserError(f"The data set {self.name} has no split {split!r}; it has {', '.join(names)}.{hint}")


def safe_name(text: str) -> str:
    """`text` with nothing but ASCII letters, digits, dots, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
