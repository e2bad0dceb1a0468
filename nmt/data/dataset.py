"""The contract of data sets: named splits of sentence pairs.

Files, the Hub and the built-in corpus are each a `DataSource`; the rest of the program knows only this class.
"""

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.data.stored import counted, remembered, without
from nmt.system.errors import UserError, nearest
from nmt.text.canonical import shows_nothing

#: Sentences in a block of the digest.
_MANY = 10_000


class Split(NamedTuple):
    """One split: sentence i of `source` is translated by sentence i of `target`.

    `links` are exact word alignments, if the data set has them (as the built-in corpus): one line per pair in Pharaoh
    form, "0-0 1-2" (source word-target word), counted from 0 over whitespace-separated words.

    `documents` are the numbers of the documents that sentences belong to, in ascending order; None without documents.

    `others` are further translations of every sentence, used as additional references in scores.
    """

    name: str
    source: Sequence[str]
    target: Sequence[str]
    links: Sequence[str] | None = None
    documents: Sequence[int] | None = None
    others: Sequence[Sequence[str]] = ()

    def fingerprint(self) -> str:
        """SHA-256 of the sentences and, if present, of their documents and further translations."""
        if self.documents is None and not self.others:
            return remembered((self.source, self.target), "fingerprint", lambda: self._digest().hexdigest())
        digest = self._digest()
        for lines in self.others:
            digest.update("\n".join(["", *lines]).encode("utf-8", "surrogatepass"))
        documents = () if self.documents is None else self.documents
        for first in range(0, len(documents), _MANY):
            block = " ".join(map(str, documents[first : first + _MANY]))
            digest.update(f" {block}".encode() if first else block.encode())
        return digest.hexdigest()

    def empty_rows(self) -> list[int]:
        """Row numbers of the pairs whose source or target has no text."""
        pairs = enumerate(zip(self.source, self.target, strict=True))
        return [row for row, pair in pairs if any(map(shows_nothing, pair))]

    def take(self, name: str, rows: Sequence[int]) -> "Split":
        """A split of these rows, without links."""
        documents = None if self.documents is None else [int(self.documents[row]) for row in rows]
        source, target = ([side[row] for row in rows] for side in (self.source, self.target))
        return Split(name, source, target, documents=documents)

    def without(self, rows: Sequence[int], folder: Path | None = None) -> "Split":
        """A split without `rows` (ascending). `folder` stores document numbers that are too many for memory."""
        documents, gone = self.documents, set(rows)
        if documents is not None and gone:
            numbers = (number for row, number in enumerate(documents) if row not in gone)
            documents = counted(numbers, len(documents) - len(gone), folder)
        links = None if self.links is None else without(self.links, rows)
        source, target = without(self.source, rows), without(self.target, rows)
        return self._replace(source=source, target=target, links=links, documents=documents)

    def _digest(self) -> "hashlib._Hash":
        digest = hashlib.sha256()
        for first in range(0, len(self.source), _MANY):
            block = zip(self.source[first : first + _MANY], self.target[first : first + _MANY])
            digest.update("".join(f"{source}\n{target}\n" for source, target in block).encode("utf-8", "surrogatepass"))
        return digest


class ContrastiveItem(NamedTuple):
    """A sentence with contrastive translations (`wrong`), each correct only in another context.

    `row` is its row in the split; `distance` is the number of sentences back to the sentence that disambiguates it.
    """

    row: int
    distance: int
    wrong: Sequence[str]


def links_fingerprint(links: Sequence[str]) -> str:
    """SHA-256 of word links."""

    def digest() -> str:
        return hashlib.sha256("\n".join(links).encode("utf-8", "surrogatepass")).hexdigest()

    return remembered([links], "links", digest)


def given_split(source: Path, lines: Sequence[str], translations: Sequence[str], *others: Sequence[str]) -> Split:
    """A split of a user's files. A fingerprint in its name distinguishes it from other files with the same name."""
    split = Split(source.name, lines, translations, others=others)
    return split._replace(name=f"{safe_name(source.name) or 'text'}-{split.fingerprint()[:6]}")


class DataSource(ABC):
    """A data set. The constructor checks only settings; `read` reads the data and reports errors in it.

    `known` is the folder that caches the lines of large files and facts about them; see `nmt.data.stored`.
    """

    known: Path | None = None
    #: (source code, target code), such as ("de", "en")
    languages: tuple[str, str]
    #: short, with characters that are safe in file names, such as "m30k-de-en"
    name: str
    #: whether every split has exact word links
    has_links: bool = False

    @abstractmethod
    def tests(self) -> list[str]:
        """Names of the test splits, in the order of the report; may be empty."""

    @abstractmethod
    def read(self, split: str) -> Split:
        """The split called "train", "valid" or one of `tests()`.

        Raises UserError for any other name and for anything that is wrong with the data.
        """

    def contrasts(self, split: str) -> list[ContrastiveItem]:
        """Sentences of a split that need context, with contrastive translations; [] if the data set has none."""
        del split
        return []

    def check(self) -> None:
        """Raise UserError if a file of a split is missing; reads no text."""
        return

    def notes(self) -> list[str]:
        """Decisions made for the user, a line each, shown before training."""
        return []

    def splits(self) -> list[str]:
        """All names that `read` accepts."""
        return ["train", "valid", *self.tests()]

    def unknown_split(self, split: str) -> UserError:
        """The error for a split that does not exist."""
        names = ", ".join(self.splits())
        return UserError(
            f"The data set {self.name} has no split {split!r}; it has {names}.{nearest(split, self.splits())}"
        )


def safe_name(text: str) -> str:
    """`text` with nothing but ASCII letters, digits, dots, underscores and hyphens."""
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")
