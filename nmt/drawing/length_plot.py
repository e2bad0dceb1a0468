"""BLEU against source length: figure 2 of Bahdanau, Cho and Bengio 2015, for one model or for several."""

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from nmt.drawing import fonts
from nmt.drawing.style import GREY, LEGEND_ROW, MARKERS, figure, legend, line, style

#: Corpus BLEU of fewer sentences changes by points with each of them.
FEW = 30


def by_length(
    bins: Sequence[tuple[int, int, int]],
    scores: Mapping[str, Sequence[float | None]],
    unit: str,
    title: str,
    note: str = "",
    metric: str = "BLEU",
) -> Figure:
    """Draw the score of each bin, one line per model; points of bins with few sentences are hollow.

    Args:
        bins: shortest and longest source length, and number of sentences.
        scores: of each bin, by name of the model, None for no point; with one model, the values are written beside
            the points.
        unit: of the lengths, "words" or "characters".
        title: above the axes.
        note: a small line at the bottom.
        metric: what the scores are.
    """
    alone = len(scores) == 1
    picture = figure(max(5.5, 1.6 + 0.62 * len(bins)) if alone else 9.5, max(4, 0.4 + LEGEND_ROW * len(scores)))
    axes = picture.add_subplot()
    places, drawn = range(len(bins)), {}
    for index, (name, values) in enumerate(scores.items()):
        measured = [math.nan if value is None else value for value in values]
        shape = "o" if alone else MARKERS[index % len(MARKERS)]
        (drawn[name],) = axes.plot(
            places, measured, linewidth=1.6, marker=shape, markersize=4, markevery=[], **line(index)
        )  # its markers are drawn below, hollow or full; the legend has one
        for place, value, (_, _, count) in zip(places, measured, bins, strict=True):
            colour = drawn[name].get_color()
            fill = "white" if count < FEW else colour
            axes.plot(place, value, shape, markersize=7 if alone else 4, color=colour, markerfacecolor=fill)
            if alone:
                axes.annotate(
                    f"{value:.1f}",
                    (place, value),
                    xytext=(0, 8),
                    textcoords="offset points",
                    ha="center",
                    fontproperties=fonts.properties([fonts.BASE], 8.5),
                )
    axes.set_xlim(-0.6, len(bins) - 0.4)
    if alone:
        axes.set_ylim(0, max(value or 0 for values in scores.values() for value in values) * 1.15 + 1)
    axes.yaxis.set_major_locator(MaxNLocator(6))
    axes.set_xticks(places, [f"{shortest}-{longest}\nn={count}" for shortest, longest, count in bins])
    few = f"; hollow: fewer than {FEW} sentences" if any(count < FEW for _, _, count in bins) else ""
    style(axes, title, f"source {unit}, n sentences{few}", metric)
    if not alone:
        legend(picture, drawn)
    if note:
        picture.supxlabel(note, x=0.01, ha="left", color=GREY, fontproperties=fonts.properties([fonts.BASE], 6.5))
    return picture
