"""What the study says of models trained to convergence, each with a learning rate and a dropout of its own."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.comparison.results import Result
from nmt.comparison.verdict import count_of
from studying.agreeing import agreement
from studying.answers import Answer, Question, RowNoise, about_seeds, answers, bleu_of_rows, by_row, paragraph, summary
from studying.rows import CONVERGED, GRID, LONG, SEEDS, TUNING
from studying.taking import Costs
from studying.timing import after_equal_time
from studying.work import lowest_perplexity

_SELF_ATTENTION = [("luong-general", other) for other in ("transformer", "gru-transformer")]
QUESTIONS = (
    Question("Does attention help?", [("none", "bahdanau"), ("none", "luong-general")]),
    Question(
        "Does it matter when the decoder attends, and what it is fed?",
        [("bahdanau", "conditional"), ("luong-general-nofeed", "luong-general")],
        "change",
    ),
    Question("Does the score matter?", [("luong-general", "luong-dot-projected")], "change"),
)
SELF_ATTENTION = Question(
    "Is self-attention better at convergence?",
    _SELF_ATTENTION,
    note="Each has its own learning rate and dropout. The recurrent row has one layer, not three.",
)
EQUAL_TIME = Question(
    "Is self-attention better after the same training time, in these longer trainings?",
    _SELF_ATTENTION,
    note="BLEU and time are as above. The learning rate of the slower model has not fallen to 0 at that moment.",
)


class Trained(NamedTuple):
    """The runs: those that chose settings, those to convergence, and those in the other direction."""

    tuning: Sequence[Result]
    there: Sequence[Result]
    back: Sequence[Result]


def self_attention(there: Sequence[Result], split: str, costs: Costs) -> list[tuple[Question, Sequence[Answer]]]:
    """Recurrent models against self-attention, at convergence and at equal time; empty before both are trained."""
    rows = by_row(there)
    if not rows:
        return []
    at_convergence = SELF_ATTENTION._replace(note=" ".join([SELF_ATTENTION.note, *about_seeds(rows)]))
    answered = [
        (at_convergence, answers(SELF_ATTENTION, RowNoise(rows, split))),
        (EQUAL_TIME, after_equal_time(rows, costs, EQUAL_TIME)),
    ]
    return [(question, tested) for question, tested in answered if tested]


def section(trained: Trained, splits: Mapping[str, str], gold: str) -> str:
    """The section, in Markdown; "" before the first run.

    Args:
        trained: the runs.
        splits: names of test sets -> how the tables call them; the first one is for the tests.
        gold: name of the word links.
    """
    if not trained.tuning:
        return ""
    parts = [
        "## Trained to convergence",
        f"Each of {len(CONVERGED)} models was trained {count_of(len(GRID), 'time')} for {_epochs(TUNING)} epochs, and "
        f"then for {_epochs(LONG)} epochs with the learning rate and dropout that had the lowest validation perplexity "
        f"(in bold; one seed). So far, {_of(trained.tuning, len(GRID))} of the first trainings and "
        f"{_of(trained.there, len(SEEDS))} of the others are recorded.",
        _chosen(trained.tuning),
        *_at_the_edge(trained.tuning),
    ]
    if trained.there:
        rows = by_row(trained.there)
        noise = RowNoise(rows, next(iter(splits)))
        parts += [_scores(rows, splits, gold), *about_seeds(rows)]
        answered = [(question, tested) for question in QUESTIONS if (tested := answers(question, noise))]
        parts += ["\n".join(summary(answered)), *(paragraph(*each) for each in answered)]
        parts.append(f"**Is attention an explanation?** {agreement(rows, gold)}")
    if trained.back:
        parts += ["### English to German", _scores(by_row(trained.back), splits, gold)]
    return "\n\n".join(parts)


def _epochs(budget: tuple[str, ...]) -> str:
    return budget[0].partition("=")[2]


def _of(runs: Sequence[Result], times: int) -> str:
    return f"{len(runs)} of {times * len(CONVERGED)}"


_LABELS = [", ".join(word.partition(".")[2].replace("=", " ") for word in words) for words in GRID]


def _perplexities(tuning: Sequence[Result]) -> dict[str, dict[int, float]]:
    """Validation perplexity of each row with each setting of the sweep, by its place in it."""
    runs = {run.name: run for run in tuning}
    names = {row.name: [f"{row.name}-{at}-{SEEDS[0]}" for at in range(1, len(GRID) + 1)] for row in CONVERGED}
    return {
        row: {at: lowest_perplexity(runs[name].history) for at, name in enumerate(of_row) if name in runs}
        for row, of_row in names.items()
    }


def _best(values: Mapping[int, float]) -> int | None:
    """The place of the lowest perplexity, once all are known."""
    return min(values, key=values.__getitem__) if len(values) == len(GRID) else None


def _chosen(tuning: Sequence[Result]) -> str:
    """Validation perplexity of each row with each setting of the sweep, as a table."""
    lines = [f"| row | {' | '.join(_LABELS)} |", f"|---|{'---:|' * len(_LABELS)}"]
    for row, values in _perplexities(tuning).items():
        cells = [f"{values[at]:.2f}" if at in values else "-" for at in range(len(GRID))]
        if (best := _best(values)) is not None:
            cells[best] = f"**{cells[best]}**"
        lines.append(f"| `{row}` | {' | '.join(cells)} |")
    return "\n".join(lines)


def _at_the_edge(tuning: Sequence[Result]) -> list[str]:
    """That all models have chosen the same setting. In a sweep of two values each, it is at the edge of both."""
    chosen = [best for values in _perplexities(tuning).values() if (best := _best(values)) is not None]
    if len(set(chosen)) != 1 or len(chosen) < 2:
        return []
    return [
        f"Each of the {len(chosen)} models whose sweep is complete has chosen {_LABELS[chosen[0]]}, a corner of the "
        f"sweep. So a wider sweep may find better settings, and longer trainings may want more dropout."
    ]


def _scores(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str], gold: str) -> str:
    """BLEU on each test set, the epoch of the best validation and, if measured, error rates of links; means of runs."""
    known = next(iter(rows.values()))[0].splits
    bleu = {label: bleu_of_rows(rows, name) for name, label in splits.items() if name in known}
    rates = {name: values for name, runs in rows.items() if (values := _error_rates(runs, gold))}
    first = next(iter(bleu.values()))
    titles = [*(f"BLEU, {label}" for label in bleu), "best epoch", *(["alignment error rate, %"] if rates else [])]
    lines = [f"| row | runs | {' | '.join(titles)} |", f"|---|{'---:|' * (len(titles) + 1)}"]
    for name in sorted(rows, key=lambda name: -first[name]):
        cells = [f"{values[name]:.2f}" for values in bleu.values()]
        cells.append(f"{statistics.fmean(_best_epoch(run) for run in rows[name]):.1f}")
        if rates:
            cells.append(f"{statistics.fmean(rates[name]):.1f}" if name in rates else "-")
        lines.append(f"| `{name}` | {len(rows[name])} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _best_epoch(run: Result) -> float:
    return max(run.history, key=lambda entry: entry["valid_bleu"])["epoch"]


def _error_rates(runs: Sequence[Result], gold: str) -> list[float]:
    """The error rate of each run's attention on the links, as far as there is one."""
    links = [aligned for run in runs for aligned in run.aligned.values() if aligned.gold == gold]
    return [aligned.rates[aligned.attention] for aligned in links if aligned.attention]
