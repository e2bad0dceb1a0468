"""Results of several runs -> variants, their figures over seeds, and which differences are more than noise.

Stands on the metrics and the significance tests; knows no files. `pages` makes a report of what it returns.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from nmt.errors import UserError, nearest
from nmt.evaluation import lengths, metrics, significance
from nmt.evaluation.forced import Look
from nmt.evaluation.significance import Contrast, Runs, Statistics

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
        if abs(value - scores[metric].value) > 0.01:
            raise UserError(
                f"the translations have {metric.upper()} {value:.2f}, and {scores[metric].value:.2f} is written beside "
                f"them ({scores[metric].signature}). Score the run again."
            )


class Aligned(NamedTuple):
    """One run's links against gold links.

    Attributes:
        gold: what the gold is called.
        pairs: sentence pairs of the gold.
        rates: alignment error rate in per cent for each way to read links off the run.
        chosen: the way that was chosen without looking at this gold.
    """

    gold: str
    pairs: int
    rates: Mapping[str, float]
    chosen: str


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
        rates: for each variant {"chosen" or a way to read links: alignment error rate in per cent}; empty where a run
            of the variant was not measured.
    """

    gold: str
    pairs: int
    rates: list[dict[str, Spread]]


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
            why = "; ".join(f"{_some(runs)} ({reason})" for reason, runs in found.items())
            notes.append(f"{name} is left out, because some runs are not like {first.name}: {why}.")
        else:
            shared.append(name)
    return shared, notes


def _some(names: Sequence[str], most: int = 6) -> str:
    """A list of names, its end counted where it is long."""
    more = len(names) - most
    return ", ".join(names) if more <= 1 else f"{', '.join(names[:most])} and {more} more"


def _identity(result: Result) -> str:
    """What runs of one variant share."""
    return json.dumps(dict(result.settings), sort_keys=True, default=str)


def _named(result: Result, name: str) -> bool:
    """Whether that is its name, or its name without its seed."""
    return name in (result.name, re.sub(rf"-(seed-)?{result.seed}$", "", result.name))


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
    known = [variant.label for variant in variants] + [run.name for variant in variants for run in variant.runs]
    raise UserError(f"baseline={name} is none of the variants.{nearest(name, known)} {listed}")


_BARE = ("decoder", "attention.score", "attention.window", "attention.read")


def labels(settings: Sequence[Mapping[str, Any]]) -> tuple[list[str], list[str]]:
    """Names the variants by the fewest settings that tell them apart: choices before numbers.

    What follows from the words before it goes without saying, and so does what most variants have (`_usual`).

    Returns:
        All keys that differ, and a label for each variant, such as "luong general heads 2".
    """
    keys = list(dict.fromkeys(key for own in settings for key in own))

    def values(key: str) -> list[str]:
        return [json.dumps(own[key], default=str) if key in own else "" for own in settings]

    differing = [key for key in keys if len(set(values(key))) > 1]

    def rank(key: str) -> tuple[int, int, str]:
        part = key.removesuffix("._target_")
        if part == key:
            return (2, key.count("."), key)
        return (0, _BARE.index(part), "") if part in _BARE else (1, key.count("."), key)

    chosen: list[str] = []
    classes = 1
    for key in sorted(differing or [f"{part}._target_" for part in _BARE[:2]], key=rank):
        finer = len(set(zip(*(values(one) for one in [*chosen, key]), strict=True)))
        if finer > classes or not differing:
            chosen.append(key)
            classes = finer
    usual = {key: _usual(key, [own[key] for own in settings if key in own]) for key in chosen}
    found = []
    for hidden in (usual, {}):  # unless that makes two of one name
        found = [_label(own, settings, chosen, hidden, keys) for own in settings]
        if len(set(found)) == len(found):
            break
    return differing, [name if found.count(name) == 1 else f"{name} ({at + 1})" for at, name in enumerate(found)]


_NOTHING = object()
_Settings = Mapping[str, Any]


def _label(
    own: _Settings, settings: Sequence[_Settings], chosen: Sequence[str], hidden: _Settings, keys: Sequence[str]
) -> str:
    """A variant's name: the chosen settings that it has, less those that are hidden or follow from those before."""
    open_, alike = [], settings
    for key in chosen:
        rest = [other for other in alike if other.get(key, _NOTHING) == own.get(key, _NOTHING)]
        if key in own and (len(rest) < len(alike) or len(settings) == 1):
            open_.append(key)
        alike = rest
    shown = [key for key in open_ if own[key] != hidden.get(key, _NOTHING)] or open_[:1]
    if not shown:
        return f"without {' or '.join(_name(key, keys) for key in chosen)}"
    return " ".join(_words(key, own[key], keys, shown) for key in shown)


def _usual(key: str, values: Sequence[Any]) -> Any:
    """The value that more variants have than any other; none where two are as common.

    Of the choices only a window and a read are usual or not: the wiring and the score are what a label begins with.
    """
    if key.endswith("._target_") and key.removesuffix("._target_") not in _BARE[2:]:
        return _NOTHING
    counted = Counter(json.dumps(value, default=str) for value in values).most_common(2)
    if len(counted) == 2 and counted[0][1] > counted[1][1]:
        return next(value for value in values if json.dumps(value, default=str) == counted[0][0])
    return _NOTHING


def telling(found: Comparison) -> list[str]:
    """The settings in which the variants differ by more than that some choices bring them along and others do not."""
    settings = [variant.runs[0].settings for variant in found.variants]

    def varies(key: str) -> bool:
        return len({json.dumps(own[key], default=str) for own in settings if key in own}) > 1

    choices = [key for key in found.differing if key.endswith("._target_") and varies(key)]

    def follows(key: str, choice: str) -> bool:
        with_key, without = ({own.get(choice) for own in settings if (key in own) == there} for there in (True, False))
        return not with_key & without

    return [key for key in found.differing if varies(key) or not any(follows(key, choice) for choice in choices)]


def setting_words(key: str, value: Any) -> str:
    """A setting's value as the command line has it, a class by its short name."""
    if key.endswith("._target_"):
        return class_words(str(value))
    return value if isinstance(value, str) else json.dumps(value, default=str)


def class_words(value: str) -> str:
    """The class that a `_target_` names, as the command line and the papers call it."""
    kind = value.rpartition(".")[2]
    return _CALLED.get(kind) or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", kind).lower()


_CALLED = {"NoAttention": "no attention", "LocalMonotonic": "local_m", "LocalPredictive": "local_p"}


def _words(key: str, value: Any, keys: Sequence[str], shown: Sequence[str]) -> str:
    part, _, last = key.rpartition(".")
    if last == "_target_":
        return class_words(str(value)) if part in _BARE else f"{class_words(str(value))} {part.rpartition('.')[2]}"
    name = _name(key, keys)
    if isinstance(value, bool):
        return name if value else f"no {name}"
    written = "none" if value is None else f"{value:g}" if isinstance(value, float) else str(value)
    # "local_p 2": the one number of a choice that stands before it needs no name.
    alone = part in _BARE[1:] and [one for one in shown if one.startswith(f"{part}.")] == [f"{part}._target_", key]
    return written if alone else f"{name} {written}"


def _name(key: str, keys: Sequence[str]) -> str:
    """A setting in a word, or in two where several settings share the last."""
    parts = key.split(".")
    shared = sum(other.split(".")[-1] == parts[-1] for other in keys) > 1
    return " ".join(parts[-2:] if shared else parts[-1:]).replace("_", " ")


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
    found = []
    for key, one in known.items():
        rates: list[dict[str, Spread]] = []
        for variant in variants:
            every = [run.aligned[key] for run in variant.runs if key in run.aligned]
            rows = [{**own.rates, "chosen": own.rates[own.chosen]} for own in every]
            rates.append(_spreads(rows) if len(rows) == len(variant.runs) else {})
        found.append(OnGold(one.gold, one.pairs, rates))
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
    bins = lengths.binned(scored[0][0].lengths)
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


# The verdict


def verdict(found: Comparison) -> list[str]:
    """What to use and why, the most important line first."""
    split, variants = found.splits[0], found.variants
    if len(variants) == 1:
        return [
            f"There is one variant, {variants[0].label}, with {_said(found, 0)} on {split.name}: nothing to compare it "
            f"with."
        ]
    few = too_few_trials(found, _against_one(found) if found.baseline_chosen else _pairs(found))
    if few:
        lines = [f"The highest score has {variants[split.best].label}: {_said(found, split.best)} on {split.name}."]
        lines.append(f"Nothing is said about the differences: {few}")
    else:
        lines = [*(_against_baseline(found) if found.baseline_chosen else _highest(found)), *_reach(found)]
    if _one_seed(found):
        lines.append(
            "Every variant has one seed: what another seed would change is not known, and a difference can be luck. "
            "Train more seeds (seed=1,2,3)."
        )
    for own in found.golds:
        rates = {index: rates["chosen"].mean for index, rates in enumerate(own.rates) if rates}
        if len(rates) > 1:
            closest = min(rates, key=rates.__getitem__)
            lines.append(
                f"Closest to the word links of {own.gold}: {variants[closest].label}, alignment error rate "
                f"{rates[closest]:.1f} %."
            )
    if found.apart:
        lines.append(f"Left out: {', '.join(name for name, _ in found.apart)} (reasons below).")
    return lines


def _against_one(found: Comparison) -> int:
    """How many tests there are against a baseline."""
    return len(found.variants) - 1


def _pairs(found: Comparison) -> int:
    """How many tests there could be against the highest, whichever that is."""
    return len(found.variants) * (len(found.variants) - 1) // 2


def too_few_trials(found: Comparison, tests: int) -> str:
    """That none of so many tests could have found a difference, with the cure; "" where one could."""
    needed = significance.least_trials(tests, found.alpha)
    if found.trials >= needed:
        return ""
    return f"trials={found.trials} are too few for {len(found.variants)} variants. Give trials={needed} or more."


def _reach(found: Comparison) -> list[str]:
    """How small a difference would have been found; no line where all translations are alike."""
    split = found.splits[0]
    contrasts = split.contrasts["bleu"] if found.baseline_chosen else split.to_best
    reach = [own.detectable for own in contrasts if own is not None]
    if max(reach) <= 0:
        return []
    count = len(found.variants[0].runs[0].splits[split.name].hypotheses)
    reached = " to ".join(dict.fromkeys(f"{amount:.1f}" for amount in (min(reach), max(reach))))
    what = "a difference between these very runs" if _one_seed(found) else "a true difference"
    return [
        f"With these runs and {count:,} sentences, {what} of {reached} BLEU would be found four times in five; smaller "
        f"ones stay open."
    ]


def _one_seed(found: Comparison) -> bool:
    return all(len(variant.runs) == 1 for variant in found.variants)


def _said(found: Comparison, index: int) -> str:
    """A variant's score, with what it is the mean of."""
    bleu = found.splits[0].figures[index]["bleu"]
    over = f" ± {bleu.deviation:.2f} over {len(bleu.values)} seeds" if bleu.deviation is not None else " with one seed"
    return f"BLEU {bleu.mean:.2f}{over}"


def _against_baseline(found: Comparison) -> list[str]:
    """The verdict where somebody chose what the others are tested against."""
    split, variants, best = found.splits[0], found.variants, found.splits[0].best
    top, base = variants[best].label, variants[found.baseline].label
    contrast = split.contrasts["bleu"][best]
    near = split.near
    if contrast is None:
        lines = [f"Use {top}, the baseline: no variant has a higher score ({_said(found, best)} on {split.name})."]
    elif contrast.significant and not contrast.real:
        lines = [
            f"{top} is better than the baseline {base} on these sentences ({_said(found, best)} on {split.name}, "
            f"{contrast.difference:+.2f}, {_p(contrast.p)}), of one seed each: other seeds may turn it round."
        ]
    elif contrast.significant:
        lines = [
            f"Use {top}: {_said(found, best)} on {split.name}, {contrast.difference:+.2f} against the baseline {base}, "
            f"which is more than noise ({_p(contrast.p)})."
        ]
    else:
        lines = [
            f"Stay with the baseline {base} ({_said(found, found.baseline)} on {split.name}): the highest score, "
            f"{split.figures[best]['bleu'].mean:.2f} of {top}, is within noise of it ({_p(contrast.p)})."
        ]
        near = [index for index in near if index != found.baseline]
    lines += _not_told_apart(found, near)
    worse = [
        f"{variant.label} ({other.difference:+.2f})"
        for variant, other in zip(variants, split.contrasts["bleu"], strict=True)
        if other is not None and other.significant and other.difference < 0
    ]
    if worse:
        lines.append(f"Worse than the baseline {_how_sure(found)}: {'; '.join(worse)}.")
    return lines


def _highest(found: Comparison) -> list[str]:
    """The verdict where nobody chose a baseline: each variant against the highest."""
    split, variants, best = found.splits[0], found.variants, found.splits[0].best
    top = variants[best].label
    lower = [index for index in range(len(variants)) if index not in (best, *split.near)]
    if not split.near:
        use = f"{top} has the highest score" if _one_seed(found) else f"Use {top}"
        return [f"{use}: {_said(found, best)} on {split.name}, above every other variant {_how_sure(found)}."]
    lines = [
        f"The highest score has {top}: {_said(found, best)} on {split.name}, but others are not told apart from it."
    ]
    lines += _not_told_apart(found, split.near)
    if lower:
        lines.append(f"Lower than {top} {_how_sure(found)}: {_scored_names(found, lower)}.")
    return lines


def _how_sure(found: Comparison) -> str:
    return "on these sentences, of one seed each" if _one_seed(found) else "by more than noise"


def _scored_names(found: Comparison, indices: Sequence[int]) -> str:
    bleu = found.splits[0].figures
    return "; ".join(f"{found.variants[index].label} ({bleu[index]['bleu'].mean:.2f})" for index in indices)


def _not_told_apart(found: Comparison, near: Sequence[int]) -> list[str]:
    """What the tests cannot tell from the highest, and which of these trains fastest, if all were trained alike."""
    best, variants = found.splits[0].best, found.variants
    if not near:
        return []
    few = too_few_trials(found, _pairs(found))
    if few:
        return [f"Nothing is said about which variants come close to {variants[best].label}: {few}"]
    line = f"Not told apart from {variants[best].label}: {_scored_names(found, near)}."
    machines = {run.training_machine for variant in variants for run in variant.runs}
    speed = {
        index: variants[index].training["train_tokens_per_second"].mean
        for index in [best, *near]
        if "train_tokens_per_second" in variants[index].training
    }
    if len(speed) > 1 and len(machines) == 1 and "" not in machines:
        fastest = max(speed, key=speed.__getitem__)
        line += f" Of these {variants[fastest].label} trains fastest ({speed[fastest]:,.0f} target tokens a second)."
    return [line]


def _p(p: float) -> str:
    return f"p = {p_text(p)}".replace("= <", "<")


def p_text(p: float) -> str:
    """A p-value as it is printed."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}"


ONE_SEED = " on these sentences, one seed"


def judgement(found: Comparison, contrast: Contrast | None) -> str:
    """A test in a few words.

    Returns:
        "baseline", "within noise", "better" or "worse" (with `ONE_SEED` where it is so), or "too few trials".
    """
    if contrast is None:
        return "baseline"
    if too_few_trials(found, _against_one(found)):
        return "too few trials"
    if not contrast.significant:
        return "within noise"
    return ("better" if contrast.difference > 0 else "worse") + ("" if contrast.real else ONE_SEED)


# JSON


def as_json(found: Comparison) -> dict[str, Any]:
    """Returns what `json.dumps` takes; a figure that is not a number (a perplexity of a run gone astray) is None."""
    known = {
        "verdict": verdict(found),
        "baseline": found.variants[found.baseline].label,
        "alpha": found.alpha,
        "trials": found.trials,
        "variants": [
            {
                "label": variant.label,
                "runs": [{"name": run.name, "seed": run.seed} for run in variant.runs],
                "settings": {key: variant.runs[0].settings.get(key) for key in found.differing},
                "training": {key: value._asdict() for key, value in variant.training.items()},
            }
            for variant in found.variants
        ],
        "splits": [
            {
                "name": split.name,
                "sentences": len(found.variants[0].runs[0].splits[split.name].hypotheses),
                "signatures": split.signatures,
                "best": found.variants[split.best].label,
                "not_told_apart_from_best": [found.variants[index].label for index in split.near],
                "length_bins": [
                    {"shortest": shortest, "longest": longest, "sentences": count, "unit": split.unit}
                    for shortest, longest, count in split.bins
                ],
                "variants": [
                    {
                        "label": variant.label,
                        "figures": {key: value._asdict() for key, value in split.figures[index].items()},
                        "tests": {
                            metric: None if (contrast := row[index]) is None else contrast._asdict()
                            for metric, row in split.contrasts.items()
                        },
                        "bleu_by_length": split.by_length[index],
                    }
                    for index, variant in enumerate(found.variants)
                ],
                "differences": [
                    {
                        "line": difference.line,
                        "chrf": dict(zip((variant.label for variant in found.variants), difference.chrf, strict=True)),
                    }
                    for difference in split.differences
                ],
            }
            for split in found.splits
        ],
        "alignments": [
            {
                "gold": own.gold,
                "pairs": own.pairs,
                "variants": [
                    {"label": variant.label, "aer": {key: value._asdict() for key, value in rates.items()}}
                    for variant, rates in zip(found.variants, own.rates, strict=True)
                ],
            }
            for own in found.golds
        ],
        "apart": [{"run": name, "reason": reason} for name, reason in found.apart],
        "notes": found.notes,
    }
    return {key: _finite(value) for key, value in known.items()}


def _finite(value: Any) -> Any:
    """The same with None for every number that is none, at any depth."""
    if isinstance(value, Mapping):
        return {key: _finite(own) for key, own in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(own) for own in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
