"""What to take, by cost: the rows that may be the best, and what each row costs.

Which rows may be the best is a multiple comparison with the best (Hsu 1981, "Simultaneous confidence intervals for all
distances from the best"): a row is out if it is significantly below any other. Only the comparisons of the row that is
truly best must not fail, one with each other row, so that Bonferroni's correction is for these.
"""

import statistics
from collections.abc import Mapping, Sequence

from scipy.stats import t as student  # type: ignore[import-untyped]

from nmt.comparison.results import Result
from nmt.comparison.significance import Noise, Tested
from studying.answers import ALPHA, bleu_of_rows, noise_of

#: Of each row the microseconds a target token, "training" and "translating", in rounds that all rows took in turn.
Costs = Mapping[str, Mapping[str, list[float]]]
WORKS = {"training": "an update", "translating": "a search"}


class Candidates:
    """The rows that may be the best."""

    def __init__(self, rows: Mapping[str, Sequence[Result]], split: str) -> None:
        self.bleu = bleu_of_rows(rows, split)
        names, noise = list(rows), noise_of(rows, split)
        self.level = ALPHA / max(len(names) - 1, 1)  # one-sided
        self.tests = {(one, other): _test(noise, names, one, other) for one in names for other in names if one != other}
        near = [name for name in names if not any(self._is_below(name, other) for other in names if other != name)]
        self.names = sorted(near, key=lambda name: -self.bleu[name])

    def _is_below(self, one: str, other: str) -> bool:
        test = self.tests[one, other]
        return test.difference > 0 and test.p < 2 * self.level

    def loss(self, name: str) -> float:
        """How many BLEU the row may be below the best one, at the level of all tests together."""
        tests = [self.tests[name, other] for other in self.names if other != name]
        bounds = [test.difference + student.isf(self.level, test.error.freedom) * test.error.size for test in tests]
        return max(0.0, *bounds) if bounds else 0.0


def _test(noise: Noise, names: Sequence[str], one: str, other: str) -> Tested:
    return noise.between(names.index(one), names.index(other))


def what_to_take(rows: Mapping[str, Sequence[Result]], split: str, costs: Costs) -> str:
    """The rows that may be the best, with their costs, in Markdown."""
    candidates = Candidates(rows, split)
    names = candidates.names
    measured = [name for name in names if name in costs]
    lines = [
        "With 95 % confidence the row that is truly the best is one of these (Hsu 1981; corrected for all other rows). "
        "The third column says how far a row may be below the best, at the same level.",
        "",
        f"| row | BLEU | may be below the best by | {' | '.join(f'{work}, µs' for work in WORKS.values())} |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in names:
        cells = " | ".join(_cost(costs, name, measured[0] if measured else "", work) for work in WORKS)
        lines.append(f"| `{name}` | {candidates.bleu[name]:.2f} | {candidates.loss(name):.1f} | {cells} |")
    if measured:
        cheapest = [
            f"{work} of `{min(measured, key=lambda name: statistics.median(costs[name][key]))}`"
            for key, work in WORKS.items()
        ]
        lines += ["", f"{METHOD.format(base=measured[0])} The cheapest of them are {' and '.join(cheapest)}."]
    return "\n".join(lines)


METHOD = (
    "Costs are processor time of one core for each target token, in float32, with 64 sentences of 15 pieces and beam "
    "5: the median of rounds that all rows took in turn. In brackets is the ratio to `{base}`, with its range over the "
    "rounds."
)


def all_costs(rows: Mapping[str, Sequence[Result]], split: str, costs: Costs, base: str) -> str:
    """Parameters and costs of every row, in Markdown."""
    heads = " | ".join(f"{work}, µs" for work in WORKS.values())
    lines = [METHOD.format(base=base), "", f"| row | parameters | {heads} |", "|---|---:|---:|---:|"]
    for name, runs in rows.items():
        parameters = runs[0].splits[split].measured.get("parameters")
        cells = " | ".join(_cost(costs, name, base, work) for work in WORKS)
        lines.append(f"| `{name}` | {'-' if parameters is None else f'{parameters:,}'} | {cells} |")
    return "\n".join(lines)


def _cost(costs: Costs, name: str, base: str, work: str) -> str:
    if not {name, base} <= set(costs):
        return "-"
    ratios = sorted(cost / of_base for cost, of_base in zip(costs[name][work], costs[base][work], strict=True))
    middle = statistics.median(ratios)
    return f"{statistics.median(costs[name][work]):.0f} ({middle:.2f}; {ratios[0]:.2f} to {ratios[-1]:.2f})"
