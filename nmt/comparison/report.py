"""A comparison -> its report: a list of blocks, which `blocks` writes, and the short text for a terminal."""

import re
from collections.abc import Callable, Mapping, Sequence

from nmt.comparison import plots
from nmt.comparison.blocks import Block, Heading, Lines, Picture, Table
from nmt.comparison.labels import setting_words, telling
from nmt.comparison.variants import Comparison, OnSplit, Spread
from nmt.comparison.verdict import judgement, p_text, verdict
from nmt.drawing.by_length import by_length
from nmt.drawing.layout import plain_table
from nmt.drawing.style import png


def title(found: Comparison) -> str:
    """What was compared, in a line."""
    runs = sum(len(variant.runs) for variant in found.variants)
    splits = ", ".join(split.name for split in found.splits)
    return f"{_count(len(found.variants), 'variant')}, {_count(runs, 'run')}, on {splits}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def report(found: Comparison, heatmaps: int = 4) -> list[Block]:
    """All of a comparison, the verdict first.

    Args:
        found: the comparison.
        heatmaps: how many sentences' weights are shown side by side.
    """
    first = found.splits[0]
    blocks: list[Block] = [Lines(verdict(found), lead=True)]
    blocks += _scores(found, first)
    blocks += [Heading("What it costs"), _costs(found), Lines([_COSTS])]
    course = plots.curves(found)
    if course is not None:
        blocks += [Heading("Learning curves"), Picture("learning-curves", png(course), "learning curves")]
        blocks.append(Lines(["Means over seeds, drawn as far as all seeds of a variant have come."]))
    blocks += _lengths(found, first)
    blocks += _alignments(found)
    blocks += _heatmaps(found, first, heatmaps)
    blocks += _differences(found, first)
    for split in found.splits[1:]:
        blocks += [*_scores(found, split), *_lengths(found, split)]
    if found.apart or found.notes:
        blocks.append(Heading("Left out, and other notes"))
        if found.apart:
            blocks.append(Table(["run", "reason"], [list(row) for row in found.apart], text=True))
        blocks.append(Lines(found.notes))
    blocks += _method(found)
    return blocks


def _mean(value: Spread | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    deviation = "" if value.deviation is None else f" ± {value.deviation:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{deviation}"


def _baseline(found: Comparison) -> str:
    label = found.variants[found.baseline].label
    return label if found.baseline_chosen else f"{label} (the first, for none was chosen with baseline=)"


def scores_table(found: Comparison, split: OnSplit) -> Table:
    """The figures of every variant on a split, the highest BLEU first."""
    columns: list[tuple[str, Callable[[int], str]]] = [
        ("seeds", lambda at: str(len(found.variants[at].runs))),
        ("BLEU", lambda at: _mean(split.figures[at]["bleu"])),
        ("to baseline", lambda at: _difference(split, at)),
        ("p", lambda at: _p(split, at)),
        ("", lambda at: judgement(found, split.contrasts["bleu"][at])),
        ("chrF", lambda at: _mean(split.figures[at]["chrf"])),
        ("TER", lambda at: _mean(split.figures[at]["ter"])),
        ("perplexity", lambda at: _mean(split.figures[at].get("perplexity"))),
    ]
    if any("aer_shift_0" in own for own in split.figures):
        columns += [
            (f"AER %, shift {shift}", lambda at, key=f"aer_shift_{shift}": _mean(split.figures[at].get(key), 1))  # type: ignore[misc]
            for shift in (0, 1)
        ]
    columns.append(("entropy", lambda at: _mean(split.figures[at].get("attention_entropy"))))
    if any(own["hidden_share"].mean > 0 for own in split.figures if "hidden_share" in own):
        columns.append(("no weight, share", lambda at: _mean(split.figures[at].get("hidden_share"))))
    order = _order(split)
    return Table(
        ["variant", *(title for title, _ in columns)],
        [[found.variants[at].label, *(show(at) for _, show in columns)] for at in order],
        [judgement(found, split.contrasts["bleu"][at]) for at in order],
    )


def _order(split: OnSplit) -> list[int]:
    return sorted(range(len(split.figures)), key=lambda at: -split.figures[at]["bleu"].mean)


def _difference(split: OnSplit, at: int) -> str:
    contrast = split.contrasts["bleu"][at]
    return "" if contrast is None else f"{contrast.difference:+.2f}"


def _p(split: OnSplit, at: int) -> str:
    contrast = split.contrasts["bleu"][at]
    return "" if contrast is None else p_text(contrast.p)


def _scores(found: Comparison, split: OnSplit) -> list[Block]:
    said = [
        f"Means and deviations over seeds; p is Holm-corrected; 'within noise' is what the test cannot tell from the "
        f"baseline, {_baseline(found)}. TER and perplexity: less is better. Entropy of the weights "
        f"in nats: 0 looks at one piece, log S evenly at S."
    ]
    return [
        Heading(f"Scores on {split.name}"),
        Picture(f"scores-{split.name}", png(plots.scores(found, split)), f"BLEU of each variant on {split.name}"),
        scores_table(found, split),
        Lines(said),
    ]


_COSTS = (
    "Parameters of the whole model; target tokens a second of training, the median between validations; memory of "
    "the whole process (of the GPU, where there is one); translating as evaluated, search included. Speeds are of "
    "the machine and its other work at that time."
)


def _costs(found: Comparison) -> Table:
    split = found.splits[0]
    rows = []
    for at in _order(split):
        training, figures = found.variants[at].training, split.figures[at]
        memory = training.get("peak_gpu_memory", training.get("peak_memory"))
        scaled = None if memory is None else Spread(memory.mean / 2**30, None, [])
        parameters = figures.get("parameters")
        rows.append(
            [
                found.variants[at].label,
                "-" if parameters is None else f"{parameters.mean:,.0f}",
                _mean(training.get("train_tokens_per_second"), 0),
                _mean(training.get("minutes"), 1),
                _mean(figures.get("sentences_per_second"), 1),
                _mean(figures.get("target_pieces_per_second"), 0),
                _mean(scaled, 2),
            ]
        )
    header = [
        "variant",
        "parameters",
        "trains, tokens/s",
        "minutes",
        "translates, sentences/s",
        "pieces/s",
        "memory, GiB",
    ]
    return Table(header, rows)


def _lengths(found: Comparison, split: OnSplit) -> list[Block]:
    if len(split.bins) < 2:
        return []
    header = [f"{shortest}-{longest}" for shortest, longest, _ in split.bins]
    rows = [[found.variants[at].label, *(f"{value:.1f}" for value in split.by_length[at])] for at in _order(split)]
    rows.append(["sentences", *(str(count) for _, _, count in split.bins)])
    title = f"BLEU by source length on {split.name}"
    bleu = {variant.label: values for variant, values in zip(found.variants, split.by_length, strict=True)}
    return [
        Heading(title),
        Picture(f"by-length-{split.name}", png(by_length(split.bins, bleu, split.unit, title)), title),
        Table([f"source {split.unit}", *header], rows),
    ]


def _alignments(found: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for own in found.golds:
        ways = sorted({way for rates in own.rates for way in rates})
        measured = [(variant.label, rates) for variant, rates in zip(found.variants, own.rates, strict=True) if rates]
        rows = [
            [label, *(_mean(rates.get(way), 1) for way in ways)]
            for label, rates in sorted(measured, key=lambda row: _first(row[1], ways))
        ]
        blocks.append(Table([f"{own.gold}, {_count(own.pairs, 'pair')}", *ways], rows))
    if not blocks:
        return []
    said = (
        "Links read off each run against gold links, in per cent, less is better. Attention: with the shift that was "
        "chosen on validation links, or 0 where there were none. Saliency is gradient times input, which any model "
        "has. What is said to be closest is told from others by Student's t over the runs, corrected by Bonferroni for "
        "all pairs of variants; what other gold sentences would say is not tested."
    )
    by_hand = [own.gold for own in found.golds if own.by_hand]
    if by_hand:
        said += f" Somebody has set the shift (shift=) of runs in {', '.join(by_hand)}."
    return [Heading("Alignment error rates"), *blocks, Lines([said])]


def _first(rates: Mapping[str, Spread], ways: Sequence[str]) -> tuple[int, float]:
    """What rows are ordered by: the first of the columns that they have, and what stands there."""
    return next((column, rates[way].mean) for column, way in enumerate(ways) if way in rates)


def _heatmaps(found: Comparison, split: OnSplit, most: int) -> list[Block]:
    """Of each variant the first seed; the sentences are those that every variant with attention has kept."""
    maps = {
        variant.label: {look["line"]: look for look in variant.runs[0].splits[split.name].attention_maps}
        for variant in found.variants
    }
    maps = {label: own for label, own in maps.items() if own}
    if not maps or most < 1:
        return []
    lines = sorted(set.intersection(*(set(own) for own in maps.values())))[:most]
    blocks: list[Block] = [
        Heading("Where they look"),
        Lines(
            [
                "Weights over the same sentence pairs (source above, reference at the left, decoded by force), the "
                "first seed of each variant, mean of its heads. A weight is where the decoder looked, not an "
                "explanation of why."
            ]
        ),
    ]
    for line in lines:
        panels = [(label, own[line]) for label, own in maps.items()]
        same = [panel for panel in panels if panel[1]["source"] == panels[0][1]["source"]]
        name = f"weights-{split.name}-{line}"
        alt = f"attention weights of each variant on line {line}"
        blocks.append(Picture(name, png(plots.side_by_side(same)), alt))
    return blocks


def _differences(found: Comparison, split: OnSplit) -> list[Block]:
    if not split.differences:
        return []
    blocks: list[Block] = [
        Heading("The sentences on which they differ most"),
        Lines(
            ["By the deviation of chrF among the variants, each the mean of its seeds; the first seed's translation."]
        ),
    ]
    for difference in split.differences:
        row = difference.line - 1
        own = found.variants[0].runs[0].splits[split.name]
        given = (("source", own.sources), ("reference", own.references))
        rows = [[name, lines[row], ""] for name, lines in given if lines is not None]
        order = sorted(range(len(found.variants)), key=lambda at, scores=difference.chrf: -scores[at])  # type: ignore[misc]
        rows += [
            [
                found.variants[at].label,
                found.variants[at].runs[0].splits[split.name].hypotheses[row],
                f"{difference.chrf[at]:.0f}",
            ]
            for at in order
        ]
        blocks.append(Table([f"line {difference.line}", "", "mean chrF"], rows, text=True))
    return blocks


def _method(found: Comparison) -> list[Block]:
    blocks: list[Block] = [
        Heading("How the differences were tested"),
        Lines(
            [
                f"Against the baseline, {_baseline(found)}, each variant is tested twice. Would "
                f"other sentences say the same? Paired approximate randomisation: {found.trials:,} times the two "
                f"variants' translations of each sentence, of all seeds at once, change places with probability one "
                f"half (MultEval has each seed change on its own, which takes a sentence that suits a variant in "
                f"every seed for several); p is the share of trials with as large a difference. Would other seeds say "
                f"the same? Student's t over the runs, with the run-to-run deviation pooled over all variants. The "
                f"larger p counts, corrected by Holm for {_count(len(found.variants) - 1, 'variant')}; a difference is "
                f"real at p < {found.alpha:g}. Where every variant has one seed, only the first can be asked, and none "
                f"is called real. 'Could have seen' is the true difference that would have been found in 4 of 5 "
                f"such comparisons, were both tests independent. chrF is tested the same way; each metric on each "
                f"split is a family of its own, and TER is not tested. What is said of differences from the highest "
                f"score is corrected by Bonferroni for all pairs of variants, because the scores themselves picked it."
            ]
        ),
    ]
    for split in found.splits:
        rows = []
        for metric, title in (("bleu", "BLEU"), ("chrf", "chrF")):
            for variant, contrast in zip(found.variants, split.contrasts[metric], strict=True):  # type: ignore[index]
                if contrast is not None:
                    seeds = "-" if contrast.p_seeds is None else p_text(contrast.p_seeds)
                    rows.append(
                        [variant.label, title, f"{contrast.difference:+.2f}", p_text(contrast.p_sentences), seeds,
                         p_text(contrast.p), f"{contrast.detectable:.2f}", judgement(found, contrast)]
                    )  # fmt: skip
        if rows:
            header = [split.name, "metric", "difference", "p, sentences", "p, seeds", "p, Holm", "could have seen", ""]
            blocks.append(Table(header, rows))
        blocks.append(Lines([f"{metric.upper()}: {signature}" for metric, signature in split.signatures.items()]))
    keys = telling([variant.runs[0].settings for variant in found.variants], found.differing)
    if keys:
        rows = []
        for variant in found.variants:
            own = variant.runs[0].settings
            rows.append([variant.label, *(setting_words(key, own[key]) if key in own else "" for key in keys)])
        blocks += [
            Heading("Settings in which the variants differ"),
            Table(["variant", *keys], rows, text=True),
            Lines(["Left out: settings that only some choices have, and that are alike where they are."]),
        ]
    blocks += [Heading("What they have in common"), Lines([*_trained_on(found), ", ".join(_shared(found))])]
    runs = [[variant.label, ", ".join(run.name for run in variant.runs)] for variant in found.variants]
    blocks += [Heading("Runs"), Table(["variant", "runs"], runs, text=True)]
    return blocks


def _trained_on(found: Comparison) -> list[str]:
    words = (words for variant in found.variants for run in variant.runs for words in run.trained_on)
    return [f"Trained {own}." for own in dict.fromkeys(words)]


def _shared(found: Comparison) -> list[str]:
    """The settings that all variants have with the same value, as the command line has them."""
    own = found.variants[0].runs[0].settings
    return [
        f"{key}={setting_words(key, value)}"
        for key, value in own.items()
        if key not in found.differing and value is not None
    ]


def as_text(found: Comparison) -> str:
    """What the terminal shows: the verdict, and the scores of each split."""
    parts = ["\n".join(verdict(found))]
    for split in found.splits:
        table = scores_table(found, split)
        parts.append(plain_table([split.name, *table.header[1:]], table.rows))
    parts += ["\n".join(f"left out: {name}: {reason}" for name, reason in found.apart), "\n".join(found.notes)]
    return "\n\n".join(part for part in parts if part)


def is_own(name: str) -> bool:
    """Whether a report may have made a picture of that name."""
    return re.fullmatch(r"(scores-.*|by-length-.*|weights-.*-[0-9]+|learning-curves)\.png", name) is not None
