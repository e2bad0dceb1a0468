"""A comparison -> its report: a list of blocks for `blocks` to write, and the short text for a terminal."""

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from nmt.compare import plots
from nmt.compare.method import by_design, method
from nmt.compare.results import HEAD_ENTROPY, TESTED
from nmt.compare.sections import Analysis
from nmt.compare.slices import Slicing
from nmt.compare.texts import estimate_text
from nmt.compare.variants import Comparison, OnSplit, Spread
from nmt.compare.verdict import baseline_label, count_of, judgement, p_text, verdict
from nmt.drawing.by_length import FEW, by_length
from nmt.drawing.layout import plain_table
from nmt.drawing.style import png
from nmt.evaluation.metrics import TITLES
from nmt.evaluation.references import AttentionMap
from nmt.heads import layers_of
from nmt.viewer.blocks import Block, Heading, Interactive, Lines, Picture, Table
from nmt.viewer.words import sentence_of_words

NO_SLICING = Slicing()


def title(comparison: Comparison) -> str:
    """One line: how many variants and runs were compared, and on which splits."""
    runs = sum(len(variant.runs) for variant in comparison.variants)
    splits = ", ".join(split.name for split in comparison.splits)
    return f"{count_of(len(comparison.variants), 'variant')}, {count_of(runs, 'run')}, on {splits}"


def report(
    comparison: Comparison, heatmaps: int = 4, slicing: Slicing = NO_SLICING, *, speeds: bool = True
) -> list[Block]:
    """All blocks of the report: what decides on the first screen, then the analyses, then the method.

    Args:
        comparison: the comparison.
        heatmaps: the maximum number of sentences whose attention maps are drawn side by side.
        slicing: slices of the sentences that a user asks for.
        speeds: whether the runs' times can be compared, so that learning curves by time and costs are shown.
    """
    first = comparison.splits[0]
    analysis = Analysis(comparison, first, slicing)
    blocks: list[Block] = [Lines(verdict(comparison), lead=True)]
    blocks += _scores(comparison, first)
    blocks += [*_lengths(comparison, first), *analysis.length_ratios()]
    blocks += _alignments(comparison)
    blocks += analysis.health()
    blocks += analysis.first_sentences()
    blocks += _pictures(comparison, first, speeds=speeds)
    blocks += analysis.examples()
    blocks += _heatmaps(comparison, first, heatmaps)
    blocks += analysis.of_words()
    if speeds:
        blocks += [Heading("What it costs"), _costs(comparison), Lines([_COSTS])]
    blocks += by_design(comparison, first)
    for split in comparison.splits[1:]:
        blocks += [*_scores(comparison, split), *_lengths(comparison, split), *_pictures_of(comparison, split)]
    if comparison.apart or comparison.notes:
        blocks.append(Heading("Left out, and other notes"))
        if comparison.apart:
            blocks.append(Table(["run", "reason"], [list(row) for row in comparison.apart], text=True))
        blocks.append(Lines(comparison.notes))
    blocks += method(comparison)
    return [*blocks, *analysis.sentences(blocks)]


def _mean(value: Spread | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    deviation = "" if value.deviation is None else f" ± {value.deviation:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{deviation}"


def scores_table(comparison: Comparison, split: OnSplit) -> Table:
    """The figures of every variant on a split, the highest first, beginning with the metric that judges."""
    other = next(metric for metric in TESTED if metric != split.judge)
    columns: list[tuple[str, Callable[[int], str]]] = [
        ("seeds", lambda at: str(len(comparison.variants[at].runs))),
        (TITLES[split.judge], lambda at: _mean(split.figures[at][split.judge])),
        ("to baseline", lambda at: _difference(split, at)),
        ("p", lambda at: _p(split, at)),
        ("verdict", lambda at: judgement(split.contrasts[split.judge][at])),
        (TITLES[other], lambda at: _mean(split.figures[at][other])),
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
        [judgement(split.contrasts[split.judge][at]) for at in order],
    )


def _order(split: OnSplit) -> list[int]:
    return sorted(range(len(split.figures)), key=lambda at: -split.figures[at][split.judge].mean)


def _difference(split: OnSplit, at: int) -> str:
    contrast = split.contrasts[split.judge][at]
    return "" if contrast is None else f"{contrast.difference:+.2f}"


def _p(split: OnSplit, at: int) -> str:
    contrast = split.contrasts[split.judge][at]
    return "" if contrast is None else p_text(contrast.p)


def _scores(comparison: Comparison, split: OnSplit) -> list[Block]:
    caption = (
        f"Means and standard deviations over seeds. The baseline is {baseline_label(comparison)}. p is corrected by "
        f"Holm; n.s. means not significantly different from the baseline. Less TER and perplexity is better. Entropy "
        f"of the weights is in nats: 0 if all weight is on one piece, log S if S pieces have equal weight."
    )
    return [
        Heading(f"Scores on {split.name}"),
        scores_table(comparison, split),
        Lines([caption]),
        *_entropies(comparison, split),
    ]


def _pictures(comparison: Comparison, split: OnSplit, *, speeds: bool) -> list[Block]:
    """The scores, also by length, and the course of training as pictures."""
    blocks: list[Block] = [Heading("Pictures of the scores"), *_pictures_of(comparison, split)]
    course = plots.curves(comparison, by_time=speeds)
    if course is not None:
        blocks += [Heading("Learning curves"), Picture("learning-curves", png(course), "learning curves")]
        blocks.append(Lines(["Means over seeds, up to the last update that all seeds of a variant have reached."]))
    return blocks


def _pictures_of(comparison: Comparison, split: OnSplit) -> list[Block]:
    metric = TITLES[split.judge]
    name = f"{metric} of each variant on {split.name}"
    blocks: list[Block] = [Picture(f"scores-{split.name}", png(plots.scores(comparison, split)), name)]
    if len(split.bins) > 1:
        title = f"{metric} by source length on {split.name}"
        by_bin = [[estimate.value for estimate in row] for row in split.by_length]
        scores = {variant.label: values for variant, values in zip(comparison.variants, by_bin, strict=True)}
        picture = by_length(split.bins, scores, split.unit, title, metric=metric)
        blocks.append(Picture(f"by-length-{split.name}", png(picture), title))
    return blocks


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
                _exact(comparison, split, at),
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
        "exact matches, %",
    ]
    if all(row[-1] == "-" for row in rows):
        return Table(header[:-1], [row[:-1] for row in rows])
    return Table(header, rows)


def _exact(comparison: Comparison, split: OnSplit, at: int) -> str:
    """The share of translations that equal a reference, the mean over seeds; a dash where it is unknown."""
    runs = [run.splits[split.name] for run in comparison.variants[at].runs]
    shares = [run.exact for run in runs if run.exact is not None]
    return f"{sum(shares) / len(shares):.1f}" if shares else "-"


def _lengths(comparison: Comparison, split: OnSplit) -> list[Block]:
    if len(split.bins) < 2:
        return []
    header = [f"{shortest}-{longest}" for shortest, longest, _ in split.bins]
    rows = [[comparison.variants[at].label, *map(estimate_text, split.by_length[at])] for at in _order(split)]
    rows.append(["sentences", *(f"{count:,}" for _, _, count in split.bins)])
    caption = (
        f"Means over seeds, with 95 % bootstrap intervals over sentences. Bins have the same width on all splits; a "
        f"bin with fewer than {FEW} sentences is joined with its neighbour."
    )
    return [
        Heading(f"{TITLES[split.judge]} by source length on {split.name}"),
        Table([f"source {split.unit}", *header], rows),
        Lines([caption]),
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
        rows += [
            [f"({label})", f"{rate:.1f}", *[""] * (len(ways) - 1)] for label, rate in sorted(gold.without_model.items())
        ]
        blocks.append(Table([f"{gold.gold}, {count_of(gold.pairs, 'pair')}", *ways], rows))
    if not blocks:
        return []
    caption = (
        "The links of each run against the word links named above, in per cent; less is better. The column 'attention' "
        "uses the head and the shift that were chosen on validation links; without such links, shift 0 and the mean of "
        "the heads of the penultimate layer. Saliency is gradient times input, which needs no attention. Names in "
        "brackets are links that no variant made: the diagonal links each target word to the source word at the same "
        "place; the best possible links are read off the gold. The report's first verdict on error "
        "rates compares the variant with the fewest errors with the others by Student's t over the runs, corrected by "
        "Bonferroni for all pairs of variants. The test does not generalise to other sentences."
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
                "In the HTML report, choose two variants to see both, and their difference. "
                "A weight shows where the decoder looked, not why."
            ]
        ),
    ]
    drawn: list[Picture] = []
    sentences = []
    for line in lines:
        panels = [(label, by_line[line]) for label, by_line in maps.items()]
        same = [panel for panel in panels if panel[1]["source"] == panels[0][1]["source"]]
        name = f"weights-{split.name}-{line}"
        alt = f"attention weights of each variant on line {line}"
        drawn.append(Picture(name, png(plots.side_by_side(same)), alt))
        sentences.append(_viewed(line, same))
    return [*blocks, Interactive("maps", {"sentences": sentences, "corpus": None}, drawn)]


def _viewed(line: int, panels: Sequence[tuple[str, AttentionMap]]) -> dict[str, Any]:
    """A sentence of the viewer: the reference, with the weights of each variant over it."""
    return {
        "line": line,
        "reference": None,
        "translations": [
            {"name": label, "translation": sentence_of_words(each["source"], each["target"], each["weights"])}
            for label, each in panels
        ],
    }


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
