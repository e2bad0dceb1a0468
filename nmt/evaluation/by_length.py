"""Translations, references, source lengths -> BLEU by length: figure 2 of Bahdanau, Cho and Bengio 2015.

The question of the figure: does quality hold for long sentences? Stands on the metrics; BLEU of each bin is
corpus BLEU of the sentences in it.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.drawing.layout import plain_table
from nmt.errors import UserError, check_parallel
from nmt.evaluation.metrics import bleu
from nmt.text.scripts import lengths


class Bin(NamedTuple):
    """BLEU of the sentences whose source has `shortest` to `longest` words.

    Attributes:
        shortest: fewest source words, included.
        longest: most source words, included.
        sentences: how many there are.
        bleu: corpus BLEU of them, 0 to 100.
    """

    shortest: int
    longest: int
    sentences: int
    bleu: float


class ByLength(NamedTuple):
    """The whole figure.

    Attributes:
        bins: from short to long; bins without sentences are left out.
        unit: what was counted, "words" or "characters".
        signature: sacreBLEU's signature, the same for every bin.
    """

    bins: list[Bin]
    unit: str
    signature: str


def bleu_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    width: int | None = None,
) -> ByLength:
    """BLEU of the translations in bins of source length.

    Args:
        sources: one source sentence a line; empty ones are counted in no bin.
        hypotheses: the translation of each.
        references: the reference of each.
        target_language: chooses BLEU's tokenizer.
        width: words a bin (1-5, 6-10, ... for 5); without it 5, or 10 where a sentence has more than 60.

    Raises:
        UserError: the three have different lengths, or every source line is empty.
    """
    check_parallel({"the source": len(sources), "the translation": len(hypotheses), "the reference": len(references)})
    counts, unit, _ = lengths(sources)
    bins = []
    for shortest, longest, rows in binned(counts, width):
        score = bleu([hypotheses[row] for row in rows], [references[row] for row in rows], target_language)
        bins.append(Bin(shortest, longest, len(rows), score.value))
    if not bins:
        raise UserError("BLEU by length: no source line holds a word.")
    return ByLength(bins, unit, score.signature)


def binned(counts: Sequence[int], width: int | None = None) -> list[tuple[int, int, list[int]]]:
    """The shortest and longest length of each bin with its rows, from short to long; as in `bleu_by_length`."""
    if width is None:
        width = 10 if max(counts, default=0) > 60 else 5
    rows: dict[int, list[int]] = {}
    for row, length in enumerate(counts):
        if length:
            rows.setdefault((length - 1) // width, []).append(row)
    return [(number * width + 1, (number + 1) * width, members) for number, members in sorted(rows.items())]


def as_table(result: ByLength) -> str:
    """Return a plain-text table, a row a bin, with the signature below it."""
    rows = [[f"{entry.shortest}-{entry.longest}", str(entry.sentences), f"{entry.bleu:.2f}"] for entry in result.bins]
    table = plain_table([f"source {result.unit}", "sentences", "BLEU"], rows)
    return f"{table}\n\nBLEU: {result.signature}"


def as_json(result: ByLength) -> dict[str, object]:
    """Return what `json.dumps` takes."""
    return {
        "unit": result.unit,
        "signature": result.signature,
        "bins": [entry._asdict() for entry in result.bins],
    }


def draw(result: ByLength, path: Path, title: str = "BLEU by source length") -> None:
    """Draw the figure into a PNG file, whole or not at all (UserError if it cannot be written)."""
    from nmt.drawing.by_length import by_length  # here, so that whoever wants only the figures loads no matplotlib
    from nmt.drawing.style import save

    bins = [(entry.shortest, entry.longest, entry.sentences) for entry in result.bins]
    bleu_ = [entry.bleu for entry in result.bins]
    save(by_length(bins, {"BLEU": bleu_}, result.unit, title, result.signature), path)
