"""What the study says of models trained for longer, each with a learning rate and a dropout of its own."""

import statistics
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nmt.compare.results import Result
from nmt.compare.verdict import count_of
from studying.agreeing import agreement
from studying.answers import Answer, Question, RowNoise, about_seeds, answers, bleu_of_rows, by_row, paragraph
from studying.rows import CONVERGED, GRID, LONG, SEEDS, TUNING
from studying.taking import Costs
from studying.timing import after_equal_time
from studying.work import lowest_perplexity


def _epochs(budget: tuple[str, ...]) -> str:
    return budget[0].partition("=")[2]


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
    f"Is self-attention better after {_epochs(LONG)} epochs?",
    _SELF_ATTENTION,
    note="The learning rate and dropout of each are from the same sweep. The recurrent row has one layer, not three.",
)
EQUAL_TIME = Question(
    "Is self-attention better after the same training time, in these longer trainings?",
    _SELF_ATTENTION,
    note="BLEU, time and schedules are as in the question about the same training time after fewer epochs.",
)


class Trained(NamedTuple):
    """The runs: those that chose settings, the longest ones, and those in the other direction."""

    tuning: Sequence[Result]
    there: Sequence[Result]
    back: Sequence[Result]


def self_attention(there: Sequence[Result], split: str, costs: Costs) -> list[tuple[Question, Sequence[Answer]]]:
    """Recurrent models against self-attention, at the end and at equal time; empty before both are trained."""
    rows = by_row(there)
    if not rows:
        return []
    one_seed = " (one seed)" if all(len(runs) == 1 for runs in rows.values()) else ""
    after_all = SELF_ATTENTION._replace(
        text=f"{SELF_ATTENTION.text}{one_seed}", note=" ".join([SELF_ATTENTION.note, *about_seeds(rows)])
    )
    answered = [
        (after_all, answers(SELF_ATTENTION, RowNoise(rows, split))),
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
        f"## Trained for {_epochs(LONG)} epochs",
        f"Each of {len(CONVERGED)} models is trained {count_of(len(GRID), 'time')} for {_epochs(TUNING)} epochs, and "
        f"then for {_epochs(LONG)} epochs with the learning rate and dropout that had the lowest validation perplexity "
        f"(one seed). So far, {_of(trained.tuning, len(GRID))} of the first trainings and "
        f"{_of(trained.there, len(SEEDS))} of the others are recorded. At the end, the learning rate is a hundredth of "
        f"its maximum.",
        _chosen(trained.tuning),
        f"The lowest validation perplexity of each first training. Less is better; the chosen setting is in bold. "
        f"{_limits(trained.tuning)}",
    ]
    if trained.there:
        rows = by_row(trained.there)
        parts += [*_scores_and_answers(rows, splits, gold), f"**Is attention an explanation?** {agreement(rows, gold)}"]
    if trained.back:
        parts += ["### English to German", *_scores_and_answers(by_row(trained.back), splits, gold)]
    return "\n\n".join(parts)


def _scores_and_answers(rows: Mapping[str, Sequence[Result]], splits: Mapping[str, str], gold: str) -> list[str]:
    """The table of scores of one direction, and the answers to the questions whose rows are trained."""
    noise = RowNoise(rows, next(iter(splits)))
    tested = ((question, answers(question, noise)) for question in QUESTIONS)
    paragraphs = [paragraph(question, answer) for question, answer in tested if answer]
    return [_scores(rows, splits, gold), *about_seeds(rows), *paragraphs]


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


def _limits(tuning: Sequence[Result]) -> str:
    """What the sweep cannot show."""
    chosen = [best for values in _perplexities(tuning).values() if (best := _best(values)) is not None]
    parts = [
        "With two values each, every setting is at the edge of the sweep, so a wider one may find better settings."
    ]
    least = min(word for words in GRID for word in words if word.startswith("model.dropout"))
    if chosen and all(least in GRID[best] for best in chosen):
        parts.append("All have chosen the lower dropout; longer trainings may want more.")
    return " ".join(parts)


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
