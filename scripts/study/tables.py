"""The tables of the study's page, and of the pages that quote it, from the records."""

import itertools
import statistics
from collections.abc import Iterable, Mapping, Sequence

import numpy as np
from scipy.stats import t as student  # type: ignore[import-untyped]

from nmt.compare.significance import bleu_of
from nmt.compare.verdict import p_text
from nmt.drawing.length_plot import FEW
from nmt.evaluation.length_bins import binned, joined
from study.questions import DEFAULT, EQUAL_TIME, LONGER, LONGER_EQUAL_TIME, QUESTIONS, Question
from study.rows import CONVERGED, GRID
from study.tests import (
    ALPHA,
    Answer,
    BleuNoise,
    Costs,
    Rows,
    after_equal_time,
    link_differences,
    link_rates,
    link_sides,
    of_question,
)

FIRST = "test_2016_flickr"
SPLITS = {FIRST: "test_2016", "test_2017_flickr": "test_2017", "test_2016_joined.de-5e5df5": "long lines"}
SILVER, OTHER_TEXT = "test_2016_flickr.de-en.sp, words=moses", "gold.sp"
BASE = "bahdanau"  # its costs are 1, and it is the baseline of the tables of scores
WORKS = {"training": "training, µs a token", "translating": "search, µs a token"}


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, texts: int = 1) -> str:
    """A Markdown table; the first `texts` columns are texts, the others numbers."""
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * texts}{'---:|' * (len(head) - texts)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def bleu_of_rows(rows: Rows, split: str) -> dict[str, float]:
    """The mean BLEU of each row's runs."""
    return {name: statistics.fmean(run.scores[split]["bleu"] for run in runs) for name, runs in rows.items()}


def questions(rows: Rows, noises: Mapping[str, BleuNoise], longer: Rows, costs: Costs) -> str:
    """Each question with its answer on each test set."""
    lines = [[question.text, *(_verdict(question, of_question(noise, question)) for noise in noises.values())]
             for question in QUESTIONS]  # fmt: skip
    last, noise = LONGER[-1], BleuNoise(longer, FIRST)
    lines += [
        [EQUAL_TIME.text, _verdict(EQUAL_TIME, after_equal_time(rows, costs, EQUAL_TIME)), "-", "-"],
        [last.text, _verdict(last, of_question(noise, last)), "-", "-"],
        [
            LONGER_EQUAL_TIME.text,
            _verdict(LONGER_EQUAL_TIME, after_equal_time(longer, costs, LONGER_EQUAL_TIME)),
            *("-", "-"),
        ],
    ]
    for way, differences in link_differences(rows, SILVER):
        fewer, more = link_sides(differences)
        head = "Mixed" if fewer and more else "Yes" if len(fewer) == len(differences) else "In part" if fewer else "No"
        rest = len(differences) - len(fewer) - len(more)
        means = _range([statistics.fmean(values) for values in differences.values()], 1)
        other = "a straight diagonal" if way == "diagonal" else way
        answer = f"{head} ({len(fewer)} rows fewer, {len(more)} more, {rest} not significant): {means} points"
        lines.append([f"Does attention make fewer errors in word links than {other}?", answer, "-", "-"])
    return table(["question", *SPLITS.values()], lines, texts=4)


def _verdict(question: Question, tested: Sequence[Answer]) -> str:
    """The answer, how many of the contrasts that decide it are significant, and the range of their differences."""
    deciding = [answer for answer in tested if (answer.first, answer.second) in question.pairs]
    real = [answer for answer in deciding if answer.significant]
    good = [answer for answer in real if question.change or answer.difference > 0]
    if len(good) < len(real):
        head = "Mixed" if good else "No, worse" if len(real) == len(deciding) else "No gain was found"
    else:
        head = "No difference was found" if not good else "In part" if len(real) < len(deciding) else "Yes"
    return f"{head} ({len(real)} of {len(deciding)}): {_range([answer.difference for answer in deciding], 2)}"


def _range(values: Sequence[float], digits: int) -> str:
    least, most = (f"{extreme(values):+.{digits}f}" for extreme in (min, max))
    return least if least == most else f"{least} to {most}"


def _cell(answer: Answer) -> str:
    return f"{answer.difference:+.2f} ({p_text(answer.p)})"


def contrasts(noises: Mapping[str, BleuNoise], some: Sequence[Question]) -> str:
    """Each contrast with its difference and p on each test set, and the detectable difference on the first."""
    lines: list[list[str]] = []
    for question in some:
        for same in zip(*(of_question(noise, question) for noise in noises.values()), strict=True):
            text = question.text if not lines or question.text not in [line[0] for line in lines] else ""
            cells = [*map(_cell, same), f"{same[0].detectable:.1f}"]
            lines.append([text, f"`{same[0].second}`", f"`{same[0].first}`", *cells])
    labels = [SPLITS[split] for split in noises]
    return table(["question", "row", "against", *labels, f"detectable, {labels[0]}"], lines, texts=3)


def candidates(rows: Rows, noises: Mapping[str, BleuNoise], costs: Costs) -> str:
    """The rows that may be the best on the first test set, with their costs.

    A multiple comparison with the best (Hsu 1981): a row is out if it is significantly below any other. Only the
    comparisons of the row that is truly the best must not fail, one with each other row, so Bonferroni's correction is
    for these.
    """
    level = ALPHA / (len(rows) - 1)  # one-sided
    names: dict[str, list[str]] = {}
    for split, noise in noises.items():
        bleu = bleu_of_rows(rows, split)
        order = sorted(rows, key=lambda name, bleu=bleu: -bleu[name])  # type: ignore[misc]
        tests = {pair: noise.between(*pair) for pair in itertools.combinations(order, 2)}
        below = {low for (_, low), (_, p, _) in tests.items() if p < 2 * level}
        names[split] = [name for name in order if name not in below]
        if split == FIRST:
            bound = {
                frozenset(pair): float(student.isf(level, error.freedom)) * error.size
                for pair, (_, _, error) in tests.items()
            }
    bleu = bleu_of_rows(rows, FIRST)
    lines = []
    for name in names[FIRST]:
        others = [other for other in names[FIRST] if other != name]
        loss = max([0.0, *(bleu[other] - bleu[name] + bound[frozenset((name, other))] for other in others)])
        also = ", ".join(SPLITS[split] for split in noises if split != FIRST and name in names[split]) or "-"
        lines.append(
            [f"`{name}`", f"{bleu[name]:.2f}", f"{loss:.1f}", *(_cost(costs, name, work) for work in WORKS), also]
        )
    head = ["row", "BLEU", "may be below the best by", *WORKS.values(), "may also be the best on"]
    return table(head, lines)


def all_costs(rows: Rows, costs: Costs) -> str:
    """Parameters and costs of every row."""
    lines = [
        [f"`{name}`", f"{int(runs[0].scores[FIRST]['parameters']):,}", *(_cost(costs, name, work) for work in WORKS)]
        for name, runs in rows.items()
    ]
    return table(["row", "parameters", *WORKS.values()], lines)


def _cost(costs: Costs, name: str, work: str) -> str:
    """Microseconds, and in brackets the ratio to `BASE` with its range over the rounds."""
    if name not in costs:
        return "-"
    ratios = sorted(cost / base for cost, base in zip(costs[name][work], costs[BASE][work], strict=True))
    spread = f"{statistics.median(ratios):.2f}; {ratios[0]:.2f} to {ratios[-1]:.2f}"
    return f"{statistics.median(costs[name][work]):.0f} ({spread})"


def tuning(rows: Rows) -> str:
    """The lowest validation perplexity of each row with each setting of the sweep."""
    labels = [", ".join(word.partition(".")[2].replace("=", " ") for word in words) for words in GRID]
    lines = []
    for row in CONVERGED:
        runs = [rows[f"{row.name}-{at}"][0] for at in range(1, len(GRID) + 1)]
        values = [min(entry["valid_perplexity"] for entry in run.history) for run in runs]
        lines.append(
            [f"`{row.name}`", *(f"**{value:.2f}**" if value == min(values) else f"{value:.2f}" for value in values)]
        )
    return table(["row", *labels], lines)


def converged(rows: Rows) -> str:
    """BLEU, the epoch of the best validation and, if measured, error rates of links; means over runs."""
    scores = {split: bleu_of_rows(rows, split) for split in list(SPLITS)[:2]}
    rates = link_rates(rows, SILVER, "attention")
    lines = []
    for name in sorted(rows, key=lambda name: -scores[FIRST][name]):
        best = [max(run.history, key=lambda entry: entry["valid_bleu"])["epoch"] for run in rows[name]]
        cells = [*(f"{bleu[name]:.2f}" for bleu in scores.values()), f"{statistics.fmean(best):.1f}"]
        if rates:
            cells.append(f"{statistics.fmean(rates[name]):.1f}" if name in rates else "-")
        lines.append([f"`{name}`", str(len(rows[name])), *cells])
    head = ["row", "runs", *(f"BLEU, {SPLITS[split]}" for split in scores), "best epoch"]
    return table([*head, *(["alignment error rate, %"] if rates else [])], lines)


def scores(rows: Rows, split: str, noise: BleuNoise) -> str:
    """All figures of every row on a split, the highest BLEU first, with the tests against `BASE`."""
    tests = {answer.second: answer for answer in noise.against(BASE)}
    lines = []
    for name in _ordered(rows, split):
        test = tests.get(name)
        verdict = "baseline" if test is None else "n.s." if not test.significant else "worse"
        if test is not None and test.significant and test.difference > 0:
            verdict = "better"
        cells = ["", ""] if test is None else [f"{test.difference:+.2f}", p_text(test.p)]
        own = [_mean([run.scores[split].get(key) for run in rows[name]]) for key in _FIGURES]
        lines.append([name, str(len(rows[name])), own[0], *cells, verdict, *own[1:]])
    head = ["variant", "seeds", "BLEU", "to baseline", "p", "", "chrF", "TER", "perplexity", "entropy"]
    return table([*head, "share without weight"], lines)


_FIGURES = ("bleu", "chrf", "ter", "perplexity", "attention_entropy", "hidden_share")


def _ordered(rows: Rows, split: str) -> list[str]:
    bleu = bleu_of_rows(rows, split)
    return sorted(rows, key=lambda name: -bleu[name])


def _mean(values: Sequence[float | None], digits: int = 2) -> str:
    """Mean and standard deviation over seeds."""
    known = [value for value in values if value is not None]
    if len(known) < len(values) or not known:
        return "-"
    deviation = f" ± {statistics.stdev(known):,.{digits}f}" if len(known) > 1 else ""
    return f"{statistics.fmean(known):,.{digits}f}{deviation}"


def by_length(rows: Rows, split: str) -> str:
    """BLEU by source length, the mean over seeds."""
    bins = joined(binned(next(iter(rows.values()))[0].lengths[split]), FEW)
    lines = []
    for name in _ordered(rows, split):
        counts = np.stack([run.counts[split] for run in rows[name]])
        lines.append([name, *(f"{bleu_of(counts[:, chosen].sum(1)).mean():.1f}" for *_, chosen in bins)])
    lines.append(["sentences", *(str(len(chosen)) for *_, chosen in bins)])
    return table(["source words", *(f"{least}-{most}" for least, most, _ in bins)], lines)


def links(rows: Rows, golds: Sequence[str], ways: Sequence[str]) -> str:
    """Alignment error rates by row, the lowest in the first column first, and of links that no model made."""
    known = {gold: [one for runs in rows.values() for run in runs for one in run.links if one["gold"] == gold]
             for gold in golds}  # fmt: skip
    columns = {(gold, way): _rates(rows, gold, way) for gold in golds for way in ways}
    order = sorted(rows, key=lambda name: [statistics.fmean(column.get(name, [1e9])) for column in columns.values()])
    lines = [[name, *(_mean(column.get(name, []), 1) for column in columns.values())] for name in order]
    for label, rates in known[golds[0]][0]["without_model"].items():
        own = [rates if gold == golds[0] else known[gold][0]["without_model"][label] for gold in golds]
        lines += [[f"({label})", *(f"{rate:.1f}" for rate in own for _ in ways)]]
    return table(["row", *(f"{gold}: {way}" if len(golds) > 1 else way for gold, way in columns)], lines)


def _rates(rows: Rows, gold: str, way: str) -> dict[str, list[float]]:
    if way == "attention":
        return link_rates(rows, gold, way)
    of_gold = {name: [one["rates"] for run in runs for one in run.links if one["gold"] == gold]
               for name, runs in rows.items()}  # fmt: skip
    return {
        name: [rates[way] for rates in all_] for name, all_ in of_gold.items() if all_ and all(way in r for r in all_)
    }


def quoted(rows: Rows, noises: Mapping[str, BleuNoise], labels: Mapping[str, str]) -> str:
    """BLEU of some rows on the first test set, their tests against `DEFAULT`, and all rows that are better than it.

    `labels` are the rows with a page's own words for them.
    """
    tests = {split: {answer.second: answer for answer in noise.against(DEFAULT)} for split, noise in noises.items()}
    bleu = bleu_of_rows(rows, FIRST)
    lines = []
    for name, label in labels.items():
        cells = [_cell(tested[name]) if name in tested else "" for tested in tests.values()]
        lines.append([label, f"`{name}`", f"{bleu[name]:.2f}", *cells])
    better = []
    for split, tested in tests.items():
        names = [f"`{name}`" for name, answer in tested.items() if answer.significant and answer.difference > 0]
        better.append(f"{SPLITS[split]}: {', '.join(names) or 'none'}")
    head = ["model", "row of the study", "BLEU", *SPLITS.values()]
    return f"{table(head, lines, texts=2)}\n\nSignificantly better than `{DEFAULT}`, by test set: {'; '.join(better)}."
