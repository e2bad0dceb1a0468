"""Holds out validation and test pairs so that none of their sentences is in the training text.

Used by the data sets that come in one piece.  A random split of such corpora leaks: the same short sentence is
translated again and again, so that a third of a test set can stand in the training text.  Here pairs that share a
sentence, directly or by way of other pairs, stay together.
"""

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from nmt.data.corpus import Split
from nmt.errors import UserError


def divide(
    source: Sequence[str],
    target: Sequence[str],
    sizes: Mapping[str, int | None],
    seed: int,
    links: Sequence[str] | None = None,
) -> tuple[dict[str, Split], list[str]]:
    """The splits of a corpus in one piece, "train" and those that `sizes` names, and what to tell the user.

    A size of None is chosen by the amount of text.  Word links, a line a pair, stay with the pairs of "train".  Raises
    UserError as `hold_out` does.
    """
    if not sizes:
        return {"train": Split("train", source, target, links)}, []
    wanted = {name: default_size(len(source)) if size is None else size for name, size in sizes.items()}
    rows = hold_out(source, target, wanted, seed)
    splits = {
        name: Split(name, [source[row] for row in kept], [target[row] for row in kept]) for name, kept in rows.items()
    }
    if links is not None:
        splits["train"] = splits["train"]._replace(links=[links[row] for row in rows["train"]])
    held = " and ".join(f"{len(rows[name]):,} for {name}" for name in wanted)
    keys = " ".join(f"data.{name}_pairs={size}" for name, size in wanted.items())
    note = (
        f"Held out: {held}, by connected components: none of their sentences is in the other {len(rows['train']):,} "
        f"pairs ({keys} data.seed={seed})."
    )
    return splits, [note]


def normal(sentence: str) -> str:
    """What two sentences have in common that count as the same: neither case nor white space makes a difference."""
    return " ".join(sentence.casefold().split())


def default_size(pairs: int) -> int:
    """Pairs to hold out for validation, and as many for the test: 2 %, from 20 to 2,000, of few pairs a tenth."""
    return max(1, min(max(20, round(0.02 * pairs)), 2000, pairs // 10))


def hold_out(source: Sequence[str], target: Sequence[str], sizes: Mapping[str, int], seed: int) -> dict[str, list[int]]:
    """The rows of each set in `sizes`, about as many as it says, and of the rest, called "train"; in their order.

    The same for the same text and seed.  No sentence of a held-out set, on either side, stands in another set on
    either side (small and capital letters and white space make no difference).

    Raises:
        UserError: the pairs hang together so much that a set would stay empty.
    """
    component = components(source, target)
    counts = np.bincount(component, minlength=1)
    order = np.random.default_rng(seed).permutation(len(counts))
    owner = np.full(len(counts), -1)
    names = list(sizes)
    short = {name: size for name, size in sizes.items() if size > 0}
    # Components much smaller than the set first: one large family of sentences makes no good test.
    for share in (10, 1):
        for number in order.tolist():
            if not short:
                break
            if owner[number] >= 0 or counts[number] > len(source) // 2:
                continue
            for name, room in short.items():
                if counts[number] <= max(1, min(room, sizes[name] // share)):
                    owner[number] = names.index(name)
                    short[name] -= int(counts[number])
                    if not short[name]:
                        del short[name]
                    break
    row_owner = owner[component] if len(component) else owner[:0]
    rows = {name: np.flatnonzero(row_owner == index).tolist() for index, name in enumerate(names)}
    rows["train"] = np.flatnonzero(row_owner == -1).tolist()
    empty = [name for name, found in rows.items() if not found and sizes.get(name, 1) > 0]
    if empty:
        raise UserError(
            f"Of {len(source):,} pairs none can be held out for {' and '.join(empty)}: there are too few, or they all "
            "share sentences. Give validation and test data of their own (data.valid=..., data.test=...)."
        )
    return rows


def components(source: Sequence[str], target: Sequence[str]) -> npt.NDArray[np.int64]:
    """The connected component of each pair, numbered from 0: two pairs hang together if they share a sentence.

    A sentence counts as the same on both sides, and whatever its case and white space.
    """
    names: dict[str, int] = {}
    parent: list[int] = []

    def find(node: int) -> int:
        while parent[node] != node:
            parent[node] = parent[parent[node]]
            node = parent[node]
        return node

    def node_of(sentence: str) -> int:
        node = names.setdefault(normal(sentence), len(parent))
        if node == len(parent):
            parent.append(node)
        return node

    ends = np.empty(len(source), dtype=np.int64)
    for row, (first, second) in enumerate(zip(source, target, strict=True)):
        ends[row] = node_of(first)
        one, other = find(int(ends[row])), find(node_of(second))
        # The older root stays, so that the numbers depend on the text only.
        parent[max(one, other)] = min(one, other)
    roots = np.fromiter((find(node) for node in range(len(parent))), dtype=np.int64, count=len(parent))
    return np.unique(roots[ends], return_inverse=True)[1].astype(np.int64)
