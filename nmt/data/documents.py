"""Documents: which lines belong together, and which sentences stood before each one.

A document is a run of neighbouring lines. Contexts are of the source side only, and follow from the text alone: a batch
in any order, a line of any batch and a resumed run see the same ones.

Shapes: B sentences, K previous sentences of each, C tokens of the longest of these with EOS.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Literal

import numpy as np
import torch
from torch import Tensor

from nmt.data.batch import Batch
from nmt.data.corpus import Split
from nmt.data.lines import read_parallel_lines
from nmt.errors import UserError
from nmt.limits import Positive
from nmt.text.tokenizer import EOS, PAD, Tokenizer

#: How the lines of a data set come in documents: separated by empty lines, or one file a document.
Documents = Literal["blank", "files"]
#: How those of a text to translate do: separated by empty lines, one document in all, or each line on its own.
Followed = Literal["blank", "one", "none"]


def by_blank_lines(*sides: Sequence[str], names: Sequence[str] = ("source", "target")) -> list[int]:
    """The number of each line's document, from 0, where empty lines separate documents.

    An empty line belongs to the document that it ends. Several in a row separate as one does.

    Raises:
        UserError: a line is empty on one side and not on the other, so that documents are not the same on both.
    """
    numbers, document, begun = [], 0, False
    for number, line in enumerate(zip(*sides, strict=True), start=1):
        blank = [not text.strip() for text in line]
        if any(blank) and not all(blank):
            empty, full = names[blank.index(True)], names[blank.index(False)]
            raise UserError(
                f"{empty}, line {number}: empty, but {full} has text there. With data.documents=blank an empty line "
                "ends a document on both sides. Empty the line on both sides, or on none."
            )
        numbers.append(document)
        if not blank[0]:
            begun = True
        elif begun:
            document, begun = document + 1, False
    return numbers


def by_ids(ids: Sequence[str], name: str) -> list[int]:
    """The number of each line's document, from 0, from the ids of a column; lines with one id are one document.

    Raises:
        UserError: an id returns after another one, so that a document is not in one place.
    """
    numbers: list[int] = []
    seen: dict[str, int] = {}
    last = None
    for number, text in enumerate(ids, start=1):
        if text != last and text in seen:
            raise UserError(
                f"{name}, line {number}: document '{text}' returns; its last line was line {seen[text]}. Sort the file "
                "so that the lines of a document are neighbours."
            )
        numbers.append((numbers[-1] + (text != last)) if numbers else 0)
        seen[text], last = number, text
    return numbers


def read_folders(
    source: Path, target: Path, endings: tuple[str, str] = ("", "")
) -> tuple[list[str], list[str], list[int]]:
    """The lines of two folders with one file a document, in the order of their names, and the document of each line.

    Files belong together if they have one name, or with `endings` ("de", "en") one name before these.

    Raises:
        UserError: a folder is missing, a document is missing on one side, or its numbers of lines differ.
    """
    files = []
    for folder, ending in zip((source, target), endings, strict=True):
        if not folder.is_dir():
            raise UserError(f"There is no folder {folder}. With data.documents=files it holds one file a document.")
        tail = f".{ending}" if ending else ""
        files.append(
            {
                path.name.removesuffix(".gz").removesuffix(tail): path
                for path in sorted(folder.iterdir())
                if path.is_file() and path.name.removesuffix(".gz").endswith(tail) and not path.name.startswith(".")
            }
        )
    for one, other, folder in ((files[0], files[1], target), (files[1], files[0], source)):
        if missing := sorted(one.keys() - other.keys()):
            raise UserError(f"{one[missing[0]]} has no translation in {folder}: a document needs a file on both sides.")
    lines: tuple[list[str], list[str]] = ([], [])
    numbers: list[int] = []
    for number, name in enumerate(sorted(files[0])):
        pair = read_parallel_lines(files[0][name], files[1][name])
        for side, more in zip(lines, pair, strict=True):
            side.extend(more)
        numbers += [number] * len(pair[0])
    if not any(line.strip() and other.strip() for line, other in zip(*lines, strict=True)):
        raise UserError(f"{source} and {target} are empty: no line has text in both.")
    return *lines, numbers


def numbered(lines: Sequence[str], documents: Followed) -> list[int]:
    """The number of each line's document, from 0, in a text to translate."""
    if documents == "blank":
        return by_blank_lines(lines)
    return [0] * len(lines) if documents == "one" else list(range(len(lines)))


class Follower:
    """The contexts of lines that arrive one after the other: the `sentences` before each in its document.

    Empty lines are no context. With "blank" they end a document, with "one" they do not.
    """

    def __init__(self, sentences: int, documents: Followed) -> None:
        self._documents = documents
        self._last: deque[str] = deque(maxlen=0 if documents == "none" else sentences)
        #: Whether lines could have had context, and no empty line has ended a document.
        self.unseparated = documents == "blank" and sentences > 0

    def take(self, lines: Iterable[str]) -> list[list[str]]:
        """The previous sentences of each of the next lines, the nearest one last."""
        contexts = []
        for line in lines:
            contexts.append(list(self._last) if line.strip() else [])
            if line.strip():
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
    for first, end in _spans(documents):
        contexts += Follower(sentences, "one").take(source[first:end])
    return contexts


def _spans(documents: Sequence[int]) -> Iterator[tuple[int, int]]:
    ends = [row for row in range(1, len(documents)) if documents[row] != documents[row - 1]]
    if len(documents):
        yield from zip([0, *ends], [*ends, len(documents)], strict=True)


def context_tensor(contexts: Sequence[Sequence[Sequence[int]]]) -> Tensor:
    """Tokens (without specials) of the previous sentences of each line, the nearest one last, as int64 [B, K, C].

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
    """Adds to each batch of a split the sentences before its own, for training and validation.

    Contexts are lines of the split, whether or not they are dropped as pairs, in one segmentation: subword sampling is
    for the current sentence. Lines longer than `max_length` pieces are cut there.
    """

    def __init__(self, split: Split, tokenizer: Tokenizer, sentences: Positive, max_length: Positive) -> None:
        """Tokenise the source of a split with documents; some 50 bytes a piece."""
        assert split.documents is not None
        self._tokens = [tokens[:max_length] for tokens in tokenizer.source.encode(split.source)]
        self._before: list[list[int]] = []
        for first, end in _spans(split.documents):
            last: deque[int] = deque(maxlen=sentences)
            for row in range(first, end):
                self._before.append(list(last))
                if split.source[row].strip():
                    last.append(row)

    def __call__(self, batch: Batch) -> Batch:
        """The batch with its contexts."""
        rows = batch.rows.tolist()
        return batch._replace(context=context_tensor([[self._tokens[r] for r in self._before[row]] for row in rows]))
