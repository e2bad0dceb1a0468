"""The tests of the study: Student's t with the errors of sentences and seeds, as in `nmt.compare`."""

import statistics
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt.compare.significance import POWER, Noise, Runs, bleu_of, holm
from nmt.compare.variance import Deviations, Error
from study.questions import Pairs, Question
from study.records import Run

ALPHA = 0.05
Rows = Mapping[str, Sequence[Run]]
#: Of each row the microseconds a target token, "training" and "translating", in rounds that all rows took in turn.
Costs = Mapping[str, Mapping[str, list[float]]]


class Answer(NamedTuple):
    """A contrast: the rows, the difference, its p by Holm, and the smallest difference found with probability 0.8."""

    first: str
    second: str
    difference: float
    p: float
    detectable: float

    @property
    def significant(self) -> bool:
        """Whether p is below the level."""
        return self.p < ALPHA


class BleuNoise:
    """The noise of BLEU over all rows on a split."""

    def __init__(self, rows: Rows, split: str) -> None:
        self.names = list(rows)
        parts = [
            Runs(np.stack([run.counts[split] for run in runs]), [run.seed for run in runs]) for runs in rows.values()
        ]
        self._noise = Noise(parts, bleu_of)

    def between(self, first: str, second: str) -> tuple[float, float, Error]:
        """The difference of the second row to the first, its p without correction, and its error."""
        test = self._noise.between(self.names.index(first), self.names.index(second))
        return test.difference, test.p, test.error

    def against(self, name: str) -> list[Answer]:
        """The tests of all other rows against this one, corrected for all of them."""
        return answers(self, [(name, other) for other in self.names if other != name])


def answers(noise: BleuNoise, pairs: Pairs) -> list[Answer]:
    """Test those pairs whose rows are trained, corrected by Holm."""
    known = [pair for pair in pairs if set(pair) <= set(noise.names)]
    return _corrected(known, [noise.between(*pair) for pair in known])


def of_question(noise: BleuNoise, question: Question) -> list[Answer]:
    """The contrasts of a question, its controls last, corrected together."""
    return answers(noise, [*question.pairs, *question.controls])


def _corrected(pairs: Pairs, tests: Sequence[tuple[float, float, Error]]) -> list[Answer]:
    p_values = holm([p for _, p, _ in tests])
    level = ALPHA / max(len(pairs), 1)
    return [
        Answer(*pair, difference, p, error.detectable(level, POWER))
        for pair, (difference, _, error), p in zip(pairs, tests, p_values, strict=True)
    ]


def after_equal_time(rows: Rows, costs: Costs, question: Question) -> list[Answer]:
    """Validation BLEU of each pair at the last moment that both have reached, tested over seeds.

    An epoch has the same tokens in all rows, so its time is in proportion to the cost of a token. BLEU is interpolated
    between validations; before the first, it rises from 0. The deviation over seeds is that of the last validation.
    """
    pairs = [pair for pair in question.pairs if set(pair) <= rows.keys() & costs.keys()]
    prices = {name: statistics.median(costs[name]["training"]) for pair in pairs for name in pair}
    deviations = Deviations([[run.history[-1]["valid_bleu"] for run in runs] for runs in rows.values()])
    tests = []
    for pair in pairs:
        moment = min(run.history[-1]["epoch"] * prices[name] for name in pair for run in rows[name])
        first, second = ([_bleu_after(run, moment / prices[name]) for run in rows[name]] for name in pair)
        error = Error.of(deviations.of_difference(*(list(rows).index(name) for name in pair)))
        difference = statistics.fmean(second) - statistics.fmean(first)
        tests.append((difference, error.p(difference), error))
    return _corrected(pairs, tests)


def _bleu_after(run: Run, epochs: float) -> float:
    moments = [0.0, *(entry["epoch"] for entry in run.history)]
    return float(np.interp(epochs, moments, [0.0, *(entry["valid_bleu"] for entry in run.history)]))


def link_rates(rows: Rows, gold: str, way: str) -> dict[str, list[float]]:
    """Alignment error rates of the rows with attention, by seed.

    Args:
        rows: the runs.
        gold: name of the links.
        way: "attention" (with the chosen shift), "saliency", or "diagonal", which no model made.
    """
    rates: dict[str, list[float]] = {}
    for name, runs in rows.items():
        for links in (links for run in runs for links in run.links if links["gold"] == gold and links["attention"]):
            known = {**links["rates"], **links["without_model"], "attention": links["rates"][links["attention"]]}
            if way in known:
                rates.setdefault(name, []).append(known[way])
    return rates


def link_differences(rows: Rows, gold: str) -> Iterator[tuple[str, dict[str, list[float]]]]:
    """The error rates of attention less those of a diagonal, and less those of saliency, seed by seed."""
    weights = link_rates(rows, gold, "attention")
    for way in ("diagonal", "saliency"):
        others = link_rates(rows, gold, way)
        yield (
            way,
            {
                name: [one - other for one, other in zip(weights[name], others[name], strict=True)]
                for name in weights
                if len(others.get(name, [])) == len(weights[name])
            },
        )


def link_sides(differences: Mapping[str, Sequence[float]]) -> tuple[list[str], list[str]]:
    """The rows with significantly fewer errors, and with more: t over seeds, corrected by Holm over the rows."""
    deviations = Deviations(list(differences.values()))
    means = [statistics.fmean(values) for values in differences.values()]
    p_values = holm([Error.of(deviations.of_mean(at)).p(mean) for at, mean in enumerate(means)])
    real = [(name, mean) for name, mean, p in zip(differences, means, p_values, strict=True) if p < ALPHA]
    return [name for name, mean in real if mean < 0], [name for name, mean in real if mean >= 0]
