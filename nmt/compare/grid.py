"""Scores of words and sentences by bucket: an `ItemScore` x a `Bucket` -> a `Grid`.

An item is a sentence, a word, a piece or a measure of a sentence. An `ItemScore` gives the statistics of each item, a
`Bucket` assigns items to columns, and a `Grid` holds the score of each variant in each column, with its interval.
Scores are defined in `scorers` and buckets in `buckets`, independently of each other.
"""

from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.compare.estimates import Bootstrap, Estimate, estimate_text
from nmt.compare.variance import Statistics
from nmt.viewer.blocks import Table


class Item(NamedTuple):
    """One item of a score.

    Attributes:
        row: index of the item's sentence, from 0.
        key: input of the buckets: the row of a sentence, a `WordKey`, a probability, or the name of a measure.
        statistics: [S] statistics, which are summed over the items of a bucket and then scored.
    """

    row: int
    key: Any
    statistics: Sequence[float] | Statistics


class ItemScore(NamedTuple):
    """A score of items: their statistics, and the function from summed statistics to a score.

    Attributes:
        items: (index of a variant, index of its run) -> the items.
        value: sums of statistics [..., S] -> scores [...]; NaN if there is nothing to score.
        size: S, the number of statistics of an item.
        unit: the unit of bucket sizes; "" if sizes are not shown.
        counted: index of the statistic whose sum is the size of a bucket; None counts the items.
        of_all: whether `value` gets sums [..., 2 S], the second half over all buckets, to compute a share.
    """

    items: Callable[[int, int], Iterable[Item]]
    value: Callable[[Statistics], Statistics]
    size: int
    unit: str = ""
    counted: int | None = None
    of_all: bool = False


class Bucket(NamedTuple):
    """The B columns of a grid.

    Attributes:
        title: the property of the items, such as "training count".
        names: names of the B buckets.
        places: an item's key -> the indices of its buckets: none, one or several.
    """

    title: str
    names: Sequence[str]
    places: Callable[[Any], Iterable[int]]


class Grid(NamedTuple):
    """The score of each variant in each bucket (`rows`), or None if there is nothing to score.

    `title` and `names` are the buckets', and `unit` is the unit of `sizes`, which is empty if sizes are not shown.
    """

    title: str
    names: Sequence[str]
    unit: str
    sizes: Sequence[int]
    rows: list[list[Estimate | None]]


def grid(runs: Sequence[int], bootstrap: Bootstrap, sentences: int, score: ItemScore, bucket: Bucket) -> Grid:
    """Score every variant in every bucket; `runs` are the numbers of runs of the variants."""
    sizes: list[int] = []
    rows = []
    for variant, count in enumerate(runs):
        tables = []
        for run in range(count):
            items = [(item, place) for item in score.items(variant, run) for place in bucket.places(item.key)]
            tables.append(_table(items, score, (sentences, len(bucket.names))))
            if score.unit and not sizes:
                sizes = [0] * len(bucket.names)
                for item, place in items:
                    sizes[place] += 1 if score.counted is None else int(item.statistics[score.counted])
        every = np.stack(tables)
        rows.append([bootstrap.estimate(every[:, :, place], score.value) for place in range(len(bucket.names))])
    return Grid(bucket.title, bucket.names, score.unit, sizes, rows)


def _table(items: Sequence[tuple[Item, int]], score: ItemScore, shape: tuple[int, int]) -> Statistics:
    """The sums [sentences, buckets, S] of the items' statistics; the last axis is 2 S if `score.of_all`."""
    table: Statistics = np.zeros((*shape, score.size))
    if items:
        rows, places = np.array([(item.row, place) for item, place in items]).T
        np.add.at(table, (rows, places), np.array([item.statistics for item, _ in items], float))
    if score.of_all:
        table = np.concatenate([table, np.broadcast_to(table.sum(1, keepdims=True), table.shape)], -1)
    return table


def grid_table(grid: Grid, labels: Sequence[str], order: Sequence[int], digits: int = 1) -> Table:
    """A table with a row for each variant, a column for each bucket with a score, and a row of bucket sizes."""
    there = [at for at in range(len(grid.names)) if any(row[at] is not None for row in grid.rows)]
    rows = [[labels[at], *(estimate_text(grid.rows[at][place], digits) for place in there)] for at in order]
    if grid.unit:
        rows.append([grid.unit, *(f"{grid.sizes[place]:,}" for place in there)])
    return Table([grid.title, *(grid.names[place] for place in there)], rows)
