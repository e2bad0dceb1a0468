"""Spans of pieces in their text: [begin, end) in characters. Other rooms know pieces only by these spans."""

from collections.abc import Sequence

import numpy as np

Span = tuple[int, int]


def words_of(text: str, spans: Sequence[Span | None]) -> list[int]:
    """For each span the index in `text.split()` of the word of its first character; -1 if there is no word.

    An empty span belongs to the word that begins right after it, if there is one; None belongs to no word.
    """
    blank = np.array([*map(str.isspace, text), True])  # the last entry is for empty spans at the end
    begins_word = ~blank & np.append(True, blank[:-1])
    word_of = np.where(blank, -1, np.cumsum(begins_word) - 1).tolist()
    return [-1 if span is None else word_of[span[0]] for span in spans]
