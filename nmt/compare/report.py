"""The report of a comparison: a list of blocks (`nmt.viewer.blocks`), and a short text for a terminal."""

import re
from collections.abc import Callable, Mapping, Sequence

from nmt.compare import analyses, plots
from nmt.compare.comparable import some
from nmt.compare.grid import grid_table
from nmt.compare.method import by_design, method
from nmt.compare.results import OF_HEADS, TESTED
from nmt.compare.slices import Slicing
from nmt.compare.table_files import with_best
from nmt.compare.variants import Comparison, OnSplit, Spread
from nmt.compare.verdict import baseline_label, count_of, judgement, p_text, verdict
from nmt.drawing.layout import plain_table
from nmt.drawing.length_plot import FEW, by_length
from nmt.evaluation.metrics import TITLES
from nmt.translation.named_heads import Heads
from nmt.viewer.blocks import Block, Heading, Interactive, Lines, Picture, Table
from nmt.viewer.word_document import sentence_of_words

NO_SLICING = Slicing()


def title(comparison: Comparison) -> str:
    """One line: the numbers of variants and runs, and the splits."""
    runs = sum(len(variant.runs) for variant in comparison.variants)
    splits = ", ".join(split.name for split in comparison.splits)
    return f"{count_of(len(comparison.variants), 'variant')}, {count_of(runs, 'run')}, on {splits}"


def report(
    comparison: Comparison, heatmaps: int = 4, slicing: Slicing = NO_SLICING, *, speeds: bool = True
) -> list[Block]:
    """All blocks of the report: the verdict first, then the analyses, then the method.

    `heatmaps` is the maximum number of sentences whose attention maps are drawn side by side. `speeds` adds learning
    curves by time and the costs: set it only if the runs' times can be compared.
    """
    first = comparison.splits[0]
    subject = analyses.Subject(comparison, first, slicing)
    blocks: list[Block] = [Lines(verdict(comparison), lead=True)]
    blocks += [*_scores(comparison, first), *_lengths(comparison, first), *analyses.length_ratios(subject)]
    blocks += [*_alignments(comparison), *analyses.attention(subject), *analyses.first_sentences(subject)]
    blocks += _pictures(comparison, first, speeds=speeds)
    blocks += [*analyses.sentence_examples(subject), *_heatmaps(comparison, first, heatmaps)]
    blocks += analyses.word_sections(subject)
    if speeds:
        blocks += [Heading("What it costs"), _costs(comparison), Lines([_COSTS, *_uneven(comparison)])]
    blocks += [*by_design(comparison, first), *_on_all_sets(comparison)]
    for split in comparison.splits[1:]:
        blocks += [*_scores(comparison, split), *_lengths(comparison, split), *_pictures_of(comparison, split)]
    if comparison.apart or comparison.notes:
        blocks.append(Heading("Left out, and other notes"))
        if comparison.apart:
            blocks.append(Table(["run", "reason"], [list(row) for row in comparison.apart], text=True))
        blocks.append(Lines(comparison.notes))
    blocks += method(comparison)
    return [*blocks, *analyses.sentences(subject, blocks)]


def _mean(value: Spread | None, digits: int = 2) -> str:
    if value is None:
        return "-"
    deviation = "" if value.deviation is None else f" ± {value.deviation:,.{digits}f}"
    return f"{value.mean:,.{digits}f}{deviation}"


def _table_of_columns(
    comparison: Comparison, split: OnSplit, columns: Mapping[str, Callable[[int], str]], marks: Sequence[str] = ()
) -> Table:
    """A table with a row for each variant, the highest score first; a column maps a variant's index to its cell."""
    labels = comparison.labels
    rows = [[labels[at], *(show(at) for show in columns.values())] for at in split.order]
    return Table(["variant", *columns], rows, marks)


def scores_table(comparison: Comparison, split: OnSplit) -> Table:
    """The figures of every variant on a split; the metric of the verdict comes first."""
    other = next(metric for metric in TESTED if metric != split.judge)
    contrasts = split.tests

    def figure(name: str) -> Callable[[int], str]:
        digits = split.decimals(name) if name in further else 2
        return lambda at: _mean(split.figures[at].get(name), digits)

    def p_of(metric: str) -> Callable[[int], str]:
        return lambda at: "" if (contrast := split.contrasts[metric][at]) is None else p_text(contrast.p)

    further = [metric for metric in split.contrasts if metric not in TESTED]
    higher, lower = [TITLES[split.judge], TITLES[other], *further], ["TER", "perplexity"]
    columns: dict[str, Callable[[int], str]] = {
        "seeds": lambda at: str(len(comparison.variants[at].runs)),
        TITLES[split.judge]: figure(split.judge),
        "to baseline": lambda at: "" if (contrast := contrasts[at]) is None else f"{contrast.difference:+.2f}",
        "p": p_of(split.judge),
        "verdict": lambda at: judgement(contrasts[at]),
        TITLES[other]: figure(other),
        "TER": figure("ter"),
    }
    for metric in further:
        columns |= {metric: figure(metric), f"p of {metric}": p_of(metric)}
    columns |= {"perplexity": figure("perplexity"), "entropy": figure("attention_entropy")}
    if any(figures["hidden_share"].mean > 0 for figures in split.figures if "hidden_share" in figures):
        columns["share of zeros"] = figure("hidden_share")
    table = _table_of_columns(comparison, split, columns, [judgement(contrasts[at]) for at in split.order])
    table = with_best(table, {**dict.fromkeys(higher, max), **dict.fromkeys(lower, min)})
    judged = table.header.index(TITLES[split.judge])
    like_best = {(row, judged) for row, at in enumerate(split.order) if at in split.near}
    return table._replace(best={*table.best, *like_best})


def sets_table(comparison: Comparison) -> Table:
    """The score of every variant on each test set, and the difference from the baseline on all sets of the data."""
    splits, tests = comparison.splits, {test.second: test for test in comparison.joint.tests}
    first = splits[0]

    def score(split: OnSplit) -> Callable[[int], str]:
        return lambda at: _mean(split.score(at))

    columns: dict[str, Callable[[int], str]] = {
        "seeds": lambda at: str(len(comparison.variants[at].runs)),
        **{f"{TITLES[split.judge]}, {split.name}": score(split) for split in splits},
        f"to baseline, {TITLES[comparison.joint.judge]}": (
            lambda at: f"{tests[at].difference:+.2f}" if at in tests else ""
        ),
        "p": lambda at: p_text(tests[at].p) if at in tests else "",
    }
    marks = [judgement(tests.get(at)) for at in first.order]
    table = _table_of_columns(comparison, first, columns, marks)
    best = [
        (row, column)
        for column, split in enumerate(splits, 2)
        for row, at in enumerate(first.order)
        if at in split.near or at == split.order[0]
    ]
    return table._replace(best=best)


def _on_all_sets(comparison: Comparison) -> list[Block]:
    if len(comparison.splits) < 2:
        return []
    joint = comparison.joint
    together = " together" if len(joint.splits) > 1 else ""
    caption = (
        f"Means and standard deviations over seeds. The difference from the baseline and p (corrected by Holm) "
        f"are on {', '.join(joint.splits)}{together} ({count_of(joint.sentences, 'sentence')}). The baseline is "
        f"{baseline_label(comparison)}. LaTeX has in bold the highest score on each test set and all that are not "
        f"significantly different from it (Bonferroni, all pairs)."
    )
    return [Heading("Scores on all test sets"), sets_table(comparison), Lines([caption])]


def _scores(comparison: Comparison, split: OnSplit) -> list[Block]:
    caption = (
        f"Means and standard deviations over seeds. The baseline is {baseline_label(comparison)}. p is corrected by "
        f"Holm; n.s. means not significantly different from the baseline. Less TER and perplexity is better. LaTeX has "
        f"in bold the highest {TITLES[split.judge]} and all that are not significantly different from it (Bonferroni, "
        f"all pairs), and the best figure of each other column, untested. Entropy of the weights is in nats: 0 if all "
        f"weight is on one piece, log S if S pieces have equal weight. Zeros are weights of exactly 0."
    )
    table = scores_table(comparison, split)
    captions = (
        "Entropy of the weights by layer and head, in nats. Under 0.5, a head mostly looks at one piece.",
        "Share of source pieces with a weight of exactly 0, by layer and head.",
    )
    measured = zip(OF_HEADS.values(), captions, strict=True)
    of_heads = [block for name, caption in measured for block in _heads(comparison, split, name, caption)]
    return [Heading(f"Scores on {split.name}"), table, Lines([caption]), *of_heads]


def _pictures(comparison: Comparison, split: OnSplit, *, speeds: bool) -> list[Block]:
    """Pictures of the scores, of the scores by source length, and of the learning curves."""
    blocks: list[Block] = [Heading("Pictures of the scores"), *_pictures_of(comparison, split)]
    course = plots.curves(comparison, by_time=speeds)
    if course is not None:
        blocks += [Heading("Learning curves"), plots.drawn("learning-curves", course, "learning curves")]
        blocks.append(Lines(["Means over seeds, up to the last update that all seeds of a variant have reached."]))
    return blocks


def _pictures_of(comparison: Comparison, split: OnSplit) -> list[Block]:
    metric = TITLES[split.judge]
    name = f"{metric} of each variant on {split.name}"
    blocks: list[Block] = [plots.drawn(f"scores-{split.name}", plots.scores(comparison, split), name)]
    if len(split.bins) > 1:
        title = f"{metric} by source length on {split.name}"
        by_bin = [[estimate and estimate.value for estimate in row] for row in split.by_length.rows]
        scores = {variant.label: values for variant, values in zip(comparison.variants, by_bin, strict=True)}
        picture = by_length(split.bins, scores, split.unit, title, metric=metric)
        blocks.append(plots.drawn(f"by-length-{split.name}", picture, title))
    return blocks


def _heads(comparison: Comparison, split: OnSplit, name: str, caption: str) -> list[Block]:
    """A table of a measure of each head, with a row for each variant and layer; empty if all values are 0."""
    rows: list[list[str]] = []
    total = 0.0
    for at in split.order:
        means = {key.removeprefix(name): value for key, value in split.figures[at].items() if key.startswith(name)}
        total += sum(value.mean for value in means.values())
        for layer in Heads(list(means)).layers or ([""] if means else []):
            of_layer = [_mean(value) for head, value in means.items() if not layer or head.startswith(f"{layer}.")]
            rows.append([comparison.labels[at], layer, *of_layer])
    if not total:
        return []
    width = max(map(len, rows))
    header = ["variant", "layer", *(f"head {number}" for number in range(1, width - 1))]
    return [Table(header, [[*row, *[""] * (width - len(row))] for row in rows]), Lines([caption])]


_COSTS = (
    "Parameters count the whole model. Training speed is in target tokens a second, the median between validations. "
    "Translation speed was measured during evaluation and includes search. Memory is that of the whole process, or of "
    "the GPU if there is one. Speeds depend on the machine and its other work at that time."
)


#: Ratio of the lowest to the highest training speed between validations below which other work probably slowed the
#: training. Alone on a machine, the ratio was 0.7 to 0.9 in nearly all runs of the study.
_STEADY = 2 / 3


def _uneven(comparison: Comparison) -> list[str]:
    """A warning that lists the runs whose training speed was uneven."""
    uneven = []
    for run in (run for variant in comparison.variants for run in variant.runs):
        speeds = [entry["train_tokens_per_second"] for entry in run.history if entry.get("train_tokens_per_second")]
        if speeds and min(speeds) < _STEADY * max(speeds):
            uneven.append(f"{run.name} ({min(speeds):,.0f} to {max(speeds):,.0f} tokens/s)")
    if not uneven:
        return []
    return [
        f"Speeds and minutes above, and curves by minutes, include runs that were probably trained beside other work, "
        f"because their speed changed by more than a third between validations: {some(uneven)}. Do not compare these "
        f"costs. speeds=false leaves them out."
    ]


def _costs(comparison: Comparison) -> Table:
    split = comparison.splits[0]

    def figure(name: str, digits: int) -> Callable[[int], str]:
        return lambda at: _mean((comparison.variants[at].training | split.figures[at]).get(name), digits)

    def parameters(at: int) -> str:
        count = split.figures[at].get("parameters")
        return "-" if count is None else f"{count.mean:,.0f}"

    def memory(at: int) -> str:
        training = comparison.variants[at].training
        used = training.get("peak_gpu_memory", training.get("peak_memory"))
        return "-" if used is None else f"{used.mean / 2**30:,.2f}"

    def exact(at: int) -> str:
        shares = [run.splits[split.name].exact for run in comparison.variants[at].runs]
        known = [share for share in shares if share is not None]
        return f"{sum(known) / len(known):.1f}" if known else "-"

    columns = {
        "parameters": parameters,
        "trains, tokens/s": figure("train_tokens_per_second", 0),
        "minutes": figure("minutes", 1),
        "translates, sentences/s": figure("sentences_per_second", 1),
        "pieces/s": figure("target_pieces_per_second", 0),
        "memory, GiB": memory,
    }
    if any(exact(at) != "-" for at in split.order):
        columns["exact matches, %"] = exact
    return _table_of_columns(comparison, split, columns)


def _lengths(comparison: Comparison, split: OnSplit) -> list[Block]:
    if len(split.bins) < 2:
        return []
    caption = (
        f"Means over seeds, with 95 % bootstrap intervals over sentences. Bins have the same width on all splits; a "
        f"bin with fewer than {FEW} sentences is joined with its neighbour. Bold in LaTeX is the highest, untested."
    )
    table = grid_table(split.by_length, comparison.labels, split.order)
    table = with_best(table, dict.fromkeys(table.header[1:], max), len(comparison.variants))
    return [Heading(f"{TITLES[split.judge]} by source length on {split.name}"), table, Lines([caption])]


def _alignments(comparison: Comparison) -> list[Block]:
    blocks: list[Block] = []
    for gold in comparison.golds:
        ways = sorted({way for rates in gold.rates for way in rates})
        measured = [
            (variant.label, rates) for variant, rates in zip(comparison.variants, gold.rates, strict=True) if rates
        ]
        measured.sort(key=lambda row: _first(row[1], ways))
        rows = [[label, *(_mean(rates.get(way), 1) for way in ways)] for label, rates in measured]
        rows += [
            [f"({label})", f"{rate:.1f}", *[""] * (len(ways) - 1)] for label, rate in sorted(gold.without_model.items())
        ]
        table = Table([f"{gold.gold}, {count_of(gold.pairs, 'pair')}", *ways], rows)
        blocks.append(with_best(table, dict.fromkeys(ways, min), len(measured)))
        if gold.unmeasured:
            why = f"Not measured on {gold.gold}, so that their variants are missing above: {some(gold.unmeasured)}."
            blocks.append(Lines([f"{why} Measure each run with nmt.align."]))
    if not blocks:
        return []
    caption = (
        "The links of each run against the word links named above, in per cent; less is better, and bold is the lowest "
        "rate, untested. The column 'attention' uses the head and the shift that were chosen on validation links; "
        "without such links, shift 0 and the mean of the heads of the penultimate layer. Saliency is gradient times "
        "input, which needs no attention. Names in brackets are links that no variant made: the diagonal links each "
        "target word to the source word at the same place; the best possible links are read off the gold. The report's "
        "first verdict on error rates compares the variant with the fewest errors with the others by Student's t over "
        "the runs, corrected by Bonferroni for all pairs of variants. The test does not generalise to other sentences."
    )
    by_hand = [gold.gold for gold in comparison.golds if gold.by_hand]
    if by_hand:
        caption += f" The shift was set by hand (shift=) for runs in {', '.join(by_hand)}."
    return [Heading("Alignment error rates"), *blocks, Lines([caption])]


def _first(rates: Mapping[str, Spread], ways: Sequence[str]) -> tuple[int, float]:
    """The sort key of a row: the index of the first column with a value, and this value."""
    return next((column, rates[way].mean) for column, way in enumerate(ways) if way in rates)


def _heatmaps(comparison: Comparison, split: OnSplit, most: int) -> list[Block]:
    """Attention maps of each variant's first seed, for the sentences saved by all variants with attention."""
    maps = {
        variant.label: {entry["line"]: entry for entry in variant.runs[0].splits[split.name].attention_maps}
        for variant in comparison.variants
    }
    maps = {label: by_line for label, by_line in maps.items() if by_line}
    if not maps or most < 1:
        return []
    lines = sorted(set.intersection(*(set(by_line) for by_line in maps.values())))[:most]
    caption = (
        "Weights over the same sentence pairs under forced decoding, with the source above and the reference at the "
        "left. Each map is of a variant's first seed and the heads that nmt.evaluate used (head=). In the HTML report, "
        "choose two variants to see both, and their difference. A grey cell has a weight of exactly 0, a white one a "
        "small weight. A weight shows where the decoder looked, not why."
    )
    drawn: list[Picture] = []
    sentences = []
    for line in lines:
        panels = [(label, by_line[line]) for label, by_line in maps.items()]
        same = [panel for panel in panels if panel[1]["source"] == panels[0][1]["source"]]
        alt = f"attention weights of each variant on line {line}"
        drawn.append(plots.drawn(f"weights-{split.name}-{line}", plots.side_by_side(same), alt))
        words = [(label, sentence_of_words(each["source"], each["target"], each["weights"])) for label, each in same]
        translations = [{"name": label, "translation": document} for label, document in words]
        sentences.append({"line": line, "reference": None, "translations": translations})
    viewer = Interactive("maps", {"sentences": sentences, "corpus": None}, drawn)
    return [Heading("Attention maps"), Lines([caption]), viewer]


def as_text(comparison: Comparison) -> str:
    """The text for a terminal: the verdict, the scores of each split, the left-out runs and the notes."""
    baseline = [] if comparison.baseline_chosen else [f"The baseline is {baseline_label(comparison)}."]
    parts = ["\n".join([*verdict(comparison), *baseline])]
    for split in comparison.splits:
        table = scores_table(comparison, split)
        parts.append(plain_table([split.name, *table.header[1:]], table.rows))
    parts += [
        "\n".join(f"left out: {name}: {reason}" for name, reason in comparison.apart),
        "\n".join(comparison.notes),
    ]
    return "\n\n".join(part for part in parts if part)


#: Pattern of the file names of a report's pictures.
PICTURES = re.compile(r"(forest|maps|scores-.*|by-length-.*|weights-.*-[0-9]+|learning-curves)\.(png|pdf)")
