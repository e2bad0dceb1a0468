"""A comparison -> what it says: the verdict in words, each test in a few, all of it as JSON."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from nmt.comparison import significance
from nmt.comparison.comparable import some
from nmt.comparison.results import ATTENTION
from nmt.comparison.significance import Contrast
from nmt.comparison.variants import Comparison, Spread

#: BLEU under which hypotheses share little more than frequent words with their references.
LEARNT = 5


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
    if split.figures[split.best]["bleu"].mean < LEARNT:
        lines.append(f"None of them has learnt to translate (BLEU below {LEARNT}): what they differ in may be chance.")
    if _one_seed(found):
        lines.append(
            "Every variant has one seed: what another seed would change is not known, and a difference can be luck. "
            "Train more seeds (seed=1,2,3)."
        )
    for own in found.golds:
        closest = []
        for way in (ATTENTION, "saliency"):
            rates = {variants[index].label: rates[way] for index, rates in enumerate(own.rates) if way in rates}
            if len(rates) > 1:
                closest.append(f"by {way} {_closest(found, rates)}")
        if closest:
            lines.append(f"Closest to the word links of {own.gold}: {'; '.join(closest)}.")
    if found.apart:
        lines.append(f"Left out: {', '.join(name for name, _ in found.apart)} (reasons below).")
    return lines


def _closest(found: Comparison, rates: Mapping[str, Spread]) -> str:
    """Whose links are closest to gold, and which others the test over seeds cannot tell from it."""
    label = min(rates, key=lambda own: rates[own].mean)
    best = rates[label]
    rate = f"{best.mean:.1f} %, one seed" if best.deviation is None else f"{best.mean:.1f} ± {best.deviation:.1f} %"
    said = f"{label} (alignment error rate {rate})"
    spread = significance.pooled_deviation([own.values for own in rates.values()])
    # Any two could have been compared: the lowest was picked by its rate.
    level = found.alpha / (len(rates) * (len(rates) - 1) / 2)
    near = [
        other
        for other, own in rates.items()
        if other != label and (p := significance.p_by_seeds(best.values, own.values, spread)) is not None and p >= level
    ]
    return f"{said}, not told apart from {some(near)}" if near else said


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
    surely = [
        index
        for index, own in enumerate(split.contrasts["bleu"])
        if own is not None and own.real and own.difference > 0
    ]
    if contrast is not None and not contrast.significant and surely:
        # A higher mean of fewer or more uneven runs is no reason against one that is surely better.
        use = max(surely, key=lambda index: split.figures[index]["bleu"].mean)
        better = split.contrasts["bleu"][use]
        assert better is not None
        lines = [
            f"Use {variants[use].label}: {_said(found, use)} on {split.name}, {better.difference:+.2f} against the "
            f"baseline {base}, which is more than noise ({_p(better.p)}). The highest score, "
            f"{split.figures[best]['bleu'].mean:.2f} of {top}, is within noise of the baseline ({_p(contrast.p)})."
        ]
        near = [index for index in near if index != found.baseline]
    elif contrast is None:
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
