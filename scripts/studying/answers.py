"""The questions of the study, answered from its runs: each with its contrasts, the test of each, and one sentence.

A contrast is between two rows of `rows`. Its test is that of `nmt.compare` (Student's t with the errors of sentences
and of seeds), corrected by Holm within its question. Nothing is said about a difference that was not tested.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from nmt.alignment.baselines import DIAGONAL
from nmt.comparison.comparable import without_seed
from nmt.comparison.results import ATTENTION, Aligned, Result
from nmt.comparison.significance import POWER, Noise, Runs, Tested, bleu_of, holm
from nmt.comparison.variance import Error, of_grand_mean, of_mean
from nmt.comparison.verdict import count_of, p_text
from nmt.drawing.by_length import FEW
from nmt.evaluation.by_length import binned, joined

ALPHA = 0.05


class Question(NamedTuple):
    """A question.

    Attributes:
        text: the question.
        pairs: the rows that are compared, from and to.
        about: "gain" if the second row is to be better, "change" if any difference is an answer.
        controls: further contrasts, which explain the answer but do not decide it; corrected together with the others.
        note: what else differs between the rows of a pair.
    """

    text: str
    pairs: Sequence[tuple[str, str]]
    about: Literal["gain", "change"] = "gain"
    controls: Sequence[tuple[str, str]] = ()
    note: str = ""


class Answer(NamedTuple):
    """A tested contrast: the rows, the difference in BLEU, its p (Holm), the smallest that would have been found."""

    first: str
    second: str
    difference: float
    p: float
    detectable: float

    @property
    def significant(self) -> bool:
        return self.p < ALPHA

    def __str__(self) -> str:
        return f"`{self.second}` {self.difference:+.2f} against `{self.first}` (p {_p(self.p)})"


FAMILIES = ("transformer", "weighted-transformer", "gru-transformer", "transformer-luong", "conv")
_MULTIPLIED = ("luong-dot", "luong-scaled_dot", "luong-cosine")
QUESTIONS = (
    Question("Does attention help?", [("none", "bahdanau"), ("none", "luong-general")]),
    Question(
        "Does it matter when the decoder attends, and what it is fed?",
        [
            *(("bahdanau", other) for other in ("bahdanau-previous-state", "conditional")),
            *(("bahdanau", other) for other in ("luong-additive-nofeed", "luong-additive")),
            *(("luong-additive-nofeed", "luong-additive"), ("luong-general-nofeed", "luong-general")),
        ],
        "change",
        note="`conditional` also has a second GRU cell. `luong-additive-nofeed` attends later than `bahdanau`, and its "
        "recurrence is not fed the context either.",
    ),
    Question(
        "Do projections help scores without parameters?", [(score, f"{score}-projected") for score in _MULTIPLIED]
    ),
    Question(
        "Does the score matter once there are projections?",
        [("luong-dot-projected", other) for other in ("luong-scaled_dot-projected", "luong-cosine-projected")]
        + [("luong-general", other) for other in ("luong-dot-projected", "luong-additive")],
        "change",
        controls=[("luong-additive", "luong-concat")],
        note="`concat` is the score `additive`, written in another way. `scaled_dot` starts with energies that are a "
        'sixteenth of those of `dot` ([results.md](results.md), "Why scaled dot learns more slowly").',
    ),
    Question(
        "Do windows help here?",
        [("luong-general", f"luong-{window}-{radius}") for window in ("local_m", "local_p") for radius in (2, 4)],
    ),
    Question(
        "Do several heads help here?",
        [
            (f"{name}-projected", f"{name}-heads-{heads}")
            for name in ("bahdanau", "luong-dot", "luong-scaled_dot")
            for heads in (2, 4)
        ],
    ),
    Question(
        "Does coverage help here?",
        [("bahdanau", "coverage"), ("bahdanau", "coverage-loss")],
        note="`coverage-loss` has the loss from the first update on; See et al. 2017 add it at the end of training.",
    ),
    Question(
        "Do hard reads help here?",
        [*(("bahdanau", "hard"), ("bahdanau", "hard-self-critical"), ("luong-additive-nofeed", "hard-enumerate"))],
        controls=[("hard-soft-half", "hard")],
        note="`hard-soft-half` is `hard` without the gradient of the draws.",
    ),
    Question(
        "Is self-attention or convolution better after the same number of epochs?",
        [("luong-general", other) for other in FAMILIES],
        note="All have one learning rate, and the recurrent row has one layer, not three.",
    ),
)


def by_row(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The runs of each row, by seed. A row is the name of its runs without the seed."""
    rows: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda run: run.seed):
        rows.setdefault(without_seed(result), []).append(result)
    return rows


class RowNoise:
    """The noise of BLEU over all rows on a split, or on some of its lines."""

    def __init__(self, rows: Mapping[str, Sequence[Result]], split: str, lines: Sequence[int] | None = None) -> None:
        counts = [[run.splits[split].counts["bleu"] for run in runs] for runs in rows.values()]
        parts = [np.stack([run if lines is None else run[list(lines)] for run in runs]) for runs in counts]
        seeds = [[run.seed for run in runs] for runs in rows.values()]
        self.names = list(rows)
        self.noise = Noise([Runs(*pair) for pair in zip(parts, seeds, strict=True)], bleu_of)

    def between(self, first: str, second: str) -> Tested:
        """The test of the second row against the first."""
        return self.noise.between(self.names.index(first), self.names.index(second))


def bleu_of_rows(rows: Mapping[str, Sequence[Result]], split: str) -> dict[str, float]:
    """The mean BLEU of each row's runs."""
    return {
        name: statistics.fmean(run.splits[split].scores["bleu"].value for run in runs) for name, runs in rows.items()
    }


def answers(question: Question, noise: RowNoise) -> list[Answer]:
    """Test the contrasts of a question whose rows there are, its controls last."""
    pairs = [pair for pair in (*question.pairs, *question.controls) if set(pair) <= set(noise.names)]
    tests = [noise.between(*pair) for pair in pairs]
    level = ALPHA / max(len(pairs), 1)
    return [
        Answer(*pair, test.difference, p, test.error.detectable(level, POWER))
        for pair, test, p in zip(pairs, tests, holm([test.p for test in tests]), strict=True)
    ]


def sentence(question: Question, tested: Sequence[Answer]) -> str:
    """The answer in words: which differences are significant, which are not, and how small one could have been seen."""
    controls = [answer for answer in tested if (answer.first, answer.second) in question.controls]
    deciding = [answer for answer in tested if answer not in controls]
    if not deciding:
        return "Not measured."
    real, rest = _apart(deciding)
    parts = [f"{_head(question, real, rest)}{': ' if real else ''}{'; '.join(map(str, real))}."]
    if rest:
        parts.append(f"Not significant: {'; '.join(map(str, rest))}. {_power(rest)}")
    if controls:
        parts.append(f"Control: {'; '.join(map(_with_verdict, controls))}.")
    return " ".join([*parts, *([question.note] if question.note else [])])


def _with_verdict(answer: Answer) -> str:
    return str(answer) if answer.significant else f"{answer}, which is not significant"


def _apart(tested: Sequence[Answer]) -> tuple[list[Answer], list[Answer]]:
    """The significant ones, and the others."""
    return [answer for answer in tested if answer.significant], [answer for answer in tested if not answer.significant]


def _head(question: Question, real: Sequence[Answer], rest: Sequence[Answer]) -> str:
    good = [answer for answer in real if question.about == "change" or answer.difference > 0]
    if len(good) < len(real):
        return "Mixed" if good else "No, worse" if not rest else "No gain was found"
    return "No difference was found" if not good else "In part" if rest else "Yes"


def _power(rest: Sequence[Answer]) -> str:
    least, most = (f"{extreme(answer.detectable for answer in rest):.1f}" for extreme in (min, max))
    differences = f"a true difference of {least}" if least == most else f"true differences of {least} to {most}"
    return f"These tests find {differences} BLEU four times in five."


def by_length(rows: Mapping[str, Sequence[Result]], split: str, first: str, second: str) -> str:
    """In which ranges of source length the second row is better: a test in each, corrected by Holm over the ranges."""
    if not {first, second} <= set(rows):
        return "Not measured."
    split_of_one = rows[first][0].splits[split]
    bins = joined(binned(split_of_one.lengths), FEW)
    tests = [RowNoise(rows, split, lines).between(first, second) for *_, lines in bins]
    sides: dict[str, list[str]] = {"significantly better than": [], "significantly worse than": [], "": []}
    for (shortest, longest, _), test, p in zip(bins, tests, holm([test.p for test in tests]), strict=True):
        side = f"significantly {'better' if test.difference > 0 else 'worse'} than" if p < ALPHA else ""
        sides[side].append(f"{shortest} to {longest} {split_of_one.unit} {test.difference:+.1f} (p {_p(p)})")
    where = "in every range of lengths: " if max(map(len, sides.values())) == len(bins) else "at "
    parts = [
        f"`{second}` is {side or 'not significantly different from'} `{first}` {where}{'; '.join(ranges)}."
        for side, ranges in sides.items()
        if ranges
    ]
    return " ".join(parts)


def agreement(rows: Mapping[str, Sequence[Result]], gold: str) -> str:
    """Whether links read off the attention have fewer errors than a straight diagonal, and than saliency.

    Student's t over seeds (the rates against the diagonal, paired differences against saliency). The deviation over
    seeds is pooled over the rows unless Bartlett's test finds that it differs. Corrected by Holm over the rows.
    """
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
    to_diagonal = {name: [rate - diagonal for rate in rates] for name, rates in weights.items()}
    to_saliency = {
        name: [rate - other for rate, other in zip(weights[name], _rates(links, "saliency"), strict=True)]
        for name, links in measured.items()
        if len(_rates(links, "saliency")) == len(links)
    }
    aligned = [links for run in rows.get("none", []) for links in run.aligned.values() if links.gold == gold]
    without = _rates(aligned, "saliency")
    parts = [
        "Only the agreement with word links was tested, not whether the weights cause the output.",
        f"On `{gold}` a straight diagonal has an alignment error rate of {diagonal:.1f} %: {_sides(to_diagonal)}",
        f"Beside the saliency of the same model (gradient times input), {_sides(to_saliency)}",
    ]
    if without:
        parts.append(f"The saliency of `none`, which has no attention, has {statistics.fmean(without):.1f} %.")
    return " ".join([*parts, "The tests are for other seeds, not for other sentences."])


def _rates(aligned: Sequence[Aligned], way: str) -> list[float]:
    """The error rates of a way to read links, where it was measured."""
    names = [(links, (links.attention or "") if way == ATTENTION else way) for links in aligned]
    return [links.rates[name] for links, name in names if name in links.rates]


def _sides(differences: Mapping[str, Sequence[float]]) -> str:
    """Which rows' weights have significantly fewer errors than what they are compared with, and which have more.

    Then their mean, as a single test: it tells more than the tests of single rows where each row has few seeds.
    """
    groups = list(differences.values())
    parts = [of_mean(values, groups) for values in groups]
    errors = [Error(part.variance**0.5, part.freedom) for part in parts]
    means = [statistics.fmean(values) for values in groups]
    p_values = holm([error.p(mean) for error, mean in zip(errors, means, strict=True)])
    sides: dict[str, list[str]] = {"fewer": [], "more": [], "": []}
    for name, mean, p in zip(differences, means, p_values, strict=True):
        side = ("fewer" if mean < 0 else "more") if p < ALPHA else ""
        sides[side].append(f"`{name}`")
    least = statistics.median(error.detectable(ALPHA / len(groups), POWER) for error in errors)
    texts = [
        f"the weights of {count_of(len(names), 'row')} have significantly {side} errors than it"
        f"{_listed(names, len(groups))}"
        for side, names in sides.items()
        if side and names
    ]
    if sides[""]:
        # Few seeds with a deviation for each row have almost no power.
        power = (
            f"a true difference of {least:.1f} points, the median, would be found four times in five"
            if least < 100
            else "no possible difference would be found four times in five: these are too few seeds"
        )
        texts.append(f"{count_of(len(sides['']), 'row')} cannot be told from it ({power})")
    return f"{'; '.join([*texts, *_on_average(groups)])}."


def _on_average(groups: Sequence[Sequence[float]]) -> list[str]:
    """The mean difference of all rows with two seeds, and its test; empty if there is one row or none."""
    several = [values for values in groups if len(values) > 1]
    if len(several) < 2:
        return []
    part = of_grand_mean(several)
    mean = statistics.fmean(statistics.fmean(values) for values in several)
    p = Error(part.variance**0.5, part.freedom).p(mean)
    of_rows = f"on average, the weights of the {len(several)} rows with two seeds or more"
    if p >= ALPHA:
        return [f"{of_rows} cannot be told from it ({mean:+.1f} points, p {_p(p)})"]
    return [f"{of_rows} have {abs(mean):.1f} points {'fewer' if mean < 0 else 'more'} errors than it (p {_p(p)})"]


def _listed(names: Sequence[str], total: int) -> str:
    """The names in brackets, unless they are none or most."""
    return f" ({', '.join(names)})" if 0 < len(names) <= total / 2 else ""


def _p(p: float) -> str:
    return p_text(p) if p < 0.001 else f"= {p_text(p)}"
