"""Documents: the lines that belong together, and the previous sentences of each line.

A document is a run of neighbouring lines. Contexts are source sentences and depend only on the text: the order and the
size of batches and the resumption of a run do not change them.

Shapes: B sentences, K previous sentences of each, C tokens of the longest of these with EOS.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, islice, takewhile
from operator import itemgetter
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nmt.data.batch import Batch
from nmt.data.dataset import Split
from nmt.data.stored import Stored
from nmt.system.errors import UserError
from nmt.system.limits import Positive
from nmt.text.canonical import shows_nothing
from nmt.text.tokenizer import EOS, PAD, Tokenizer

#: How documents are marked in a data set: separated by empty lines, or as one file per document.
Documents = Literal["blank", "files"]
#: How documents are marked in a text to translate: separated by empty lines; all lines are one; each line is one.
Followed = Literal["blank", "one", "none"]


def by_blank_lines(*sides: Sequence[str], names: Sequence[str] = ("source", "target")) -> Iterator[int]:
    """Yield the document number of each line, from 0; empty lines belong to the document before them.

    Raises:
        UserError: a line is empty on one side and not on the other, so that documents are not the same on both.
    """
    document, begun = 0, False
    for number, line in enumerate(zip(*sides, strict=True), start=1):
        blank = [shows_nothing(text) for text in line]
        if any(blank) and not all(blank):
            empty, full = names[blank.index(True)], names[blank.index(False)]
            raise UserError(
                f"{empty}, line {number}: empty, but {full} has text there. With data.documents=blank an empty line "
                "ends a document on both sides. Empty the line on both sides, or on none."
            )
        yield document
        if not blank[0]:
            begun = True
        elif begun:
            document, begun = document + 1, False


def numbered(lines: Sequence[str], documents: Followed) -> list[int]:
    """The document number of each line, from 0, in a text to translate."""
    if documents == "blank":
        return list(by_blank_lines(lines))
    return [0] * len(lines) if documents == "one" else list(range(len(lines)))


class Follower:
    """Contexts of lines that arrive one after the other: up to `sentences` previous sentences of the same document.

    Empty lines are no context. With "blank" they end a document, with "one" they do not.
    """

    def __init__(self, sentences: int, documents: Followed) -> None:
        self._documents = documents
        self._last: deque[str] = deque(maxlen=0 if documents == "none" else sentences)
        #: Whether empty lines should separate documents, but none has come so far.
        self.unseparated = documents == "blank" and sentences > 0

    def take(self, lines: Iterable[str]) -> list[list[str]]:
        """The previous sentences of each of the next lines, the nearest one last."""
        contexts = []
        for line in lines:
            blank = shows_nothing(line)
            contexts.append([] if blank else list(self._last))
            if not blank:
                self._last.append(line)
            elif self._documents == "blank":
                self.unseparated = False
                self._last.clear()
        return contexts


def contexts_of(source: Sequence[str], documents: Sequence[int] | None, sentences: int) -> list[list[str]]:
    """The previous sentences of each line in its document, the nearest one last; none without documents."""
    if documents is None:
        return [[] for _ in source]
    contexts: list[list[str]] = []
    for _, lines in groupby(zip(documents, source, strict=True), key=itemgetter(0)):
        contexts += Follower(sentences, "one").take(line for _, line in lines)
    return contexts


def context_tensor(contexts: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """Pad the tokens (without specials) of each line's previous sentences, the nearest one last, to int64 [B, K, C].

    K is the largest number of previous sentences. The nearest one is always in the last row; missing ones are PAD
    throughout. Every sentence ends in EOS. [B, 0, 0] if no line has any.
    """
    most = max(map(len, contexts), default=0)
    longest = max((len(tokens) + 1 for sentences in contexts for tokens in sentences), default=0)
    grid = np.full((len(contexts), most, longest), PAD, dtype=np.int64)
    for row, sentences in enumerate(contexts):
        for place, tokens in enumerate(sentences, start=most - len(sentences)):
            grid[row, place, : len(tokens)] = tokens
            grid[row, place, len(tokens)] = EOS
    return torch.from_numpy(grid)


class Contexts:
    """Adds the previous sentences to each batch of a split, for training and validation.

    Lines that are dropped as pairs are contexts, too. Contexts always have the usual segmentation: subword sampling
    applies only to the current sentence. Lines are cut after `max_length` pieces.
    """

    def __init__(self, split: Split, tokenizer: Tokenizer, sentences: Positive, max_length: Positive) -> None:
        """Tokenise the source of a split with documents, with some 50 bytes of memory per piece.

        Lines that are stored in a file are tokenised when a batch needs them.
        """
        assert split.documents is not None
        self._lines, self._documents, self._sentences = split.source, split.documents, sentences
        self._vocabulary, self._max_length = tokenizer.source, max_length
        self._tokens = None if isinstance(split.source, Stored) else self._encode(split.source)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its contexts."""
        before = [list(self._before(row))[::-1] for row in batch.rows.tolist()]
        tokens: Mapping[int, list[int]] | Sequence[list[int]] | None = self._tokens
        if tokens is None:
            wanted = sorted({row for rows in before for row in rows})
            tokens = dict(zip(wanted, self._encode([self._lines[row] for row in wanted]), strict=True))
        return batch._replace(context=context_tensor([[tokens[row] for row in rows] for rows in before]))

    def _encode(self, lines: Sequence[str]) -> list[list[int]]:
        return [tokens[: self._max_length] for tokens in self._vocabulary.encode(lines)]

    def _before(self, row: int) -> Iterator[int]:
        """The rows of the previous sentences of a line, the nearest one first."""
        same = takewhile(lambda other: self._documents[other] == self._documents[row], range(row - 1, -1, -1))
        return islice((other for other in same if not shows_nothing(self._lines[other])), self._sentences)
