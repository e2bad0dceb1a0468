"""N-best lists: of different texts, and of a line from those of its parts."""

import math
from collections.abc import Callable, Sequence
from typing import TypeVar

import numpy as np

from nmt.search import Hypothesis, Search
from nmt.text.spans import Span
from nmt.text.tokenizer import Vocabulary
from nmt.translation.types import Translation

Part = TypeVar("Part")
JOINED_WEIGHTS = 50_000_000  # the most weights that the parts of a line are joined to: 200 MB, nearly all zeros


def ends_of_parts(words: Sequence[int], most: int, *, cut: bool) -> list[int]:
    """0 and the ends of parts of at most `most` pieces, at word boundaries if possible.

    Args:
        words: the word of each piece.
        most: pieces.
        cut: whether the first part is all.
    """
    ends = [0]
    while len(words) - ends[-1] > most and not cut:
        end = longest = ends[-1] + most
        while end > ends[-1] + 1 and words[end] == words[end - 1]:
            end -= 1
        ends.append(longest if end == ends[-1] + 1 else end)  # a word longer than a part is cut anywhere
    return [0, most] if cut else [*ends, len(words)]


def join(sentence: str, parts: list[list[Translation]]) -> list[Translation]:
    """The n-best list of a sentence from those of its parts: the combinations with the best sums of scores.

    Weights become blocks of one matrix; None if it would have more than JOINED_WEIGHTS.
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
    """The n-best lists of `parts`: n different texts, or as many as two searches find. The best is that of one search.

    Args:
        search: from parts to n-best lists; given the bytes of each token, it keeps one hypothesis for a text.
        parts: of sentences.
        settings: of the search.
        vocabulary: of the translations.
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
    """The best hypothesis of each text, from the best to the worst."""
    best: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        best.setdefault(" ".join(vocabulary.decode(hypothesis.tokens).split()), hypothesis)
    return list(best.values())
