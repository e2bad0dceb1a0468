"""How the attention of the study's rows agrees with word links, beside a straight diagonal and beside saliency.

All tests are Student's t over seeds, corrected by Holm over the rows. The deviation over seeds is pooled as in
`nmt.compare.variance.by_runs`. The mean over rows is not tested: rows with the same seed read the same
batches, so they are not independent.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.alignment.baselines import DIAGONAL
from nmt.compare.results import ATTENTION, Alignment, Result
from nmt.compare.significance import POWER, holm
from nmt.compare.variance import Error, of_mean
from nmt.compare.verdict import count_of
from studying.answers import ALPHA, range_of


class Links(NamedTuple):
    """Error rates on some word links, in points.

    Attributes:
        diagonal: of a straight diagonal.
        to_diagonal: of each row's attention less that of the diagonal, seed by seed.
        to_saliency: of each row's attention less that of the same model's saliency, where both were measured.
        without: of the saliency of the model without attention, seed by seed.
    """

    diagonal: float
    to_diagonal: Mapping[str, Sequence[float]]
    to_saliency: Mapping[str, Sequence[float]]
    without: Sequence[float]


class Sides(NamedTuple):
    """The rows with significantly fewer errors, with significantly more, and the others, with the errors of these."""

    fewer: Sequence[str]
    more: Sequence[str]
    others: Sequence[str]
    errors: Sequence[Error]


def links_of(rows: Mapping[str, Sequence[Result]], gold: str) -> Links | str:
    """What was measured on the links, or why there is nothing to test."""
    by_name = {
        name: [links for run in runs for links in run.aligned.values() if links.gold == gold and links.attention]
        for name, runs in rows.items()
    }
    measured = {name: links for name, links in by_name.items() if links}
    if not measured:
        return "Not tested."
    if max(map(len, measured.values())) < 2:
        return "Not tested: every row has one seed."
    diagonal = next(iter(measured.values()))[0].without_model[DIAGONAL]
    weights = {name: _rates(links, ATTENTION) for name, links in measured.items()}
    to_saliency = {
        name: [rate - other for rate, other in zip(weights[name], _rates(links, "saliency"), strict=True)]
        for name, links in measured.items()
        if len(_rates(links, "saliency")) == len(links)
    }
    aligned = [links for run in rows.get("none", []) for links in run.aligned.values() if links.gold == gold]
    to_diagonal = {name: [rate - diagonal for rate in rates] for name, rates in weights.items()}
    return Links(diagonal, to_diagonal, to_saliency, _rates(aligned, "saliency"))


def agreement(rows: Mapping[str, Sequence[Result]], gold: str) -> str:
    """Whether links read off the attention have fewer errors than a straight diagonal, and than saliency."""
    links = links_of(rows, gold)
    if isinstance(links, str):
        return links
    parts = [
        "Only the agreement with word links was tested, not whether the weights cause the output.",
        f"On `{gold}` a straight diagonal has an alignment error rate of {links.diagonal:.1f} %: "
        f"{_in_words(links.to_diagonal)}",
        f"Beside the saliency of the same model (gradient times input), {_in_words(links.to_saliency)}",
    ]
    if links.without:
        parts.append(f"The saliency of `none`, which has no attention, has {statistics.fmean(links.without):.1f} %.")
    return " ".join([*parts, "The tests are for other seeds, not for other sentences."])


def summary_of_links(rows: Mapping[str, Sequence[Result]], gold: str, more_columns: int) -> list[str]:
    """The lines of a table, as those of `studying.answers.summary`, for error rates on the links.

    `more_columns` is the number of test sets without links.
    """
    links = links_of(rows, gold)
    if isinstance(links, str):
        return []
    lines = []
    for other, differences in (("a straight diagonal", links.to_diagonal), ("saliency", links.to_saliency)):
        fewer, more, *_ = _sides(differences)
        answer = "In part" if fewer else "No"
        if fewer and more:
            answer = "Mixed"
        elif len(fewer) == len(differences):
            answer = "Yes"
        rest = len(differences) - len(fewer) - len(more)
        counts = f"{len(fewer)} rows fewer, {len(more)} more, {rest} not significant"
        means = range_of([statistics.fmean(values) for values in differences.values()], 1)
        question = f"Does attention make fewer errors in word links than {other}?"
        lines.append(f"| {question} | {answer} ({counts}): {means} points |{' - |' * more_columns}")
    return lines


def _rates(aligned: Sequence[Alignment], way: str) -> list[float]:
    """The error rates of a way to read links, where it was measured."""
    names = [(links, (links.attention or "") if way == ATTENTION else way) for links in aligned]
    return [links.rates[name] for links, name in names if name in links.rates]


def _sides(differences: Mapping[str, Sequence[float]]) -> Sides:
    """Test the mean difference of each row."""
    groups = list(differences.values())
    means = [statistics.fmean(values) for values in groups]
    parts = [of_mean(values, groups) for values in groups]
    errors = [Error(part.variance**0.5, part.freedom) for part in parts]
    p_values = holm([error.p(mean) for error, mean in zip(errors, means, strict=True)])
    tested = list(zip(differences, means, p_values, errors, strict=True))
    return Sides(
        [name for name, mean, p, _ in tested if p < ALPHA and mean < 0],
        [name for name, mean, p, _ in tested if p < ALPHA and mean >= 0],
        [name for name, _, p, _ in tested if p >= ALPHA],
        [error for *_, p, error in tested if p >= ALPHA],
    )


def _in_words(differences: Mapping[str, Sequence[float]]) -> str:
    """Which rows' weights have significantly fewer errors than what they are compared with, and which have more."""
    sides, count = _sides(differences), len(differences)
    texts = [
        f"the weights of {count_of(len(names), 'row')} have significantly {side} errors{_listed(names, count)}"
        for side, names in (("fewer", sides.fewer), ("more", sides.more))
        if names
    ]
    if sides.others:
        # Few seeds with a deviation for each row have almost no power.
        middle = statistics.median(error.detectable(ALPHA / count, POWER) for error in sides.errors)
        power = f"{middle:.1f} points" if middle < 100 else "over 100 points, so seeds are too few"
        names = _listed(sides.others, count)
        texts.append(
            f"{count_of(len(sides.others), 'row')} not significantly different{names}; median minimum detectable "
            f"difference of these (power {100 * POWER:.0f} %): {power}"
        )
    return f"{'; '.join(texts)}."


def _listed(names: Sequence[str], total: int) -> str:
    """The names in brackets, unless they are most."""
    return f" ({', '.join(f'`{name}`' for name in names)})" if len(names) <= total / 2 else ""
