"""The built-in text, for which no network and no files are needed; `scripts/cldr_text.py` has generated it.

A row of a file in `shipped/` has tabs between split, document, source, target, word links, and wrong translations.
"""

import functools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

from nmt.data.corpus import ContrastiveItem, DataSource, Split
from nmt.data.lines import read_lines
from nmt.limits import between

_SHIPPED = Path(__file__).resolve().parent / "shipped"
_CLDR = "47"


class _Shipped(DataSource):
    """A data set in a file of the package."""

    has_links = True
    file: str

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes

    def tests(self) -> list[str]:
        """There is one test split, "test"."""
        return ["test"]

    def read(self, split: str) -> Split:
        """The split called "train", "valid" or "test", with its gold word links."""
        rows = self._rows(split)
        sides = [[row[column] for row in rows] for column in (2, 3, 4)]
        documents = [int(row[1]) for row in rows] if rows[0][1] else None
        return Split(split, sides[0], sides[1], sides[2], documents)

    def _rows(self, split: str) -> list[list[str]]:
        """The rows of a split, as many as its size."""
        if split not in self._sizes:
            raise self.unknown_split(split)
        rows = _split_rows(self.file, split)
        return rows[: self._end(rows, self._sizes[split])]

    def _end(self, rows: Sequence[Sequence[str]], size: int) -> int:
        return size

    def _counts(self) -> str:
        return " / ".join(f"{self._sizes[split]:,}" for split in ("train", "valid", "test"))


@functools.cache
def _split_rows(file: str, split: str) -> list[list[str]]:
    rows = (line.split("\t") for line in read_lines(_SHIPPED / file))
    return [row for row in rows if row[0] == split]


class BuiltIn(_Shipped):
    """English phrases in Basque: dates, amounts, names and phrases that join them.

    No sentence occurs twice, on either side, within a split or in two of them. A smaller split is the first part of the
    whole one. Single names are in the training set only, since no model can guess them.
    """

    file, languages, name = "phrases.tsv.xz", ("en", "eu"), "builtin-en-eu"

    def __init__(
        self,
        train_pairs: Annotated[int, between(1, 20_000)] = 20_000,
        valid_pairs: Annotated[int, between(1, 500)] = 500,
        test_pairs: Annotated[int, between(1, 500)] = 500,
    ) -> None:
        super().__init__({"train": train_pairs, "valid": valid_pairs, "test": test_pairs})

    def notes(self) -> list[str]:
        """The source of the corpus."""
        return [f"Built-in corpus en-eu: {self._counts()} phrases (train / valid / test) of Unicode CLDR {_CLDR}."]


class BuiltInDocuments(_Shipped):
    """English documents of four sentences in German: an amount with its unit in full, then amounts in narrow form.

    In the validation and the test set every document comes once for each meaning of its narrow form, with the same
    numbers. So a model that does not see the first sentence is right in exactly one case of two or three.
    """

    file, languages, name = "documents.tsv.xz", ("en", "de"), "documents-en-de"

    def __init__(
        self,
        train_documents: Annotated[int, between(1, 6000)] = 6000,
        valid_documents: Annotated[int, between(1, 102)] = 100,
        test_documents: Annotated[int, between(1, 301)] = 300,
    ) -> None:
        """Take the numbers of documents, at least: the meanings of one form stay together."""
        super().__init__({"train": train_documents, "valid": valid_documents, "test": test_documents})

    def _end(self, rows: Sequence[Sequence[str]], size: int) -> int:
        """The first row of the first document from number `size` on that has other numbers than the one before."""
        starts = [at for at, row in enumerate(rows) if not at or row[1] != rows[at - 1][1]] + [len(rows)]
        later = (
            start
            for before, start, end in zip(starts, starts[1:], [*starts[2:], len(rows)], strict=False)
            if int(rows[start - 1][1]) + 1 >= size and not _same(rows[before:start], rows[start:end])
        )
        return next(later, len(rows))

    def contrasts(self, split: str) -> list[ContrastiveItem]:
        """The ambiguous sentences of a split, with the distance to the sentence that names the unit."""
        rows = self._rows(split)
        first = {row[1]: at for at, row in reversed(list(enumerate(rows)))}
        return [ContrastiveItem(at, at - first[row[1]], tuple(row[5:])) for at, row in enumerate(rows) if row[5:]]

    def notes(self) -> list[str]:
        """The source of the corpus."""
        return [
            f"Built-in documents en-de: {self._counts()} (train / valid / test) of Unicode CLDR {_CLDR}. The first "
            "sentence of a document says which unit is meant by ′, ″, °, c, m or pt."
        ]


def _same(document: Sequence[Sequence[str]], other: Sequence[Sequence[str]]) -> bool:
    """Whether two documents differ in the meaning of their narrow form only."""
    return [row[2] for row in document[1:]] == [row[2] for row in other[1:]]
