"""How the attention of the study's rows agrees with word links, beside a straight diagonal and beside saliency.

All tests are Student's t over seeds. Single rows are corrected by Holm over the rows, and the deviation over seeds is
pooled over them unless Bartlett's test finds that it differs. Their mean is one more test, which tells more than those
of single rows where each row has few seeds.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.alignment.baselines import DIAGONAL
from nmt.comparison.results import ATTENTION, Aligned, Result
from nmt.comparison.significance import POWER, holm
from nmt.comparison.variance import Error, of_grand_mean, of_mean
from nmt.comparison.verdict import count_of
from studying.answers import ALPHA, p_equation, range_of


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


class Average(NamedTuple):
    """The mean difference of the rows with two seeds or more, and its p."""

    rows: int
    mean: float
    p: float

    def __str__(self) -> str:
        of_rows = f"on average, the weights of the {self.rows} rows with two seeds or more"
        if self.p >= ALPHA:
            return f"{of_rows} cannot be told from it ({self.mean:+.1f} points, p {p_equation(self.p)})"
        side = "fewer" if self.mean < 0 else "more"
        return f"{of_rows} have {abs(self.mean):.1f} points {side} errors than it (p {p_equation(self.p)})"


def links_of(rows: Mapping[str, Sequence[Result]], gold: str) -> Links | str:
    """What was measured on the links, or why there is nothing to test."""
    by_name = {
        name: [links for run in runs for links in run.aligned.values() if links.gold == gold and links.attention]
        for name, runs in rows.items()
    }
    measured = {name: links for name, links in by_name.items() if links}
    if not measured:
        return "Not measured."
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
        f"{_sides(links.to_diagonal)}",
        f"Beside the saliency of the same model (gradient times input), {_sides(links.to_saliency)}",
    ]
    if links.without:
        parts.append(f"The saliency of `none`, which has no attention, has {statistics.fmean(links.without):.1f} %.")
    return " ".join([*parts, "The tests are for other seeds, not for other sentences."])


def summary_of_links(rows: Mapping[str, Sequence[Result]], gold: str) -> list[str]:
    """The lines of a table, as those of `studying.answers.summary`, for error rates on the links."""
    links = links_of(rows, gold)
    if isinstance(links, str):
        return []
    lines = []
    for other, differences in (("a straight diagonal", links.to_diagonal), ("saliency", links.to_saliency)):
        real = sum(p < ALPHA for p in _p_values(differences)[0])
        average = _average(list(differences.values()))
        if average is None or average.p >= ALPHA:
            answer = "No difference was found on average"
        else:
            answer = "Yes, on average" if average.mean < 0 else "No, more errors on average"
        means = [statistics.fmean(values) for values in differences.values()]
        question = f"Does attention make fewer errors in word links than {other}?"
        lines.append(
            f"| {question} | {answer} | {real} of {len(differences)} | {range_of(means, 1)} points of error rate |"
        )
    return lines


def _rates(aligned: Sequence[Aligned], way: str) -> list[float]:
    """The error rates of a way to read links, where it was measured."""
    names = [(links, (links.attention or "") if way == ATTENTION else way) for links in aligned]
    return [links.rates[name] for links, name in names if name in links.rates]


def _p_values(differences: Mapping[str, Sequence[float]]) -> tuple[list[float], list[Error]]:
    """The p of each row by Holm, and its standard error."""
    groups = list(differences.values())
    parts = [of_mean(values, groups) for values in groups]
    errors = [Error(part.variance**0.5, part.freedom) for part in parts]
    return holm([error.p(statistics.fmean(values)) for error, values in zip(errors, groups, strict=True)]), errors


def _average(groups: Sequence[Sequence[float]]) -> Average | None:
    """The mean of the rows with two seeds or more; None where there is one such row or none."""
    several = [values for values in groups if len(values) > 1]
    if len(several) < 2:
        return None
    part = of_grand_mean(several)
    mean = statistics.fmean(statistics.fmean(values) for values in several)
    return Average(len(several), mean, Error(part.variance**0.5, part.freedom).p(mean))


def _sides(differences: Mapping[str, Sequence[float]]) -> str:
    """Which rows' weights have significantly fewer errors than what they are compared with, and which have more."""
    p_values, errors = _p_values(differences)
    sides: dict[str, list[str]] = {"fewer": [], "more": [], "": []}
    for (name, values), p in zip(differences.items(), p_values, strict=True):
        side = ("fewer" if statistics.fmean(values) < 0 else "more") if p < ALPHA else ""
        sides[side].append(f"`{name}`")
    texts = [
        f"the weights of {count_of(len(names), 'row')} have significantly {side} errors than it"
        f"{_listed(names, len(differences))}"
        for side, names in sides.items()
        if side and names
    ]
    if sides[""]:
        # Few seeds with a deviation for each row have almost no power.
        least = statistics.median(error.detectable(ALPHA / len(differences), POWER) for error in errors)
        power = (
            f"a true difference of {least:.1f} points, the median, would be found four times in five"
            if least < 100
            else "no possible difference would be found four times in five: these are too few seeds"
        )
        texts.append(f"{count_of(len(sides['']), 'row')} cannot be told from it ({power})")
    average = _average(list(differences.values()))
    return f"{'; '.join([*texts, *([] if average is None else [str(average)])])}."


def _listed(names: Sequence[str], total: int) -> str:
    """The names in brackets, unless they are none or most."""
    return f" ({', '.join(names)})" if 0 < len(names) <= total / 2 else ""
