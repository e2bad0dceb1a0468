"""A scored split -> one HTML file to look at it: scores, and every sentence with its weights in the viewer."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from nmt.alignment.word_weights import SHIFTS, piece_weights
from nmt.drawing.length_plot import FEW
from nmt.evaluation.metrics import LOWER, TITLES, columns
from nmt.evaluation.split import MOST_ROWS, HeatmapSettings, SplitResult
from nmt.inspection.details import DETAILS, described_search, translate
from nmt.inspection.document import Details, Style, document
from nmt.system.files import write_text
from nmt.translation.heads import AUTO, Heads
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.viewer.blocks import Block, Heading, Interactive, Lines, Table, as_html

MOST = 1000  # sentences with their weights; a corpus may have more
REPORT = "report.html"


class ReportedSplit(NamedTuple):
    """The contents of the report of a split.

    Attributes:
        result: its scores.
        translations: one for each line.
        references: lists of references, each with one for each line.
        display: heads and lines of the pictures; these lines have every detail in the report, too.
    """

    result: SplitResult
    translations: Sequence[Translation]
    references: Sequence[Sequence[str]]
    display: HeatmapSettings


def write_report(translator: Translator, reported: ReportedSplit, title: str) -> Path:
    """Write `report.html` into the folder of a split, and return its path.

    The lines with pictures have all heads, the stages of the weights, the alternatives and the beam, for which the
    sentence is translated once more. Other lines have the weights of the head that links are made of.

    Raises:
        UserError: the file cannot be written.
    """
    path = reported.result.folder / REPORT
    write_text(path, as_html(_blocks(translator, reported), title))
    return path


def _blocks(translator: Translator, reported: ReportedSplit) -> list[Block]:
    scores = reported.result.scores
    figures = {title: getattr(scores, field) for title, field in columns([scores]) if title != LOWER}
    exact = f"exact matches {scores.exact:.1f} %"
    blocks: list[Block] = [
        Lines([", ".join([*(f"{name} {score.value:.2f}" for name, score in figures.items()), exact])], lead=True),
        Heading("Scores"),
        Table(["metric", "score", "signature"], [[name, f"{score.value:.2f}", score.signature]
                                                 for name, score in figures.items()], text=True),
    ]  # fmt: skip
    by_length = reported.result.by_length
    if by_length is not None:
        rows = [[f"{each.shortest}-{each.longest}", str(each.sentences),
                 f"{each.score:.1f}{'' if each.sentences >= FEW else ' *'}"] for each in by_length.bins]  # fmt: skip
        header = [f"source {by_length.unit}", "sentences", TITLES[by_length.metric]]
        blocks += [Heading(by_length.title), Table(header, rows)]
        if any(each.sentences < FEW for each in by_length.bins):
            blocks.append(Lines([f"* fewer than {FEW} sentences: these scores mean little."]))
    if reported.result.alignment:
        rows = [[f"shift {shift} (row t at {SHIFTS[shift]})", f"{100 * score.aer:.1f} %"]
                for shift, score in reported.result.alignment.items()]  # fmt: skip
        rows += [[label, f"{100 * score.aer:.1f} %"] for label, score in reported.result.without_model.items()]
        blocks += [Heading("Alignment error rate against the gold links"), Table(["links", "error rate"], rows)]
    blocks += [Heading("Sentences"), Interactive("sentences", _data(translator, reported))]
    if len(reported.translations) > len(reported.result.sentences):
        lines = f"The first {MOST_ROWS:,} of {len(reported.translations):,}; sentences.json has them all."
        blocks.append(Lines([lines]))
    if reported.result.notes:
        blocks += [Heading("Notes"), Lines(reported.result.notes)]
    return blocks


def _data(translator: Translator, reported: ReportedSplit) -> dict[str, Any]:
    """The data of the viewer: sentences with weights, and the measures of all."""
    display = reported.display
    shift = display.shift
    detailed = {*range(1, display.first + 1), *display.lines}
    style = Style(translator.tokenizer.target, head=str(display.head), shift=shift, compact=True)
    sentences: list[dict[str, Any]] = []
    corpus: list[dict[str, Any]] = []
    # The measures end first, if a corpus has more sentences than a page can list.
    pairs = zip(reported.result.sentences, reported.translations, *reported.references)
    for line, (row, translation, *of_line) in enumerate(pairs, 1):
        reference = " | ".join(dict.fromkeys(of_line))
        texts = {"source": translation.source, "translation": translation.text, "reference": reference}
        corpus.append({**row, **texts})
        if line in detailed:
            before = [sentence.text for sentence in translation.context]
            searched = replace(style, search=described_search(translator))
            made = translate(translator, Request(translation.source, context=before), searched, DETAILS)
        elif len(sentences) < MOST:
            made = _plain(translation, style)
        else:
            continue
        sentences.append({"line": line, "reference": reference, "translations": [{"name": "run", "translation": made}]})
    return {"sentences": sentences, "corpus": corpus}


def _plain(translation: Translation, style: Style) -> dict[str, Any]:
    """A document with the weights of one selection of heads, as bytes."""
    before = translation.context_weights
    if translation.weights is not None and translation.weights.size and len(translation.weights) > 1:
        name = Heads(translation.heads).default if style.head == AUTO else style.head
        one = piece_weights(translation, style.head)[None]
        if before is not None:
            before = piece_weights(translation._replace(weights=before), style.head)[None]
        translation = translation._replace(weights=one, heads=[name])
    return document([translation], style, [Details(context=before, cross=True, alternatives=0)])
