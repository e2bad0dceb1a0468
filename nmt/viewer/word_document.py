"""Documents for the viewer from words and their weights, without pieces or a model."""

import base64
from collections.abc import Sequence
from typing import Any

_FULL = 1000  # weights are thousandths


def sentence_of_words(source: Sequence[str], target: Sequence[str], weights: Sequence[Sequence[int]]) -> dict[str, Any]:
    """The document of a translation of which only the words and their weights are known.

    Args:
        source: S source words.
        target: T target words.
        weights: [T][S] weights in thousandths.
    """
    flat = bytes(max(weight > 0, round(255 * min(_FULL, weight) / _FULL)) for row in weights for weight in row)
    stored = {
        "heads": ["0"],
        "shape": [1, len(target), len(source)],
        "data": None,
        "bytes": base64.b64encode(flat).decode("ascii"),
    }
    hypothesis = {
        **_side(target),
        "score": None,
        "log_prob": None,
        "complete": True,
        "alignment": None,
        "weights": {"cross": stored, "encoder": None, "decoder": None},
        "stages": None,
    }
    return {
        "format": "nmt.translation",
        "version": 2,
        "model": None,
        "search": None,
        "source": _side(source),
        "hypotheses": [hypothesis],
        "beam": None,
    }


def _side(words: Sequence[str]) -> dict[str, Any]:
    places, start = [], 0
    for word in words:
        places.append({"text": word, "start": start, "end": start + len(word)})
        start += len(word) + 1
    return {
        "text": " ".join(words),
        "direction": "auto",
        "spaced": True,
        "words": places,
        "pieces": [{**place, "word": at} for at, place in enumerate(places)],
    }
