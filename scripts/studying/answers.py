"""The questions of the study, answered from its runs: each with its contrasts, the test of each, and one sentence.

A contrast is between two rows of `rows`. Its test is that of `nmt.compare` (Student's t with the errors of sentences
and of seeds), corrected by Holm within its question. Nothing is said about a difference that was not tested.
"""

import statistics
from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np

from nmt.compare.comparable import without_seed
from nmt.compare.results import Result
from nmt.compare.significance import POWER, DifferenceTest, Noise, Runs, bleu_of, holm
from nmt.compare.verdict import p_text
from nmt.drawing.length_plot import FEW
from nmt.evaluation.length_bins import binned, joined

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
        return f"`{self.second}` {self.difference:+.2f} against `{self.first}` (p {p_equation(self.p)})"


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
        "Do projections help `dot`, `scaled_dot` and `cosine`?",
        [(score, f"{score}-projected") for score in _MULTIPLIED],
        note="Query, key, value and context are projected, so this is not about the comparison of query and key alone.",
    ),
    Question(
        "Does the score matter where query and key pass through matrices?",
        [("luong-dot-projected", other) for other in ("luong-scaled_dot-projected", "luong-cosine-projected")]
        + [("luong-general", other) for other in ("luong-dot-projected", "luong-additive")],
        "change",
        controls=[("luong-additive", "luong-concat")],
        note="`concat` is the score `additive`, written in another way. `general` and `additive` have matrices for "
        "query and key alone, the others project value and context, too. `scaled_dot` starts with energies that are a "
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
        note="`coverage-loss` has the loss from the first update on, and its validation BLEU gains less than a point "
        "after the first epoch. See et al. 2017 add the loss at the end of training.",
    ),
    Question(
        "Do hard reads help here?",
        [*(("bahdanau", "hard"), ("bahdanau", "hard-self-critical"), ("luong-additive-nofeed", "hard-enumerate"))],
        controls=[("hard-soft-half", "hard")],
        note="`hard-soft-half` is `hard` without the gradient of the draws. The weights of `hard-self-critical` "
        "collapsed: their entropy is near 0, and its links have more errors than a diagonal.",
    ),
    Question(
        "Is self-attention or convolution better after the same number of epochs?",
        [("luong-general", other) for other in FAMILIES],
        note="No row was tuned: all have the same learning rate and dropout. `luong-general` has one layer, with a "
        "decoder of 256; the others have three layers of 128. So this compares these models, not the best of each "
        "family.",
    ),
    Question(
        "Does a recurrent part help a Transformer after the same number of epochs?",
        [("transformer", "gru-transformer"), ("transformer", "transformer-luong")],
        note="`gru-transformer` has a recurrent encoder, `transformer-luong` a recurrent decoder.",
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

    def between(self, first: str, second: str) -> DifferenceTest:
        """The test of the second row against the first."""
        return self.noise.between(self.names.index(first), self.names.index(second))


def about_seeds(rows: Mapping[str, Sequence[Result]]) -> list[str]:
    """What the tests do not cover where rows have one seed; nothing if none has."""
    single = [f"`{name}`" for name, runs in rows.items() if len(runs) == 1]
    if not single:
        return []
    if len(single) == len(rows):
        return [
            "Every row has one seed. The tests cover other sentences, not other seeds: another seed may reverse an "
            "answer."
        ]
    names = f" ({', '.join(single)})" if len(single) <= len(rows) / 2 else ""
    return [
        f"So far, {len(single)} of {len(rows)} rows {'has' if len(single) == 1 else 'have'} one seed{names}. Tests of "
        f"such a row assume that seeds change its results as much as those of the others."
    ]


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


def summary(labels: Sequence[str], answered: Sequence[tuple[Question, Sequence[Sequence[Answer]]]]) -> list[str]:
    """The lines of a table: each question in a row, with its answer on each test set, named by `labels`.

    A question has one list of answers for each test set, or fewer.
    """
    lines = [f"| question | {' | '.join(labels)} |", f"|---|{'---|' * len(labels)}"]
    for question, of_splits in answered:
        cells = [_cell(question, tested) for tested in of_splits] + ["-"] * (len(labels) - len(of_splits))
        if set(cells) != {"-"}:
            lines.append(f"| {question.text} | {' | '.join(cells)} |")
    return lines


def contrasts(labels: Sequence[str], answered: Sequence[tuple[Question, Sequence[Sequence[Answer]]]]) -> list[str]:
    """The lines of a table: each contrast in a row, with its difference and p on each test set, named by `labels`."""
    lines = [f"| question | row | against | {' | '.join(labels)} |", f"|---|---|---|{'---:|' * len(labels)}"]
    for question, of_splits in answered:
        text = question.text
        for of_contrast in zip(*of_splits, strict=True):
            cells = [f"{answer.difference:+.2f} ({p_text(answer.p)})" for answer in of_contrast]
            lines.append(f"| {text} | `{of_contrast[0].second}` | `{of_contrast[0].first}` | {' | '.join(cells)} |")
            text = ""  # stands in the first row of its contrasts
    return lines


def _cell(question: Question, tested: Sequence[Answer]) -> str:
    """The answer, how many of the contrasts that decide it are significant, and the range of their differences."""
    deciding = _deciding(question, tested)
    if not deciding:
        return "-"
    real, rest = _apart(deciding)
    differences = range_of([answer.difference for answer in deciding], 2)
    return f"{_head(question, real, rest)} ({len(real)} of {len(deciding)}): {differences}"


def against(noise: RowNoise, name: str) -> list[Answer]:
    """The tests of all other rows against this one, corrected by Holm for all of them."""
    return answers(Question("", [(name, other) for other in noise.names if other != name]), noise)


def worse_than(noise: RowNoise, name: str) -> str:
    """Which of all rows are significantly worse than this one; "" if none is."""
    worse = [f"`{each.second}`" for each in against(noise, name) if each.significant and each.difference < 0]
    if not worse:
        return ""
    verb = "is" if len(worse) == 1 else "are"
    return f"But {', '.join(worse)} {verb} significantly worse than `{name}` (corrected by Holm for all rows)."


def _deciding(question: Question, tested: Sequence[Answer]) -> list[Answer]:
    return [answer for answer in tested if (answer.first, answer.second) not in question.controls]


def range_of(values: Sequence[float], digits: int) -> str:
    """The smallest and the largest of some differences, with their signs."""
    least, most = (f"{extreme(values):+.{digits}f}" for extreme in (min, max))
    return least if least == most else f"{least} to {most}"


def sentence(question: Question, tested: Sequence[Answer]) -> str:
    """The answer in words: which differences are significant, which are not, and how small one could have been seen."""
    deciding = _deciding(question, tested)
    controls = [answer for answer in tested if answer not in deciding]
    if not deciding:
        return "Not tested."
    real, rest = _apart(deciding)
    parts = [f"{_head(question, real, rest)}{': ' if real else ''}{'; '.join(map(str, real))}."]
    if rest:
        parts.append(f"Not significant: {'; '.join(map(str, rest))}. {_power(rest)}")
    if controls:
        parts.append(f"Control: {'; '.join(map(_with_verdict, controls))}.")
    return " ".join([*parts, *([question.note] if question.note else [])])


def paragraph(question: Question, tested: Sequence[Answer]) -> str:
    """The question and its answer, in Markdown."""
    return f"**{question.text}** {sentence(question, tested)}"


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
    if least == most:
        return f"Minimum detectable difference (power {100 * POWER:.0f} %): {least} BLEU."
    return f"Minimum detectable differences (power {100 * POWER:.0f} %): {least} to {most} BLEU."


def by_length(rows: Mapping[str, Sequence[Result]], split: str, first: str, second: str) -> str:
    """In which ranges of source length the second row is better: a test in each, corrected by Holm over the ranges."""
    if not {first, second} <= set(rows):
        return "Not tested."
    split_of_one = rows[first][0].splits[split]
    bins = joined(binned(split_of_one.lengths), FEW)
    tests = [RowNoise(rows, split, lines).between(first, second) for *_, lines in bins]
    sides: dict[str, list[str]] = {"significantly better than": [], "significantly worse than": [], "": []}
    for (shortest, longest, _), test, p in zip(bins, tests, holm([test.p for test in tests]), strict=True):
        side = f"significantly {'better' if test.difference > 0 else 'worse'} than" if p < ALPHA else ""
        sides[side].append(f"{shortest} to {longest} {split_of_one.unit} {test.difference:+.1f} (p {p_equation(p)})")
    where = "in every range of lengths: " if max(map(len, sides.values())) == len(bins) else "at "
    parts = [
        f"`{second}` is {side or 'not significantly different from'} `{first}` {where}{'; '.join(ranges)}."
        for side, ranges in sides.items()
        if ranges
    ]
    return " ".join(parts)


def p_equation(p: float) -> str:
    """A p-value after the letter p: "= 0.123" or "< 0.001"."""
    return p_text(p) if p < 0.001 else f"= {p_text(p)}"
