"""Symmetrization: combining the links or the weights of two translation directions into one set of links."""

from collections.abc import Collection

import numpy as np

from nmt.alignment.word_weights import Weights
from nmt.links import Link
from nmt.system.errors import UserError

SYMMETRIZATIONS = ("intersection", "union", "grow-diag", "grow-diag-final", "grow-diag-final-and")
AGREEMENT = "agreement"
#: The least agreement of two words that are linked; and a bound that avoids division by zero.
LEAST_AGREEMENT, _TINY = 0.85, 1e-6


def symmetrize(forward: Collection[Link], backward: Collection[Link], how: str) -> set[Link]:
    """Combine the links of two directions (Och and Ney 2003; Koehn, Och and Marcu 2003; Koehn et al. 2005, IWSLT).

    `grow-diag` begins with the intersection and adds links of the union that are adjacent to a link, horizontally,
    vertically or diagonally, if one of their words has no link yet. `-final` then adds links of either direction,
    forward first, if one of their words has no link yet; `-final-and` only if neither word has a link.

    Links of both directions are (source, target).

    Raises:
        UserError: `how` is not one of `SYMMETRIZATIONS`.
    """
    if how not in SYMMETRIZATIONS:
        raise UserError(f"symmetrize={how} is not known. Give symmetrize= one of {', '.join(SYMMETRIZATIONS)}.")
    one, other = set(forward), set(backward)
    union = one | other
    if how == "union":
        return union
    joined = one & other
    if how == "intersection":
        return joined
    sources, targets = {link[0] for link in joined}, {link[1] for link in joined}

    def add(link: Link) -> None:
        joined.add(link)
        sources.add(link[0])
        targets.add(link[1])

    # The authors' pseudo-code visits links by target, then by source; added links are visited in the same order.
    order = sorted(union, key=lambda link: (link[1], link[0]))
    grown = -1
    while grown != len(joined):
        grown = len(joined)
        for source, target in order:
            if (source, target) not in joined:
                continue
            for down, right in ((-1, 0), (0, -1), (1, 0), (0, 1), (-1, -1), (-1, 1), (1, -1), (1, 1)):
                link = (source + right, target + down)
                if link in union and (link[0] not in sources or link[1] not in targets):
                    add(link)
    for side in (one, other) if how != "grow-diag" else ():
        for link in sorted(side, key=lambda link: (link[1], link[0])):
            free = (link[0] not in sources, link[1] not in targets)
            if all(free) if how == "grow-diag-final-and" else any(free):
                add(link)
    return joined


def agreement(one: Weights, other: Weights) -> Weights:
    """How far two matrices of weights agree on each pair of words.

    The product p = `one` * `other` of the weights of both (as of the posteriors of two models in Liang, Taskar and
    Klein 2006), divided by the geometric mean of the largest value of its row and of its column:

        agreement[t, s] = p[t, s] / sqrt(max_j p[t, j] max_i p[i, s]), or 0 without weight

    A pair has 1 if neither word has a better partner. A word that attracts weight from many words is the best partner
    of each, but only few of them are its best partners, so it has few links. Words of a phrase that have equal weights,
    such as the characters of a piece, are all linked.

    Args:
        one, other: [Tw, Sw] weights of each target word over the source words; [Tw, Sw] weights of the other
            direction, transposed, or of another kind of evidence.

    Returns:
        [Tw, Sw] between 0 and 1; [0, 0] if either matrix is empty (a pair too long for one direction).
    """
    if not (one.size and other.size):
        return np.zeros((0, 0), dtype=np.float32)
    joint = one * other
    best = [np.maximum(joint.max(axis, keepdims=True), _TINY) for axis in (0, 1)]
    agreed: Weights = joint / np.sqrt(best[0] * best[1])
    return agreed
