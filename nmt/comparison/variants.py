"""Results of several runs -> variants, their figures over seeds, and which differences are more than noise.

Stands on the metrics and the significance tests; knows no files. `verdict` says what it found, `report` makes a report.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from nmt.comparison import significance
from nmt.comparison.significance import Contrast, Runs, Statistics
from nmt.errors import UserError, nearest
from nmt.evaluation import metrics
from nmt.evaluation.by_length import binned
from nmt.evaluation.forced import Look
from nmt.evaluation.labels import labels

Metric = Literal["bleu", "chrf"]

#: TER is not tested: counting its edits anew would take minutes for the runs of a sweep.
TESTED: tuple[Metric, ...] = ("bleu", "chrf")
_SCORERS = {"bleu": significance.bleu_of, "chrf": significance.chrf_of}


class Scored(NamedTuple):
    """One run on one split.

    Attributes:
        sources: the lines that were translated; None where a record was made without the text.
        references: the reference of each, or None.
        hypotheses: the translation of each.
        lengths: of the source lines.
        unit: of the lengths, "words" or "characters".
        scores: "bleu", "chrf" and "ter" with their signatures.
        counts: for each tested metric the sufficient statistics of each sentence, [N, S].
        alignment: alignment error rate from 0 to 1, for shift 0 and 1; empty without gold links.
        measured: perplexity, entropy, speed (`scores.json`).
        looks: weights of some references.
        origin: what must be equal in runs that are compared on the split, in words -> a fingerprint of it.
    """

    sources: list[str] | None
    references: list[str] | None
    hypotheses: list[str]
    lengths: list[int]
    unit: str
    scores: Mapping[str, metrics.Score]
    counts: Mapping[Metric, Statistics]
    alignment: Mapping[int, float]
    measured: Mapping[str, Any]
    looks: Sequence[Look]
    origin: Mapping[str, str] = {}


def counted(
    hypotheses: Sequence[str], references: Sequence[str], language: str, scores: Mapping[str, metrics.Score]
) -> dict[Metric, Statistics]:
    """The `counts` of a run's translations.

    Raises:
        UserError: they do not give the scores.
    """
    found = {metric: metrics.statistics(metric, hypotheses, references, language) for metric in TESTED}
    check_counts(found, scores)
    return found


def check_counts(found: Mapping[Metric, Statistics], scores: Mapping[str, metrics.Score]) -> None:
    """UserError if the sufficient statistics do not give the scores."""
    for metric, counts in found.items():
        value = float(_SCORERS[metric](counts.sum(0)))
        if not abs(value - scores[metric].value) <= 0.01:  # NaN is no score either
            raise UserError(
                f"the translations have {metric.upper()} {value:.2f}, and {scores[metric].value:.2f} is written beside "
                f"them ({scores[metric].signature}). Score the run again."
            )


#: Links read off the attention with the shift that was chosen.
ATTENTION = "attention"


class Aligned(NamedTuple):
    """One run's links against gold links.

    Attributes:
        gold: what the gold is called.
        pairs: sentence pairs of the gold.
        rates: alignment error rate in per cent for each way to read links off the run.
        attention: the way that stands for the attention, without looking at this gold; None without attention.
        shift_from: how its shift was found: "validation" (links), "default" (there were none), "set" (by hand) or,
            without attention, "".
    """

    gold: str
    pairs: int
    rates: Mapping[str, float]
    attention: str | None
    shift_from: str


class Result(NamedTuple):
    """All of one run.

    Attributes:
        name: of the run.
        seed: of the run.
        settings: {dotted key: value} of all that makes the run but its seed and its data.
        origin: what must be equal in comparable runs whatever the split, in words -> a fingerprint of it.
        training: "minutes", "train_tokens_per_second", "peak_memory" and so on, where known.
        history: its validations.
        splits: the results.
        aligned: what is known against gold links, by a name that only the same measurement has.
        training_machine: where it was trained, such as "cpu, 1 threads"; "" where that is not known.
        trained_on: the text that it learnt from, and with what, as far as that is known, in words.
    """

    name: str
    seed: int
    settings: Mapping[str, Any]
    origin: Mapping[str, str]
    training: Mapping[str, float]
    history: Sequence[Mapping[str, float]]
    splits: Mapping[str, Scored]
    aligned: Mapping[str, Aligned] = {}
    training_machine: str = ""
    trained_on: Sequence[str] = ()


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
        best: index of the variant with the highest mean BLEU.
        to_best: the test of each variant's BLEU against the best's, which was picked by it; None for the best itself.
        bins: shortest and longest source length, and how many sentences.
        by_length: for each variant the mean BLEU of each bin.
        unit: of the lengths.
        differences: where the variants differ most.
    """

    name: str
    figures: list[dict[str, Spread]]
    signatures: dict[str, str]
    contrasts: dict[Metric, list[Contrast | None]]
    best: int
    to_best: list[Contrast | None]
    bins: list[tuple[int, int, int]]
    by_length: list[list[float]]
    unit: str
    differences: list[Difference]

    @property
    def near(self) -> list[int]:
        """The variants that the tests cannot tell from the best."""
        return [index for index, own in enumerate(self.to_best) if own is not None and not own.significant]


class OnGold(NamedTuple):
    """All variants against the same gold links.

    Attributes:
        gold: what the gold is called.
        pairs: sentence pairs of the gold.
        rates: for each variant {a way to read links: alignment error rate in per cent}, `ATTENTION` among them where
            every run has attention; empty where a run of the variant was not measured.
        by_hand: whether somebody set the attention's shift in some of them.
    """

    gold: str
    pairs: int
    rates: list[dict[str, Spread]]
    by_hand: bool


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
    alpha: float = 0.05,
    trials: int = 10_000,
    sentences: int = 5,
) -> Comparison:
    """Compares runs.

    Args:
        results: of the runs; a variant's place is that of its first run.
        baseline: label of a variant, or name of a run with or without its seed; None takes the first variant.
        alpha: level of the tests.
        trials: random swaps a test.
        sentences: how many of those on which the variants differ most.

    Raises:
        UserError: there is nothing to compare, or no such baseline.
    """
    if not results:
        raise UserError("There is no run to compare.")
    scored = [result for result in results if result.splits]
    if not scored:
        unscored = ", ".join(result.name for result in results)
        raise UserError(f"None of the runs has scores to compare: {unscored}. Score them with nmt.evaluate.")
    kept, apart = _comparable(scored, baseline)
    apart += [(result.name, "it has no scores") for result in results if not result.splits]
    groups: dict[str, dict[int, Result]] = {}
    for result in kept:
        group = groups.setdefault(_identity(result), {})
        if result.seed in group:
            apart.append((result.name, f"the same settings and seed as {group[result.seed].name}"))
        else:
            group[result.seed] = result
    runs = [[group[seed] for seed in sorted(group)] for group in groups.values()]
    differing, names = labels([group[0].settings for group in runs])
    variants = [Variant(name, group, _training(group)) for name, group in zip(names, runs, strict=True)]
    first = 0 if baseline is None else _baseline(baseline, variants, results, dict(apart))
    every = [result for group in runs for result in group]
    shared, notes = _common(every)
    if len({tuple(run.seed for run in group) for group in runs}) > 1:
        notes.append(
            "The variants have different seeds: means, differences and the test over seeds take all of them, the test "
            "over sentences those that both variants have (where they share none, the first of both)."
        )
    notes += _machines(every, shared)
    splits = [_on_split(name, variants, first, alpha, trials, sentences) for name in shared]
    if not splits:
        raise UserError("The runs share no split that all were scored on.")
    return Comparison(
        variants, first, baseline is not None, splits, _golds(variants), differing, apart, notes, alpha, trials
    )


# Which runs belong together


def _comparable(results: Sequence[Result], baseline: str | None) -> tuple[list[Result], list[tuple[str, str]]]:
    """The runs that go with the baseline's (else the most that go together), and the others with the reason.

    A split on which they are not alike sets runs apart only where they would else have none in common.
    """

    def company(own: Result) -> int:
        return sum(bool(_alike(own, other)) for other in results)

    named = [result for result in results if baseline is not None and _named(result, baseline)]
    centre = max(named or results, key=company)
    reasons = {result.name: _others(_odds(centre.origin, result.origin)) for result in results}
    kept = [result for result in results if not reasons[result.name]]
    if not any(all(name in _alike(centre, result) for result in kept) for name in centre.splits):
        split = max(centre.splits, key=lambda name: sum(name in _alike(centre, result) for result in kept))
        reasons |= {result.name: _split_odds(centre, result, split) for result in kept}
        kept = [result for result in kept if not reasons[result.name]]
    apart = [
        (result.name, f"not comparable with {centre.name}: {reasons[result.name]}")
        for result in results
        if reasons[result.name]
    ]
    return kept, apart


def _odds(own: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    """In what two origins differ; what one of them does not say is not held against it."""
    return [key for key in own if key in other and own[key] != other[key]]


def _others(keys: Sequence[str]) -> str:
    return ", ".join(f"another {key}" for key in keys)


def _split_odds(own: Result, other: Result, split: str) -> str:
    """Why two runs cannot be compared on a split that the first has; "" where they can."""
    if split not in other.splits:
        return f"not scored on {split}"
    return _others([f"{key} on {split}" for key in _odds(own.splits[split].origin, other.splits[split].origin)])


def _alike(own: Result, other: Result) -> list[str]:
    """The splits on which two runs can be compared."""
    return [] if _odds(own.origin, other.origin) else [name for name in own.splits if not _split_odds(own, other, name)]


def _common(results: Sequence[Result]) -> tuple[list[str], list[str]]:
    """The splits on which all runs can be compared, and why the other splits are left out."""
    shared, notes = [], []
    for name in dict.fromkeys(name for result in results for name in result.splits):
        first = next(result for result in results if name in result.splits)
        found: dict[str, list[str]] = {}
        for result in results:
            found.setdefault(_split_odds(first, result, name), []).append(result.name)
        found.pop("")
        if found:
            why = "; ".join(f"{some(runs)} ({reason})" for reason, runs in found.items())
            notes.append(f"{name} is left out, because some runs are not like {first.name}: {why}.")
        else:
            shared.append(name)
    return shared, notes


def some(names: Sequence[str], most: int = 6) -> str:
    """A list of names, its end counted where it is long."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def _identity(result: Result) -> str:
    """What runs of one variant share."""
    return json.dumps(dict(result.settings), sort_keys=True, default=str)


def _named(result: Result, name: str) -> bool:
    """Whether that is its name, or its name without its seed."""
    return name in (result.name, _without_seed(result))


def _without_seed(result: Result) -> str:
    """The name of a sweep's runs that differ in the seed alone."""
    return re.sub(rf"-(seed-)?{result.seed}$", "", result.name)


def _baseline(name: str, variants: Sequence[Variant], results: Sequence[Result], apart: Mapping[str, str]) -> int:
    """The variant that is called so (UserError: none is, or it was set apart)."""
    for index, variant in enumerate(variants):
        if variant.label == name or any(_named(run, name) for run in variant.runs):
            return index
    listed = f"They are: {'; '.join(variant.label for variant in variants)}."
    every = {_identity(result): result for result in results}
    called = dict(zip(every, labels([result.settings for result in every.values()])[1], strict=True))
    for result in results:
        if result.name not in apart:
            continue
        why = f"baseline={name} is none of the variants: {result.name} was set apart, {apart[result.name]}."
        if _named(result, name):
            raise UserError(f"{why} {listed}")
        if called[_identity(result)] == name:
            raise UserError(f"{why} baseline={result.name} compares it with the runs that go with it. {listed}")
    runs = [run for variant in variants for run in variant.runs]
    known = dict.fromkeys([*(variant.label for variant in variants), *(_without_seed(run) for run in runs)])
    raise UserError(f"baseline={name} is none of the variants.{nearest(name, known)} {listed}")


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
    return {
        **{name: score.value for name, score in scored.scores.items()},
        **scored.measured,
        **{f"aer_shift_{shift}": 100 * aer for shift, aer in scored.alignment.items()},
    }


def _machines(results: Sequence[Result], splits: Sequence[str]) -> list[str]:
    """Which speeds are not of one kind of machine."""
    trained = sorted({result.training_machine or "unknown" for result in results})
    notes = []
    if len(trained) > 1:
        notes.append(f"Speeds of training are of different machines or threads: {'; '.join(trained)}.")
    for split in splits:
        measured = [result.splits[split].measured for result in results]
        used = sorted({f"{own.get('device', 'unknown')}, {own.get('threads', 'unknown')} threads" for own in measured})
        if len(used) > 1:
            notes.append(f"Speeds of translating {split} are of different machines or threads: {'; '.join(used)}.")
    return notes


def _golds(variants: Sequence[Variant]) -> list[OnGold]:
    """What was measured against gold links, in the order of the runs."""
    known = {key: own for variant in variants for run in variant.runs for key, own in run.aligned.items()}
    names = [one.gold for one in known.values()]
    found = []
    for key, one in known.items():
        rates: list[dict[str, Spread]] = []
        for variant in variants:
            every = [run.aligned[key] for run in variant.runs if key in run.aligned]
            rows = [
                {**own.rates, **({ATTENTION: own.rates[own.attention]} if own.attention is not None else {})}
                for own in every
            ]
            rates.append(_spreads(rows) if len(rows) == len(variant.runs) else {})
        # Other text or links may have the same name.
        name = one.gold if names.count(one.gold) == 1 else f"{one.gold} ({key})"
        by_hand = any(
            key in run.aligned and run.aligned[key].shift_from == "set" for own in variants for run in own.runs
        )
        found.append(OnGold(name, one.pairs, rates, by_hand))
    return found


def _on_split(
    name: str, variants: Sequence[Variant], baseline: int, alpha: float, trials: int, sentences: int
) -> OnSplit:
    scored = [[run.splits[name] for run in variant.runs] for variant in variants]
    figures = [_spreads([_figures(one) for one in own]) for own in scored]
    seeds = [[run.seed for run in variant.runs] for variant in variants]
    runs = {
        metric: [
            Runs(np.stack([one.counts[metric] for one in own]), numbers)
            for own, numbers in zip(scored, seeds, strict=True)
        ]
        for metric in TESTED
    }
    contrasts = {
        metric: _contrasts(runs[metric], [own[metric].values for own in figures], metric, baseline, alpha, trials)
        for metric in TESTED
    }
    best = max(range(len(variants)), key=lambda index: figures[index]["bleu"].mean)
    bleu = [own["bleu"].values for own in figures]
    bins = binned(scored[0][0].lengths)
    return OnSplit(
        name,
        figures,
        {metric: score.signature for metric, score in scored[0][0].scores.items()},
        contrasts,
        best,
        _contrasts(runs["bleu"], bleu, "bleu", best, alpha, trials, picked=True),
        [(shortest, longest, len(rows)) for shortest, longest, rows in bins],
        [
            [float(significance.bleu_of(own.counts[:, rows].sum(1)).mean()) for _, _, rows in bins]
            for own in runs["bleu"]
        ],
        scored[0][0].unit,
        _differences([own.counts for own in runs["chrf"]], sentences) if len(variants) > 1 else [],
    )


def _contrasts(
    runs: Sequence[Runs],
    values: Sequence[Sequence[float]],
    metric: Metric,
    baseline: int,
    alpha: float,
    trials: int,
    picked: bool = False,
) -> list[Contrast | None]:
    others = [index for index in range(len(runs)) if index != baseline]
    found = significance.contrast_with(
        runs[baseline],
        [runs[index] for index in others],
        _SCORERS[metric],
        significance.pooled_deviation(values),
        trials=trials,
        alpha=alpha,
        picked=picked,
    )
    rows: list[Contrast | None] = [None] * len(runs)
    for index, contrast in zip(others, found, strict=True):
        rows[index] = contrast
    return rows


def _differences(counts: Sequence[Statistics], most: int) -> list[Difference]:
    """The sentences whose mean chrF deviates most among the variants; equal ones in their order.

    The deviation rather than the range, which one poor variant among good ones would decide alone.
    """
    means = np.stack([significance.chrf_of(own).mean(0) for own in counts])
    deviations = means.std(0)
    order = np.argsort(-deviations, kind="stable")[:most]
    return [Difference(int(row) + 1, means[:, row].tolist()) for row in order if deviations[row] > 0]
