"""What translating returns: the value that scoring, alignments and pictures are made from."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.text.spans import Span


class Translation(NamedTuple):
    """One hypothesis for one sentence, with what each of its pieces looked at.

    S counts the source pieces with the end of sentence, T the target pieces (with the end of sentence
    unless the length limit cut the hypothesis before it), H the attention heads.

    Attributes:
        source: the sentence as it was given.
        text: the translation, one line, detokenised.
        score: what the search ranked by (the log-probability after length and coverage penalties).
        log_prob: natural-log probability of the target pieces.
        source_pieces: [S] subword strings, the last one the end of sentence.
        pieces: [T] subword strings.
        source_spans: [S] the characters [begin, end) of `source` that each piece stands for, without white space at
            either end; several pieces may share one character, a piece of white space alone is empty, and the end of
            sentence has None.
        spans: [T] the same for the target, characters of `text`.
        weights: [H, T, S] attention weights; None where the decoder has no attention.
    """

    source: str
    text: str
    score: float
    log_prob: float
    source_pieces: list[str]
    pieces: list[str]
    source_spans: list[Span | None]
    spans: list[Span | None]
    weights: npt.NDArray[np.float32] | None
