"""How much each row deviates over seeds, as the tests of the page take it."""

import statistics
from collections.abc import Mapping, Sequence

from nmt.compare.results import Result
from nmt.compare.variance import has_own_deviation, pooled_deviation
from studying.agreeing import links_of

Deviating = Mapping[str, Sequence[float]]


def deviations(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str], golds: Sequence[str]) -> str:
    """The pooled deviation of each kind of test, and the rows that have their own, as a section in Markdown.

    Args:
        rows: the runs of each row.
        splits: names of test sets -> how the table calls them.
        golds: names of word links.
    """
    lines = [
        "## Deviations over seeds",
        "",
        "A row has its own deviation if it is significantly larger than that of the others. Unit: BLEU, or points of "
        "alignment error rate.",
        "",
        "| test | pooled deviation | rows with their own |",
        "|---|---:|---|",
    ]
    for test, by_row in {**_scores(rows, splits), **_links(rows, golds)}.items():
        groups = list(by_row.values())
        own = [
            f"`{name}` {statistics.stdev(values):.2f}"
            for name, values in by_row.items()
            if has_own_deviation(values, groups)
        ]
        lines.append(f"| {test} | {pooled_deviation(groups):.2f} | {', '.join(own) or 'none'} |")
    return "\n".join(lines)


def _scores(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str]) -> dict[str, Deviating]:
    return {
        f"BLEU, {label}": {
            name: [run.splits[split].scores["bleu"].value for run in runs] for name, runs in rows.items()
        }
        for split, label in splits.items()
    }


def _links(rows: Mapping[str, Sequence[Result]], golds: Sequence[str]) -> dict[str, Deviating]:
    tests = dict[str, Deviating]()
    for gold in golds:
        links = links_of(rows, gold)
        if not isinstance(links, str):
            tests[f"{gold}: attention less diagonal"] = links.to_diagonal
            tests[f"{gold}: attention less saliency"] = links.to_saliency
    return tests
