"""The built-in corpora, which need no network and no files; `scripts/cldr_text.py` generates them.

A row of a file in `shipped/` has tabs between split, document, source, target, word links, and wrong translations.
"""

import functools
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, NamedTuple

from nmt.data.dataset import ContrastiveItem, DataSource, Split
from nmt.data.lines import read_lines
from nmt.system.limits import between

_SHIPPED = Path(__file__).resolve().parent / "shipped"


class _Shipped(DataSource):
    """A data set in a file of the package; a smaller split is the beginning of the full split."""

    has_links = True
    file: str

    def __init__(self, **sizes: int) -> None:
        self._sizes = sizes

    def tests(self) -> list[str]:
        """There is one test split, "test"."""
        return ["test"]

    def read(self, split: str) -> Split:
        """The split called "train", "valid" or "test", with its gold word links."""
        documents, source, target, links, _ = zip(*self._rows(split), strict=True)
        numbers = [int(number) for number in documents] if documents[0] else None
        return Split(split, list(source), list(target), list(links), numbers)

    def contrasts(self, split: str) -> list[ContrastiveItem]:
        """The ambiguous sentences of a split, with the distance to the first sentence of their document."""
        rows = self._rows(split)
        first = {row.document: at for at, row in reversed(list(enumerate(rows)))}
        return [ContrastiveItem(at, at - first[row.document], row.wrong) for at, row in enumerate(rows) if row.wrong]

    def notes(self) -> list[str]:
        """The source of the text."""
        counts = " / ".join(f"{self._sizes[split]:,}" for split in ("train", "valid", "test"))
        return [f"Built-in text {self.name}: {counts} (train / valid / test) of Unicode CLDR 47."]

    def _rows(self, split: str) -> "list[_Row]":
        """The first rows or documents of a split, as many as its size; all meanings of a form stay together."""
        if split not in self._sizes:
            raise self.unknown_split(split)
        rows, size = _rows_of(self.file, split), self._sizes[split]
        if not rows[0].document:
            return rows[:size]
        documents = [list(group) for _, group in itertools.groupby(rows, lambda row: row.document)]
        while size < len(documents) and _forms(documents[size]) == _forms(documents[size - 1]):
            size += 1
        return list(itertools.chain.from_iterable(documents[:size]))


class _Row(NamedTuple):
    document: str
    source: str
    target: str
    links: str
    wrong: tuple[str, ...]


@functools.cache
def _rows_of(file: str, split: str) -> list[_Row]:
    rows = []
    for line in read_lines(_SHIPPED / file):
        name, document, source, target, links, *wrong = line.split("\t")
        if name == split:
            rows.append(_Row(document, source, target, links, tuple(wrong)))
    return rows


def _forms(document: Sequence[_Row]) -> list[str]:
    """The source sentences after the first, which names the unit: equal in documents of all meanings of a form."""
    return [row.source for row in document[1:]]


class BuiltIn(_Shipped):
    """English phrases with Basque translations: dates, amounts, names and phrases that join them.

    No sentence occurs twice on either side, within a split or across splits. Single names are only in the training set,
    since no model can guess them.
    """

    file, languages, name = "phrases.tsv.xz", ("en", "eu"), "builtin-en-eu"

    def __init__(
        self,
        train_pairs: Annotated[int, between(1, 20_000)] = 20_000,
        valid_pairs: Annotated[int, between(1, 500)] = 500,
        test_pairs: Annotated[int, between(1, 500)] = 500,
    ) -> None:
        super().__init__(train=train_pairs, valid=valid_pairs, test=test_pairs)


class BuiltInDocuments(_Shipped):
    """English documents of four sentences with German translations: an amount with its full unit, then narrow forms.

    In the validation and the test set, every document occurs once for each meaning of its narrow form, with the same
    numbers. So a model that does not see the first sentence is right in exactly one case of two or three.
    """

    file, languages, name = "documents.tsv.xz", ("en", "de"), "documents-en-de"

    def __init__(
        self,
        train_documents: Annotated[int, between(1, 6000)] = 6000,
        valid_documents: Annotated[int, between(1, 102)] = 100,
        test_documents: Annotated[int, between(1, 301)] = 300,
    ) -> None:
        super().__init__(train=train_documents, valid=valid_documents, test=test_documents)
