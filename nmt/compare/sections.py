"""A comparison -> the sections of its report on single words and sentences, and the list of these sentences."""

from collections.abc import Iterable, Sequence

import numpy as np

from nmt.compare import likelihood, ngrams, sentence_scores, vocabulary
from nmt.compare.comparable import some
from nmt.compare.failures import SEQUENCE, failures
from nmt.compare.intervals import correlation_of, mean_of, share_of
from nmt.compare.results import ForcedReference, Known
from nmt.compare.sentence_scores import MOST_TEXTS, Scores, scores_of
from nmt.compare.significance import chrf_of
from nmt.compare.slices import Slicing, score_by, slices_of
from nmt.compare.texts import Buckets, Texts, by_bucket, table_of, texts_of
from nmt.compare.variance import Statistics
from nmt.compare.variants import Comparison, OnSplit
from nmt.drawing.by_length import FEW
from nmt.evaluation.by_length import binned, joined
from nmt.evaluation.metrics import TITLES
from nmt.evaluation.sentences import UNATTENDED
from nmt.viewer.blocks import Block, Heading, Lines, Scatter, Sentence, Sentences, Table

FIRST = 3  # sentences on the first screen
#: Measures of attention, with their names.
_MEASURES = {
    "entropy": "entropy",
    "coverage": "coverage deviation",
    "unattended": "unattended words",
    "monotonicity": "monotonicity, %",
    "end_weight": "weight on the end, %",
}
#: The end of captions.
_OVER = "Means over seeds, with 95 % bootstrap intervals over sentences."


class Analysis:
    """The sections of one split."""

    def __init__(self, comparison: Comparison, split: OnSplit, slicing: Slicing) -> None:
        self._variants, self._split, self._slicing = comparison.variants, split, slicing
        self._labels = [variant.label for variant in self._variants]
        self._texts = texts_of(self._variants, split.name)
        self._scores: list[Scores] = [scores_of(variant, split.name) for variant in self._variants]
        self._order = sorted(range(len(self._labels)), key=lambda at: -split.figures[at][split.judge].mean)
        self._baseline = comparison.baseline
        others = [at for at in self._order if at != self._baseline]
        self._rival = others[0] if others else None

    def length_ratios(self) -> list[Block]:
        """How long translations are, by the length of their source."""
        if self._texts is None:
            return []
        unit = self._split.unit
        lengths = self._variants[0].runs[0].splits[self._split.name].lengths
        rows = {f"{shortest}-{longest}": rows for shortest, longest, rows in joined(binned(lengths), FEW)}
        found = score_by(self._texts, rows, share_of, f"length in %, source {unit}")
        caption = f"The length of the translations in per cent of that of the references, in BLEU's tokens. {_OVER}"
        return [Heading("Length of the translations"), self._table(found), Lines([caption])]

    def health(self) -> list[Block]:
        """What the weights say of a translation without gold links."""
        names, texts = _MEASURES, self._texts
        if texts is None or not any("entropy" in row for runs in texts.runs for run in runs for row in run.measures):
            return []

        def counts(variant: int, run: int) -> Statistics:
            table = np.zeros((len(texts.references), len(names), 2))
            for row, measures in enumerate(texts.runs[variant][run].measures):
                for column, name in enumerate(names):
                    if name in measures:
                        table[row, column] = measures[name], 1
            return table

        def products(variant: int, run: int) -> Statistics:
            values, scores = counts(variant, run), chrf_of(texts.runs[variant][run].counts["chrf"])[:, None]
            known, x = values[:, :, 1], values[:, :, 0]
            return np.stack([known, x, known * scores, x * x, known * scores**2, x * scores], -1)

        means = by_bucket(texts, list(names.values()), counts, mean_of, "mean of a sentence")
        correlations = by_bucket(texts, list(names.values()), products, correlation_of, "correlation with chrF")
        caption = (
            f"Weights of the translations. Entropy is in nats. Coverage deviation is the mean distance from 1 of the "
            f"weight that a source word received. A word that received less than {UNATTENDED} is unattended. "
            f"Monotonicity is the share of words that look at the same source word as the word before, or a later one. "
            f"The weight on the end of the source is that of the words, without the step that ends the translation. "
            f"The correlations are Pearson's, over the sentences of a run. {_OVER}"
        )
        tables = [self._table(means, 2), self._table(correlations, 2)]
        return [Heading("Attention of the translations"), *tables, Lines([caption])]

    def first_sentences(self) -> list[Block]:
        """The sentences on which the variants differ most, each with its highest and lowest translation."""
        if not self._split.differences:
            return []
        blocks: list[Block] = [Heading("Sentences on which the variants differ most")]
        for difference in self._split.differences[:FIRST]:
            at = max(range(len(self._labels)), key=lambda at, chrf=difference.chrf: chrf[at])  # type: ignore[misc]
            worst = min(range(len(self._labels)), key=lambda at, chrf=difference.chrf: chrf[at])  # type: ignore[misc]
            rows = self._pair(difference.line)
            rows += [self._translation(each, difference.line) for each in (at, worst)]
            header = [f"line {difference.line}", "text", "chrF"]
            blocks.append(Table(header, [list(row) for row in rows], text=True))
        caption = (
            "Sentences are ranked by the standard deviation of the variants' mean chrF. Shown are the highest and the "
            "lowest translation of the first seeds."
        )
        return [*blocks, Lines([caption])]

    def examples(self) -> list[Block]:
        """Section 2: gains, losses, disagreements and random sentences."""
        most, rival = len(self._split.differences), self._rival
        sources = next((run.sources for variant in self._variants for run in [variant.runs[0].splits[self._split.name]]
                        if run.sources is not None), None)  # fmt: skip
        if rival is None or not most or sources is None:
            return []
        pair = self._scores[self._baseline], self._scores[rival]
        labels = self._labels[self._baseline], self._labels[rival]
        references = self._variants[0].runs[0].splits[self._split.name].references or sources
        found = sentence_scores.examples(*pair, list(zip(sources, references, strict=True)), most)
        lines = [difference.line for difference in self._split.differences]
        caption = (
            f"Gains and losses are those of {labels[1]}, the highest of the other variants, against the baseline "
            f"{labels[0]}: mean chrF over seeds. Disagreement is between all variants. Repeated sentences are left "
            f"out. A line number leads to all translations."
        )
        table = sentence_scores.examples_table(found, lines, pair, labels, sources)
        return [Heading("Gains, losses and random sentences"), Lines([caption]), table]

    def of_words(self) -> list[Block]:
        """Sections 5 to 12."""
        if self._texts is None:
            note = "Sections on single words and sentences need the text, which these records leave out."
            return [Heading("Words and sentences"), Lines([note])]
        return [
            *self._failures(self._texts),
            *self._words(self._texts),
            *self._ngrams(self._texts),
            *self._positions(self._texts),
            *self._likelihood(self._texts),
            *self._scatter(self._texts),
            *self._slices(self._texts),
        ]

    def _table(self, buckets: Buckets, digits: int = 1) -> Table:
        return table_of(self._labels, self._order, buckets, digits)

    def _failures(self, texts: Texts) -> list[Block]:
        caption = (
            f"Each figure is the share of translations in per cent, the mean over seeds, with Wilson's 95 % interval "
            f"for {len(texts.sources):,} sentences. It opens lines of the first seed. A translation repeats itself if "
            f"it has a sequence of {SEQUENCE} words twice, and more often than the reference. It copies the source if "
            f"it equals the source, or has {SEQUENCE} source words in a row that the reference does not have. A source "
            f"word is unattended if it received less than {UNATTENDED} of weight in total. A dash means not measured."
        )
        return [Heading("Failures"), failures(texts, self._order), Lines([caption])]

    def _known(self, side: str) -> dict[str, Known]:
        """The words that some run knows; all runs have one training text and one tokenizer."""
        runs = (run.splits[self._split.name] for variant in self._variants for run in variant.runs)
        return {word: known for run in runs for word, known in run.words.get(side, {}).items()}

    def _words(self, texts: Texts) -> list[Block]:
        target, source = self._known("target"), self._known("source")
        blocks: list[Block] = []
        by_count = any(known.times is not None for known in target.values())
        if by_count:
            title = "training count of the target word"
            found = vocabulary.f1_by(texts, target, vocabulary.frequency, vocabulary.FREQUENCIES, title)
            blocks += [Heading("Word F1 by training frequency"), self._table(found)]
        if target:
            title = "pieces of the target word"
            found = vocabulary.f1_by(texts, target, vocabulary.pieces, vocabulary.PIECES, title)
            blocks += [Heading("Word F1 by number of pieces"), self._table(found)]
            caption = f"F1 in per cent of the words of translations, clipped in each sentence as in BLEU. {_OVER}"
            blocks.append(Lines([caption]))
        linked = self._links(texts)
        if linked is not None and by_count:
            label, links = linked
            found = vocabulary.recall_by_source(texts, source, links)
            caption = (
                f"The share in per cent of reference words that the translation has, by the source word that they link "
                f"to. The links are those of {label} under forced decoding, for all variants: their errors blur the "
                f"buckets. {_OVER}"
            )
            blocks += [Heading("Recall by source word"), self._table(found), Lines([caption])]
        return blocks

    def _links(self, texts: Texts) -> tuple[str, list[list[tuple[int, int]]]] | None:
        """The links between sources and references of the first run that has attention, and its variant's label."""
        for at in self._order:
            forced: Sequence[ForcedReference] = texts.runs[at][0].forced
            if any(each.links for each in forced):
                by_line = {each.line: each.links or [] for each in forced}
                pairs = enumerate(zip(texts.sources, texts.references, strict=True), 1)
                return self._labels[at], [
                    [(one, other) for one, other in by_line.get(line, ()) if one < len(source) and other < len(target)]
                    for line, (source, target) in pairs
                ]
        return None

    def _ngrams(self, texts: Texts) -> list[Block]:
        rivals = [self._rival if at == self._baseline else self._baseline for at in range(len(self._labels))]
        blocks: list[Block] = [Heading("Salient n-grams")]
        for title, table in ngrams.tables(texts, self._order, rivals):
            if table.rows:
                blocks += [Lines([f"{title}:"]), table._replace(text=True)]
        caption = (
            f"Sequences of 1 to {ngrams.LONGEST} words with at least {ngrams.FEWEST} occurrences and the highest ratio "
            f"of both counts, each count plus 1. Right means in translation and reference of a sentence. Others are "
            f"compared with the baseline, and the baseline with the highest other variant. First seeds only. A count "
            f"opens lines. No test was made: among many n-grams, some have a high ratio by chance."
        )
        return [*blocks, Lines([caption])] if len(blocks) > 1 else []

    def _positions(self, texts: Texts) -> list[Block]:
        caption = f"The share in per cent of reference words that the translation has. {_OVER}"
        tables = [self._table(found(texts)) for found in (vocabulary.recall_by_quarter, vocabulary.recall_by_step)]
        return [Heading("Recall by place in the sentence"), *tables, Lines([caption])]

    def _likelihood(self, texts: Texts) -> list[Block]:
        blocks: list[Block] = []
        by_frequency = likelihood.by_frequency(texts, self._known("target"))
        if by_frequency is not None:
            caption = f"Mean natural log-probability of a word under forced decoding; 0 is certainty. {_OVER}"
            title = "Likelihood of the references by training frequency"
            blocks += [Heading(title), self._table(by_frequency), Lines([caption])]
        calibration = likelihood.calibration(texts)
        if calibration is not None:
            table = self._table(calibration)
            for row, at in zip(table.rows, self._order, strict=False):
                forced = [each for run in texts.runs[at] for each in run.forced]
                best = [value for each in forced for value in each.best]
                right = [value for each in forced for value in each.right]
                row.append(f"{likelihood.calibration_error(best, right):.1f}")
            caption = (
                f"The share in per cent of pieces that are right: the reference has the piece that the model gives the "
                f"highest probability. A calibrated model has 20 to 40 % right in the column 20-40 %. The calibration "
                f"error is the mean distance between probability and share over pieces in ten bins, in per cent. "
                f"{_OVER}"
            )
            header = [*table.header, "calibration error"]
            blocks += [Heading("Calibration"), table._replace(header=header), Lines([caption])]
        return blocks

    def _scatter(self, texts: Texts) -> list[Block]:
        blocks: list[Block] = [Heading("Scores of single sentences")]
        if self._rival is not None:
            first, second = self._scores[self._baseline], self._scores[self._rival]
            labels = self._labels[self._baseline], self._labels[self._rival]
            found = sentence_scores.scatter(self._scores, self._labels, (self._baseline, self._rival))
            higher, lower = int((second > first).sum()), int((second < first).sum())
            all_points = len(found.lines) == len(first)
            shown = "" if all_points else f" The picture has {len(found.lines):,} of {len(first):,} sentences."
            if len(self._labels) > 2:
                shown += " Choose other variants above the picture."
            caption = (
                f"Mean chrF over seeds. {labels[1]} is higher in {higher:,} sentences and lower in {lower:,}. A point "
                f"leads to its sentence.{shown}"
            )
            blocks += [found, Lines([caption])]
        return [*blocks, self._table(sentence_scores.distribution(texts)), Lines([_OVER])]

    def _slices(self, texts: Texts) -> list[Block]:
        scored = next(run for runs in texts.runs for run in runs if run.sources is not None)
        assert scored.sources is not None
        rows = slices_of(scored.sources, scored.source_language, self._slicing)
        few = [f"{name} ({len(lines)})" for name, lines in rows.items() if len(lines) < FEW]
        metric = self._split.judge
        captions = [f"Corpus {TITLES[metric]} of the sentences whose source is of a kind. Kinds may overlap. {_OVER}"]
        if few:
            captions.append(f"Kinds with fewer than {FEW} sentences are left out: {', '.join(few)}.")
        return [Heading("Kinds of sentences"), self._table(score_by(texts, rows, metric=metric)), Lines(captions)]

    def sentences(self, blocks: Iterable[Block]) -> list[Block]:
        """The list of the sentences that cells and points lead to; of very many, those that come first."""
        if self._texts is None:
            return []
        lines: dict[int, None] = {}
        for block in blocks:
            match block:
                case Table(_, rows):
                    lines |= dict.fromkeys(at for row in rows for cell in row for at in getattr(cell, "lines", ()))
                case Scatter():
                    lines |= dict.fromkeys(block.lines)
        most = max(1, MOST_TEXTS // (len(self._labels) + 2))
        listed = [Sentence(line, self._rows(line)) for line in sorted(list(lines)[:most])]
        return [Heading("Sentences"), Lines(["Translations and chrF of the first seeds."]), Sentences(listed)]

    def _pair(self, line: int) -> list[tuple[str, str, str]]:
        """Rows of a source and its reference."""
        scored = self._variants[0].runs[0].splits[self._split.name]
        texts = (("source", scored.sources), *(("reference", lines) for lines in (scored.references, *scored.others)))
        return [(name, lines[line - 1], "") for name, lines in texts if lines is not None]

    def _translation(self, at: int, line: int) -> tuple[str, str, str]:
        run = self._variants[at].runs[0].splits[self._split.name]
        chrf = float(chrf_of(run.counts["chrf"][line - 1]))
        return self._labels[at], run.hypotheses[line - 1], f"{chrf:.0f}"

    def _rows(self, line: int) -> list[tuple[str, str, str]]:
        """Source, reference and translations; equal translations are one row."""
        labels: dict[str, list[str]] = {}
        figures: dict[str, str] = {}
        for at in sorted(range(len(self._labels)), key=lambda at: -self._scores[at][line - 1]):
            label, text, figures[text] = self._translation(at, line)
            labels.setdefault(text, []).append(label)
        return [*self._pair(line), *((some(names), text, figures[text]) for text, names in labels.items())]
