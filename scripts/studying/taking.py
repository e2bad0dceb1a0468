"""What to take, by cost: the rows that may be the best, and what each row costs.

Which rows may be the best is a multiple comparison with the best (Hsu 1981, "Simultaneous confidence intervals for all
distances from the best"): a row is out if it is significantly below any other. Only the comparisons of the row that is
truly best must not fail, one with each other row, so that Bonferroni's correction is for these.
"""

import itertools
import statistics
from collections.abc import Mapping, Sequence

from scipy.stats import t as student  # type: ignore[import-untyped]

from nmt.compare.results import Result
from studying.answers import ALPHA, RowNoise, bleu_of_rows
from studying.costs import LENGTH

#: Of each row the microseconds a target token, "training" and "translating", in rounds that all rows took in turn.
Costs = Mapping[str, Mapping[str, list[float]]]
WORKS = {"training": "training, µs a token", "translating": "search, µs a token"}
BASE = "bahdanau"  # the row whose costs are 1


class Candidates:
    """The rows that may be the best, the highest mean first."""

    def __init__(self, rows: Mapping[str, Sequence[Result]], split: str) -> None:
        self.bleu, noise = bleu_of_rows(rows, split), RowNoise(rows, split)
        self.level = ALPHA / max(len(rows) - 1, 1)  # one-sided
        order = sorted(rows, key=lambda name: -self.bleu[name])
        # A row can only be significantly below one with a higher mean.
        self.tests = {pair: noise.between(*pair) for pair in itertools.combinations(order, 2)}
        below = {low for (_, low), test in self.tests.items() if test.p < 2 * self.level}
        self.names = [name for name in order if name not in below]

    def loss(self, name: str) -> float:
        """How many BLEU the row may be below the best one, at the level of all tests together."""
        bounds = [0.0]
        for other in self.names:
            if other != name:
                test = self.tests.get((name, other)) or self.tests[other, name]
                gap = self.bleu[other] - self.bleu[name]
                bounds.append(gap + float(student.isf(self.level, test.error.freedom)) * test.error.size)
        return max(bounds)


def what_to_take(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str], costs: Costs) -> str:
    """The rows that may be the best on the first test set, with their costs, in Markdown.

    `splits` are the names of test sets and how the table calls them.
    """
    of_splits = {label: Candidates(rows, name) for name, label in splits.items()}
    first, *others = of_splits
    candidates = of_splits[first]
    names = candidates.names
    alone = all(len(runs) == 1 for runs in rows.values())
    lines = [
        f"Of the rows trained so far, the one that is truly the best on {first} is among these with 95 % confidence"
        f"{', for these seeds' if alone else ''} (Hsu 1981; corrected for all other rows). The third column "
        f"says how far a row may be below the best, at the same level. Brackets have the ratio to `{BASE}`, with its "
        f'range over the rounds ("Parameters and costs").',
        "",
        f"| row | BLEU | may be below the best by | {' | '.join(WORKS.values())} | may also be the best on |",
        "|---|---:|---:|---:|---:|---|",
    ]
    for name in names:
        cells = " | ".join(_cost(costs, name, work) for work in WORKS)
        also = ", ".join(label for label in others if name in of_splits[label].names) or "-"
        lines.append(f"| `{name}` | {candidates.bleu[name]:.2f} | {candidates.loss(name):.1f} | {cells} | {also} |")
    measured = [name for name in names if name in costs]
    if measured:
        cheapest = [min(measured, key=lambda name: statistics.median(costs[name][work])) for work in WORKS]
        which = "`{}` has the lowest median cost in training, and `{}` in search."
        if cheapest[0] == cheapest[1]:
            which = "`{}` has the lowest median cost, in training and in search."
        lines += ["", f"Of these, {which.format(*cheapest)}"]
    if others:
        everywhere = [f"`{name}`" for name in names if all(name in of_splits[label].names for label in others)]
        lines += ["", f"May be the best on all test sets: {', '.join(everywhere) or 'no row'}."]
    return "\n".join(lines)


def all_costs(rows: Mapping[str, Sequence[Result]], split: str, costs: Costs) -> str:
    """Parameters and costs of every row, in Markdown."""
    lines = []
    if costs:
        rounds = len(next(iter(costs.values()))["training"])
        lines += [
            f"Costs are microseconds of processor time of one core for each target token, in float32, with 64 "
            f"sentences of {LENGTH} pieces with their ends, and beam 5: the median of {rounds} rounds that all rows "
            f"took in turn. In brackets is the ratio to `{BASE}`, with its range over the rounds.",
            "",
        ]
    lines += [f"| row | parameters | {' | '.join(WORKS.values())} |", "|---|---:|---:|---:|"]
    for name, runs in rows.items():
        parameters = runs[0].splits[split].measured.get("parameters")
        cells = " | ".join(_cost(costs, name, work) for work in WORKS)
        lines.append(f"| `{name}` | {'-' if parameters is None else f'{parameters:,}'} | {cells} |")
    return "\n".join(lines)


def _cost(costs: Costs, name: str, work: str) -> str:
    if not {name, BASE} <= set(costs):
        return "-"
    ratios = sorted(cost / of_base for cost, of_base in zip(costs[name][work], costs[BASE][work], strict=True))
    middle = statistics.median(ratios)
    return f"{statistics.median(costs[name][work]):.0f} ({middle:.2f}; {ratios[0]:.2f} to {ratios[-1]:.2f})"
