"""The report of a scored split as one HTML file: scores, and sentences with their weights in the viewer."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from nmt.alignment.word_weights import piece_weights
from nmt.drawing.length_plot import FEW
from nmt.evaluation.metrics import LOWER, columns
from nmt.evaluation.split import MOST_ROWS, HeatmapSettings, SplitResult
from nmt.inspection.details import DETAILS, described_search, translate
from nmt.inspection.document import Details, Style, document
from nmt.inspection.doubt import DoubtEvidence, DoubtModel
from nmt.system.files import write_text
from nmt.translation.named_heads import AUTO, Heads
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.viewer.blocks import Block, Heading, Interactive, Lines, Table, as_html

MOST = 1000  # maximum number of sentences with weights
REPORT = "report.html"


def write_report(
    translator: Translator,
    result: SplitResult,
    translations: Sequence[Translation],
    references: Sequence[Sequence[str]],
    display: HeatmapSettings,
    title: str,
    doubts: DoubtModel | None = None,
    evidence: DoubtEvidence | None = None,
) -> None:
    """Write `report.html` into the folder of a split.

    Lines with pictures are translated again to show all heads, the stages of the weights, the alternatives and the
    beam. Other lines have only the weights of the head that makes the links.

    Args:
        translator: the translator of the translations.
        result: the scores of the split.
        translations: one translation for each line.
        references: lists of references, each with one reference for each line.
        display: heads and lines of the pictures.
        title: title of the page.
        doubts, evidence: the model of the doubts, and its agreement with the references.

    Raises:
        UserError: the file cannot be written.
    """
    # Without strict: `result.sentences` has only the first sentences of a large corpus.
    data = _data(translator, zip(result.sentences, translations, *references), display, doubts)
    write_text(result.folder / REPORT, as_html(_blocks(result, len(translations), data, evidence), title))


def _blocks(result: SplitResult, lines: int, data: Mapping[str, Any], evidence: DoubtEvidence | None) -> list[Block]:
    scores = result.scores
    figures = {title: getattr(scores, field) for title, field in columns([scores]) if title != LOWER}
    exact = f"exact matches {scores.exact:.1f} %"
    blocks: list[Block] = [
        Lines([", ".join([*(f"{name} {score.value:.2f}" for name, score in figures.items()), exact])], lead=True),
        Heading("Scores"),
        Table(["metric", "score", "signature"], [[name, f"{score.value:.2f}", score.signature]
                                                 for name, score in figures.items()], text=True),
    ]  # fmt: skip
    by_length = result.by_length
    if by_length.bins:
        rows = [[f"{each.shortest}-{each.longest}", str(each.sentences),
                 f"{each.score:.1f}{'' if each.sentences >= FEW else ' *'}"] for each in by_length.bins]  # fmt: skip
        blocks += [Heading(by_length.title), Table(by_length.header, rows)]
        if any(each.sentences < FEW for each in by_length.bins):
            blocks.append(Lines([f"* fewer than {FEW} sentences: these scores mean little."]))
    if result.alignment:
        header = ["links", "error rate", "precision", "recall"]
        table = Table(header, [list(row) for row in result.rates])
        blocks += [Heading("Alignment error rate against the gold links"), table]
    if evidence is not None:
        bins = [[f"{mean:.2f}", f"{right:.2f}", f"{words:,}"] for words, mean, right in evidence.calibration]
        blocks += [Heading("Confidence of words"), Table(["mean confidence", "share that is right", "words"], bins)]
    blocks += [Heading("Sentences"), Interactive("sentences", data)]
    if lines > len(result.sentences):
        blocks.append(Lines([f"The first {MOST_ROWS:,} of {lines:,}; sentences.json has them all."]))
    if result.notes:
        blocks += [Heading("Notes"), Lines(result.notes)]
    return blocks


def _data(
    translator: Translator, rows: Iterable[tuple[Any, ...]], display: HeatmapSettings, doubts: DoubtModel | None
) -> dict[str, Any]:
    """The data of the viewer: sentences with weights, and the measures of all sentences.

    Args:
        translator: the translator of the translations.
        rows: the measures, the translation and the references of each sentence.
        display: heads and lines of the pictures.
        doubts: the model of the doubts.
    """
    detailed = {*range(1, display.first + 1), *display.lines}
    style = Style(translator.tokenizer.target, head=str(display.head), shift=display.shift, compact=True, doubts=doubts)
    sentences: list[dict[str, Any]] = []
    corpus: list[dict[str, Any]] = []
    for line, (row, translation, *of_line) in enumerate(rows, 1):
        reference = " | ".join(dict.fromkeys(of_line))
        texts = {"source": translation.source, "translation": translation.text, "reference": reference}
        corpus.append({**row, **texts})
        if line in detailed:
            before = [sentence.text for sentence in translation.context]
            searched = replace(style, search=described_search(translator))
            doc = translate(translator, Request(translation.source, context=before), searched, DETAILS - {"vectors"})
        elif len(sentences) < MOST:
            doc = _plain(translation, style)
        else:
            continue
        sentences.append({"line": line, "reference": reference, "translations": [{"name": "run", "translation": doc}]})
    return {"sentences": sentences, "corpus": corpus}


def _plain(translation: Translation, style: Style) -> dict[str, Any]:
    """A document with only the weights of the selected heads, averaged, as bytes."""
    before = translation.context_weights
    if translation.weights is not None and translation.weights.size and len(translation.weights) > 1:
        name = Heads(translation.heads).default if style.head == AUTO else style.head
        one = piece_weights(translation, style.head)[None]
        if before is not None:
            before = piece_weights(translation._replace(weights=before), style.head)[None]
        translation = translation._replace(weights=one, heads=[name])
    return document([translation], style, [Details(context=before, cross=True, alternatives=0)])
