"""One test split, translated -> a folder that answers "how good is it, and where did it look?".

The last file of the line: it calls the others of this room and writes what they return. Everything in the
folder names its provenance; every file appears whole or not at all.
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.alignment.error_rate import AlignmentScore, against_gold, as_row
from nmt.alignment.weights import SHIFTS, Head, links
from nmt.alignment.words import source_units, spelled, target_units
from nmt.errors import UserError
from nmt.evaluation import metrics
from nmt.evaluation.forced import Look
from nmt.files import write_text
from nmt.links import format_links, parse_file
from nmt.translation.types import Translation

if TYPE_CHECKING:
    from nmt.evaluation.by_length import ByLength


class SplitResult(NamedTuple):
    """What `evaluate_split` found.

    Attributes:
        name: of the split.
        scores: the metrics.
        by_length: BLEU by source length; None where every source line is empty.
        alignment: agreement with the gold links for shift 0 and for shift 1; empty without gold.
        pictures: the heatmaps, in the order of their lines.
        notes: what the user should be told, each once.
        folder: where everything lies.
    """

    name: str
    scores: metrics.Scores
    by_length: "ByLength | None"
    alignment: dict[int, AlignmentScore]
    pictures: list[Path]
    notes: list[str]
    folder: Path


def evaluate_split(
    translations: Sequence[Translation],
    references: Sequence[str],
    *,
    name: str,
    source_language: str,
    target_language: str,
    folder: Path,
    gold_links: Sequence[str] | None = None,
    forced: Sequence[Translation] | None = None,
    fixed: int = 10,
    chosen: Sequence[int] = (),
    head: Head = "mean",
    shift: int = 0,
    provenance: Mapping[str, object] | None = None,
    measured: Mapping[str, object] | None = None,
    looks: Sequence[Look] = (),
) -> SplitResult:
    """Scores one split and writes everything about it into a folder.

    `hypotheses.txt`, `source.txt` and `reference.txt` (a line a sentence), `translations.txt` (all three below one
    another), `scores.json`, `bleu_by_length.{json,png}`, `alignments.pharaoh` (links of the translations),
    `attention.json` (weights of a few references) and `heatmaps/LINE-{word,subword}.png`. A model without attention
    has no links, weights and heatmaps.

    Args:
        translations: one for each line of the split.
        references: the reference of each.
        name: of the split, for titles.
        source_language: code, for the record.
        target_language: code; chooses the tokenizers of the metrics.
        folder: made if it is not there.
        gold_links: Pharaoh links between the words of each source and its reference, from 0.
        forced: the references themselves as translations (decoded by force), for these are the words that
            the gold links speak of. Without them, or without gold, there is no alignment error rate.
        fixed: heatmaps of the first this many lines.
        chosen: line numbers, from 1, of further heatmaps.
        head: head of pictures and links, a number or "mean".
        shift: 0 or 1, of pictures and links; the alignment error rate is given for both.
        provenance: what made the translations (run, checkpoint, configuration, search), for `scores.json`.
        measured: perplexity, speed and the like, for `scores.json`.
        looks: weights of a few references, for `attention.json`.

    Raises:
        UserError: numbers of lines differ, a chosen line does not exist, attention is asked of a model
            without it, no such head or shift, or a file cannot be written.
    """
    beyond = [line for line in chosen if not 1 <= line <= len(translations)]
    if beyond:
        raise UserError(f"Heatmap of line {beyond[0]} of {name}: it has lines 1 to {len(translations)}.")
    attentive = any(translation.weights is not None for translation in translations)
    if chosen and not attentive:
        raise UserError(
            "decoder=none has no attention weights, so there is nothing to draw for the chosen lines. "
            "Leave them out, or evaluate a run with attention."
        )
    sources = [translation.source for translation in translations]
    hypotheses = [translation.text for translation in translations]
    scores = metrics.score(hypotheses, references, target_language)
    alignment = _against_gold(gold_links, forced, head)
    found = [format_links(links(translation, head, shift)) for translation in translations] if attentive else []
    notes: list[str] = []

    for file, texts in (("hypotheses.txt", hypotheses), ("source.txt", sources), ("reference.txt", references)):
        write_text(folder / file, "".join(f"{line}\n" for line in texts))
    write_text(folder / "translations.txt", _beside(translations, references))
    by_length = _by_length(sources, hypotheses, references, target_language, folder, name)
    pictures: list[Path] = []
    if attentive:
        write_text(folder / "alignments.pharaoh", "".join(f"{line}\n" for line in found))
        if not all(
            units(translation).are_words for translation in translations for units in (source_units, target_units)
        ):
            notes.append(
                "Text without spaces between words: alignments.pharaoh and the pictures count its subword pieces."
            )
        lines = sorted({*range(1, min(fixed, len(translations)) + 1), *chosen})
        pictures, drawing = _heatmaps(translations, references, lines, folder / "heatmaps", name, head, shift)
        notes += drawing
    else:
        notes.append("The model has no attention (decoder=none): no alignments and no heatmaps.")
    record = {
        "split": name,
        "source_language": source_language,
        "target_language": target_language,
        **metrics.as_json(scores),
        "alignment": {
            "head": head,
            **{f"shift_{number}": found._asdict() for number, found in alignment.items()},
        }
        if alignment
        else None,
        "measured": dict(measured or {}),
        "provenance": dict(provenance or {}),
    }
    if looks:
        write_text(folder / "attention.json", json.dumps(list(looks), ensure_ascii=False) + "\n")
    write_text(folder / "scores.json", _json(record))
    return SplitResult(name, scores, by_length, alignment, pictures, list(dict.fromkeys(notes)), folder)


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, indent=2, default=str) + "\n"


def _beside(translations: Sequence[Translation], references: Sequence[str]) -> str:
    """The readable list: source, translation and reference of every line below one another."""
    blocks = [
        f"line {number}  (log-probability {translation.log_prob:.2f}, "
        f"chrF {metrics.sentence_chrf(translation.text, reference):.1f})\n"
        f"  source       {translation.source}\n"
        f"  translation  {translation.text}\n"
        f"  reference    {reference}\n"
        for number, (translation, reference) in enumerate(zip(translations, references, strict=True), 1)
    ]
    return "\n".join(blocks)


def _by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    folder: Path,
    name: str,
) -> "ByLength | None":
    if not any(line.split() for line in sources):
        return None
    from nmt.evaluation import by_length  # here, so that whoever wants only the types loads no matplotlib

    found = by_length.bleu_by_length(sources, hypotheses, references, target_language)
    write_text(folder / "bleu_by_length.json", _json(by_length.as_json(found)))
    by_length.draw(found, folder / "bleu_by_length.png", f"{name}: BLEU by source length")
    return found


def _against_gold(
    gold_links: Sequence[str] | None, forced: Sequence[Translation] | None, head: Head
) -> dict[int, AlignmentScore]:
    if gold_links is None or forced is None or all(translation.weights is None for translation in forced):
        return {}
    gold = parse_file(gold_links, "The gold", pairs=len(forced))
    if not any(found.sure for found in gold):
        return {}
    # Gold links speak of whitespace words, whatever the script.
    units = [
        (
            spelled(translation.source, translation.source_spans, translation.source.split()),
            spelled(translation.text, translation.spans, translation.text.split()),
        )
        for translation in forced
    ]
    return {
        shift: against_gold([links(own, head, shift, found) for own, found in zip(forced, units, strict=True)], gold)
        for shift in SHIFTS
    }


def _heatmaps(
    translations: Sequence[Translation],
    references: Sequence[str],
    lines: Sequence[int],
    folder: Path,
    name: str,
    head: Head,
    shift: int,
) -> tuple[list[Path], list[str]]:
    if not lines:
        return [], []
    from nmt.drawing import heatmap  # loads matplotlib

    pictures: list[Path] = []
    notes: list[str] = []
    digits = max(4, len(str(len(translations))))
    levels: tuple[heatmap.Level, ...] = ("word", "subword")
    for line in lines:
        for level in levels:
            path = folder / f"{line:0{digits}d}-{level}.png"
            notes += heatmap.draw(
                translations[line - 1],
                path,
                level=level,
                head=head,
                shift=shift,
                reference=references[line - 1],
                title=f"{name}, line {line}",
            )
            pictures.append(path)
    return pictures, notes


def summary(results: Sequence[SplitResult]) -> str:
    """Returns what a verb prints: scores, BLEU by length, alignment error rates, and where to look."""
    parts = [metrics.as_table({result.name: result.scores for result in results})]
    for result in results:
        if result.by_length is not None:
            from nmt.evaluation import by_length

            table = by_length.as_table(result.by_length).split("\n\n")[0]  # its signature is BLEU's, given above
            parts.append(f"{result.name}, BLEU by source length\n{table}")
        if result.alignment:
            lines = [
                "  shift {} (row t at {}): {}  (precision {}, recall {})".format(shift, SHIFTS[shift], *as_row(found))
                for shift, found in result.alignment.items()
            ]
            parts.append("\n".join([f"{result.name}, alignment error rate against the gold links", *lines]))
        where = [f"{result.name}, everything about it: {result.folder}"]
        if result.pictures:
            where.append(f"  {len(result.pictures)} attention pictures, such as {result.pictures[0]}")
        parts.append("\n".join([*where, *(f"  note: {note}" for note in result.notes)]))
    return "\n\n".join(parts)
