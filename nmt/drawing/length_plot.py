"""Scores against source length: figure 2 of Bahdanau, Cho and Bengio 2015, a line for each variant."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.drawing.style import LEGEND_ROW, figure, legend, line, style

#: Corpus BLEU of fewer sentences changes by points with each of them.
FEW = 30


def by_length(
    bins: Sequence[tuple[int, ...]], scores: Mapping[str, Sequence[float | None]], unit: str, title: str, metric: str
) -> Figure:
    """Draw the score of each bin, by name of the variant; points of bins with few sentences are hollow.

    `bins` are shortest and longest source length, in `unit`, and number of sentences. None is no point.
    """
    picture = figure(9.5, max(4, 0.4 + LEGEND_ROW * len(scores)))
    axes = picture.add_subplot()
    places, drawn = range(len(bins)), {}
    for index, (name, values) in enumerate(scores.items()):
        measured = [math.nan if value is None else value for value in values]
        look = line(index)
        # Its markers are drawn below, hollow or full; the legend has one.
        (drawn[name],) = axes.plot(places, measured, linewidth=1.6, markersize=4, markevery=[], **look)
        for place, value, (_, _, count) in zip(places, measured, bins, strict=True):
            fill = "white" if count < FEW else look["color"]
            axes.plot(place, value, look["marker"], markersize=4, color=look["color"], markerfacecolor=fill)
    axes.set_xlim(-0.6, len(bins) - 0.4)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xticks(places, [f"{shortest}-{longest}\nn={count}" for shortest, longest, count in bins])
    few = f"; hollow: fewer than {FEW} sentences" if any(count < FEW for _, _, count in bins) else ""
    style(axes, title, f"source {unit}, n sentences{few}", metric)
    legend(picture, drawn)
    return picture
