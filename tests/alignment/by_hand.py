"""What the tests of this room share: translations made by hand, and corpora on request."""

import gzip
import os
import re
from pathlib import Path

import numpy as np
import pytest

from nmt.text.spans import Span
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
    source_spans=[(0, 3), (4, 6), (6, 8), (9, 15), None],
    spans=[(0, 3), (3, 6), (7, 11), None],
    weights=np.array([_FIRST, _SECOND], dtype=np.float32),
)

# What the translator returns for a line without text.
EMPTY = Translation("", "", 0.0, 0.0, ["</s>"], ["</s>"], [None], [None], None)


def even(source: str, text: str, heads: int = 1) -> Translation:
    """A translation that looks everywhere alike; each word is one piece, or each character without spaces."""

    def pieces(sentence: str) -> tuple[list[str], list[Span | None]]:
        shown = list(re.finditer(r"\S+" if len(sentence.split()) > 1 else r"\S", sentence))
        first = [not sentence[max(match.start() - 1, 0) : match.start()].strip() for match in shown]
        names = ["\u2581" * begins + match[0] for match, begins in zip(shown, first, strict=True)]
        return [*names, "</s>"], [*(match.span() for match in shown), None]

    source_pieces, source_spans = pieces(source)
    target_pieces, spans = pieces(text)
    shape = (heads, len(target_pieces), len(source_pieces))
    weights = np.full(shape, 1 / len(source_pieces), dtype=np.float32)
    return Translation(source, text, -1.0, -3.0, source_pieces, target_pieces, source_spans, spans, weights)
