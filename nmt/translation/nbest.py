"""N-best lists: with different texts, and for a line from the n-best lists of its parts."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from nmt.search import Hypothesis, Search
from nmt.text.spans import Span
from nmt.text.tokenizer import Vocabulary
from nmt.translation.types import Translation

Part = TypeVar("Part")
JOINED_WEIGHTS = 50_000_000  # maximum number of weights for a line of several parts: 200 MB, nearly all zeros


def ends_of_parts(words: Sequence[int], most: int, *, cut: bool) -> list[int]:
    """0 and the end of each part of a line, at word boundaries if possible.

    Args:
        words: the word index of each piece.
        most: maximum number of pieces in a part.
        cut: whether to keep only the first `most` pieces, cut at any place.
    """
    ends = [0]
    while len(words) - ends[-1] > most and not cut:
        end = longest = ends[-1] + most
        while end > ends[-1] + 1 and words[end] == words[end - 1]:
            end -= 1
        ends.append(longest if end == ends[-1] + 1 else end)  # a word longer than a part is cut inside
    return [0, most] if cut else [*ends, len(words)]


def join(sentence: str, parts: list[list[Translation]]) -> list[Translation]:
    """Join the n-best lists of the parts of a sentence: return the combinations with the highest sums of scores.

    Weights become diagonal blocks of one matrix; None if this would have more than JOINED_WEIGHTS entries.
    """
    if len(parts) == 1:
        return parts[0]
    most = max(map(len, parts))
    best: list[tuple[float, list[Translation]]] = [(0.0, [])]
    for ranked in parts:
        longer = [(score + each.score, before, each) for score, before in best for each in ranked]
        longer = sorted(longer, key=lambda combination: -combination[0])[:most]
        best = [(score, [*before, each]) for score, before, each in longer]
    return [_join_rank(sentence, combination) for _, combination in best]


def _join_rank(sentence: str, parts: list[Translation]) -> Translation:
    weights = None
    blocks = [part.weights for part in parts if part.weights is not None]
    shape = [len(blocks[0]) if blocks else 0, *(sum(block.shape[axis] for block in blocks) for axis in (1, 2))]
    if len(blocks) == len(parts) and math.prod(shape) <= JOINED_WEIGHTS:
        weights = np.zeros(shape, dtype=np.float32)
        row = column = 0
        for block in blocks:
            weights[:, row : row + block.shape[1], column : column + block.shape[2]] = block
            row, column = row + block.shape[1], column + block.shape[2]
    text = ""
    spans: list[Span | None] = []
    for part in parts:
        text += " " if text and part.text else ""
        spans += [None if span is None else (span[0] + len(text), span[1] + len(text)) for span in part.spans]
        text += part.text
    return Translation(
        sentence,
        text,
        sum(part.score for part in parts),
        sum(part.log_prob for part in parts),
        [piece for part in parts for piece in part.source_pieces],
        [piece for part in parts for piece in part.pieces],
        [span for part in parts for span in part.source_spans],
        spans,
        weights,
        parts[0].heads,
        cut=any(part.cut for part in parts),
    )


def search_for_texts(
    search: Callable[[Sequence[Part], Sequence[bytes]], list[list[Hypothesis]]],
    parts: Sequence[Part],
    settings: Search,
    vocabulary: Vocabulary,
) -> list[list[Hypothesis]]:
    """The n-best lists of `parts` with n different texts, or as many as two searches find.

    Args:
        search: searches parts; returns n-best lists, with one hypothesis per text if the bytes of each token are given.
        parts: parts of sentences.
        settings: the settings of the search.
        vocabulary: the target vocabulary.
    """
    nbest_lists = search(parts, ())
    if settings.nbest == 1:
        return nbest_lists
    distinct_lists = [_different(hypotheses, vocabulary) for hypotheses in nbest_lists]
    short = [row for row, each in enumerate(distinct_lists) if len(each) < len(nbest_lists[row])]
    if short and not settings.draws:
        for row, others in zip(short, search([parts[row] for row in short], vocabulary.shows), strict=True):
            best = distinct_lists[row][0]
            others = [each for each in others if each.score <= best.score]
            ranked = sorted([*distinct_lists[row], *others], key=lambda each: -each.score)
            distinct_lists[row] = _different(ranked, vocabulary)[: settings.nbest]
    return distinct_lists


def _different(hypotheses: Sequence[Hypothesis], vocabulary: Vocabulary) -> list[Hypothesis]:
    """The best hypothesis for each different text, best first."""
    best: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        best.setdefault(" ".join(vocabulary.decode(hypothesis.tokens).split()), hypothesis)
    return list(best.values())
