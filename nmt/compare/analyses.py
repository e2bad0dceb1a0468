"""Report sections on words and sentences. Most are tables of a score by bucket (`grid`) with a caption."""

from collections.abc import Iterable, Mapping

from nmt.alignment.word_weights import UNATTENDED
from nmt.compare import buckets, examples, ngrams, scorers
from nmt.compare.comparable import some
from nmt.compare.examples import MOST_TEXTS, scores_of
from nmt.compare.failures import SEQUENCE, failures
from nmt.compare.grid import Bucket, ItemScore, grid_table
from nmt.compare.results import WordFacts
from nmt.compare.scorers import Texts, texts_of
from nmt.compare.significance import chrf_of
from nmt.compare.slices import Slicing, slices_of
from nmt.compare.variants import Comparison, OnSplit
from nmt.drawing.length_plot import FEW
from nmt.evaluation.metrics import TITLES
from nmt.links import Link
from nmt.viewer.blocks import Block, Heading, Lines, Scatter, Sentence, Sentences, Table

FIRST = 3  # sentences on the first screen
_MEASURES = {
    "entropy": "entropy",
    "zero_weights": "zero weights, %",
    "coverage": "coverage deviation",
    "unattended": "unattended words",
    "monotonicity": "monotonicity, %",
    "end_weight": "weight on the end, %",
}
_PROBABILITIES = [f"{fifth} %" for fifth in buckets.FIFTHS]
_OVER = "Means over seeds, with 95 % bootstrap intervals over sentences."


class Subject:
    """The data of one split that the sections share."""

    def __init__(self, comparison: Comparison, split: OnSplit, slicing: Slicing) -> None:
        self.split, self.slicing = split, slicing
        self.labels, self.baseline, self.order = comparison.labels, comparison.baseline, split.order
        #: Index of the highest variant other than the baseline; None for a single variant.
        self.rival = next((at for at in split.order if at != comparison.baseline), None)
        #: The runs of each variant, in the order of their seeds.
        self.runs = [[run.splits[split.name] for run in variant.runs] for variant in comparison.variants]
        #: The chrF of each sentence, by variant.
        self.scores = [scores_of(variant, split.name) for variant in comparison.variants]
        #: The texts as words; None if records were made without the text.
        self.texts = texts_of(self.labels, self.runs)


def word_sections(subject: Subject) -> list[Block]:
    """The sections on words and sentences, or a note that the text is missing."""
    if subject.texts is None:
        note = "Sections on single words and sentences need the text, which these records leave out."
        return [Heading("Words and sentences"), Lines([note])]
    sections = (_failures, _words, _links, _ngrams, _places, _likelihood, _calibration, _scatter, _kinds)
    return [block for section in sections for block in section(subject, subject.texts)]


def length_ratios(subject: Subject) -> list[Block]:
    """The section on the length of translations by source length."""
    texts = subject.texts
    if texts is None:
        return []
    bucket, _ = buckets.source_length(subject.runs[0][0].lengths, subject.split.unit, everything=True)
    score = scorers.corpus(texts.runs, "bleu", length_ratio=True)
    table = _table(subject, texts, score, bucket._replace(title=f"length in %, {bucket.title}"))
    caption = f"The length of the translations in per cent of that of the references, in BLEU's tokens. {_OVER}"
    return [Heading("Length of the translations"), table, Lines([caption])]


def attention(subject: Subject) -> list[Block]:
    """The section on attention weights of the translations: measures that need no gold links."""
    texts = subject.texts
    if texts is None or not any("entropy" in row for runs in texts.runs for run in runs for row in run.measures):
        return []
    caption = (
        f"Weights of the translations. Entropy is in nats. Zero weights are source pieces with a weight of exactly 0. "
        f"Coverage deviation is the mean distance from 1 of the weight that a source word received. A word that "
        f"received less than {UNATTENDED} is unattended. "
        f"Monotonicity is the share of words that look at the same source word as the word before, or a later one. "
        f"The weight on the end of the source is that of the words, without the step that ends the translation. "
        f"The correlations are Pearson's, over the sentences of a run. {_OVER}"
    )
    tables = [
        _table(subject, texts, *scorers.measures(texts, _MEASURES, correlated=correlated), digits=2)
        for correlated in (False, True)
    ]
    return [Heading("Attention of the translations"), *tables, Lines([caption])]


def first_sentences(subject: Subject) -> list[Block]:
    """The section on sentences on which the variants differ most, each with its best and worst translation by chrF."""
    if not subject.split.differences:
        return []
    blocks: list[Block] = [Heading("Sentences on which the variants differ most")]
    for line, chrf in subject.split.differences[:FIRST]:
        falling = sorted(range(len(chrf)), key=lambda at, chrf=chrf: -chrf[at])  # type: ignore[misc]
        rows = [*_pair(subject, line), *(_translation(subject, at, line) for at in (falling[0], falling[-1]))]
        blocks.append(Table([f"line {line}", "text", "chrF"], [list(row) for row in rows], text=True))
    caption = (
        "Sentences are ranked by the standard deviation of the variants' mean chrF. Shown are the highest and the "
        "lowest translation of the first seeds."
    )
    return [*blocks, Lines([caption])]


def sentence_examples(subject: Subject) -> list[Block]:
    """The section on sentences with the largest gains, losses and disagreements, and on random sentences."""
    lines = [difference.line for difference in subject.split.differences]
    sources = next((runs[0].sources for runs in subject.runs if runs[0].sources is not None), None)
    if subject.rival is None or not lines or sources is None:
        return []
    variants = subject.baseline, subject.rival
    pair = subject.scores[variants[0]], subject.scores[variants[1]]
    labels = subject.labels[variants[0]], subject.labels[variants[1]]
    texts = list(zip(sources, subject.runs[0][0].references or sources, strict=True))
    caption = (
        f"Gains and losses are those of {labels[1]}, the highest of the other variants, against the baseline "
        f"{labels[0]}: mean chrF over seeds. Disagreement is between all variants. Repeated sentences are left "
        f"out. A line number leads to all translations."
    )
    table = examples.examples_table(examples.examples(*pair, texts, lines), pair, labels, sources)
    return [Heading("Gains, losses and random sentences"), Lines([caption]), table]


def _table(subject: Subject, texts: Texts, score: ItemScore, bucket: Bucket, digits: int = 1) -> Table:
    return grid_table(texts.grid(score, bucket), subject.labels, subject.order, digits)


def _failures(subject: Subject, texts: Texts) -> list[Block]:
    caption = (
        f"Each figure is the share of translations in per cent, the mean over seeds, with Wilson's 95 % interval "
        f"for {len(texts.sources):,} sentences. It opens lines of the first seed. A translation repeats itself if "
        f"it has a sequence of {SEQUENCE} words twice, and more often than the reference. It copies the source if "
        f"it equals the source, or has {SEQUENCE} source words in a row that the reference does not have. A source "
        f"word is unattended if it received less than {UNATTENDED} of weight in total. A dash means not measured."
    )
    return [Heading("Failures"), failures(texts, subject.order), Lines([caption])]


def _facts(texts: Texts, side: str) -> tuple[Mapping[str, WordFacts], bool]:
    """The facts about each word from all runs, and whether any word has a training count."""
    words = {word: facts for runs in texts.runs for run in runs for word, facts in run.words.get(side, {}).items()}
    return words, any(facts.times is not None for facts in words.values())


def _words(subject: Subject, texts: Texts) -> list[Block]:
    words, counted = _facts(texts, "target")
    if not words:
        return []
    score = scorers.f1(texts)
    blocks: list[Block] = []
    if counted:
        bucket = buckets.training_count(words, "training count of the target word")
        blocks += [Heading("Word F1 by training frequency"), _table(subject, texts, score, bucket)]
    caption = f"F1 in per cent of the words of translations, clipped in each sentence as in BLEU. {_OVER}"
    pieces = _table(subject, texts, score, buckets.piece_count(words))
    return [*blocks, Heading("Word F1 by number of pieces"), pieces, Lines([caption])]


def _links(subject: Subject, texts: Texts) -> list[Block]:
    linked = _links_of(subject, texts)
    words, counted = _facts(texts, "source")
    if linked is None or not (counted or _facts(texts, "target")[1]):
        return []
    label, links = linked
    caption = (
        f"The share in per cent of reference words that the translation has, by the source word that they link to. The "
        f"links are those of {label} under forced decoding, for all variants: their errors blur the buckets. {_OVER}"
    )
    bucket = buckets.linked_count(texts.sources, links, words)
    table = _table(subject, texts, scorers.recall(texts, "linked words"), bucket)
    return [Heading("Recall by source word"), table, Lines([caption])]


def _links_of(subject: Subject, texts: Texts) -> tuple[str, list[list[Link]]] | None:
    """The label of the highest variant with links, and its links between sources and references; None without links."""
    for at in subject.order:
        by_line = {each.line: each.links for each in texts.runs[at][0].forced if each.links}
        if by_line:
            pairs = enumerate(zip(texts.sources, texts.references, strict=True), 1)
            return subject.labels[at], [
                [(one, other) for one, other in by_line.get(line, ()) if one < len(source) and other < len(target)]
                for line, (source, target) in pairs
            ]
    return None


def _ngrams(subject: Subject, texts: Texts) -> list[Block]:
    rivals = [subject.rival if at == subject.baseline else subject.baseline for at in range(len(subject.labels))]
    blocks: list[Block] = [Heading("Salient n-grams")]
    for title, table in ngrams.tables(texts, subject.order, rivals):
        if table.rows:
            blocks += [Lines([f"{title}:"]), table._replace(text=True)]
    caption = (
        f"Sequences of 1 to {ngrams.LONGEST} words with at least {ngrams.FEWEST} occurrences and the highest ratio "
        f"of both counts, each count plus 1. Right means in translation and reference of a sentence. Others are "
        f"compared with the baseline, and the baseline with the highest other variant. First seeds only. A count "
        f"opens lines. No test was made: among many n-grams, some have a high ratio by chance."
    )
    return [*blocks, Lines([caption])] if len(blocks) > 1 else []


def _places(subject: Subject, texts: Texts) -> list[Block]:
    caption = f"The share in per cent of reference words that the translation has. {_OVER}"
    tables = [_table(subject, texts, scorers.recall(texts), bucket) for bucket in (buckets.QUARTER, buckets.STEP)]
    return [Heading("Recall by place in the sentence"), *tables, Lines([caption])]


def _all_forced(texts: Texts) -> bool:
    return all(run.forced for runs in texts.runs for run in runs)


def _likelihood(subject: Subject, texts: Texts) -> list[Block]:
    words, counted = _facts(texts, "target")
    if not counted or not _all_forced(texts):
        return []
    caption = f"Mean natural log-probability of a word under forced decoding; 0 is certainty. {_OVER}"
    table = _table(subject, texts, scorers.log_prob(texts), buckets.training_count(words, "training count"))
    return [Heading("Likelihood of the references by training frequency"), table, Lines([caption])]


def _calibration(subject: Subject, texts: Texts) -> list[Block]:
    if not _all_forced(texts):
        return []
    bucket = buckets.fifths("probability of the most probable piece", _PROBABILITIES, 1)
    table = _table(subject, texts, scorers.correct_pieces(texts), bucket)
    for row, at in zip(table.rows, subject.order, strict=True):
        forced = [each for run in texts.runs[at] for each in run.forced]
        best = [value for each in forced for value in each.best]
        right = [value for each in forced for value in each.right]
        row.append(f"{scorers.calibration_error(best, right):.1f}")
    caption = (
        f"The share in per cent of pieces that are right: the reference has the piece that the model gives the highest "
        f"probability. A calibrated model has 20 to 40 % right in the column 20-40 %. The calibration error is the "
        f"mean distance between probability and share over pieces in ten bins, in per cent. {_OVER}"
    )
    table = table._replace(header=[*table.header, "calibration error"])
    return [Heading("Calibration"), table, Lines([caption])]


def _scatter(subject: Subject, texts: Texts) -> list[Block]:
    blocks: list[Block] = [Heading("Scores of single sentences")]
    if subject.rival is not None:
        first, second = subject.scores[subject.baseline], subject.scores[subject.rival]
        points = examples.scatter(subject.scores, subject.labels, (subject.baseline, subject.rival))
        all_points = len(points.lines) == len(first)
        note = "" if all_points else f" The picture has {len(points.lines):,} of {len(first):,} sentences."
        if len(subject.labels) > 2:
            note += " Choose other variants above the picture."
        caption = (
            f"Mean chrF over seeds. {subject.labels[subject.rival]} is higher in {(second > first).sum():,} sentences "
            f"and lower in {(second < first).sum():,}. A point leads to its sentence.{note}"
        )
        blocks += [points, Lines([caption])]
    bucket = buckets.fifths("% of sentences with chrF", buckets.FIFTHS, 100)
    return [*blocks, _table(subject, texts, scorers.distribution(texts), bucket), Lines([_OVER])]


def _kinds(subject: Subject, texts: Texts) -> list[Block]:
    scored = next(run for runs in texts.runs for run in runs if run.sources is not None)
    kinds = slices_of(scored.sources or [], scored.source_language, subject.slicing)
    few = [f"{name} ({len(rows)})" for name, rows in kinds.items() if len(rows) < FEW]
    rows = {"all": range(len(texts.references)), **{name: rows for name, rows in kinds.items() if len(rows) >= FEW}}
    metric = subject.split.judge
    captions = [f"Corpus {TITLES[metric]} of the sentences whose source is of a kind. Kinds may overlap. {_OVER}"]
    if few:
        captions.append(f"Kinds with fewer than {FEW} sentences are left out: {', '.join(few)}.")
    bucket = buckets.row_sets("kind of source", rows)
    return [
        Heading("Kinds of sentences"),
        _table(subject, texts, scorers.corpus(texts.runs, metric), bucket),
        Lines(captions),
    ]


def sentences(subject: Subject, blocks: Iterable[Block]) -> list[Block]:
    """The list of sentences that table cells and plot points link to, cut if there are too many for one page."""
    if subject.texts is None:
        return []
    lines: dict[int, None] = {}
    for block in blocks:
        match block:
            case Table(_, rows):
                lines |= dict.fromkeys(at for row in rows for cell in row for at in getattr(cell, "lines", ()))
            case Scatter():
                lines |= dict.fromkeys(block.lines)
    most = max(1, MOST_TEXTS // (len(subject.labels) + 2))
    listed = [Sentence(line, _rows(subject, line)) for line in sorted(list(lines)[:most])]
    return [Heading("Sentences"), Lines(["Translations and chrF of the first seeds."]), Sentences(listed)]


def _pair(subject: Subject, line: int) -> list[tuple[str, str, str]]:
    """Table rows for a line's source and its references."""
    scored = subject.runs[0][0]
    texts = (("source", scored.sources), *(("reference", lines) for lines in (scored.references, *scored.others)))
    return [(name, lines[line - 1], "") for name, lines in texts if lines is not None]


def _translation(subject: Subject, at: int, line: int) -> tuple[str, str, str]:
    run = subject.runs[at][0]
    return subject.labels[at], run.hypotheses[line - 1], f"{float(chrf_of(run.counts['chrf'][line - 1])):.0f}"


def _rows(subject: Subject, line: int) -> list[tuple[str, str, str]]:
    """Table rows for a line's source, references and translations; equal translations share a row."""
    labels: dict[str, list[str]] = {}
    figures: dict[str, str] = {}
    for at in sorted(range(len(subject.labels)), key=lambda at: -subject.scores[at][line - 1]):
        label, text, figures[text] = _translation(subject, at, line)
        labels.setdefault(text, []).append(label)
    return [*_pair(subject, line), *((some(names), text, figures[text]) for text, names in labels.items())]
