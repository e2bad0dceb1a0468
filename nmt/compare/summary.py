"""The short report of a comparison: the verdict, three pictures, and a table of the differences."""

import math
from collections.abc import Sequence

from nmt.compare import plots
from nmt.compare.plots import ForestRow
from nmt.compare.variants import Comparison
from nmt.compare.verdict import baseline_label, count_of, judgement, p_text, verdict_on_all, verdict_on_first
from nmt.evaluation.metrics import TITLES
from nmt.evaluation.references import AttentionMap
from nmt.viewer.blocks import Block, Heading, Lines, Table

MAPS = 3  # attention maps side by side


def differences(rows: Sequence[ForestRow]) -> Table:
    """A table of all differences with their intervals and tests."""
    header = ["variant", "group", "value", "low", "high", "p, Holm", "min. detectable", "verdict"]
    body = []
    for group, label, test in rows:
        ends = (f"{end:+.2f}" if math.isfinite(end) else "-" for end in (test.low, test.high))
        body.append(
            [label, group, f"{test.difference:+.2f}", *ends, p_text(test.p), f"{test.detectable:.2f}", judgement(test)]
        )
    return Table(header, body, [row[-1] for row in body])


def summary(comparison: Comparison, *, speeds: bool = True) -> list[Block]:
    """The verdict, the differences from the baseline, learning curves, and up to three attention maps of a sentence."""
    joint, baseline = comparison.joint, comparison.labels[comparison.baseline]
    labels = comparison.labels
    score, where = TITLES[joint.judge], ", ".join(joint.splits)
    several = len(joint.splits) > 1
    blocks: list[Block] = [Lines(verdict_on_first(comparison), lead=True)]
    if several:
        blocks.insert(0, Heading(f"Verdict on {comparison.splits[0].name}"))
    rows = [
        ForestRow(f"difference from {baseline}", labels[test.second], test)
        for test in sorted(joint.tests, key=lambda test: -test.difference)
    ]
    if rows:
        title = f"Differences in {score} on {where}, with {100 * (1 - comparison.alpha):g} % intervals"
        together = f", on {where} together" if several else ""
        blocks += [
            Heading(f"Differences from the baseline{together}"),
            *([Lines(verdict_on_all(comparison))] if several else []),
            plots.drawn("forest", plots.forest(rows, title, score), title),
        ]
        caption = (
            f"{where}: {count_of(joint.sentences, 'sentence')}. An interval covers other sentences and, with several "
            f"seeds, other seeds. It is not corrected for the number of variants; p and the colours are (Holm). The "
            f"baseline is {baseline_label(comparison)}."
        )
        blocks.append(Lines([caption, f"{score}: {comparison.splits[0].signatures[joint.judge]}"]))
    course = plots.curves(comparison, by_time=speeds)
    if course is not None:
        blocks += [Heading("Learning curves"), plots.drawn("learning-curves", course, "learning curves")]
    panels = _panels(comparison)
    if panels:
        names = ", ".join(label for label, _ in panels)
        picture = plots.drawn("maps", plots.side_by_side(panels), f"attention weights of one sentence: {names}")
        first = "The first sentence with saved weights, of each variant's first seed."
        lines = Lines(
            [f"{first} A grey cell has a weight of exactly 0.", "A weight shows where the decoder looked, not why."]
        )
        blocks += [Heading("One sentence, by attention"), picture, lines]
    if rows:
        blocks += [Heading("Every difference"), differences(rows)]
    return blocks


def _panels(comparison: Comparison) -> list[tuple[str, AttentionMap]]:
    """Attention maps of the first sentence that all variants with attention saved: baseline, best, next by score."""
    split = comparison.splits[0]
    order = dict.fromkeys([comparison.baseline, *split.order])
    maps = {
        comparison.labels[at]: {look["line"]: look for look in looks}
        for at in order
        if (looks := comparison.variants[at].runs[0].splits[split.name].attention_maps)
    }
    shared = set.intersection(*(set(by_line) for by_line in maps.values())) if maps else set()
    return [(label, by_line[min(shared)]) for label, by_line in [*maps.items()][:MAPS]] if shared else []
