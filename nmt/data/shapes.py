"""A few fixed shapes of batches, chosen before training: a GPU captures a graph for each.

A shape is a fixed number of rows, source tokens and target tokens, specials included. Every pair goes to the cheapest
shape that holds it.
"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from nmt.data.batch import Batch, Integers

#: The most shapes in a training.
MOST_SHAPES = 16
#: Products of matrices are fastest with multiples of this many rows.
ROWS = 4
#: To choose shapes: the most distinct lengths per side (lengths are rounded up), and the most rounds of improvement.
_LENGTHS, _ROUNDS = 128, 30
#: The most pairs with which plans of different numbers of shapes are compared.
_PLANNED = 1 << 16
#: Changes of a shape's lengths that are tried, in steps.
_MOVES = [(0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (3, 3), (1, -1), (5, 5), (0, 8), (8, 0)]


class Shape(NamedTuple):
    """Pairs, source tokens and target tokens of a padded batch."""

    rows: int
    source: int
    target: int

    @classmethod
    def of(cls, batch: Batch, rows: int = 1, lengths: int = 1) -> "Shape":
        """The smallest shape that holds the batch, rounded up to multiples of `rows` and `lengths`."""
        count, source = batch.source.shape
        return cls(_ceiling(count, rows), _ceiling(source, lengths), _ceiling(batch.target_in.shape[1], lengths))

    def holds(self, other: "Shape") -> bool:
        """Whether a batch of the other shape fits into this shape."""
        return all(size >= needed for size, needed in zip(self, other, strict=True))


Shapes = Sequence[Shape]


def choose_shapes(
    source_lengths: Integers, target_lengths: Integers, tokens_per_batch: int, sentences_per_batch: int | None = None
) -> Shapes:
    """At most `MOST_SHAPES` shapes for pairs of these lengths (with specials), with as little padding as possible.

    The shapes depend only on the arguments, so that every session and every process chooses the same ones. For the
    arguments, see `plan_batches`.
    """
    if not len(source_lengths):
        return []
    step = _ceiling(int(max(source_lengths.max(), target_lengths.max())), _LENGTHS) // _LENGTHS
    rounded = np.stack([-(-side // step) for side in (source_lengths, target_lengths)])
    cells, counts = np.unique(rounded, axis=1, return_counts=True)
    some = slice(None, None, len(source_lengths) // _PLANNED + 1)
    best: tuple[float, Shapes] = (np.inf, [])
    for number in (MOST_SHAPES, 12, 8, 6, 4, 3, 2, 1):
        bounds = _improved(_first_bounds(cells, counts, number), cells, counts) * step
        bounds = bounds[np.argsort(bounds.sum(1), kind="stable")]
        first = _cheapest(source_lengths, target_lengths, [Shape(1, *bound) for bound in bounds.tolist()])
        pairs = np.bincount(first, minlength=len(bounds)).tolist()
        shapes = [
            Shape(_rows(count, max(bound), tokens_per_batch, sentences_per_batch), *bound)
            for bound, count in zip(bounds.tolist(), pairs, strict=True)
            if count
        ]
        full = sum(count // shape.rows for count, shape in zip(filter(None, pairs), shapes, strict=True))
        if number > 1 and 2 * full < 3 * number:
            continue  # too few full batches: most pairs would share a batch with the same pairs in every epoch
        plan, _ = plan_in_shapes(source_lengths[some], target_lengths[some], shapes)
        places = float(sum(shape.rows * (shape.source + shape.target) for shape, _ in plan))
        if places < best[0]:
            best = places, shapes
    return best[1]


def _ceiling(number: int, multiple: int) -> int:
    return -(-number // multiple) * multiple


def plan_in_shapes(
    source_lengths: Integers,
    target_lengths: Integers,
    shapes: Shapes,
    generator: np.random.Generator | None = None,
) -> tuple[list[tuple[Shape, Integers]], Integers]:
    """Divide pairs of these lengths (with specials) into batches of `shapes`; at random if there is a `generator`.

    Pairs that are left over from a shape, and fill less than 7/8 of a batch, go to the next shape that holds them. A
    batch may have fewer pairs than its shape has rows, but never more.

    Returns:
        Each batch's shape and the indices of its pairs, in the order of `shapes`; and the indices of pairs that no
        shape holds.
    """
    order = np.arange(len(source_lengths)) if generator is None else generator.permutation(len(source_lengths))
    first = _cheapest(source_lengths[order], target_lengths[order], shapes)
    plan: list[tuple[Shape, Integers]] = []
    left: list[Integers] = [order[first == number] for number in range(len(shapes))]
    for number, shape in enumerate(shapes):
        pairs = left[number]
        full = len(pairs) // shape.rows * shape.rows
        rest, later = pairs[full:], shapes[number + 1 :]
        after = _cheapest(source_lengths[rest], target_lengths[rest], later)
        if 8 * len(rest) >= 7 * shape.rows:
            after[:] = len(later)
        for distance in range(len(later)):
            left[number + 1 + distance] = np.concatenate([rest[after == distance], left[number + 1 + distance]])
        last = rest[after == len(later)]
        plan += [(shape, batch) for batch in [*pairs[:full].reshape(-1, shape.rows), last] if len(batch)]
    return plan, order[first == len(shapes)]


def _rows(count: int, longest: int, tokens: int, sentences: int | None) -> int:
    """The rows of a shape: within the budget, and such that its batches of `count` pairs are about equally full."""
    most = max(1, min(tokens // longest, sentences or tokens))
    even = _ceiling(count, -(-count // most)) // -(-count // most)
    return min(_ceiling(even, ROWS), most // ROWS * ROWS or most)


def _cheapest(source_lengths: Integers, target_lengths: Integers, shapes: Shapes) -> Integers:
    """The index of the first shape that holds each pair; `len(shapes)` if none does."""
    numbers = np.full(len(source_lengths), len(shapes))
    for number, shape in reversed(list(enumerate(shapes))):
        numbers[(source_lengths <= shape.source) & (target_lengths <= shape.target)] = number
    return numbers


def _first_bounds(cells: Integers, counts: Integers, number: int) -> Integers:
    """Initial bounds [K, 2], for groups of pairs with about the same number of tokens; the last bound holds all."""
    order = np.argsort(cells.sum(0), kind="stable")
    shares = np.cumsum((cells.sum(0) * counts)[order])
    ends = np.searchsorted(shares, shares[-1] * np.arange(1, number + 1) / number)
    bounds = np.maximum.accumulate(cells[:, order], 1)[:, np.minimum(ends, len(order) - 1)].T
    # The longest of few pairs should not make a shape long for many.
    bounds = np.minimum(bounds, np.ceil(1.15 * cells[:, order][:, np.minimum(ends, len(order) - 1)].T).astype(int) + 1)
    bounds[-1] = cells.max(1)
    return np.unique(bounds, axis=0)


def _improved(bounds: Integers, cells: Integers, counts: Integers) -> Integers:
    """Move the bounds [K, 2] one by one as long as that saves padded tokens; all cells [2, N] stay within a bound."""

    def places(bound: Integers) -> npt.NDArray[np.float64]:
        return np.where((cells <= bound[:, None]).all(0), bound.sum(), np.inf)

    each = np.stack([places(bound) for bound in bounds])
    for _ in range(_ROUNDS):
        before = bounds.copy()
        for at in range(len(bounds)):
            others = np.delete(each, at, 0).min(0, initial=np.inf)
            best = float((np.minimum(others, each[at]) * counts).sum())
            for move in (sign * np.array(move) for move in _MOVES for sign in (1, -1)):
                moved = places(bounds[at] + move)
                saved = float((np.minimum(others, moved) * counts).sum())
                if saved < best:
                    best, each[at] = saved, moved
                    bounds[at] += move
        if (bounds == before).all():
            break
    return bounds
