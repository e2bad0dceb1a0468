"""The pictures of a comparison: scores by seed, forest plots, learning curves, attention maps side by side."""

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import LogLocator, NullFormatter, ScalarFormatter

from nmt.compare.families import OneSetting
from nmt.compare.variants import Comparison, OnSplit
from nmt.compare.verdict import interval_text, judgement
from nmt.drawing import fonts
from nmt.drawing.layout import shorten, wrap
from nmt.drawing.matrix import matrix
from nmt.drawing.style import GREY, LONGEST_NAME, figure, legend, line, pdf, png, ruler, style
from nmt.evaluation.metrics import TITLES, Metric
from nmt.evaluation.references import AttentionMap
from nmt.viewer.blocks import Picture

#: Colours of judgements, without red and green; differences that are not significant or rest on one seed are grey.
COLOURS = defaultdict(lambda: "#8a8f96", better="#1f5fa8", worse="#c05a00", baseline="#222222")
_COLUMNS = 4  # of panels side by side
History = Sequence[Mapping[str, float]]


def drawn(name: str, picture: Figure, alt: str) -> Picture:
    """A matplotlib figure as a `Picture` block, in PNG and PDF."""
    return Picture(name, png(picture), alt, pdf(picture))


def scores(comparison: Comparison, split: OnSplit) -> Figure:
    """The score of every variant, the highest on top: dots are seeds, bars are means, colours are judgements."""
    order = split.order[::-1]
    picture = figure(8.2, 1.1 + 0.34 * len(order))
    axes = picture.add_subplot()
    for place, index in enumerate(order):
        verdict, score = judgement(split.tests[index]), split.score(index)
        colour = COLOURS[verdict]
        axes.plot(score.values, [place] * len(score.values), "o", color=colour, markersize=5, alpha=0.45)
        axes.plot(score.mean, place, "|", color=colour, markersize=17, markeredgewidth=2.6)
        _beside(axes, place, verdict, colour)
    axes.axvline(split.score(comparison.baseline).mean, color=COLOURS["baseline"], linewidth=0.8, linestyle=":")
    axes.set_ylim(-0.6, len(order) - 0.4)
    title = TITLES[split.judge]
    style(axes, f"{title} on {split.name}: dots are seeds, bars their means", x=title)
    labels, families = fonts.drawable(shorten(comparison.labels[index], LONGEST_NAME) for index in order)
    axes.set_yticks(range(len(order)), labels, fontproperties=fonts.properties(families, 8.5), parse_math=False)
    return picture


def _beside(axes: Axes, place: int, text: str, colour: str) -> None:
    """Write a text to the right of a row of a plot."""
    font = fonts.properties([fonts.BASE], 8.5)
    at, unit = ("axes fraction", "data"), "offset points"
    axes.annotate(text, (1.0, place), (6, 0), at, unit, va="center", color=colour, fontproperties=font)


class ForestRow(NamedTuple):
    """A row of a forest plot: its group, its label, and the test."""

    group: str
    label: str
    test: OneSetting


def forest(rows: Sequence[ForestRow], title: str, score: str, most: float = math.inf) -> Figure:
    """A forest plot: differences with their intervals, by group; an arrow marks a difference larger than `most`."""
    entries: list[str | ForestRow] = []
    for group in dict.fromkeys(row.group for row in rows):
        entries += [group, *(row for row in rows if row.group == group)]
    picture = figure(9.4, 1.0 + 0.235 * len(entries))
    axes = picture.add_subplot()
    labels, families = fonts.drawable(
        entry if isinstance(entry, str) else shorten(entry.label, 2 * LONGEST_NAME) for entry in entries
    )
    small = fonts.properties(families, 8.5)
    for place, entry in enumerate(entries):
        if isinstance(entry, str):
            continue
        test = entry.test
        colour = COLOURS[judgement(test)]
        if abs(test.difference) > most:
            axes.plot(math.copysign(most, test.difference), place, "<" if test.difference < 0 else ">", color=colour)
        else:
            ends = np.clip([test.low, test.high], -most, most)
            axes.plot(ends, [place, place], color=colour, linewidth=1.6)
            axes.plot(test.difference, place, "s", color=colour, markersize=4.5)
        _beside(axes, place, f"{test.difference:+.2f} ({interval_text(test)})".replace("-", "−"), colour)
    axes.axvline(0, color=COLOURS["baseline"], linewidth=0.8)
    axes.set_ylim(len(entries) - 0.4, -0.6)
    style(axes, x=f"difference in {score} (grey: not significant)")
    (text,), families = fonts.drawable([title])  # over the labels, too: the axes are narrow
    picture.suptitle(text, x=0.01, ha="left", fontproperties=fonts.properties(families, 10.5), parse_math=False)
    axes.grid(visible=False, axis="y")
    axes.set_yticks(range(len(entries)), labels, fontproperties=small, parse_math=False)
    for label, entry in zip(axes.get_yticklabels(), entries, strict=True):
        if isinstance(entry, str):
            label.set_color(GREY)
    axes.tick_params(axis="y", length=0)
    return picture


def curves(comparison: Comparison, *, by_time: bool = True) -> Figure | None:
    """The learning curves of the variants (see `learning_curves`)."""
    histories = {variant.label: [run.history for run in variant.runs] for variant in comparison.variants}
    courses = {label: runs for label, runs in histories.items() if any(runs)}  # other programs have no history
    return learning_curves(courses, by_time=by_time)


def learning_curves(courses: Mapping[str, Sequence[History]], *, by_time: bool = True) -> Figure | None:
    """Validation scores and perplexity against time and updates, means over runs; None without validations.

    The score is chrF if a validation has it, else BLEU. Without `by_time`, for runs whose times cannot be compared,
    the curves are drawn against updates only.
    """
    histories = [history for runs in courses.values() for history in runs]
    if not any(histories):
        return None
    against = {"minutes": "minutes of training", "step": "updates"}
    if not by_time:
        del against["minutes"]
    score: Metric = "chrf" if any("valid_chrf" in entry for history in histories for entry in history) else "bleu"
    picture = figure(11 if by_time else 9, 7.6)
    grid_of_axes = picture.subplots(2, len(against), squeeze=False)
    panels = [
        (axes, x, y)
        for row, y in zip(grid_of_axes, (f"valid_{score}", "valid_perplexity"), strict=True)
        for axes, x in zip(row, against, strict=True)
    ]
    drawn = {}
    for index, (label, runs) in enumerate(courses.items()):
        for axes, x, y in panels:
            grid, mean, low, high = _mean_curve(runs, x, y)
            few = max(1, len(grid) // 8)
            every = index % few, few  # marks show curves of a single point
            (drawn[label],) = axes.plot(grid, mean, linewidth=1.5, markersize=4.5, markevery=every, **line(index))
            if len(courses) <= 6 and len(runs) > 1:
                axes.fill_between(grid, low, high, color=line(index)["color"], alpha=0.12, linewidth=0)
    titles = {
        f"valid_{score}": f"Validation {TITLES[score]} (greedy search)",
        "valid_perplexity": "Validation perplexity",
    }
    for axes, x, y in panels:
        values = np.concatenate([np.asarray(curve.get_ydata(), float) for curve in axes.lines])
        if y == "valid_perplexity" and values.size:  # a logarithmic scale needs values
            axes.set_yscale("log")
            ticks = (1, 2, 5) if values.max() > 5 * values.min() else range(1, 10)
            axes.yaxis.set_major_locator(LogLocator(subs=ticks))
            axes.yaxis.set_major_formatter(ScalarFormatter())
            axes.yaxis.set_minor_formatter(NullFormatter())
        unit = "perplexity, logarithmic" if y == "valid_perplexity" else TITLES[score]
        style(axes, titles.pop(y, "The same by update"), against[x], unit)
    legend(picture, drawn)
    return picture


_Curve = npt.NDArray[np.float64]


def _mean_curve(runs: Sequence[History], x: str, y: str) -> tuple[_Curve, _Curve, _Curve, _Curve]:
    """The x values in the range that all seeds share, and the mean, minimum and maximum over seeds; may be empty."""
    courses = [
        np.array([(entry[x], entry[y]) for entry in history if x in entry and y in entry]).reshape(-1, 2)
        for history in runs
    ]
    courses = [course for course in courses if len(course)]
    if not courses:
        return (np.zeros(0),) * 4
    first, last = max(course[0, 0] for course in courses), min(course[-1, 0] for course in courses)
    grid = np.unique(np.concatenate([course[:, 0] for course in courses]))
    grid = grid[(grid >= first) & (grid <= last)]
    values = np.stack([np.interp(grid, course[:, 0], course[:, 1]) for course in courses])
    return grid, values.mean(0), values.min(0), values.max(0)


def side_by_side(panels: Sequence[tuple[str, AttentionMap]]) -> Figure:
    """The attention maps of several variants on one sentence pair, with target rows and source columns.

    `panels` are (title, attention map).
    """
    source, target = panels[0][1]["source"], panels[0][1]["target"]
    labels, families = fonts.drawable(shorten(text, 16) for text in (*source, *target))
    columns = min(_COLUMNS, len(panels))
    rows = -(-len(panels) // columns)
    cell, points = 0.17, 8.5
    panel = max(cell * len(source), 1.1)  # inches; in a narrower panel every title would be wrapped
    shaped, of_titles = fonts.drawable(title for title, _ in panels)
    titles = [wrap(title, panel, ruler(fonts.properties(of_titles, points))) for title in shaped]
    above = max(map(len, titles)) * 1.3 * points / 72
    picture = figure(columns * (panel + 0.25) + 1.3, rows * (cell * len(target) + above + 1.1))
    grid = picture.subplots(rows, columns, squeeze=False)
    small, tiny = fonts.properties(families, 8), fonts.properties(of_titles, points)
    for axes in grid.flat[len(panels) :]:
        axes.set_visible(False)
    for axes, title, (_, attention_map), number in zip(grid.flat, titles, panels, range(len(panels))):
        weights = np.array(attention_map["weights"]).reshape(len(target), len(source)) / 1000
        row_labels = labels[len(source) :] if number % columns == 0 else [""] * len(target)
        matrix(axes, weights, row_labels, labels[: len(source)], small, slant=60)
        axes.set_title("\n".join(title), fontproperties=tiny, parse_math=False)
    # The first drawing moves titles above the slanted labels, and the layout needs these positions.
    picture.draw_without_rendering()
    return picture
