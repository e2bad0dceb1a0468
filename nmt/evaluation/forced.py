"""References under forced decoding -> what each of their words costs the model, and what it is linked to.

The text is the same for every model, so that models can be compared without their search.
"""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from nmt.alignment.units import spelled
from nmt.alignment.word_weights import Head, links
from nmt.evaluation.words import split_words
from nmt.links import format_links
from nmt.translation.heads import AUTO
from nmt.translation.types import Translation

FILE = "references.json"


def rows(
    forced: Iterable[Translation],
    lines: Sequence[int],
    characters: tuple[bool, bool],
    head: Head = AUTO,
    shift: int = 0,
) -> Iterator[dict[str, Any]]:
    """Yield what `references.json` has of each reference, without its text.

    Args:
        forced: references under forced decoding.
        lines: their line numbers in the split, from 1.
        characters: whether the words of sources and of references are characters (`nmt.evaluation.words`).
        head: a selection of heads (`nmt.translation.heads`).
        shift: 0 or 1; see `nmt.alignment.word_weights`.

    Returns:
        `line`; `log_probs`, natural, of each word, where a piece of several words counts for each by its share;
        `links`, between words of source and reference in Pharaoh format, None without attention; and, for each piece
        with the end of sentence, `best`, the probability of the most probable piece in thousandths, and `right`, a
        string of 1 (the reference has this piece) and 0.
    """
    for line, translation in zip(lines, forced, strict=True):
        target = spelled(translation.text, translation.spans, split_words(translation.text, characters[1]))
        log_probs, best = np.array(translation.log_probs), np.array(translation.best_log_probs)
        linked = None
        if translation.weights is not None:
            words = split_words(translation.source, characters[0])
            source = spelled(translation.source, translation.source_spans, words)
            linked = format_links(links(translation, head, shift, (source, target)))
        yield {
            "line": line,
            "log_probs": [round(float(value), 3) for value in log_probs @ target.members],
            "links": linked,
            "best": [round(1000 * math.exp(value)) for value in best],
            "right": "".join("01"[value] for value in (log_probs >= best).astype(int)),
        }
