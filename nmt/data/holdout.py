"""Held-out validation and test pairs, none of whose sentences is in the training text.

For data sets without splits. A random split of such a corpus leaks: short sentences are translated many times, so that
a third of a test set can be in the training text. Here, pairs that share a sentence, directly or through other pairs,
stay together.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt

from nmt.data.dataset import Split
from nmt.data.stored import MANY
from nmt.system.errors import UserError
from nmt.text.canonical import canonical

#: A sentence that occurs at least this often in a large text is not held out.
_OFTEN = 10
_FULL: list[int] = [-1] * _OFTEN  # for sentences that were not drawn: a full list, which takes no more rows


def divide(
    corpus: Split, sizes: Mapping[str, int | None], seed: int, folder: Path | None = None
) -> tuple[dict[str, Split], list[str]]:
    """Divide a corpus into "train" and the splits that `sizes` names; returns them and messages for the user.

    None as a size means `default_size`. Only "train" keeps its word links. If the corpus has documents, whole documents
    are held out, even if they share sentences. `folder` stores document numbers that are too many for memory.

    Raises:
        UserError: see `hold_out` and `hold_out_documents`.
    """
    source, target, documents = corpus.source, corpus.target, corpus.documents
    if not sizes:
        return {"train": corpus._replace(name="train")}, []
    wanted = {name: default_size(len(source)) if size is None else size for name, size in sizes.items()}
    related: list[int] = []
    if documents is not None:
        rows = hold_out_documents(documents, wanted, seed)
    elif len(source) > MANY:
        rows, related = hold_out_of_many(source, target, wanted, seed)
    else:
        rows = hold_out(source, target, wanted, seed)
    splits = {name: corpus.take(name, held) for name, held in rows.items()}
    gone = sorted([*related, *(row for held in rows.values() for row in held)])
    train = splits["train"] = corpus.without(gone, folder)._replace(name="train")
    held = " and ".join(f"{len(held):,} for {name}" for name, held in rows.items())
    keys = " ".join([*(f"data.{name}_pairs={size}" for name, size in wanted.items()), f"data.seed={seed}"])
    if documents is not None:
        shared = sum(shared_pairs(splits[name], train) for name in wanted)
        counts = " and ".join(f"{len(set(splits[name].documents or ())):,} for {name}" for name in wanted)
        leak = f"{shared:,} of these pairs have a sentence that is also in the training text. " if shared else ""
        return splits, [f"Held out: {held}, in whole documents ({counts}). {leak}({keys})."]
    leak = f"; {len(related):,} that share a sentence with them are left out" if related else ""
    return splits, [
        f"Held out: {held}. None of their sentences is in the other {len(train.source):,} pairs{leak} ({keys})."
    ]


def shared_pairs(split: Split, train: Split) -> int:
    """The number of pairs of `split` whose source or target is a sentence of `train`."""
    pairs = [(normal(a), normal(b)) for a, b in zip(split.source, split.target, strict=True)]
    asked = {sentence for pair in pairs for sentence in pair if sentence}
    known = {form for side in (train.source, train.target) for sentence in side if (form := normal(sentence)) in asked}
    return sum(not known.isdisjoint(pair) for pair in pairs)


def shared_note(name: str, shared: int, pairs: int) -> str:
    """The warning that `shared` of the `pairs` pairs of a split share a sentence with the training text."""
    return (
        f"{shared:,} of the {pairs:,} pairs of {name} have a sentence that is also in the training text: their scores "
        "are too high."
    )


def hold_out(source: Sequence[str], target: Sequence[str], sizes: Mapping[str, int], seed: int) -> dict[str, list[int]]:
    """Row numbers for each set in `sizes`, about as many as requested, ascending.

    The rows depend only on text and seed. Pairs that share a sentence, directly or through other pairs, stay together.

    Raises:
        UserError: so many pairs share sentences that a set, or the rest, would be empty.
    """
    component = components(source, target)
    counts = np.bincount(component, minlength=1)
    owner = np.full(len(counts), -1)
    names, room = list(sizes), dict(sizes)
    # Components much smaller than the set first: one large family of sentences is a poor test.
    for share in (10, 1):
        for number in np.random.default_rng(seed).permutation(len(counts)).tolist():
            if owner[number] >= 0 or counts[number] > len(source) // 2:
                continue
            fitting = (n for n in names if room[n] and counts[number] <= max(1, min(room[n], sizes[n] // share)))
            if (name := next(fitting, None)) is not None:
                owner[number] = names.index(name)
                room[name] -= int(counts[number])
    row_owner = owner[component] if len(component) else owner[:0]
    rows = {name: np.flatnonzero(row_owner == index).tolist() for index, name in enumerate(names)}
    return _checked(rows, sizes, len(source), len(source) - sum(map(len, rows.values())))


def components(source: Sequence[str], target: Sequence[str]) -> npt.NDArray[np.int64]:
    """The connected component of each pair [N], in order of first pairs; pairs that share a sentence are connected."""
    from scipy.sparse import coo_array  # type: ignore[import-untyped]
    from scipy.sparse.csgraph import connected_components  # type: ignore[import-untyped]

    numbers: dict[str, int] = {}
    pairs = zip(map(normal, source), map(normal, target), strict=True)
    edges = np.array([[numbers.setdefault(sentence, len(numbers)) for sentence in pair] for pair in pairs], dtype=int)
    edges = edges.reshape(-1, 2)
    graph = coo_array((np.ones(len(edges), dtype=bool), edges.T), shape=(len(numbers), len(numbers)))
    labels = connected_components(graph, directed=False)[1][edges[:, 0]]
    _, firsts, component = np.unique(labels, return_index=True, return_inverse=True)
    ranks: npt.NDArray[np.int64] = np.argsort(np.argsort(firsts))
    return ranks[component]


def hold_out_of_many(
    source: Sequence[str], target: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple[dict[str, list[int]], list[int]]:
    """Row numbers for each set in `sizes`, and the rows to leave out of training, for text larger than memory.

    Pairs are drawn at random. Pairs with a frequent sentence are skipped. The few other pairs that share a sentence
    with a held-out pair are left out of training.

    Raises:
        UserError: no pair can be held out for a set.
    """
    generator = np.random.default_rng(seed)
    drawn = generator.permutation(np.unique(generator.integers(len(source), size=4 * sum(sizes.values())))).tolist()
    pairs = {row: (normal(source[row]), normal(target[row])) for row in drawn}
    places: dict[str, list[int]] = {sentence: [] for pair in pairs.values() for sentence in pair}
    for row, pair in enumerate(zip(source, target, strict=True)):
        for sentence in map(normal, pair):
            if len(rows_of := places.get(sentence, _FULL)) < _OFTEN:
                rows_of.append(row)
    rows: dict[str, list[int]] = {name: [] for name in sizes}
    related: set[int] = set()  # held-out rows, and rows that share a sentence with them
    for row in drawn:
        name = next((name for name, size in sizes.items() if len(rows[name]) < size), None)
        if name is None:
            break
        family = {row, *(other for sentence in pairs[row] for other in places[sentence])}
        if all(len(places[sentence]) < _OFTEN for sentence in pairs[row]) and related.isdisjoint(family):
            rows[name].append(row)
            related |= family
    rows = {name: sorted(held) for name, held in rows.items()}
    return _checked(rows, sizes, len(source)), sorted(related.difference(*rows.values()))


def _checked(rows: dict[str, list[int]], sizes: Mapping[str, int], pairs: int, rest: int = 1) -> dict[str, list[int]]:
    """Return `rows` (UserError if a set would be empty, or if no pair is left for training)."""
    if empty := [name for name, held in rows.items() if not held and sizes[name] > 0] + ["train"] * (rest < 1):
        raise UserError(
            f"None of {pairs:,} pairs can be held out for {' and '.join(empty)}: there are too few, or they all "
            "share sentences. Give separate validation and test data (data.valid=..., data.test=...)."
        )
    return rows


def hold_out_documents(documents: Sequence[int], sizes: Mapping[str, int], seed: int) -> dict[str, list[int]]:
    """Row numbers for each set in `sizes`, from whole documents that are drawn at random.

    A set takes documents until it has its number of pairs, but leaves one for each later set and for training.

    Raises:
        UserError: there are too few documents for one in each set.
    """
    wanted = {name: size for name, size in sizes.items() if size > 0}
    starts = np.flatnonzero(np.diff(documents, prepend=-1))
    if len(starts) <= len(wanted):
        raise UserError(
            f"{len(wanted) + 1} sets need a document each, but there are {len(starts)}: documents are held out "
            "whole. Give separate validation and test data (data.valid=..., data.test=...)."
        )
    ends = np.append(starts[1:], len(documents))
    order = np.random.default_rng(seed).permutation(len(starts)).tolist()
    rows: dict[str, list[int]] = {name: [] for name in sizes}
    for following, (name, size) in zip(range(len(wanted), 0, -1), wanted.items(), strict=True):
        while len(rows[name]) < size and len(order) > following:
            index = order.pop()
            rows[name] += range(int(starts[index]), int(ends[index]))
    return {name: sorted(numbers) for name, numbers in rows.items()}


def normal(sentence: str) -> str:
    """Normalise case, white space and Unicode form: sentences with equal results count as the same."""
    return " ".join(canonical(sentence).casefold().split())


def default_size(pairs: int) -> int:
    """Default size of a held-out set: 2 % of the pairs, at least 20 and at most 2,000; of few pairs, a tenth."""
    return max(1, min(max(20, round(0.02 * pairs)), 2000, pairs // 10))
