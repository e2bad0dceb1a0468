"""Baseline links without a model: the diagonal, and the best links with one link per target word (oracle).

They help to interpret an error rate. The diagonal shows how much word order alone achieves; the oracle shows the limit
of methods with one link per target word.
"""

from collections.abc import Iterable, Sequence

from nmt.links import GoldLinks, Link

#: Names of the baselines in tables and saved measurements.
DIAGONAL = "diagonal"
ORACLE = "best possible with one link per word"


def diagonal(sources: int, targets: int) -> list[Link]:
    """One link per target word, to the source word at the same relative position in the sentence."""
    return [((2 * at + 1) * sources // (2 * targets), at) for at in range(targets)] if sources else []


def oracle(gold: GoldLinks, sources: int, targets: int) -> list[Link]:
    """One link per target word, a gold link if there is one, preferably sure: the lowest error rate with such links."""
    if not sources:
        return []
    best = dict.fromkeys(range(targets), 0)
    best |= {target: source for source, target in sorted(gold.possible, reverse=True)}
    best |= {target: source for source, target in sorted(gold.sure, reverse=True)}
    return [(source, target) for target, source in sorted(best.items())]


def baselines(gold: Sequence[GoldLinks], sizes: Iterable[tuple[int, int]]) -> dict[str, list[list[Link]]]:
    """The links of both baselines for a corpus, by name; `sizes` are the (source, target) word counts of each pair."""
    pairs = list(zip(gold, sizes, strict=True))
    return {
        DIAGONAL: [diagonal(*size) for _, size in pairs],
        ORACLE: [oracle(links, *size) for links, size in pairs],
    }
