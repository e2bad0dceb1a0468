"""The verdict of a comparison in words, and the comparison as JSON."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.alignment.baselines import DIAGONAL
from nmt.compare import significance
from nmt.compare.comparable import some
from nmt.compare.families import OneSetting
from nmt.compare.results import ATTENTION
from nmt.compare.significance import POWER, Contrast
from nmt.compare.variants import Comparison, OnGold, OnSplit, Spread
from nmt.evaluation.metrics import ORDER, TITLES, Metric

#: Scores below which translations share little more than frequent words or letters with their references.
LEARNT: Mapping[Metric, int] = {"bleu": 5, "chrf": 20}

#: Ratio of updates or epochs above which runs that stopped at a limit of minutes are reported as unequally trained.
UNEQUAL = 1.1


def verdict(comparison: Comparison) -> list[str]:
    """The verdict as lines: the recommended variant on the first split with reasons, then the result on all sets."""
    return [*verdict_on_first(comparison), *verdict_on_all(comparison)]


def verdict_on_first(comparison: Comparison) -> list[str]:
    """The verdict on the first split, the most important line first."""
    split, variants = comparison.splits[0], comparison.variants
    if len(variants) == 1:
        label, score = variants[0].label, _score_of(comparison, 0)
        return [f"There is one variant, {label}, with {score}: nothing to compare it with."]
    lines = _against_baseline(comparison) if comparison.baseline_chosen else _highest(comparison)
    lines += _reach(comparison)
    if split.judge == "chrf":
        lines.append(
            f"Judged by chrF: most references of {split.name} have fewer than {ORDER} tokens, which BLEU cannot judge."
        )
    if split.score(split.best).mean < LEARNT[split.judge]:
        below = f"{TITLES[split.judge]} below {LEARNT[split.judge]}"
        lines.append(f"No variant has learnt to translate ({below}): their differences may be chance.")
    lines += _unequal_training(comparison)
    if _one_seed(comparison):
        lines.append(
            "Every variant has one seed, and another seed may reverse a difference. Train more seeds (seed=1,2,3)."
        )
    lines += [line for gold in comparison.golds if (line := _alignment(comparison, gold))]
    if comparison.apart:
        lines.append(f"Left out: {', '.join(name for name, _ in comparison.apart)} (reasons below).")
    return lines


def verdict_on_all(comparison: Comparison) -> list[str]:
    """The result of the tests against the baseline on all test sets together; empty for a single set."""
    joint, labels = comparison.joint, comparison.labels
    if len(joint.splits) < 2:
        return []
    sides: dict[str, list[str]] = {}
    for test in joint.tests:
        if test.significant:
            text = f"{labels[test.second]} ({test.difference:+.2f}, {interval_text(test)}; {_p(test.p)})"
            sides.setdefault(judgement(test), []).append(text)
    where = f"On {', '.join(joint.splits)} together ({count_of(joint.sentences, 'sentence')})"
    clauses = [f"{side}: {some(names)}" for side, names in sides.items()]
    against = f"compared with {labels[comparison.baseline]}"
    return [f"{where}, {against}: {'; '.join(clauses) or 'no variant is significantly different'}."]


def _alignment(comparison: Comparison, gold: OnGold) -> str:
    """A line on the variants with the fewest errors against gold links; "" if fewer than two were measured."""
    diagonal = gold.without_model.get(DIAGONAL)
    closest, worse = [], []
    for way in (ATTENTION, "saliency"):
        rates = {
            variant.label: rates[way]
            for variant, rates in zip(comparison.variants, gold.rates, strict=True)
            if way in rates
        }
        if len(rates) < 2:
            continue
        not_better = [label for label, rate in rates.items() if diagonal is not None and rate.mean > diagonal]
        if len(not_better) < len(rates):
            closest.append(f"by {way} {_closest(comparison, rates)}")
            worse += [f"{some(not_better)} by {way}"] if not_better else []
        else:
            worse.append(f"any variant by {way}")
    line = f"Closest to the word links of {gold.gold}: {'; '.join(closest)}." if closest else ""
    if worse:
        line += f" On {gold.gold}, a straight diagonal ({diagonal:.1f} %) has fewer errors than {'; '.join(worse)}."
    return line.strip()


def _closest(comparison: Comparison, rates: Mapping[str, Spread]) -> str:
    """The variant with the lowest error rate, and the variants not significantly different from it over seeds."""
    label = min(rates, key=lambda name: rates[name].mean)
    best = rates[label]
    rate = f"{best.mean:.1f} %, one seed" if best.deviation is None else f"{best.mean:.1f} ± {best.deviation:.1f} %"
    closest = f"{label} (alignment error rate {rate})"
    groups, labels = [figures.values for figures in rates.values()], list(rates)
    # Bonferroni for all pairs, because the lowest variant was selected by its rate.
    level = comparison.alpha / (len(rates) * (len(rates) - 1) / 2)
    near = [
        other
        for at, other in enumerate(labels)
        if other != label and (p := significance.p_by_seeds(labels.index(label), at, groups)) is not None and p >= level
    ]
    return f"{closest}, not significantly different from {some(near)}" if near else closest


def _reach(comparison: Comparison) -> list[str]:
    """A line on the minimum detectable difference; empty if all translations are equal."""
    split = comparison.splits[0]
    contrasts = split.tests if comparison.baseline_chosen else split.to_best
    reach = statistics.median(contrast.detectable for contrast in contrasts if contrast is not None)
    if reach <= 0:
        return []
    count = len(comparison.variants[0].runs[0].splits[split.name].hypotheses)
    between = " between these very runs" if _one_seed(comparison) else ""
    over = " (the median over the variants)" if len(comparison.variants) > 2 else ""
    return [
        f"The minimum detectable difference{between} on {count:,} sentences is {reach:.1f} "
        f"{TITLES[split.judge]}{over}: such a difference would be found with {100 * POWER:.0f} % probability. Smaller "
        f"differences may exist."
    ]


def _unequal_training(comparison: Comparison) -> list[str]:
    """A warning if a limit of minutes caused different numbers of updates or epochs."""
    runs = [run for variant in comparison.variants for run in variant.runs]
    limited = {
        run.name
        for run in runs
        if (most := run.settings.get("trainer.minutes")) and run.training.get("minutes", 0.0) >= 0.99 * most
    }
    for key, unit in (("step", "updates"), ("epochs", "epochs")):
        counts = {run.name: run.training[key] for run in runs if key in run.training}
        if counts and max(counts.values()) > UNEQUAL * min(counts.values()):
            most, least = max(counts, key=counts.__getitem__), min(counts, key=counts.__getitem__)
            if not limited & {most, least}:
                return []
            digits = ",.0f" if key == "step" else ",.4g"
            return [
                f"Unequal training: {most} has {counts[most]:{digits}} {unit}, {least} {counts[least]:{digits}}, "
                f"because minutes limited the training. A difference may come from this alone. Train all for the same "
                f"number of updates (trainer.steps=N trainer.minutes=null)."
            ]
    return []


def _one_seed(comparison: Comparison) -> bool:
    return all(len(variant.runs) == 1 for variant in comparison.variants)


def _score_of(comparison: Comparison, index: int) -> str:
    """A variant's score on the first split, with its deviation and number of seeds."""
    split = comparison.splits[0]
    score = split.score(index)
    over = " with one seed"
    if score.deviation is not None:
        over = f" ± {score.deviation:.2f} over {len(score.values)} seeds"
    return f"{TITLES[split.judge]} {score.mean:.2f}{over} on {split.name}"


def _against_baseline(comparison: Comparison) -> list[str]:
    """The verdict for a baseline that a user chose."""
    split, best, near = comparison.splits[0], comparison.splits[0].best, comparison.splits[0].near
    labels = comparison.labels
    top, base, test = labels[best], labels[comparison.baseline], split.tests[best]
    better = {at: other for at, other in enumerate(split.tests) if other and other.real and other.difference > 0}
    if test is not None and not test.significant:
        near = [at for at in near if at != comparison.baseline]
    if test is None:
        line = f"Use {top}, the baseline: no variant has a higher score ({_score_of(comparison, best)})."
    elif not test.significant and better:
        # A higher mean from fewer or noisier runs does not rule out a variant that is significantly better.
        use = max(better, key=lambda at: split.score(at).mean)
        line = (
            f"{_use(comparison, use, better[use])} The highest score, {split.score(best).mean:.2f} of {top}, is not "
            f"significantly different from the baseline ({_p(test.p)})."
        )
    elif not test.significant and (joint := [each for each in comparison.joint.tests if each.real and each.low > 0]):
        most = max(joint, key=lambda each: each.difference)
        line = (
            f"Use {labels[most.second]}: on all test sets together, {most.difference:+.2f} against the baseline "
            f"{base}, a significant difference ({_p(most.p)}). On {split.name} alone, no variant is "
            f"significantly better."
        )
    elif not test.significant:
        line = (
            f"{top} scores highest ({split.score(best).mean:.2f}), but not significantly ({_p(test.p)}): keep the "
            f"baseline {base} ({_score_of(comparison, comparison.baseline)})."
        )
    elif test.real:
        line = _use(comparison, best, test)
    else:
        line = (
            f"{top} is better than the baseline {base}{ONE_SEED} ({_score_of(comparison, best)}, "
            f"{test.difference:+.2f}, {_p(test.p)}): other seeds may reverse it."
        )
    worse = {
        f"{label} ({other.difference:+.2f})": other.real
        for label, other in zip(labels, split.tests, strict=True)
        if other is not None and other.significant and other.difference < 0
    }
    return [line, *_not_different(comparison, near), *_lists("worse than the baseline", worse)]


def _use(comparison: Comparison, at: int, test: Contrast) -> str:
    base = comparison.labels[comparison.baseline]
    return (
        f"Use {comparison.labels[at]}: {_score_of(comparison, at)}, {test.difference:+.2f} against the "
        f"baseline {base}, a significant difference ({_p(test.p)})."
    )


def _highest(comparison: Comparison) -> list[str]:
    """The verdict without a chosen baseline: each variant against the highest."""
    split, best = comparison.splits[0], comparison.splits[0].best
    top, score = comparison.labels[best], _score_of(comparison, best)
    lower = {
        _scored_names(comparison, [at]): test.real
        for at, test in enumerate(split.to_best)
        if test is not None and test.significant
    }
    if not split.near and all(lower.values()):
        return [f"Use {top}: {score}, significantly above every other variant."]
    lead = " Its lead over some variants is not significant." if split.near else ""
    lines = [f"{top} has the highest score: {score}.{lead}", *_not_different(comparison, split.near)]
    return lines + _lists(f"lower than {top}", lower)


def _lists(relation: str, names: Mapping[str, bool]) -> list[str]:
    """Lines that list variants with a relation: first if significant also for other seeds (True), then the others."""
    real, others = ([name for name, known in names.items() if known == side] for side in (True, False))
    lines = [f"Significantly {relation}: {'; '.join(real)}."] if real else []
    relation = f"{relation[0].upper()}{relation[1:]}"
    return lines + ([f"{relation}{ONE_SEED}: {'; '.join(others)}."] if others else [])


def _scored_names(comparison: Comparison, indices: Sequence[int]) -> str:
    split = comparison.splits[0]
    return "; ".join(f"{comparison.labels[at]} ({split.score(at).mean:.2f})" for at in indices)


def _not_different(comparison: Comparison, near: Sequence[int]) -> list[str]:
    """A line on the variants that are not significantly different from the highest; empty if there are none."""
    top = comparison.labels[comparison.splits[0].best]
    return [f"Not significantly different from {top}: {_scored_names(comparison, near)}."] if near else []


def _p(p: float) -> str:
    return f"p = {p_text(p)}".replace("= <", "<")


def p_text(p: float) -> str:
    """Format a p-value with three digits, or with five if it is so close to 0.05 that three would hide its side."""
    return "< 0.001" if p < 0.001 else f"{p:.3f}" if abs(p - 0.05) >= 0.0005 else f"{p:.5f}"


def interval_text(test: OneSetting) -> str:
    """The interval of a difference as text; "unknown" with one sentence and one seed."""
    return f"{test.low:+.2f} to {test.high:+.2f}" if math.isfinite(test.low) else "unknown"


def count_of(number: int, noun: str) -> str:
    """A number with its noun, in the plural unless the number is 1."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def baseline_label(comparison: Comparison) -> str:
    """The label of the baseline, with a note if the user did not choose it."""
    label = comparison.labels[comparison.baseline]
    first = "the first run, because baseline= is not set; the runs of a folder are in alphabetical order"
    return label if comparison.baseline_chosen else f"{label} ({first})"


NOT_SIGNIFICANT = "n.s."
ONE_SEED = " on these sentences, one seed"


def judgement(contrast: Contrast | OneSetting | None) -> str:
    """A test in a few words: "baseline", "n.s.", "better" or "worse" (with `ONE_SEED` if other seeds are unknown)."""
    if contrast is None:
        return "baseline"
    if not contrast.significant:
        return NOT_SIGNIFICANT
    return ("better" if contrast.difference > 0 else "worse") + ("" if contrast.real else ONE_SEED)


def as_json(comparison: Comparison) -> dict[str, Any]:
    """The verdict and the comparison as an object for `json.dumps`; figures that are not finite are None."""
    labels = comparison.labels
    report = {
        "verdict": verdict(comparison),
        "baseline": labels[comparison.baseline],
        "alpha": comparison.alpha,
        "trials": comparison.trials,
        "variants": [
            {
                "label": variant.label,
                "runs": [{"name": run.name, "seed": run.seed} for run in variant.runs],
                "settings": {key: variant.runs[0].settings.get(key) for key in comparison.differing},
                "training": variant.training,
            }
            for variant in comparison.variants
        ],
        "splits": [_split_as_json(comparison, split, labels) for split in comparison.splits],
        "alignments": [
            {**gold._asdict(), "rates": dict(zip(labels, gold.rates, strict=True))} for gold in comparison.golds
        ],
        "joint": {
            **comparison.joint._asdict(),
            "tests": [_named(test, labels) for test in comparison.joint.tests],
            "collapsed": [labels[at] for at in comparison.joint.collapsed],
        },
        "apart": [{"run": name, "reason": reason} for name, reason in comparison.apart],
        "notes": comparison.notes,
    }
    return {key: _plain(value) for key, value in report.items()}


def _split_as_json(comparison: Comparison, split: OnSplit, labels: Sequence[str]) -> dict[str, Any]:
    return {
        "name": split.name,
        "sentences": len(comparison.variants[0].runs[0].splits[split.name].hypotheses),
        "signatures": split.signatures,
        "judged_by": split.judge,
        "best": labels[split.best],
        "not_different_from_best": [labels[at] for at in split.near],
        "length_unit": split.unit,
        "length_bins": [dict(zip(("shortest", "longest", "sentences"), row, strict=True)) for row in split.bins],
        "variants": [
            {
                "label": label,
                "figures": split.figures[at],
                "tests": {metric: tests[at] for metric, tests in split.contrasts.items()},
                "by_length": split.by_length.rows[at],
            }
            for at, label in enumerate(labels)
        ],
        "families": {family.setting: [_named(pair, labels) for pair in family.pairs] for family in split.families},
        "differences": [
            {"line": line, "chrf": dict(zip(labels, chrf, strict=True))} for line, chrf in split.differences
        ],
    }


def _named(pair: OneSetting, labels: Sequence[str]) -> dict[str, Any]:
    return {**pair._asdict(), "first": labels[pair.first], "second": labels[pair.second]}


def _plain(value: Any) -> Any:
    """Convert a value for JSON: named tuples to objects, and numbers that are not finite to None."""
    if hasattr(value, "_asdict"):
        value = value._asdict()
    if isinstance(value, Mapping):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
