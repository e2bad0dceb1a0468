"""What the tests of this room share: translations made by hand, and corpora on request."""

import gzip
import os
from pathlib import Path

import numpy as np
import pytest

from nmt.translation.types import Translation


def read_corpus(name: str) -> list[str]:
    """The lines of a file below NMT_DATA, plain or gzip; skips the test where there are no corpora."""
    root = os.environ.get("NMT_DATA")
    if not root:
        pytest.skip("set NMT_DATA to the folder that holds multi30k/ and alignments/")
    data = (Path(root) / name).read_bytes()
    text = gzip.decompress(data) if name.endswith(".gz") else data
    return text.decode().split("\n")[:-1]


_FIRST = [
    [0.1, 0.3, 0.4, 0.1, 0.1],
    [0.0, 0.5, 0.3, 0.2, 0.0],
    [0.1, 0.1, 0.1, 0.6, 0.1],
    [0.0, 0.0, 0.0, 0.2, 0.8],
]
_SECOND = [
    [0.5, 0.1, 0.2, 0.1, 0.1],
    [0.4, 0.1, 0.1, 0.2, 0.2],
    [0.3, 0.1, 0.1, 0.4, 0.1],
    [0.2, 0.2, 0.2, 0.2, 0.2],
]

# Two heads over "das Haus brennt" -> "houses burn", small enough to do by hand.
WORKED = Translation(
    source="das Haus brennt",
    text="houses burn",
    score=-0.5,
    log_prob=-2.0,
    source_pieces=["\u2581das", "\u2581Ha", "us", "\u2581brennt", "</s>"],
    pieces=["\u2581hou", "ses", "\u2581burn", "</s>"],
    source_words=[0, 1, 1, 2, -1],
    words=[0, 0, 1, -1],
    weights=np.array([_FIRST, _SECOND], dtype=np.float32),
)

# What the translator returns for a line without text.
EMPTY = Translation("", "", 0.0, 0.0, ["</s>"], ["</s>"], [-1], [-1], None)


def even(source: str, text: str, heads: int = 1) -> Translation:
    """A translation that looks everywhere alike; each word is one piece, or each character without spaces."""

    def pieces(sentence: str) -> tuple[list[str], list[int]]:
        words = sentence.split()
        if len(words) == 1:
            return ["\u2581" + sentence[0], *sentence[1:], "</s>"], [0] * len(sentence) + [-1]
        return ["\u2581" + word for word in words] + ["</s>"], [*range(len(words)), -1]

    source_pieces, source_words = pieces(source)
    target_pieces, words = pieces(text)
    shape = (heads, len(target_pieces), len(source_pieces))
    weights = np.full(shape, 1 / len(source_pieces), dtype=np.float32)
    return Translation(source, text, -1.0, -3.0, source_pieces, target_pieces, source_words, words, weights)
