"""The last sections of a report: planned contrasts, tests, settings of the variants, runs."""

from nmt.compare.labels import setting_words, telling
from nmt.compare.results import TESTED
from nmt.compare.significance import Contrast
from nmt.compare.systems import SYSTEM
from nmt.compare.variants import Comparison, OnSplit
from nmt.compare.verdict import baseline_label, count_of, judgement, p_text
from nmt.evaluation.metrics import TITLES
from nmt.viewer.blocks import Block, Heading, Lines, Table


def by_design(comparison: Comparison, split: OnSplit) -> list[Block]:
    """A table for each setting, of the pairs of variants that differ in this setting only."""
    if len(comparison.variants) < 3 or not split.families:
        return []
    labels = comparison.labels
    header = ["from", "to", "difference", "error", "p, Holm", "min. detectable", "verdict"]
    caption = (
        "Each row is a pair of variants that differ in this setting, and otherwise at most in settings that only one "
        "of its choices has. p is corrected by Holm within the table."
    )
    blocks: list[Block] = [Heading(f"One setting at a time, {TITLES[split.judge]} on {split.name}"), Lines([caption])]
    for family in split.families:
        rows = []
        for pair in family.pairs:
            figures = f"{pair.difference:+.2f}", f"{pair.error:.2f}", p_text(pair.p), f"{pair.detectable:.2f}"
            rows.append([labels[pair.first], labels[pair.second], *figures, judgement(pair)])
        blocks.append(Table([f"{family.setting}, {header[0]}", *header[1:]], rows))
    return blocks


def _collapsed(comparison: Comparison) -> list[str]:
    """A note that names the collapsed variants, whose variance is not pooled with the others'."""
    joint = comparison.joint
    names = ", ".join(comparison.labels[at] for at in joint.collapsed)
    if not names:
        return []
    together = " together" if len(joint.splits) > 1 else ""
    return [
        f"On {', '.join(joint.splits)}{together}, the runs of {names} deviate so much more than the others that "
        "Cochran's test leaves them out of the pool: without them the others' intervals are narrower, with them wider."
    ]


def method(comparison: Comparison) -> list[Block]:
    """The sections on the tests and their figures, the differing and the common settings, and the runs."""
    lines = [
        f"Each variant is tested against the baseline, {baseline_label(comparison)}.",
        "The test asks whether other sentences and other seeds would also show a difference. Its standard "
        "error has both sources of noise: sentences (jackknife, with the interaction of the two variants' runs "
        "and sentences) and whole runs (pooled over the variants of a program; a variant that Cochran's test "
        "finds collapsed has its own, as in Welch's test). Each source counts with its own Student's t, as by "
        "Cochran and Cox. A variant with one run has no estimate for other seeds unless other variants of its "
        "program have several: its error is that of sentences alone, and its verdict says 'one seed'.",
        f"p is corrected by Holm for {count_of(len(comparison.variants) - 1, 'variant')}. A difference is "
        f"significant at p < {comparison.alpha:g}. 'Min. detectable' is the true difference that such a "
        f"comparison finds with 80 % probability.",
        f"Two further p-values show where the noise is. They are not corrected and decide nothing. 'p, sentences' "
        f"takes these runs as given: paired approximate randomisation with {comparison.trials:,} trials, each of which "
        f"swaps the two variants' translations of a sentence, of all seeds at once, with probability one half. 'p, "
        f"seeds' takes these sentences as given: Student's t over the runs, or 'no estimate'.",
        "BLEU, chrF and further metrics are tested in the same way, and TER is not tested. The verdict is that of "
        "BLEU, or of chrF where most references have fewer than four tokens, which BLEU cannot judge. Each metric on "
        "each split is a separate family, and so are the tests on all test sets together. Differences from the highest "
        "score are corrected by Bonferroni for all pairs of variants, because the scores themselves selected it.",
        *_collapsed(comparison),
    ]
    blocks: list[Block] = [Heading("How the differences were tested"), Lines(lines)]
    for split in comparison.splits:
        rows = [
            [variant.label, TITLES.get(metric, metric), *_figures(contrast, split, metric)]
            for metric, contrasts in split.contrasts.items()
            for variant, contrast in zip(comparison.variants, contrasts, strict=True)
            if contrast is not None
        ]
        if rows:
            tests = ["difference", "error", "p, sentences", "p, seeds", "p, Holm", "min. detectable"]
            blocks.append(Table([split.name, "metric", *tests, "verdict"], rows))
        blocks.append(Lines([f"{metric.upper()}: {signature}" for metric, signature in split.signatures.items()]))
    blocks += [
        *_differences(comparison),
        Heading("What they have in common"),
        Lines([*_trained_on(comparison), ", ".join(_shared(comparison))]),
    ]
    runs = []
    for variant in comparison.variants:
        code = dict.fromkeys(revision for run in variant.runs for revision in run.code or ["unknown"])
        runs.append([variant.label, ", ".join(run.name for run in variant.runs), ", ".join(code)])
    blocks += [Heading("Runs"), Table(["variant", "runs", "trained by code"], runs, text=True)]
    return blocks


def _figures(test: Contrast, split: OnSplit, metric: str) -> list[str]:
    digits = 2 if metric in TESTED else split.decimals(metric)
    seeds = "no estimate" if test.p_seeds is None else p_text(test.p_seeds)
    p_values = p_text(test.p_sentences), seeds, p_text(test.p)
    difference, *sizes = f"{test.difference:+.{digits}f}", f"{test.error:.{digits}f}", f"{test.detectable:.{digits}f}"
    return [difference, sizes[0], *p_values, sizes[1], judgement(test)]


def _differences(comparison: Comparison) -> list[Block]:
    """A table of the settings in which the variants differ; empty if no setting differs."""
    keys = telling([variant.runs[0].settings for variant in comparison.variants], comparison.differing)
    rows = []
    for variant in comparison.variants:
        settings = variant.runs[0].settings
        rows.append([variant.label, *(setting_words(key, settings[key]) if key in settings else "" for key in keys)])
    return [
        Heading("Settings in which the variants differ"),
        Table(["variant", *keys], rows, text=True),
        Lines(["Not listed: settings that only some choices have and that are equal in all of these."]),
    ] if keys else []  # fmt: skip


def _trained_on(comparison: Comparison) -> list[str]:
    words = (words for variant in comparison.variants for run in variant.runs for words in run.trained_on)
    return [f"Trained {how}." for how in dict.fromkeys(words)]


def _shared(comparison: Comparison) -> list[str]:
    """The settings that are equal in all variants, as KEY=VALUE."""
    settings = next((v.runs[0].settings for v in comparison.variants if SYSTEM not in v.runs[0].settings), {})
    return [
        f"{key}={setting_words(key, value)}"
        for key, value in settings.items()
        if key not in comparison.differing and value is not None
    ]
