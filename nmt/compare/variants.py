"""Comparison of runs by their results: variants, figures over seeds, and tests of differences. Reads no files."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.compare.buckets import source_length
from nmt.compare.comparable import common, comparable, is_named, machines, unequal, without_seed
from nmt.compare.estimates import Bootstrap
from nmt.compare.families import Family, Joint, families, tests
from nmt.compare.grid import Grid, grid
from nmt.compare.labels import labels
from nmt.compare.results import ATTENTION, OF_HEADS, SCORERS, TESTED, Alignment, Result, RunOnSplit, scorer_of
from nmt.compare.scorers import corpus
from nmt.compare.significance import Contrast, Noise, Runs, chrf_of, contrast_with, joined
from nmt.compare.systems import SYSTEM
from nmt.compare.variance import Statistics
from nmt.evaluation.metrics import Metric
from nmt.system.errors import UserError, nearest


class Spread(NamedTuple):
    """A figure over seeds: mean, standard deviation (None for one seed), and the values in the order of the seeds."""

    mean: float
    deviation: float | None
    values: list[float]


class Variant(NamedTuple):
    """Runs that differ only in their seed.

    `label` names the settings in which the variant differs from the others; `training` has figures of the training.
    """

    label: str
    runs: list[Result]
    training: dict[str, Spread]


class Difference(NamedTuple):
    """A sentence on which the variants differ: its line number, from 1, and the variants' mean chrF over seeds."""

    line: int
    chrf: list[float]


class OnSplit(NamedTuple):
    """All variants on one split; lists are in the order of the variants.

    Attributes:
        name: name of the split.
        figures: "bleu", "chrf", "ter", "perplexity" and other figures that all runs of the variant have.
        signatures: {metric: signature}.
        contrasts: {tested metric: tests against the baseline}; None for the baseline itself.
        best: index of the variant with the highest mean score in the metric of the verdict.
        to_best: tests against the best variant, corrected for its selection; None for the best variant itself.
        bins: (shortest length, longest length, number of sentences) of each bin of source lengths.
        by_length: the score in each bin.
        unit: unit of the lengths.
        differences: the sentences on which the variants differ most.
        families: tests of pairs of variants that differ in one setting only.
        judge: the metric of the verdict: chrF if BLEU cannot judge the split (`nmt.evaluation.metrics.judge`).
    """

    name: str
    figures: list[dict[str, Spread]]
    signatures: dict[str, str]
    contrasts: dict[str, list[Contrast | None]]
    best: int
    to_best: list[Contrast | None]
    bins: list[tuple[int, int, int]]
    by_length: Grid
    unit: str
    differences: list[Difference]
    families: list[Family]
    judge: Metric = "bleu"

    @property
    def near(self) -> list[int]:
        """Indices of the variants that are not significantly different from the best."""
        return [index for index, contrast in enumerate(self.to_best) if contrast and not contrast.significant]

    @property
    def order(self) -> list[int]:
        """Indices of the variants, the highest score first."""
        return sorted(range(len(self.figures)), key=lambda at: -self.score(at).mean)

    @property
    def tests(self) -> list[Contrast | None]:
        """The tests against the baseline in the metric of the verdict."""
        return self.contrasts[self.judge]

    def score(self, at: int) -> Spread:
        """The score of a variant in the metric of the verdict."""
        return self.figures[at][self.judge]

    def decimals(self, metric: str) -> int:
        """The number of decimals for a metric: 4 if all means are below 2, else 2."""
        return 4 if max(abs(figures[metric].mean) for figures in self.figures if metric in figures) < 2 else 2


class OnGold(NamedTuple):
    """All variants against the same gold links.

    Attributes:
        gold: name of the gold links.
        pairs: number of sentence pairs with gold links.
        rates: for each variant {link extraction method: alignment error rate in per cent}, with `ATTENTION` if every
            run has attention; empty if a run of the variant was not measured.
        by_hand: whether the attention's shift was set by hand in any run.
        unmeasured: names of the runs that were not measured, whose variants are left out.
        without_model: {baseline without a model: its rate in per cent}.
    """

    gold: str
    pairs: int
    rates: list[dict[str, Spread]]
    by_hand: bool
    unmeasured: list[str]
    without_model: Mapping[str, float]


class Comparison(NamedTuple):
    """The figures and tests of several variants.

    Attributes:
        variants: in the order of the runs.
        baseline: index of the variant that the others are tested against.
        baseline_chosen: whether the user chose the baseline; if not, it is the first variant.
        splits: all variants on each split; the verdict is on the first split.
        golds: all variants against each set of gold links.
        differing: keys of the settings in which the variants differ.
        apart: (name, reason) of the runs that were left out.
        notes: notes for the reader.
        alpha: significance level of the tests.
        trials: number of random swaps in the randomisation test.
        joint: the tests on all test sets together.
    """

    variants: list[Variant]
    baseline: int
    baseline_chosen: bool
    splits: list[OnSplit]
    golds: list[OnGold]
    differing: list[str]
    apart: list[tuple[str, str]]
    notes: list[str]
    alpha: float
    trials: int
    joint: Joint

    @property
    def labels(self) -> list[str]:
        """The labels of the variants."""
        return [variant.label for variant in self.variants]


def compare(
    results: Sequence[Result],
    *,
    baseline: str | None = None,
    named: bool = False,
    alpha: float = 0.05,
    trials: int = 10_000,
    sentences: int = 5,
) -> Comparison:
    """Compare runs; variants are in the order of their first runs.

    Args:
        results: results of the runs.
        baseline: label of a variant, or name of a run with or without its seed; None takes the first variant.
        named: label variants with the names of their runs (without the seed) instead of their settings.
        alpha: significance level of the tests.
        trials: number of random swaps in the randomisation test.
        sentences: maximum number of sentences in `OnSplit.differences`.

    Raises:
        UserError: there is nothing to compare, the baseline does not exist, or run names and variants do not match.
    """
    if not results:
        raise UserError("There is no run to compare.")
    scored = [result for result in results if result.splits]
    unscored = [result.name for result in results if not result.splits]
    if not scored:
        raise UserError(f"None of the runs has scores to compare: {', '.join(unscored)}. Score them with nmt.evaluate.")
    alike, apart = comparable(scored, baseline)
    apart += [(name, "it has no scores") for name in unscored]
    variants, differing, twice = _variants(alike)
    if named:
        variants = _named(variants)
    apart += twice
    first = 0 if baseline is None else _baseline(baseline, variants, results, dict(apart))
    every = [result for variant in variants for result in variant.runs]
    shared, notes = common(every)
    seeds = {variant.label: [run.seed for run in variant.runs] for variant in variants}
    notes += [*unequal(seeds), *machines(every, shared)]
    splits = [_on_split(name, variants, first, alpha, trials, sentences) for name in shared]
    if not splits:
        raise UserError("No split is scored for all runs. Score each of them: python -m nmt.evaluate run=RUN")
    golds, joint = _golds(variants), _joint(splits, variants, first, alpha)
    return Comparison(
        variants, first, baseline is not None, splits, golds, differing, apart, notes, alpha, trials, joint
    )


def check_baseline(name: str, results: Sequence[Result]) -> None:
    """Raise UserError if `name` is the name of no run and the label of no variant; the runs need no scores."""
    _baseline(name, _variants(results)[0], results, {})


def _variants(results: Sequence[Result]) -> tuple[list[Variant], list[str], list[tuple[str, str]]]:
    """Group runs into variants; also return the settings that differ, and (name, reason) of duplicate runs."""
    apart: list[tuple[str, str]] = []
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        group = groups.setdefault(_identity(result), {})
        if result.seed in group:
            apart.append((result.name, f"the same settings and seed as {group[result.seed].name}"))
        else:
            group[result.seed] = result
    runs = [[group[seed] for seed in sorted(group)] for group in groups.values()]
    run_settings = [group[0].settings for group in runs if SYSTEM not in group[0].settings]
    differing, run_names = labels(run_settings)
    rest = iter(run_names)
    names = [str(group[0].settings.get(SYSTEM) or next(rest)) for group in runs]
    names = [f"{name} ({at + 1})" if names.count(name) > 1 else name for at, name in enumerate(names)]
    training = [_spreads([run.training for run in group]) for group in runs]
    return [Variant(*row) for row in zip(names, runs, training, strict=True)], differing, apart


def _named(variants: Sequence[Variant]) -> list[Variant]:
    """Label each variant with the name of its runs without the seed (UserError: names and variants do not match)."""
    names = [dict.fromkeys(map(without_seed, variant.runs)) for variant in variants]
    for name, count in Counter(name for of_variant in names for name in of_variant).items():
        if count > 1:
            raise UserError(f"labels=names: runs called {name} have different settings. Leave out labels=names.")
    for of_variant in names:
        if len(of_variant) > 1:
            raise UserError(
                f"labels=names: {' and '.join(of_variant)} have the same settings, so that they are one variant. "
                f"Leave out labels=names."
            )
    return [variant._replace(label=next(iter(name))) for variant, name in zip(variants, names, strict=True)]


def _identity(result: Result) -> str:
    """A key that the runs of one variant share."""
    return json.dumps(dict(result.settings), sort_keys=True, default=str)


def _baseline(name: str, variants: Sequence[Variant], results: Sequence[Result], apart: Mapping[str, str]) -> int:
    """The index of the variant with this label or run name (UserError: it does not exist or was left out)."""
    for index, variant in enumerate(variants):
        if variant.label == name or any(is_named(run, name) for run in variant.runs):
            return index
    listed = f"They are: {'; '.join(variant.label for variant in variants)}."
    every = {_identity(result): result for result in results}
    called = dict(zip(every, labels([result.settings for result in every.values()])[1], strict=True))
    for result in results:
        if result.name not in apart:
            continue
        why = f"baseline={name} is not one of the variants: {result.name} was left out, {apart[result.name]}."
        if is_named(result, name):
            raise UserError(f"{why} {listed}")
        if called[_identity(result)] == name:
            raise UserError(f"{why} baseline={result.name} compares it with the runs that match it. {listed}")
    runs = [run for variant in variants for run in variant.runs]
    known = dict.fromkeys([*(variant.label for variant in variants), *(without_seed(run) for run in runs)])
    raise UserError(f"baseline={name} is not one of the variants.{nearest(name, known)} {listed}")


def spread(values: Sequence[float]) -> Spread:
    """The mean, the sample standard deviation and the values."""
    with np.errstate(invalid="ignore"):  # the perplexity may be infinite
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), deviation, list(values))


def _spreads(rows: Sequence[Mapping[str, Any]]) -> dict[str, Spread]:
    """The spread of each figure that all rows have; a row holds the figures of a run."""
    keys = [key for key in rows[0] if all(isinstance(row.get(key), int | float) for row in rows)]
    return {key: spread([float(row[key]) for row in rows]) for key in keys}


def _figures(scored: RunOnSplit) -> dict[str, Any]:
    of_heads = ((scored.measured.get(key) or {}, name) for key, name in OF_HEADS.items())
    return {
        **{name: score.value for name, score in scored.scores.items()},
        **scored.measured,
        **{name + head: value for values, name in of_heads for head, value in values.items()},
    }


def _golds(variants: Sequence[Variant]) -> list[OnGold]:
    """The variants against each set of gold links, in the order of the runs."""
    known = {key: aligned for variant in variants for run in variant.runs for key, aligned in run.aligned.items()}
    names = [aligned.gold for aligned in known.values()]
    golds = []
    for key, first in known.items():
        by_variant = [[run.aligned[key] for run in variant.runs if key in run.aligned] for variant in variants]
        every = [aligned for of_variant in by_variant for aligned in of_variant]
        rates = [
            _spreads([_with_attention(aligned) for aligned in of_variant])
            if len(of_variant) == len(variant.runs)
            else {}
            for variant, of_variant in zip(variants, by_variant, strict=True)
        ]
        # Different gold links may have the same name.
        name = first.gold if names.count(first.gold) == 1 else f"{first.gold} ({key})"
        by_hand = any(aligned.shift_from == "set" for aligned in every)
        without_model = {label: rate for aligned in every for label, rate in aligned.without_model.items()}
        ours = (run for variant in variants for run in variant.runs if SYSTEM not in run.settings)
        unmeasured = [run.name for run in ours if key not in run.aligned]
        golds.append(OnGold(name, first.pairs, rates, by_hand, unmeasured, without_model))
    return golds


def _with_attention(aligned: Alignment) -> dict[str, float]:
    selected = {} if aligned.attention is None else {ATTENTION: aligned.rates[aligned.attention]}
    return {**aligned.rates, **selected}


def _on_split(
    name: str, variants: Sequence[Variant], baseline: int, alpha: float, trials: int, sentences: int
) -> OnSplit:
    scored = [[run.splits[name] for run in variant.runs] for variant in variants]
    first = scored[0][0]
    figures = [_spreads([_figures(run) for run in of_variant]) for of_variant in scored]
    tested = [*TESTED, *(metric for metric in first.counts if metric not in TESTED)]
    runs = {metric: _runs(variants, name, metric) for metric in tested}

    def contrasts(metric: str, against: int, *, picked: bool = False) -> list[Contrast | None]:
        others = [of_variant for at, of_variant in enumerate(runs[metric]) if at != against]
        scorer = scorer_of(metric)
        tests = contrast_with(runs[metric][against], others, scorer, trials=trials, alpha=alpha, picked=picked)
        return [*tests[:against], None, *tests[against:]]

    judge = first.judged_by
    best = max(range(len(variants)), key=lambda at: figures[at][judge].mean)
    length, bins = source_length(first.lengths, first.unit)
    lines = len(first.lengths)
    return OnSplit(
        name,
        figures,
        {metric: score.signature for metric, score in first.scores.items()},
        {metric: contrasts(metric, baseline) for metric in tested},
        best,
        contrasts(judge, best, picked=True),
        bins,
        grid([len(of_variant) for of_variant in scored], Bootstrap(lines), lines, corpus(scored, judge), length),
        first.unit,
        _differences([of_variant.counts for of_variant in runs["chrf"]], sentences) if len(variants) > 1 else [],
        families([variant.runs[0].settings for variant in variants], runs[judge], SCORERS[judge], alpha),
        judge,
    )


def _runs(variants: Sequence[Variant], split: str, metric: str) -> list[Runs]:
    return [
        Runs(
            np.stack([run.splits[split].counts[metric] for run in variant.runs]),
            [run.seed for run in variant.runs],
            str(variant.runs[0].settings.get(SYSTEM, "")),
        )
        for variant in variants
    ]


def _joint(splits: Sequence[OnSplit], variants: Sequence[Variant], baseline: int, alpha: float) -> Joint:
    """The tests on the first split, joined with the other test sets of the data if the first split is one.

    `valid`, on which runs were selected, and files, which may repeat sentences, are not joined.
    """
    judge = splits[0].judge
    same = [
        split.name
        for split in splits
        if split.signatures[judge] == splits[0].signatures[judge]
        and all(run.splits[split.name].of_data for variant in variants for run in variant.runs)
    ]
    same = same if splits[0].name in same else [splits[0].name]
    runs = joined([_runs(variants, name, judge) for name in same])
    pairs = [(baseline, other) for other in range(len(variants)) if other != baseline]
    noise = Noise(runs, SCORERS[judge])
    return Joint(same, runs[0].counts.shape[1], judge, tests(pairs, noise, alpha), noise.collapsed)


def _differences(counts: Sequence[Statistics], most: int) -> list[Difference]:
    """The sentences with the largest standard deviation of mean chrF among the variants; ties in line order.

    The range is not used, because a single poor variant would determine it.
    """
    means = np.stack([chrf_of(variant_counts).mean(0) for variant_counts in counts])
    deviations = means.std(0)
    order = np.argsort(-deviations, kind="stable")[:most]
    return [Difference(int(row) + 1, means[:, row].tolist()) for row in order if deviations[row] > 0]
