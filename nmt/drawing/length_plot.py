"""A plot of scores against source length with a line for each variant (Bahdanau, Cho and Bengio 2015, figure 2)."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.drawing.style import LEGEND_ROW, figure, legend, line, style

#: With fewer sentences, a single sentence can change corpus BLEU by whole points.
FEW = 30


def by_length(
    bins: Sequence[tuple[int, ...]], scores: Mapping[str, Sequence[float | None]], unit: str, title: str, metric: str
) -> Figure:
    """Plot the scores of each bin by name of the variant; points of bins with few sentences are hollow.

    `bins` are (shortest length in `unit`, longest length, number of sentences). A score of None has no point.
    """
    picture = figure(9.5, max(4, 0.4 + LEGEND_ROW * len(scores)))
    axes = picture.add_subplot()
    places, drawn = range(len(bins)), {}
    for index, (name, values) in enumerate(scores.items()):
        measured = [math.nan if value is None else value for value in values]
        look = line(index)
        # The markers are drawn below, hollow or filled. This line's marker appears only in the legend.
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
