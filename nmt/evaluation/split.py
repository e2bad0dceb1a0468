"""Evaluation of a translated split: a folder with scores, translations and heatmaps, each file written atomically."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from nmt.alignment.baselines import baselines
from nmt.alignment.error_rate import AlignmentScore, against_gold, as_row
from nmt.alignment.word_weights import SHIFTS, Head, links
from nmt.drawing.layout import plain_table
from nmt.evaluation import metrics
from nmt.evaluation.length_bins import ByLength, score_by_length
from nmt.evaluation.references import AttentionMap, json_rows, reference_file
from nmt.evaluation.sentence_measures import rows as sentence_rows
from nmt.evaluation.sentence_measures import whole_words
from nmt.links import Link, format_links, parse_file
from nmt.system.errors import UserError
from nmt.system.files import write_json, write_pieces, write_text
from nmt.text.scripts import unspaced
from nmt.translation.named_heads import AUTO
from nmt.translation.types import PictureFormat, Translation

#: Maximum number of sentences whose measures a report shows.
MOST_ROWS = 10_000
#: Files and folders that `evaluate_split` writes.
FILES = (
    *("hypotheses.txt", "source.txt", "reference.txt", "reference-*.txt", "scores.json", "sentences.json"),
    *("alignments.pharaoh", "attention.json", "heatmaps"),
)
NO_WEIGHTS = "There are no attention weights (decoder=none, or too long lines): no alignments and no heatmaps."


class SplitResult(NamedTuple):
    """The result of `evaluate_split`.

    Attributes:
        name: name of the split.
        scores: the scores in all metrics.
        by_length: BLEU or chrF by source length.
        alignment: {shift: agreement of the attention's links with the gold links}; empty without gold links.
        without_model: {baseline without a model: agreement of its links with the gold links}.
        pictures: the files of the heatmaps, in the order of their lines.
        notes: notes for the user.
        folder: the folder of the files.
        sentences: the measures of the first `MOST_ROWS` sentences (`nmt.evaluation.sentence_measures.rows`).
    """

    name: str
    scores: metrics.Scores
    by_length: ByLength
    alignment: dict[int, AlignmentScore]
    without_model: dict[str, AlignmentScore]
    pictures: list[Path]
    notes: list[str]
    folder: Path
    sentences: list[dict[str, Any]]

    @property
    def rates(self) -> list[tuple[str, str, str, str]]:
        """Table rows: the method that makes links, and their error rate, precision and recall."""
        attention = {f"shift {shift} (row t at {SHIFTS[shift]})": score for shift, score in self.alignment.items()}
        return [(label, *as_row(score)) for label, score in {**attention, **self.without_model}.items()]

    def in_folder(self, folder: Path) -> "SplitResult":
        """The same result with the paths of another folder, after the folder was renamed."""
        pictures = [folder / path.relative_to(self.folder) for path in self.pictures]
        return self._replace(pictures=pictures, folder=folder)


class Gold(NamedTuple):
    """Word links between the sources and their references.

    Attributes:
        lines: the links of each pair in Pharaoh format, between whitespace-separated words from 0.
        forced: the references under forced decoding.
    """

    lines: Sequence[str]
    forced: Sequence[Translation]


class HeatmapSettings(NamedTuple):
    """Settings of heatmaps and links.

    Attributes:
        first: the number of first lines with heatmaps.
        lines: line numbers, from 1, of further lines with heatmaps.
        head: the selection of heads (`nmt.translation.named_heads`).
        shift: 0 or 1, for the links; the alignment error rate is computed for both.
        pictured: the heads in heatmaps; None uses `head`.
        view: translation -> the view in heatmaps, such as its self-attention; None shows the translation itself.
        asked: the setting that selected the head, such as "auto"; "" if it is the head itself.
        kind: the file format of the heatmaps.
    """

    first: int = 10
    lines: Sequence[int] = ()
    head: Head = AUTO
    shift: int = 0
    asked: str = ""
    pictured: Head | None = None
    view: Callable[[Translation], Translation | None] | None = None
    kind: PictureFormat = "png"


def evaluate_split(
    translations: Sequence[Translation],
    references: Sequence[str],
    *,
    others: Sequence[Sequence[str]] = (),
    name: str,
    languages: tuple[str, str],
    folder: Path,
    gold: Gold | None = None,
    display: HeatmapSettings = HeatmapSettings(),  # noqa: B008  immutable
    provenance: Mapping[str, object] | None = None,
    measured: Mapping[str, object] | None = None,
    attention_maps: Sequence[AttentionMap] = (),
    notes: Sequence[str] = (),
) -> SplitResult:
    """Score one split and write all results into a folder.

    Files: `hypotheses.txt`, `source.txt`, `reference.txt` (further ones `reference-2.txt` and so on),
    `scores.json`, `sentences.json` (the measures of each sentence), and with attention `alignments.pharaoh` (links of
    the translations), `attention.json` and `heatmaps/LINE-{word,subword}.png` (or .svg, .pdf).

    Args:
        translations: one translation for each line of the split.
        references: one reference for each line.
        others: further references of the same lines.
        name: name of the split, for titles.
        languages: codes of source and target; the target selects the tokenizers of the metrics.
        folder: folder for the files, created if it does not exist.
        gold: gold links, for the alignment error rate.
        display: settings of heatmaps and links.
        provenance, measured: facts for `scores.json`: run, checkpoint and others; perplexity, speed and others.
        attention_maps: attention maps for `attention.json`.
        notes: notes for the user, returned together with the notes of this function.

    Raises:
        UserError: a line, head or shift does not exist, or a file cannot be written.
    """
    _check(translations, name, display.lines)
    sources, texts = ([getattr(each, side) for each in translations] for side in ("source", "text"))
    scores = metrics.score(texts, references, languages[1], others)
    by_length = score_by_length(sources, texts, references, languages[1], scores.judged_by, others)
    alignment, without_model = ({}, {}) if gold is None else _error_rates(gold, display.head)
    attentive = _attentive(translations)
    linked = [f"{format_links(_links(each, display))}\n" for each in translations] if attentive else []
    files: dict[str, Sequence[str]] = {"hypotheses.txt": texts, "source.txt": sources}
    files |= {reference_file(number): lines for number, lines in enumerate((references, *others), 1)}
    for file, lines in files.items():
        write_pieces(folder / file, (f"{line}\n" for line in lines))
    if attentive:
        write_pieces(folder / "alignments.pharaoh", linked)
    if attention_maps:
        write_text(folder / "attention.json", json.dumps(list(attention_maps), ensure_ascii=False) + "\n")
    drawn = attentive or display.view is not None
    pictures, of_pictures = _heatmaps(translations, references, folder, name, display) if drawn else ([], [NO_WEIGHTS])
    sentences = _write_measures(translations, [references, *others], folder, gold, display)
    described = {"split": name, "source_language": languages[0], "target_language": languages[1]}
    bins = {"unit": by_length.unit, "bins": [each._asdict() for each in by_length.bins]}
    figures = {"references": 1 + len(others), **metrics.as_json(scores), "by_length": bins}
    rates = {"alignment": _rates(alignment, without_model, display)}
    more = {"measured": dict(measured or {}), "provenance": dict(provenance or {})}
    write_json(folder / "scores.json", {**described, **figures, **rates, **more})
    blind = [metrics.blind_note(name, scores.short)] if scores.judged_by == "chrf" else []
    notes = [*blind, *notes, *of_pictures]
    return SplitResult(name, scores, by_length, alignment, without_model, pictures, notes, folder, sentences)


def _rates(
    alignment: Mapping[int, AlignmentScore], without_model: Mapping[str, AlignmentScore], display: HeatmapSettings
) -> dict[str, Any] | None:
    """The error rates for `scores.json`; None if there are none."""
    if not alignment:
        return None
    return {
        "head": display.asked or display.head,
        "selected": display.head,
        **{f"shift_{shift}": score._asdict() for shift, score in alignment.items()},
        "without_model": {label: score._asdict() for label, score in without_model.items()},
    }


def _links(translation: Translation, display: HeatmapSettings) -> list[Link]:
    """The word links of a translation; none if it is too long for weights."""
    return [] if _too_long(translation) else links(translation, display.head, display.shift)


def _attentive(translations: Sequence[Translation]) -> bool:
    return any(translation.weights is not None for translation in translations)


def _too_long(translation: Translation) -> bool:
    """Whether a translation has no weights because its line is too long for them."""
    return translation.weights is None and bool(translation.text.strip())


def _check(translations: Sequence[Translation], name: str, lines: Sequence[int]) -> None:
    """Raise UserError if heatmaps are requested for lines that do not exist, or of a model without attention."""
    beyond = [line for line in lines if not 1 <= line <= len(translations)]
    if beyond:
        raise UserError(f"Heatmap of line {beyond[0]} of {name}: it has lines 1 to {len(translations)}.")
    if lines and not _attentive(translations):
        raise UserError("There are no attention weights to draw (decoder=none, or too long lines). Leave lines= out.")


def _write_measures(
    translations: Sequence[Translation],
    references: Sequence[Sequence[str]],
    folder: Path,
    gold: Gold | None,
    display: HeatmapSettings,
) -> list[dict[str, Any]]:
    """Write the measures of all sentences; return the measures of the first `MOST_ROWS`."""
    lines, forced = ([], []) if gold is None else (gold.lines, gold.forced)
    first, *others = references
    rows = sentence_rows(translations, first, display.head, display.shift, others=others, gold=lines, forced=forced)
    first_rows: list[dict[str, Any]] = []

    def all_rows() -> Iterator[dict[str, Any]]:
        for row in rows:
            if len(first_rows) < MOST_ROWS:
                first_rows.append(row)
            yield row

    write_pieces(folder / "sentences.json", json_rows(all_rows()))
    return first_rows


def _error_rates(gold: Gold, head: Head) -> tuple[dict[int, AlignmentScore], dict[str, AlignmentScore]]:
    """The error rates of the attention's links for each shift, and of baselines that need no model.

    Both are empty without attention or without sure gold links.
    """
    if not _attentive(gold.forced):
        return {}, {}
    known = parse_file(gold.lines, "The gold", pairs=len(gold.forced))
    if not any(pair.sure for pair in known):
        return {}, {}
    units = [whole_words(translation) for translation in gold.forced]
    pairs = list(zip(gold.forced, units, strict=True))
    by_shift = {
        shift: against_gold([links(translation, head, shift, words) for translation, words in pairs], known)
        for shift in SHIFTS
    }
    without_model = baselines(known, [(len(source.labels), len(target.labels)) for source, target in units])
    return by_shift, {label: against_gold(guess, known) for label, guess in without_model.items()}


def _heatmaps(
    translations: Sequence[Translation], references: Sequence[str], folder: Path, name: str, display: HeatmapSettings
) -> tuple[list[Path], list[str]]:
    """Draw the heatmaps; return their files and notes for the user."""
    from nmt.drawing import heatmap  # loads matplotlib

    pictures: list[Path] = []
    notes: dict[str, None] = {}
    if any(unspaced(text) for translation in translations for text in (translation.source, translation.text)):
        notes["Text without spaces between words: alignments.pharaoh and the heatmaps use subword pieces."] = None
    digits = max(4, len(str(len(translations))))
    levels: tuple[heatmap.Level, ...] = ("word", "subword")
    for line in sorted({*range(1, min(display.first, len(translations)) + 1), *display.lines}):
        translation = translations[line - 1]
        view = translation if display.view is None else display.view(translation)
        if view is None or _too_long(view):
            continue
        for level in levels:
            pictures.append(folder / "heatmaps" / f"{line:0{digits}d}-{level}.{display.kind}")
            picture = heatmap.figure(
                view,
                level=level,
                head=display.head if display.pictured is None else display.pictured,
                shift=display.shift,
                reference=references[line - 1],
                title=f"{name}, line {line}",
            )
            notes |= dict.fromkeys(picture.save(pictures[-1]))
    return pictures, list(notes)


def summary(results: Sequence[SplitResult]) -> str:
    """The terminal output of a command: scores, scores by length, alignment error rates, and paths of the files."""
    parts = [metrics.as_table({result.name: result.scores for result in results})]
    for result in results:
        if result.by_length.bins:
            bins = [[f"{each.shortest}-{each.longest}", str(each.sentences), f"{each.score:.2f}"]
                    for each in result.by_length.bins]  # fmt: skip
            parts.append(f"{result.name}, {result.by_length.title}\n{plain_table(result.by_length.header, bins)}")
        if result.alignment:
            lines = ["  {}: {}  (precision {}, recall {})".format(*row) for row in result.rates]
            parts.append("\n".join([f"{result.name}, alignment error rate against the gold links", *lines]))
        where = [f"{result.name}, all results: {result.folder}"]
        if result.pictures:
            where.append(f"  {len(result.pictures)} heatmaps, for example {result.pictures[0]}")
        parts.append("\n".join([*where, *(f"  note: {note}" for note in result.notes)]))
    return "\n\n".join(parts)
