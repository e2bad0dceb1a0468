"""A comparison -> its report: a list of blocks for `blocks` to write, and the short text for a terminal."""

import re
from collections.abc import Callable, Mapping, Sequence

from nmt.comparison import plots
from nmt.comparison.blocks import Block, Heading, Lines, Picture, Table
from nmt.comparison.labels import setting_words, telling
from nmt.comparison.results import HEAD_ENTROPY
from nmt.comparison.variants import Comparison, OnSplit, Spread
from nmt.comparison.verdict import judgement, p_text, verdict
from nmt.drawing.by_length import by_length
from nmt.drawing.layout import plain_table
from nmt.drawing.style import png
from nmt.heads import layers_of


def title(comparison: Comparison) -> str:
    """One line: how many variants and runs were compared, and on which splits."""
    runs = sum(len(variant.runs) for variant in comparison.variants)
    splits = ", ".join(split.name for split in comparison.splits)
    return f"{_count(len(comparison.variants), 'variant')}, {_count(runs, 'run')}, on {splits}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def report(comparison: Comparison, heatmaps: int = 4) -> list[Block]:
    """All blocks of the report, the verdict first.

    Args:
        comparison: the comparison.
        heatmaps: the maximum number of sentences whose attention maps are drawn side by side.
    """
    first = comparison.splits[0]
    blocks: list[Block] = [Lines(verdict(comparison), lead=True)]
    blocks += _scores(comparison, first)
    blocks += [Heading("What it costs"), _costs(comparison), Lines([_COSTS])]
    course = plots.curves(comparison)
    if course is not None:
        blocks += [Heading("Learning curves"), Picture("learning-curves", png(course), "learning curves")]
        blocks.append(Lines(["Means over seeds, up to the last update that all seeds of a variant have reached."]))
    blocks += _lengths(comparison, first)
    blocks += _alignments(comparison)
    blocks += _heatmaps(comparison, first, heatmaps)
    blocks += _differences(comparison, first)
    for split in comparison.splits[1:]:
        blocks += [*_scores(comparison, split), *_lengths(comparison, split)]
    if comparison.apart or comparison.notes:
        blocks.append(Heading("Left out, and other notes"))
        if comparison.apart:
            blocks.append(Table(["run", "reason"], [list(row) for row in comparison.apart], text=True))
        blocks.append(Lines(comparison.notes))
    blocks += _method(comparison)
    return blocks


def _mean(value: Spread | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    deviation = "" if value.deviation is None else f" ± {value.deviation:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{deviation}"


def _baseline(comparison: Comparison) -> str:
    label = comparison.variants[comparison.baseline].label
    return label if comparison.baseline_chosen else f"{label} (the first variant, because baseline= is not set)"


def scores_table(comparison: Comparison, split: OnSplit) -> Table:
    """The figures of every variant on a split, the highest BLEU first."""
    columns: list[tuple[str, Callable[[int], str]]] = [
        ("seeds", lambda at: str(len(comparison.variants[at].runs))),
        ("BLEU", lambda at: _mean(split.figures[at]["bleu"])),
        ("to baseline", lambda at: _difference(split, at)),
        ("p", lambda at: _p(split, at)),
        ("", lambda at: judgement(comparison, split.contrasts["bleu"][at])),
        ("chrF", lambda at: _mean(split.figures[at]["chrf"])),
        ("TER", lambda at: _mean(split.figures[at]["ter"])),
        ("perplexity", lambda at: _mean(split.figures[at].get("perplexity"))),
    ]
    columns.append(("entropy", lambda at: _mean(split.figures[at].get("attention_entropy"))))
    if any(figures["hidden_share"].mean > 0 for figures in split.figures if "hidden_share" in figures):
        columns.append(("share without weight", lambda at: _mean(split.figures[at].get("hidden_share"))))
    order = _order(split)
    return Table(
        ["variant", *(title for title, _ in columns)],
        [[comparison.variants[at].label, *(show(at) for _, show in columns)] for at in order],
        [judgement(comparison, split.contrasts["bleu"][at]) for at in order],
    )


def _order(split: OnSplit) -> list[int]:
    return sorted(range(len(split.figures)), key=lambda at: -split.figures[at]["bleu"].mean)


def _difference(split: OnSplit, at: int) -> str:
    contrast = split.contrasts["bleu"][at]
    return "" if contrast is None else f"{contrast.difference:+.2f}"


def _p(split: OnSplit, at: int) -> str:
    contrast = split.contrasts["bleu"][at]
    return "" if contrast is None else p_text(contrast.p)


def _scores(comparison: Comparison, split: OnSplit) -> list[Block]:
    caption = (
        f"Means and standard deviations over seeds. The baseline is {_baseline(comparison)}. p is corrected by Holm; "
        f"n.s. means not significantly different from the baseline. Less TER and perplexity is better. Entropy of the "
        f"weights is in nats: 0 if all weight is on one piece, log S if S pieces have equal weight."
    )
    return [
        Heading(f"Scores on {split.name}"),
        Picture(f"scores-{split.name}", png(plots.scores(comparison, split)), f"BLEU of each variant on {split.name}"),
        scores_table(comparison, split),
        Lines([caption]),
        *_entropies(comparison, split),
    ]


def _entropies(comparison: Comparison, split: OnSplit) -> list[Block]:
    """The entropy of each head, a row for each layer of the variants with several heads."""
    by_layer: list[tuple[str, str, list[str]]] = []
    for at in _order(split):
        heads = [key.removeprefix(HEAD_ENTROPY) for key in split.figures[at] if key.startswith(HEAD_ENTROPY)]
        for layer in layers_of(heads) or ([""] if heads else []):
            of_layer = [head for head in heads if not layer or head.startswith(f"{layer}.")]
            figures = [_mean(split.figures[at][HEAD_ENTROPY + head]) for head in of_layer]
            by_layer.append((comparison.variants[at].label, layer, figures))
    if not by_layer:
        return []
    most = max(len(figures) for _, _, figures in by_layer)
    rows = [[label, layer, *figures, *[""] * (most - len(figures))] for label, layer, figures in by_layer]
    caption = "Entropy of the weights by layer and head, in nats. Under 0.5, a head mostly looks at one piece."
    return [Table(["variant", "layer", *(f"head {number}" for number in range(1, most + 1))], rows), Lines([caption])]


_COSTS = (
    "Parameters count the whole model. Training speed is in target tokens a second, the median between validations. "
    "Translation speed was measured during evaluation and includes search. Memory is that of the whole process, or of "
    "the GPU if there is one. Speeds depend on the machine and its other work at that time."
)


def _costs(comparison: Comparison) -> Table:
    split = comparison.splits[0]
    rows = []
    for at in _order(split):
        training, figures = comparison.variants[at].training, split.figures[at]
        memory = training.get("peak_gpu_memory", training.get("peak_memory"))
        scaled = None if memory is None else Spread(memory.mean / 2**30, None, [])
        parameters = figures.get("parameters")
        rows.append(
            [
                comparison.variants[at].label,
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


def _lengths(comparison: Comparison, split: OnSplit) -> list[Block]:
    if len(split.bins) < 2:
        return []
    header = [f"{shortest}-{longest}" for shortest, longest, _ in split.bins]
    rows = [[comparison.variants[at].label, *(f"{value:.1f}" for value in split.by_length[at])] for at in _order(split)]
    rows.append(["sentences", *(str(count) for _, _, count in split.bins)])
    title = f"BLEU by source length on {split.name}"
    bleu = {variant.label: values for variant, values in zip(comparison.variants, split.by_length, strict=True)}
    return [
        Heading(title),
        Picture(f"by-length-{split.name}", png(by_length(split.bins, bleu, split.unit, title)), title),
        Table([f"source {split.unit}", *header], rows),
    ]


def _alignments(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for gold in comparison.golds:
        ways = sorted({way for rates in gold.rates for way in rates})
        measured = [
            (variant.label, rates) for variant, rates in zip(comparison.variants, gold.rates, strict=True) if rates
        ]
        rows = [
            [label, *(_mean(rates.get(way), 1) for way in ways)]
            for label, rates in sorted(measured, key=lambda row: _first(row[1], ways))
        ]
        blocks.append(Table([f"{gold.gold}, {_count(gold.pairs, 'pair')}", *ways], rows))
    if not blocks:
        return []
    caption = (
        "The links of each run against gold links, in per cent; less is better. The column 'attention' uses the head "
        "and the shift that were chosen on validation links; without such links, shift 0 and the mean of the heads of "
        "the penultimate layer. Saliency is gradient times input, which needs no attention. The closest "
        "variant is compared with the others by Student's t over the runs, corrected by Bonferroni for all pairs of "
        "variants. The test does not generalise to other gold sentences."
    )
    by_hand = [gold.gold for gold in comparison.golds if gold.by_hand]
    if by_hand:
        caption += f" The shift was set by hand (shift=) for runs in {', '.join(by_hand)}."
    return [Heading("Alignment error rates"), *blocks, Lines([caption])]


def _first(rates: Mapping[str, Spread], ways: Sequence[str]) -> tuple[int, float]:
    """The sort key of a row: its first column with a value, and that value."""
    return next((column, rates[way].mean) for column, way in enumerate(ways) if way in rates)


def _heatmaps(comparison: Comparison, split: OnSplit, most: int) -> list[Block]:
    """Attention maps of each variant's first seed, for the sentences that all variants with attention have saved."""
    maps = {
        variant.label: {entry["line"]: entry for entry in variant.runs[0].splits[split.name].attention_maps}
        for variant in comparison.variants
    }
    maps = {label: by_line for label, by_line in maps.items() if by_line}
    if not maps or most < 1:
        return []
    lines = sorted(set.intersection(*(set(by_line) for by_line in maps.values())))[:most]
    blocks: list[Block] = [
        Heading("Attention maps"),
        Lines(
            [
                "Weights over the same sentence pairs under forced decoding, with the source above and the reference "
                "at the left. Each map is of a variant's first seed and the heads that nmt.evaluate used (head=). "
                "A weight shows where the decoder looked, not why."
            ]
        ),
    ]
    for line in lines:
        panels = [(label, by_line[line]) for label, by_line in maps.items()]
        same = [panel for panel in panels if panel[1]["source"] == panels[0][1]["source"]]
        name = f"weights-{split.name}-{line}"
        alt = f"attention weights of each variant on line {line}"
        blocks.append(Picture(name, png(plots.side_by_side(same)), alt))
    return blocks


def _differences(comparison: Comparison, split: OnSplit) -> list[Block]:
    if not split.differences:
        return []
    blocks: list[Block] = [
        Heading("The sentences on which the variants differ most"),
        Lines(
            [
                "Sentences are ranked by the standard deviation of the variants' mean chrF. Translations are those of "
                "the first seed."
            ]
        ),
    ]
    for difference in split.differences:
        row = difference.line - 1
        scored = comparison.variants[0].runs[0].splits[split.name]
        texts = (("source", scored.sources), ("reference", scored.references))
        rows = [[name, lines[row], ""] for name, lines in texts if lines is not None]
        order = sorted(range(len(comparison.variants)), key=lambda at, scores=difference.chrf: -scores[at])  # type: ignore[misc]
        rows += [
            [
                comparison.variants[at].label,
                comparison.variants[at].runs[0].splits[split.name].hypotheses[row],
                f"{difference.chrf[at]:.0f}",
            ]
            for at in order
        ]
        blocks.append(Table([f"line {difference.line}", "", "mean chrF"], rows, text=True))
    return blocks


def _method(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = [
        Heading("How the differences were tested"),
        Lines(
            [
                f"Each variant is tested against the baseline, {_baseline(comparison)}.",
                "The test asks whether other sentences and other seeds would also show a difference. It is Student's "
                "t, and its standard error has both sources of noise: sentences (jackknife) and runs (standard "
                "deviation over seeds, pooled over all variants unless Bartlett's test finds that they differ, then "
                "Welch). "
                "Degrees of freedom are Satterthwaite's. If every variant has one seed, the error is that of sentences "
                "alone, and the report says so.",
                f"p is corrected by Holm for {_count(len(comparison.variants) - 1, 'variant')}. A difference is "
                f"significant at p < {comparison.alpha:g}. 'Min. detectable' is the true difference that 4 of 5 such "
                f"comparisons would find.",
                f"Two further p-values show where the noise is. They are not corrected and decide nothing. "
                f"'p, sentences' takes these runs as given: paired approximate randomisation with "
                f"{comparison.trials:,} trials, each of which swaps the two variants' translations of a sentence, of "
                f"all seeds at once, with probability one half. 'p, seeds' takes these sentences as given: Student's t "
                f"over the runs.",
                "chrF is tested in the same way, and TER is not tested. Each metric on each split is a separate "
                "family. Differences from the highest score are corrected by Bonferroni for all pairs of variants, "
                "because the scores themselves selected it.",
            ]
        ),
    ]
    for split in comparison.splits:
        rows = []
        for metric, title in (("bleu", "BLEU"), ("chrf", "chrF")):
            for variant, contrast in zip(comparison.variants, split.contrasts[metric], strict=True):  # type: ignore[index]
                if contrast is not None:
                    seeds = "-" if contrast.p_seeds is None else p_text(contrast.p_seeds)
                    amounts = f"{contrast.difference:+.2f}", f"{contrast.error:.2f}"
                    p_values = p_text(contrast.p_sentences), seeds, p_text(contrast.p)
                    said = judgement(comparison, contrast)
                    rows.append([variant.label, title, *amounts, *p_values, f"{contrast.detectable:.2f}", said])
        if rows:
            tests = ["difference", "error", "p, sentences", "p, seeds", "p, Holm", "min. detectable"]
            header = [split.name, "metric", *tests, ""]
            blocks.append(Table(header, rows))
        blocks.append(Lines([f"{metric.upper()}: {signature}" for metric, signature in split.signatures.items()]))
    keys = telling([variant.runs[0].settings for variant in comparison.variants], comparison.differing)
    if keys:
        rows = []
        for variant in comparison.variants:
            settings = variant.runs[0].settings
            rows.append(
                [variant.label, *(setting_words(key, settings[key]) if key in settings else "" for key in keys)]
            )
        blocks += [
            Heading("Settings in which the variants differ"),
            Table(["variant", *keys], rows, text=True),
            Lines(["Not listed: settings that only some choices have and that are equal in all of these."]),
        ]
    blocks += [Heading("What they have in common"), Lines([*_trained_on(comparison), ", ".join(_shared(comparison))])]
    runs = [[variant.label, ", ".join(run.name for run in variant.runs)] for variant in comparison.variants]
    blocks += [Heading("Runs"), Table(["variant", "runs"], runs, text=True)]
    return blocks


def _trained_on(comparison: Comparison) -> list[str]:
    words = (words for variant in comparison.variants for run in variant.runs for words in run.trained_on)
    return [f"Trained {how}." for how in dict.fromkeys(words)]


def _shared(comparison: Comparison) -> list[str]:
    """The settings that are equal in all variants, as KEY=VALUE."""
    settings = comparison.variants[0].runs[0].settings
    return [
        f"{key}={setting_words(key, value)}"
        for key, value in settings.items()
        if key not in comparison.differing and value is not None
    ]


def as_text(comparison: Comparison) -> str:
    """The report for a terminal: the verdict, and the scores of each split."""
    parts = ["\n".join(verdict(comparison))]
    for split in comparison.splits:
        table = scores_table(comparison, split)
        parts.append(plain_table([split.name, *table.header[1:]], table.rows))
    parts += [
        "\n".join(f"left out: {name}: {reason}" for name, reason in comparison.apart),
        "\n".join(comparison.notes),
    ]
    return "\n\n".join(part for part in parts if part)


def is_report_picture(name: str) -> bool:
    """Whether a picture of this name may belong to a report."""
    return re.fullmatch(r"(scores-.*|by-length-.*|weights-.*-[0-9]+|learning-curves)\.png", name) is not None
