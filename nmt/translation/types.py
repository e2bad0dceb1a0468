"""What translating returns: the value that scoring, alignments and pictures are made from."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt


class Translation(NamedTuple):
    """One hypothesis for one sentence, with what each of its pieces looked at.

    S counts the source pieces with the end of sentence, T the target pieces (with the end of sentence
    unless the length limit cut the hypothesis before it), H the attention heads.

    Attributes:
        source: the sentence as it was given.
        text: the translation, one line, detokenised.
        score: what the search ranked by (the log-probability after length and coverage penalties).
        log_prob: natural-log probability of the target pieces.
        source_pieces: [S] subword strings, the last one "</s>".
        pieces: [T] subword strings.
        source_words: [S] index of the whitespace-delimited word of each source piece, -1 for none.
        words: [T] the same for the target.
        weights: [H, T, S] attention weights; None where the decoder has no attention.
    """

    source: str
    text: str
    score: float
    log_prob: float
    source_pieces: list[str]
    pieces: list[str]
    source_words: list[int]
    words: list[int]
    weights: npt.NDArray[np.float32] | None
