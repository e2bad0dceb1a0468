"""Results of several runs -> variants, their figures over seeds, and which differences are more than noise.

Stands on the metrics and the significance tests; knows no files. `verdict` says what it found, `report` makes a report.
"""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from nmt.compare import significance
from nmt.compare.comparable import common, comparable, is_named, without_seed
from nmt.compare.families import Family, families
from nmt.compare.intervals import Bootstrap, Estimate
from nmt.compare.labels import labels
from nmt.compare.results import ATTENTION, HEAD_ENTROPY, SCORERS, TESTED, Result, Scored
from nmt.compare.significance import Contrast, Runs
from nmt.compare.variance import Statistics
from nmt.drawing.by_length import FEW
from nmt.errors import UserError, nearest
from nmt.evaluation.by_length import binned, joined
from nmt.evaluation.metrics import Metric


class Spread(NamedTuple):
    """A figure over seeds: mean, standard deviation (None for one seed), and the values in the order of the seeds."""

    mean: float
    deviation: float | None
    values: list[float]


class Variant(NamedTuple):
    """Runs that differ only in their seed.

    Attributes:
        label: what sets it off from the other variants, in words.
        runs: in the order of their seeds.
        training: what training took.
    """

    label: str
    runs: list[Result]
    training: dict[str, Spread]


class Difference(NamedTuple):
    """A sentence on which the variants differ: line number from 1, and each variant's mean chrF over seeds."""

    line: int
    chrf: list[float]


class OnSplit(NamedTuple):
    """All variants on one split; lists are in the order of the variants.

    Attributes:
        name: of the split.
        figures: "bleu", "chrf", "ter", "perplexity" and so on, where a run of the variant has them.
        signatures: of the metrics.
        contrasts: for each tested metric the test against the baseline; None for the baseline itself.
        best: index of the variant with the highest mean score, by the metric that judges.
        to_best: the test of each variant's score against the best's, which was picked by it; None for the best itself.
        bins: shortest and longest source length, and how many sentences.
        by_length: for each variant the mean score of each bin, with its interval over sentences.
        unit: of the lengths.
        differences: where the variants differ most.
        families: scores of the pairs of variants that differ in one setting only, by that setting.
        judge: the metric that can judge the split: chrF where BLEU is blind (`nmt.evaluation.metrics.judge`).
    """

    name: str
    figures: list[dict[str, Spread]]
    signatures: dict[str, str]
    contrasts: dict[Metric, list[Contrast | None]]
    best: int
    to_best: list[Contrast | None]
    bins: list[tuple[int, int, int]]
    by_length: list[list[Estimate]]
    unit: str
    differences: list[Difference]
    families: list[Family]
    judge: Metric = "bleu"

    @property
    def near(self) -> list[int]:
        """The variants that the tests cannot tell from the best."""
        return [
            index for index, contrast in enumerate(self.to_best) if contrast is not None and not contrast.significant
        ]


class OnGold(NamedTuple):
    """All variants against the same gold links.

    Attributes:
        gold: what the gold is called.
        pairs: sentence pairs of the gold.
        rates: for each variant {a way to read links: alignment error rate in per cent}, `ATTENTION` among them where
            every run has attention; empty where a run of the variant was not measured.
        by_hand: whether somebody set the attention's shift in some of them.
        without_model: alignment error rate in per cent of links that no run made, by their name.
    """

    gold: str
    pairs: int
    rates: list[dict[str, Spread]]
    by_hand: bool
    without_model: Mapping[str, float]


class Comparison(NamedTuple):
    """What was found.

    Attributes:
        variants: in the order of the runs.
        baseline: index of the variant that the others are tested against.
        baseline_chosen: whether somebody chose it; else it is the first, and no better reason stands behind it.
        splits: the first is the one the verdict speaks of.
        golds: the alignment error rates.
        differing: the settings in which the variants differ.
        apart: runs that were left out, each with the reason.
        notes: what else a reader should know.
        alpha: level of the tests.
        trials: random swaps a test.
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


def compare(
    results: Sequence[Result],
    *,
    baseline: str | None = None,
    named: bool = False,
    alpha: float = 0.05,
    trials: int = 10_000,
    sentences: int = 5,
) -> Comparison:
    """Compare runs.

    Args:
        results: of the runs; a variant's place is that of its first run.
        baseline: label of a variant, or name of a run with or without its seed; None takes the first variant.
        named: whether variants are labelled with their runs' names, without the seed, not with their settings.
        alpha: level of the tests.
        trials: random swaps a test.
        sentences: how many of those on which the variants differ most.

    Raises:
        UserError: there is nothing to compare, no such baseline, or variants whose runs have one name.
    """
    if not results:
        raise UserError("There is no run to compare.")
    scored = [result for result in results if result.splits]
    if not scored:
        unscored = ", ".join(result.name for result in results)
        raise UserError(f"None of the runs has scores to compare: {unscored}. Score them with nmt.evaluate.")
    alike, apart = comparable(scored, baseline)
    apart += [(result.name, "it has no scores") for result in results if not result.splits]
    variants, differing, twice = _variants(alike)
    if named:
        variants = _named(variants)
    apart += twice
    first = 0 if baseline is None else _baseline(baseline, variants, results, dict(apart))
    every = [result for variant in variants for result in variant.runs]
    shared, notes = common(every)
    if len({tuple(run.seed for run in variant.runs) for variant in variants}) > 1:
        notes.append(
            "The variants have different seeds: means, differences and the test over seeds take all of them, the test "
            "over sentences those that both variants have (where they share none, the first of both)."
        )
    notes += _machines(every, shared)
    splits = [_on_split(name, variants, first, alpha, trials, sentences) for name in shared]
    if not splits:
        raise UserError("No split is scored for all runs. Score each of them: python -m nmt.evaluate run=RUN")
    return Comparison(
        variants, first, baseline is not None, splits, _golds(variants), differing, apart, notes, alpha, trials
    )


def check_baseline(name: str, results: Sequence[Result]) -> None:
    """UserError if none of these runs, which need no scores yet, and none of their variants is called so."""
    _baseline(name, _variants(results)[0], results, {})


def _variants(results: Sequence[Result]) -> tuple[list[Variant], list[str], list[tuple[str, str]]]:
    """The variants of runs, the settings in which they differ, and runs that are there twice, with the reason."""
    apart: list[tuple[str, str]] = []
    groups: dict[str, dict[int, Result]] = {}
    for result in results:
        group = groups.setdefault(_identity(result), {})
        if result.seed in group:
            apart.append((result.name, f"the same settings and seed as {group[result.seed].name}"))
        else:
            group[result.seed] = result
    runs = [[group[seed] for seed in sorted(group)] for group in groups.values()]
    differing, names = labels([group[0].settings for group in runs])
    variants = [Variant(name, group, _training(group)) for name, group in zip(names, runs, strict=True)]
    return variants, differing, apart


def _named(variants: Sequence[Variant]) -> list[Variant]:
    """The variants, each labelled with its runs' name without the seed (UserError: these are not one to one)."""
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
    """What runs of one variant share."""
    return json.dumps(dict(result.settings), sort_keys=True, default=str)


def _baseline(name: str, variants: Sequence[Variant], results: Sequence[Result], apart: Mapping[str, str]) -> int:
    """The variant that is called so (UserError: none is, or it was left out)."""
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


# Figures


def spread(values: Sequence[float]) -> Spread:
    """Mean and sample standard deviation."""
    with np.errstate(invalid="ignore"):  # of an infinite perplexity
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else None
    return Spread(float(np.mean(values)), deviation, list(values))


def _spreads(rows: Sequence[Mapping[str, Any]]) -> dict[str, Spread]:
    """The figures that every run has."""
    keys = [key for key in rows[0] if all(isinstance(row.get(key), int | float) for row in rows)]
    return {key: spread([float(row[key]) for row in rows]) for key in keys}


def _training(runs: Sequence[Result]) -> dict[str, Spread]:
    return _spreads([run.training for run in runs])


def _figures(scored: Scored) -> dict[str, Any]:
    by_head = scored.measured.get("attention_entropy_by_head") or {}
    return {
        **{name: score.value for name, score in scored.scores.items()},
        **scored.measured,
        **{HEAD_ENTROPY + head: value for head, value in by_head.items()},
    }


def _machines(results: Sequence[Result], splits: Sequence[str]) -> list[str]:
    """Which speeds are not of one kind of machine."""
    trained = sorted({result.training_machine or "unknown" for result in results})
    notes = []
    if len(trained) > 1:
        notes.append(f"Speeds of training are of different machines or threads: {'; '.join(trained)}.")
    for split in splits:
        measured = [result.splits[split].measured for result in results]
        used = sorted({f"{row.get('device', 'unknown')}, {row.get('threads', 'unknown')} threads" for row in measured})
        if len(used) > 1:
            notes.append(f"Speeds of translating {split} are of different machines or threads: {'; '.join(used)}.")
    return notes


def _golds(variants: Sequence[Variant]) -> list[OnGold]:
    """What was measured against gold links, in the order of the runs."""
    known = {key: aligned for variant in variants for run in variant.runs for key, aligned in run.aligned.items()}
    names = [aligned.gold for aligned in known.values()]
    golds = []
    for key, measured in known.items():
        rates: list[dict[str, Spread]] = []
        for variant in variants:
            every = [run.aligned[key] for run in variant.runs if key in run.aligned]
            rows = [
                {
                    **aligned.rates,
                    **({ATTENTION: aligned.rates[aligned.attention]} if aligned.attention is not None else {}),
                }
                for aligned in every
            ]
            rates.append(_spreads(rows) if len(rows) == len(variant.runs) else {})
        # Other text or links may have the same name.
        name = measured.gold if names.count(measured.gold) == 1 else f"{measured.gold} ({key})"
        by_hand = any(
            key in run.aligned and run.aligned[key].shift_from == "set" for variant in variants for run in variant.runs
        )
        others = [run.aligned[key].without_model for variant in variants for run in variant.runs if key in run.aligned]
        without_model = {label: rate for rows in others for label, rate in rows.items()}
        golds.append(OnGold(name, measured.pairs, rates, by_hand, without_model))
    return golds


def _on_split(
    name: str, variants: Sequence[Variant], baseline: int, alpha: float, trials: int, sentences: int
) -> OnSplit:
    scored = [[run.splits[name] for run in variant.runs] for variant in variants]
    figures = [_spreads([_figures(run) for run in variant_runs]) for variant_runs in scored]
    seeds = [[run.seed for run in variant.runs] for variant in variants]
    runs = {
        metric: [
            Runs(np.stack([run.counts[metric] for run in variant_runs]), numbers)
            for variant_runs, numbers in zip(scored, seeds, strict=True)
        ]
        for metric in TESTED
    }
    contrasts = {metric: _contrasts(runs[metric], metric, baseline, alpha, trials) for metric in TESTED}
    judge = scored[0][0].judged_by
    best = max(range(len(variants)), key=lambda index: figures[index][judge].mean)
    bins = joined(binned(scored[0][0].lengths), FEW)
    return OnSplit(
        name,
        figures,
        {metric: score.signature for metric, score in scored[0][0].scores.items()},
        contrasts,
        best,
        _contrasts(runs[judge], judge, best, alpha, trials, picked=True),
        [(shortest, longest, len(rows)) for shortest, longest, rows in bins],
        _by_length(runs[judge], [rows for _, _, rows in bins], judge),
        scored[0][0].unit,
        _differences([variant_runs.counts for variant_runs in runs["chrf"]], sentences) if len(variants) > 1 else [],
        families([variant.runs[0].settings for variant in variants], runs[judge], SCORERS[judge], alpha),
        judge,
    )


def _by_length(runs: Sequence[Runs], bins: Sequence[Sequence[int]], metric: Metric) -> list[list[Estimate]]:
    """The score of each variant in each bin of sentences."""
    bootstraps = [Bootstrap(len(rows)) for rows in bins]

    def estimate(counts: Statistics, bootstrap: Bootstrap) -> Estimate:
        found = bootstrap.estimate(counts, SCORERS[metric])
        assert found is not None  # of a translation without words, a score is 0
        return found

    return [
        [estimate(variant.counts[:, rows], bootstrap) for rows, bootstrap in zip(bins, bootstraps, strict=True)]
        for variant in runs
    ]


def _contrasts(
    runs: Sequence[Runs],
    metric: Metric,
    baseline: int,
    alpha: float,
    trials: int,
    picked: bool = False,
) -> list[Contrast | None]:
    others = [own for index, own in enumerate(runs) if index != baseline]
    tested = significance.contrast_with(
        runs[baseline], others, SCORERS[metric], trials=trials, alpha=alpha, picked=picked
    )
    return [*tested[:baseline], None, *tested[baseline:]]


def _differences(counts: Sequence[Statistics], most: int) -> list[Difference]:
    """The sentences whose mean chrF deviates most among the variants; equal ones in their order.

    The deviation rather than the range, which one poor variant among good ones would decide alone.
    """
    means = np.stack([significance.chrf_of(variant_counts).mean(0) for variant_counts in counts])
    deviations = means.std(0)
    order = np.argsort(-deviations, kind="stable")[:most]
    return [Difference(int(row) + 1, means[:, row].tolist()) for row in order if deviations[row] > 0]
