"""Two models after equal training time, from their validations and from what an update of each costs (`costs`).

All rows read the same tokens in an epoch, so a row that costs twice as much a token has had half as many epochs in the
same time. Validation BLEU between two validations is interpolated; before the first it rises from 0.
"""

import statistics
from collections.abc import Mapping, Sequence

import numpy as np

from nmt.compare.results import Result
from nmt.compare.significance import POWER, holm
from nmt.compare.variance import Error, by_runs
from studying.answers import ALPHA, FAMILIES, Answer, Question
from studying.taking import Costs

QUESTION = Question(
    "Is self-attention or convolution better after the same training time?",
    [("luong-general", other) for other in FAMILIES],
    note="BLEU is of greedy search on the validation set at the last moment that both models have reached, by linear "
    "interpolation between the validations after each epoch. At that moment the slower model is in the middle of its "
    "schedule, where its learning rate is high: it may do better with a schedule for that time. Time is "
    'processor time of updates ("Parameters and costs"). The tests are for other seeds, not for other sentences; the '
    "deviation over seeds is that of the last validation.",
)


def after_equal_time(rows: Mapping[str, Sequence[Result]], costs: Costs, question: Question = QUESTION) -> list[Answer]:
    """A test of each pair of the question by Student's t over seeds, corrected by Holm; [] if every row has one."""
    if all(len(runs) == 1 for runs in rows.values()):
        return []
    pairs = [pair for pair in question.pairs if set(pair) <= rows.keys() & costs.keys()]
    prices = {name: statistics.median(costs[name]["training"]) for pair in pairs for name in pair}
    # How much seeds differ is estimated from all rows, as each has few.
    groups = [[run.history[-1]["valid_bleu"] for run in runs] for runs in rows.values()]
    compared = []
    for pair in pairs:
        moment = min(run.history[-1]["epoch"] * prices[name] for name in pair for run in rows[name])
        first, second = ([_bleu(run, moment / prices[name]) for run in rows[name]] for name in pair)
        part = by_runs(first, second, groups)
        compared.append((statistics.fmean(second) - statistics.fmean(first), Error(part.variance**0.5, part.freedom)))
    p_values = holm([error.p(difference) for difference, error in compared])
    level = ALPHA / max(len(pairs), 1)
    return [
        Answer(*pair, difference, p, error.detectable(level, POWER))
        for pair, (difference, error), p in zip(pairs, compared, p_values, strict=True)
    ]


def _bleu(run: Result, epochs: float) -> float:
    """Validation BLEU of a run after some epochs."""
    moments = [0.0, *(entry["epoch"] for entry in run.history)]
    return float(np.interp(epochs, moments, [0.0, *(entry["valid_bleu"] for entry in run.history)]))
