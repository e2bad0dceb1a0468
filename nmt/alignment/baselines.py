"""Links that need no model: a straight line, and the best that one link per target word could do.

An error rate says little alone. The diagonal shows how much of it word order gives; the oracle shows the limit of a
method that gives every target word one link.
"""

from collections.abc import Iterable, Sequence

from nmt.links import GoldLinks, Link

#: Their names in tables and saved measurements.
DIAGONAL = "diagonal"
ORACLE = "best possible with one link per word"


def diagonal(sources: int, targets: int) -> list[Link]:
    """One link per target word: to the source word at the same place, measured as a share of the sentence."""
    return [((2 * at + 1) * sources // (2 * targets), at) for at in range(targets)] if sources else []


def oracle(gold: GoldLinks, sources: int, targets: int) -> list[Link]:
    """One link per target word, a gold link wherever there is one: the lowest error rate of such links."""
    if not sources:
        return []
    best = dict.fromkeys(range(targets), 0)
    best |= {target: source for source, target in sorted(gold.possible, reverse=True)}
    best |= {target: source for source, target in sorted(gold.sure, reverse=True)}
    return [(source, target) for target, source in sorted(best.items())]


def baselines(gold: Sequence[GoldLinks], sizes: Iterable[tuple[int, int]]) -> dict[str, list[list[Link]]]:
    """The links of both for a corpus, by name; `sizes` are the numbers of source and target words of each pair."""
    pairs = list(zip(gold, sizes, strict=True))
    return {
        DIAGONAL: [diagonal(*size) for _, size in pairs],
        ORACLE: [oracle(links, *size) for links, size in pairs],
    }
