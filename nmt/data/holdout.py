"""Held-out validation and test pairs, none of whose sentences is in the training text.

For data sets without splits. A random split of such corpora leaks: short sentences are translated again and again, so
that a third of a test set can be in the training text. Here the other pairs with a sentence of a held-out pair are left
out. Only some pairs are in memory.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from nmt.data.dataset import Split
from nmt.system.errors import UserError
from nmt.text.canonical import canonical

#: A sentence that comes this often is not held out.
_OFTEN = 10
_FULL: list[int] = [-1] * _OFTEN  # the rows of a sentence that nobody asks for
#: The fewest pairs that are drawn, and how many more than are wanted.
_DRAWN, _MORE = 20_000, 4


def divide(
    corpus: Split, sizes: Mapping[str, int | None], seed: int, folder: Path | None = None
) -> tuple[dict[str, Split], list[str]]:
    """Divide a corpus into "train" and the splits that `sizes` names; returns them and messages for the user.

    The default for a size of None depends on the number of pairs. Word links stay with the pairs of "train". With
    documents, whole ones are held out, whatever their sentences. `folder` is for the documents of very many pairs.

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
    else:
        rows, related = hold_out(source, target, wanted, seed)
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
    """The number of pairs of `split` with a sentence that is in `train`, on either side."""
    pairs = [(normal(a), normal(b)) for a, b in zip(split.source, split.target, strict=True)]
    asked = {sentence for pair in pairs for sentence in pair}
    known = {
        found for side in (train.source, train.target) for sentence in side if (found := normal(sentence)) in asked
    }
    return sum(not known.isdisjoint(pair) for pair in pairs)


def hold_out(
    source: Sequence[str], target: Sequence[str], sizes: Mapping[str, int], seed: int
) -> tuple[dict[str, list[int]], list[int]]:
    """The rows of each set in `sizes`, and the rows that share a sentence with them; in order.

    They depend on text and seed only. No sentence of a held-out pair is in another set or in the rest, on either side,
    ignoring case and white space. Pairs are drawn by chance; those whose sentences come often are skipped.

    Raises:
        UserError: no pair can be held out for a set, or none is left.
    """
    generator = np.random.default_rng(seed)
    count = min(len(source), max(_DRAWN, _MORE * sum(sizes.values())))
    drawn: list[int] = generator.choice(len(source), count, replace=False).tolist() if count else []
    pairs = {row: (normal(source[row]), normal(target[row])) for row in drawn}
    places: dict[str, list[int]] = {sentence: [] for pair in pairs.values() for sentence in pair}
    for row, pair in enumerate(zip(source, target, strict=True)):
        for sentence in map(normal, pair):
            if len(rows_of := places.get(sentence, _FULL)) < _OFTEN:
                rows_of.append(row)
    rows: dict[str, list[int]] = {name: [] for name in sizes}
    related: set[int] = set()  # to held-out rows, which are among them
    for row in drawn:
        name = next((name for name, size in sizes.items() if len(rows[name]) < size), None)
        if name is None:
            break
        family = {row, *(other for sentence in pairs[row] for other in places[sentence])}
        often = any(len(places[sentence]) >= _OFTEN for sentence in pairs[row])
        if not often and related.isdisjoint(family) and len(related) + len(family) < len(source):
            rows[name].append(row)
            related |= family
    if empty := [name for name, held in rows.items() if not held and sizes[name] > 0]:
        raise UserError(
            f"None of {len(source):,} pairs can be held out for {' and '.join(empty)}: there are too few, or they all "
            "share sentences. Give separate validation and test data (data.valid=..., data.test=...)."
        )
    return {name: sorted(held) for name, held in rows.items()}, sorted(related.difference(*rows.values()))


def hold_out_documents(documents: Sequence[int], sizes: Mapping[str, int], seed: int) -> dict[str, list[int]]:
    """The rows of each set in `sizes`, in whole documents that are drawn by chance.

    A set takes documents until it has its number of pairs, and leaves one to each set that follows.

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
    return {name: sorted(found) for name, found in rows.items()}


def normal(sentence: str) -> str:
    """A sentence without differences of case, white space and form; equal for sentences that count as the same."""
    return " ".join(canonical(sentence).casefold().split())


def default_size(pairs: int) -> int:
    """Pairs to hold out for validation, and as many for the test: 2 %, from 20 to 2,000, of few pairs a tenth."""
    return max(1, min(max(20, round(0.02 * pairs)), 2000, pairs // 10))
