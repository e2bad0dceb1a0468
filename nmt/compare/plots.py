"""A comparison -> a picture of the scores with their seeds."""

from matplotlib.figure import Figure

from nmt.compare.variants import Comparison, OnSplit
from nmt.compare.verdict import NOT_SIGNIFICANT, ONE_SEED, judgement
from nmt.drawing import fonts
from nmt.drawing.layout import shorten
from nmt.drawing.style import LONGEST_NAME, figure, style
from nmt.evaluation.metrics import TITLES

#: Colours of judgements, without red and green; with one seed, a judgement is grey.
COLOURS = {
    "better": "#1f5fa8",
    "worse": "#c05a00",
    NOT_SIGNIFICANT: "#8a8f96",
    "baseline": "#222222",
    **{f"{side}{ONE_SEED}": "#8a8f96" for side in ("better", "worse")},
}


def scores(comparison: Comparison, split: OnSplit) -> Figure:
    """The score of every variant, the highest on top: a small dot a seed, a bar the mean, the colour the judgement."""
    order = split.order[::-1]
    picture = figure(8.2, 1.1 + 0.34 * len(order))
    axes = picture.add_subplot()
    for place, index in enumerate(order):
        verdict = judgement(split.tests[index])
        score = split.score(index)
        axes.plot(score.values, [place] * len(score.values), "o", color=COLOURS[verdict], markersize=5, alpha=0.45)
        axes.plot(score.mean, place, "|", color=COLOURS[verdict], markersize=17, markeredgewidth=2.6)
        axes.annotate(
            verdict,
            (1.0, place),
            xycoords=("axes fraction", "data"),
            xytext=(6, 0),
            textcoords="offset points",
            va="center",
            color=COLOURS[verdict],
            fontproperties=fonts.properties([fonts.BASE], 8.5),
        )
    axes.axvline(split.score(comparison.baseline).mean, color=COLOURS["baseline"], linewidth=0.8, linestyle=":")
    axes.set_ylim(-0.6, len(order) - 0.4)
    title = TITLES[split.judge]
    style(axes, f"{title} on {split.name}: dots are seeds, bars their means", x=title)
    labels, families = fonts.drawable(shorten(comparison.variants[index].label, LONGEST_NAME) for index in order)
    axes.set_yticks(range(len(order)), labels, fontproperties=fonts.properties(families, 8.5), parse_math=False)
    return picture
