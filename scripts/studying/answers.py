"""The questions of the study, answered from its runs: each with its contrasts, the test of each, and one sentence.

A contrast is between two rows of `rows`. Its test is that of `nmt.compare` (Student's t with the errors of sentences
and of seeds), corrected by Holm within its question. Nothing is said about a difference that was not tested.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import ttest_1samp, ttest_rel  # type: ignore[import-untyped]

from nmt.alignment.baselines import DIAGONAL
from nmt.comparison.results import ATTENTION, Aligned, Result
from nmt.comparison.significance import POWER, Noise, Runs, bleu_of, holm
from nmt.comparison.verdict import p_text
from nmt.drawing.by_length import FEW
from nmt.evaluation.by_length import binned, joined

ALPHA = 0.05


class Question(NamedTuple):
    """A question.

    Attributes:
        text: the question.
        pairs: the rows that are compared, from and to.
        about: "gain" if the second row is to be better, "change" if any difference is an answer.
    """

    text: str
    pairs: Sequence[tuple[str, str]]
    about: Literal["gain", "change"] = "gain"


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


_FAMILIES = ("transformer", "weighted-transformer", "gru-transformer", "transformer-luong", "conv")
_MULTIPLIED = ("luong-dot", "luong-scaled_dot", "luong-cosine")
QUESTIONS = (
    Question("Does attention help?", [("none", "bahdanau"), ("none", "luong-general")]),
    Question(
        "Does it matter when the decoder asks, and whether it is fed the answer?",
        [
            *(("bahdanau", other) for other in ("bahdanau-previous-state", "conditional", "luong-additive-nofeed")),
            *(("luong-additive-nofeed", "luong-additive"), ("luong-general-nofeed", "luong-general")),
        ],
        "change",
    ),
    Question(
        "Do scores without parameters need projections?", [(score, f"{score}-projected") for score in _MULTIPLIED]
    ),
    Question(
        "Does the score matter once there are projections?",
        [("luong-dot-projected", other) for other in ("luong-scaled_dot-projected", "luong-cosine-projected")]
        + [("luong-general", other) for other in ("luong-dot-projected", "luong-additive", "luong-concat")],
        "change",
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
    Question("Does coverage help here?", [("bahdanau", "coverage"), ("bahdanau", "coverage-loss")]),
    Question(
        "Do hard reads help here?",
        [
            *(("bahdanau", "hard"), ("bahdanau", "hard-self-critical"), ("luong-additive-nofeed", "hard-enumerate")),
            ("hard-soft-half", "hard"),  # the same without the gradient of the samples
        ],
    ),
    Question(
        "Is self-attention or convolution better after the same number of epochs?",
        [("luong-general", other) for other in _FAMILIES],
    ),
)


def row_of(result: Result) -> str:
    """The row that a run belongs to: its name without the seed."""
    return result.name.rpartition("-")[0]


def by_row(results: Sequence[Result]) -> dict[str, list[Result]]:
    """The runs of each row, by seed."""
    rows: dict[str, list[Result]] = {}
    for result in sorted(results, key=lambda own: own.seed):
        rows.setdefault(row_of(result), []).append(result)
    return rows


def noise_of(rows: Mapping[str, Sequence[Result]], split: str, lines: Sequence[int] | None = None) -> Noise:
    """The noise of BLEU over all rows on a split, or on some of its lines."""
    counts = [[run.splits[split].counts["bleu"] for run in runs] for runs in rows.values()]
    chosen = [np.stack([own if lines is None else own[list(lines)] for own in runs]) for runs in counts]
    seeds = [[run.seed for run in runs] for runs in rows.values()]
    return Noise([Runs(*pair) for pair in zip(chosen, seeds, strict=True)], bleu_of)


def answers(question: Question, names: Sequence[str], noise: Noise) -> list[Answer]:
    """Test the contrasts of a question whose rows there are.

    Args:
        question: the question.
        names: of the rows, in the order of `noise`.
        noise: of all rows.
    """
    pairs = [pair for pair in question.pairs if set(pair) <= set(names)]
    tests = [noise.between(names.index(first), names.index(second)) for first, second in pairs]
    level = ALPHA / max(len(pairs), 1)
    return [
        Answer(*pair, test.difference, p, test.error.detectable(level, POWER))
        for pair, test, p in zip(pairs, tests, holm([test.p for test in tests]), strict=True)
    ]


def sentence(question: Question, found: Sequence[Answer]) -> str:
    """The answer in words: which differences are significant, which are not, and how small one could have been seen."""
    if not found:
        return "Not measured."
    real = [answer for answer in found if answer.significant]
    good = [answer for answer in real if question.about == "change" or answer.difference > 0]
    head = "Yes" if len(good) == len(found) else "In part" if good else "No" if real else "No difference was found"
    parts = [f"{head}: {'; '.join(map(str, real))}."] if real else [f"{head}."]
    rest = [answer for answer in found if not answer.significant]
    if rest:
        least = f"{statistics.median(answer.detectable for answer in rest):.1f}"
        parts.append(f"Not significant: {'; '.join(map(str, rest))}; {least} BLEU would have been found.")
    return " ".join(parts)


def from_length(rows: Mapping[str, Sequence[Result]], split: str, first: str, second: str) -> str:
    """From which source length on the second row is better: the test in each bin, corrected by Holm over the bins."""
    if not {first, second} <= set(rows):
        return "Not measured."
    some = rows[first][0].splits[split]
    bins = [(shortest, lines) for shortest, _, lines in joined(binned(some.lengths), FEW)]
    pair = {name: rows[name] for name in (first, second)}
    tests = [noise_of(pair, split, lines).between(0, 1) for _, lines in bins]
    p_values = holm([test.p for test in tests])
    better = [test.difference > 0 and p < ALPHA for test, p in zip(tests, p_values, strict=True)]
    each = "; ".join(
        f"from {shortest} {some.unit} {test.difference:+.1f} (p {_p(p)})"
        for (shortest, _), test, p in zip(bins, tests, p_values, strict=True)
    )
    last = next((at for at in reversed(range(len(better))) if not better[at]), -1)
    if last + 1 == len(bins):
        return f"In no range up to the longest sentences. By source length: {each}."
    where = f"At {bins[last + 1][0]} {some.unit} and more" if last >= 0 else "At every length"
    return f"{where}. `{second}` against `{first}` by source length: {each}."


def by_cost(rows: Mapping[str, Sequence[Result]], split: str, costs: Mapping[str, Mapping[str, list[float]]]) -> str:
    """The row with the highest BLEU and those that the tests cannot tell from it, each with what it costs.

    The best row was picked by its BLEU, so that p is corrected by Bonferroni for all pairs of rows.

    Args:
        rows: the runs of each row.
        split: where they were scored.
        costs: of each row, microseconds a target token in rounds that all rows took in turn.
    """
    names, noise = list(rows), noise_of(rows, split)
    means = {name: statistics.fmean(run.splits[split].scores["bleu"].value for run in rows[name]) for name in names}
    best = max(names, key=lambda name: means[name])
    pairs = len(names) * (len(names) - 1) // 2
    tests = {name: noise.between(names.index(best), names.index(name)) for name in names if name != best}
    near = [name for name, test in tests.items() if pairs * test.p >= ALPHA]
    head = f"`{best}` has the highest BLEU, {means[best]:.2f}."
    if not near:
        return f"{head} Every other row is significantly worse (Bonferroni for all pairs of rows)."
    least = statistics.median(tests[name].error.detectable(ALPHA / pairs, POWER) for name in near)
    lines = [
        f"{head} The other rows of this table are not significantly worse (Bonferroni for all pairs of rows); "
        f"{least:.1f} BLEU would have been found. Costs are microseconds of one core for each target token, the median "
        f"of rounds in turn. In brackets is the ratio to `{best}`, with its range over the rounds.",
        "",
        f"| row | BLEU | to `{best}` | an update | beam search |",
        "|---|---:|---:|---:|---:|",
    ]
    for name in sorted((best, *near), key=lambda name: -means[name]):
        difference = f"{tests[name].difference:+.2f}" if name != best else ""
        cells = [_cost(costs, name, best, work) for work in ("training", "translating")]
        lines.append(f"| `{name}` | {means[name]:.2f} | {difference} | {' | '.join(cells)} |")
    cheaper = [f"`{name}`" for name in near if max(_ratios(costs, name, best, "training"), default=1.0) < 1]
    if cheaper:
        lines += ["", f"An update of {', '.join(cheaper)} took less time than one of `{best}` in every round."]
    return "\n".join(lines)


def _ratios(costs: Mapping[str, Mapping[str, list[float]]], name: str, base: str, work: str) -> list[float]:
    """The costs of a row divided by those of another, round by round, in ascending order; [] if not measured."""
    if not {name, base} <= set(costs):
        return []
    return sorted(cost / of_base for cost, of_base in zip(costs[name][work], costs[base][work], strict=True))


def _cost(costs: Mapping[str, Mapping[str, list[float]]], name: str, base: str, work: str) -> str:
    ratios = _ratios(costs, name, base, work)
    if not ratios:
        return "-"
    return (
        f"{statistics.median(costs[name][work]):.0f} ({statistics.median(ratios):.2f}, {ratios[0]:.2f} to "
        f"{ratios[-1]:.2f})"
    )


def explanation(rows: Mapping[str, Sequence[Result]], gold: str) -> str:
    """Whether links read off the attention have fewer errors than a straight diagonal, and than saliency.

    Student's t over seeds (one sample against the diagonal, paired against saliency), corrected by Holm over the rows.
    """
    measured = {
        name: [own for run in runs for own in run.aligned.values() if own.gold == gold and own.attention]
        for name, runs in rows.items()
    }
    measured = {name: own for name, own in measured.items() if len(own) > 1}
    if not measured:
        return "Not measured."
    diagonal = next(iter(measured.values()))[0].without_model[DIAGONAL]
    rates = {way: {name: _rates(own, way) for name, own in measured.items()} for way in (ATTENTION, "saliency")}
    against = [float(ttest_1samp(values, diagonal).pvalue) for values in rates[ATTENTION].values()]
    both = [name for name in measured if rates["saliency"][name]]
    paired = [float(ttest_rel(rates[ATTENTION][name], rates["saliency"][name]).pvalue) for name in both]
    fewer = _count(rates[ATTENTION], holm(against), {name: [diagonal] for name in measured})
    more = _count(rates["saliency"], holm(paired), rates[ATTENTION])
    return (
        f"On `{gold}` a straight diagonal has {diagonal:.1f} % errors. The weights of {fewer} of {len(measured)} rows "
        f"have significantly fewer. Saliency (gradient times input) has significantly fewer errors than the weights in "
        f"{more} of {len(both)} rows."
    )


def _rates(aligned: Sequence[Aligned], way: str) -> list[float]:
    """The error rates of a way to read links, where it was measured."""
    names = [(own, (own.attention or "") if way == ATTENTION else way) for own in aligned]
    return [own.rates[name] for own, name in names if name in own.rates]


def _count(
    lower: Mapping[str, Sequence[float]], p_values: Sequence[float], higher: Mapping[str, Sequence[float]]
) -> int:
    """How many rows of the first have significantly lower means than those of the second."""
    names = [name for name in lower if lower[name]]
    return sum(
        p < ALPHA and statistics.fmean(lower[name]) < statistics.fmean(higher[name])
        for name, p in zip(names, p_values, strict=True)
    )


def _p(p: float) -> str:
    return p_text(p) if p < 0.001 else f"= {p_text(p)}"


def first_screen(results: Sequence[Result], split: str, gold: str) -> str:
    """All questions with their answers, in Markdown."""
    rows = by_row(results)
    noise = noise_of(rows, split)
    lines = []
    single = sum(len(runs) == 1 for runs in rows.values())
    if single == len(rows):
        lines.append("Every row has one seed: the p-values know the noise of sentences alone.")
    elif single:
        lines.append(
            f"{single} of {len(rows)} rows have one seed so far. The tests assume that another seed would change them "
            f"as much as it changes the others."
        )
    for question in QUESTIONS:
        lines.append(f"**{question.text}** {sentence(question, answers(question, list(rows), noise))}")
        if question is QUESTIONS[0]:
            lines.append(f"**From which length on?** {from_length(rows, split, 'none', 'luong-general')}")
    lines.append(f"**Is attention an explanation?** {explanation(rows, gold)}")
    return "\n\n".join(lines)
