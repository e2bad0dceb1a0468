"""N-best lists of different texts: of the ways to cut a text into pieces, the best one counts."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from nmt.search import Hypothesis, Search
from nmt.text.tokenizer import Vocabulary

Part = TypeVar("Part")


def search_for_texts(
    search: Callable[[Sequence[Part], Sequence[bytes]], list[list[Hypothesis]]],
    parts: Sequence[Part],
    settings: Search,
    vocabulary: Vocabulary,
) -> list[list[Hypothesis]]:
    """The n-best lists of `parts`: n different texts, or as many as two searches find. The best is that of one search.

    Args:
        search: from parts to n-best lists; given what each token shows, it goes on with one hypothesis for a text.
        parts: what is searched for.
        settings: of the search.
        vocabulary: of the translations.
    """
    nbest_lists = search(parts, ())
    if settings.nbest == 1:
        return nbest_lists
    found = [_different(hypotheses, vocabulary) for hypotheses in nbest_lists]
    short = [row for row, each in enumerate(found) if len(each) < len(nbest_lists[row])]
    if short and not settings.draws:
        for row, others in zip(short, search([parts[row] for row in short], vocabulary.shows), strict=True):
            best = found[row][0]
            others = [each for each in others if each.score <= best.score]
            ranked = sorted([*found[row], *others], key=lambda each: -each.score)
            found[row] = _different(ranked, vocabulary)[: settings.nbest]
    return found


def _different(hypotheses: Sequence[Hypothesis], vocabulary: Vocabulary) -> list[Hypothesis]:
    """The best hypothesis of each text, from the best to the worst."""
    best: dict[str, Hypothesis] = {}
    for hypothesis in hypotheses:
        best.setdefault(" ".join(vocabulary.decode(hypothesis.tokens).split()), hypothesis)
    return list(best.values())
