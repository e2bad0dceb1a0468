"""The output of `attention_study.py report`: tables, pictures, and the figures in the text of the page."""

import re
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from nmt.compare.plots import ForestRow, forest, learning_curves, side_by_side
from nmt.compare.significance import bleu_of
from nmt.compare.summary import differences
from nmt.compare.verdict import judgement, p_text
from nmt.drawing.style import png
from nmt.system.errors import UserError
from nmt.viewer.blocks import Picture, Table
from study.contrasts import (
    ALPHA,
    DEFAULT,
    GROUPS,
    SPLITS,
    STUDIES,
    TOKENS,
    Costs,
    Rows,
    Tests,
    after_equal_time,
    link_differences,
    link_rates,
    of_group,
    tests_of,
)

#: Further files of records besides the parquet files; see `Study`.
FURTHER = ("costs", "maps", "erasure")
SILVER = "test_2016_flickr.de-en.sp, words=moses"
AGREEMENTS = (
    *("attention/erasure", "gradient/erasure", "attention/gradient"),  # by absolute value, as in `explain`
    *("signed attention/erasure", "signed gradient/erasure"),
    *("top attention", "top gradient", "top chance"),
)
LONG = "test_2016_joined"  # the beginning of the test set's name
LABELS = {"test_2016_flickr": "test_2016", "test_2017_flickr": "test_2017", "test_2016_joined": "long lines"}
FAMILIES = ("none", "bahdanau", DEFAULT, "conditional", "gru-transformer", "transformer")


class Study:
    """All records with their tests, and the tables, pictures and texts that are made from them."""

    def __init__(
        self, rows: Mapping[str, Rows], costs: Costs, maps: Mapping[str, Any], erasure: Sequence[Mapping[str, Any]]
    ) -> None:
        """`maps` has attention weights of one sentence by row.

        `erasure` has "study", "row" and "seed" of each run, and means over the first 200 sentences of test_2016 with
        forced references: rank correlations between the measures of `nmt.inspection.explanation`, by absolute value
        ("attention/erasure") and with signs ("signed attention/erasure"); "top attention" and "top gradient", the
        shares of target words with the same top source word as by erasure; "top chance", the share for a random word.
        """
        self.rows, self.costs, self._maps, self._erasures = rows, costs, maps, erasure
        self.tests = {name: tests_of(name, rows, study.splits) for name, study in STUDIES.items() if name in rows}
        self.lines = []
        for group, contrasts in GROUPS.items():
            pairs = [each for each in contrasts if {each.first, each.second} <= rows.get(each.study, {}).keys()]
            tests = of_group(self.tests, pairs)
            self.lines += [ForestRow(group, pair.label, test) for pair, test in zip(pairs, tests, strict=True)]

    def pictures(self) -> list[Picture]:
        """The forest plot, the learning curves of the families, and the attention maps of one sentence."""
        title = "Differences in BLEU, test sets together, with 95 % intervals"
        courses = {name: [self._timed(name, run.history) for run in self.rows["converged"][name]] for name in FAMILIES}
        course = learning_curves(courses)
        assert course is not None
        panels = list(self._maps.items())
        return [
            Picture("forest", png(forest(self.lines, title, "BLEU", most=5)), title),
            Picture("learning-curves", png(course), "learning curves of six models, 16 epochs"),
            Picture("maps", png(side_by_side(panels)), f"attention weights of one sentence: {', '.join(self._maps)}"),
        ]

    def _timed(self, name: str, history: Sequence[Mapping[str, Any]]) -> list[dict[str, float]]:
        """A history whose minutes are replaced by minutes on one core, computed from the cost of a token."""
        minutes = TOKENS * statistics.median(self.costs[name]["training"]) / 60
        return [{**entry, "minutes": entry["epoch"] * minutes} for entry in history]

    def tables(self) -> dict[str, Table]:
        """All tables by the name of their file."""
        return {
            "contrasts": differences(self.lines),
            "against-default": self._table("study row set value low high p_holm detectable verdict", self._against()),
            "rows": self._table(
                "study row set sentences seeds bleu deviation chrf ter perplexity length_ratio brevity_penalty "
                "bleu_without_penalty entropy parameters",
                self._rows(),
            ),
            "links": self._table("study row gold way rate deviation less_diagonal p_holm less_saliency p_holm",
                                 self._links()),
            "erasure": self._table(f"study row seeds {' '.join(name.replace(' ', '_') for name in AGREEMENTS)}",
                                   self._erasure()),
            "costs": self._table("row training_us training_to_default search_us search_to_default", self._costs()),
            "learning": self._table("study row seed epoch core_minutes bleu perplexity", self._learning()),
        }  # fmt: skip

    @staticmethod
    def _table(header: str, rows: Iterator[list[str]]) -> Table:
        return Table([name.replace("_", " ") for name in header.split()], list(rows))

    def _against(self) -> Iterator[list[str]]:
        for study, joint in self.tests.items():
            label, reference, splits = STUDIES[study]
            if reference not in self.rows[study]:
                continue
            single = [(split, tests_of(study, self.rows, [split])) for split in splits]
            for where, tests in (("both", joint), *single):
                for name, test in tests.against(reference).items():
                    values = (f"{value:+.2f}" for value in (test.difference, test.low, test.high))
                    figures = [*values, p_text(test.p), f"{test.detectable:.2f}"]
                    yield [label, name, label_of(where), *figures, judgement(test)]

    def _rows(self) -> Iterator[list[str]]:
        for study in self.tests:
            for name, runs in self.rows[study].items():
                for split in runs[0].counts:
                    scores = [run.scores[split] for run in runs]
                    ratio, penalty, precise = self.lengths(study, name, split)
                    keys = ("chrf", "ter", "perplexity", "attention_entropy")
                    *means, entropy = (_mean([score.get(key) for score in scores]) for key in keys)
                    bleu = [score["bleu"] for score in scores]
                    counts = str(len(runs[0].counts[split])), str(len(runs))
                    yield [
                        *(STUDIES[study].label, name, label_of(split), *counts, f"{statistics.fmean(bleu):.2f}"),
                        *(f"{statistics.stdev(bleu):.2f}" if len(bleu) > 1 else "-", *means),
                        *(f"{ratio:.3f}", f"{penalty:.3f}", f"{precise:.2f}"),
                        *(entropy, f"{scores[0]['parameters']:.0f}"),
                    ]

    def lengths(self, study: str, name: str, split: str) -> tuple[float, float, float]:
        """The length ratio of translations to references, the brevity penalty, and BLEU without it, for a row."""
        counts = np.stack([run.counts[split] for run in self.rows[study][name]]).sum(1)
        ratio = counts[:, 0] / counts[:, 1]
        penalty = np.exp(np.minimum(0, 1 - 1 / ratio))
        return float(ratio.mean()), float(penalty.mean()), float((bleu_of(counts) / penalty).mean())

    def _links(self) -> Iterator[list[str]]:
        for study in (*self.tests, "builtin"):
            rows, label = self.rows[study], STUDIES[study].label if study in STUDIES else study
            golds = dict.fromkeys(each["gold"] for runs in rows.values() for run in runs for each in run.links)
            for gold in golds:
                less = [{name: (mean, p) for name, mean, p in link_differences(rows, gold, way)}
                        for way in ("diagonal", "saliency")]  # fmt: skip
                for way in ("attention", "saliency"):
                    for name, rates in link_rates(rows, gold, way).items():
                        deviation = f"{statistics.stdev(rates):.1f}" if len(rates) > 1 else "-"
                        cells = [
                            cell
                            for known in less
                            for cell in (
                                (f"{known[name][0]:+.1f}", p_text(known[name][1]))
                                if way == "attention" and name in known
                                else ("-", "-")
                            )
                        ]
                        figures = f"{statistics.fmean(rates):.1f}", deviation
                        yield [label, name, gold, way, *figures, *cells]

    def _erasure(self) -> Iterator[list[str]]:
        for study, row in dict.fromkeys((run["study"], run["row"]) for run in self._erasures):
            cells = [self._agreement(study, row, name) for name in AGREEMENTS]
            yield [STUDIES[study].label, row, str(len(self._erasure_runs(study, row))), *cells]

    def _erasure_runs(self, study: str, row: str) -> list[Mapping[str, Any]]:
        return [run for run in self._erasures if (run["study"], run["row"]) == (study, row)]

    def _agreement(self, study: str, row: str, name: str) -> str:
        return f"{statistics.fmean(run[name] for run in self._erasure_runs(study, row)):.2f}"

    def _costs(self) -> Iterator[list[str]]:
        for name, of_row in self.costs.items():
            cells = []
            for work in ("training", "translating"):
                cells += [f"{statistics.median(of_row[work]):.0f}", f"{self.cost(name, work):.2f}"]
            yield [name, *cells]

    def cost(self, name: str, work: str) -> float:
        """The cost per token of a row, as a multiple of the default's."""
        return statistics.median(self.costs[name][work]) / statistics.median(self.costs[DEFAULT][work])

    def _learning(self) -> Iterator[list[str]]:
        for study, rows in self.rows.items():
            label = STUDIES[study].label if study in STUDIES else study
            for name, runs in rows.items():
                base = name if name in self.costs else re.sub(r"-\d$", "", name)
                for run in runs:
                    for entry in self._timed(base, run.history) if base in self.costs else run.history:
                        minutes = f"{entry['minutes']:.2f}" if base in self.costs else "-"
                        values = [f"{entry[key]:.2f}" for key in ("epoch", "valid_bleu", "valid_perplexity")]
                        yield [label, name, str(run.seed), values[0], minutes, *values[1:]]

    def quoted(self, labels: Mapping[str, str]) -> str:
        """A table of some rows after four epochs, compared with the default; `labels` has a page's labels by row."""
        tests, lines = self.tests["short"].against(), []
        for name, label in labels.items():
            test = tests.get(name)
            cells = ["", ""] if test is None else [interval(test.difference, test.low, test.high), p_text(test.p)]
            perplexity = statistics.fmean(run.scores[SPLITS[0]]["perplexity"] for run in self.rows["short"][name])
            figures = f"{self.tests['short'].bleu[name]:.2f} | {' | '.join(cells)} | {perplexity:.2f}"
            lines.append(f"| {label} | `{name}` | {figures} |")
        better = [f"`{name}`" for name, test in tests.items() if test.significant and test.difference > 0]
        head = "| model | row of the study | BLEU | to the default | p | perplexity |\n|---|---|---:|---:|---:|---:|"
        note = f"Significantly better than `{DEFAULT}` after correction for all rows: {', '.join(better) or 'none'}."
        return "\n".join([head, *lines, "", note])

    def _long(self, study: str, row: str) -> str:
        """The name of the test set of long lines in the runs of a row; "" without it."""
        return next((split for split in self.rows[study][row][0].counts if split.startswith(LONG)), "")

    def _score(self, study: str, row: str, split: str, key: str) -> str:
        return _mean([run.scores[split][key] for run in self.rows[study][row]])

    def _counted_links(self, study: str, way: str) -> str:
        """The numbers of rows in which attention makes significantly fewer or more errors than another way, as text."""
        known = link_differences(self.rows[study], SILVER, way)
        real = [mean for _, mean, p in known if p < ALPHA]
        fewer = sum(mean < 0 for mean in real)
        return f"fewer errors in {fewer} and more in {len(real) - fewer} of {len(known)} rows"

    def filled(self, text: str) -> str:
        """The text with its fields replaced by figures (UserError for an unknown field).

        Fields: `{STUDY: ROW - ROW}` is a difference with its interval; with `time` before STUDY, it is in validation
        BLEU after equal training time; with `long`, on long lines. `{p STUDY: ROW}` is the p of the difference from the
        default, corrected for all rows. `{NAME STUDY: ROW}` is another figure of a row. `{links STUDY: WAY}` counts
        rows.
        """
        figures: dict[str, Callable[[str, str], str]] = {
            "p": lambda study, row: p_text(self.tests[study].against(STUDIES[study].reference)[row].p),
            "perplexity": lambda study, row: self._score(study, row, SPLITS[0], "perplexity"),
            "errors": lambda study, row: (
                f"{statistics.fmean(link_rates(self.rows[study], SILVER, 'attention')[row]):.1f}"
            ),
            "ratio": lambda study, row: f"{self.lengths(study, row, self._long(study, row))[0]:.2f}",
            "long": lambda study, row: self._score(study, row, self._long(study, row), "bleu"),
            "links": self._counted_links,
            "faithful": lambda study, row: self._agreement(study, row, "attention/erasure"),
            "gradient": lambda study, row: self._agreement(study, row, "gradient/erasure"),
            "top": lambda study, row: f"{100 * float(self._agreement(study, row, 'top attention')):.0f}",
            "top_gradient": lambda study, row: f"{100 * float(self._agreement(study, row, 'top gradient')):.0f}",
            "training": lambda _, row: f"{self.cost(row, 'training'):.2f}",
            "minutes": lambda study, row: f"{statistics.fmean(run.minutes for run in self.rows[study][row]):.0f}",
            "search": lambda _, row: f"{self.cost(row, 'translating'):.2f}",
        }

        def value(match: re.Match[str]) -> str:
            name, study, row, other = match.groups()
            try:
                if not other:
                    return figures[name](study, row)
                if name == "time":
                    difference, noise = after_equal_time(self.rows[study], self.costs, other, row)
                else:
                    long = {None: False, "long": True}[name]
                    tests = Tests(self.rows[study], [self._long(study, row)]) if long else self.tests[study]
                    difference, noise, *_ = tests.between(other, row)
            except (KeyError, ValueError) as problem:
                raise UserError(f"The page has a field that is none of the study's: {match[0]}") from problem
            return interval(difference, *noise.interval(difference, ALPHA))

        return re.sub(r"\{(?:(\w+) )?([\w-]+): ([\w-]+)(?: - ([\w-]+))?\}", value, text)


def label_of(split: str) -> str:
    """The name of a test set in tables."""
    return LABELS.get(split.partition(".")[0], split.partition(".")[0])


def interval(value: float, low: float, high: float) -> str:
    """A difference with its interval, as text."""
    return f"{value:+.2f} ({low:+.2f} to {high:+.2f})"


def _mean(values: Sequence[float | None]) -> str:
    known = [value for value in values if value is not None]
    return f"{statistics.fmean(known):.2f}" if known and len(known) == len(values) else "-"
