"""Translations, references, source lengths -> BLEU by length: figure 2 of Bahdanau, Cho and Bengio 2015.

Does quality hold for long sentences? BLEU of a bin is corpus BLEU of its sentences.
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
        shortest: minimum number of source words.
        longest: maximum number of source words.
        sentences: number of sentences.
        bleu: their corpus BLEU, 0 to 100.
    """

    shortest: int
    longest: int
    sentences: int
    bleu: float


class ByLength(NamedTuple):
    """BLEU of all bins.

    Attributes:
        bins: from short to long, without empty bins.
        unit: "words" or "characters".
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
        sources: source sentences; empty ones belong to no bin.
        hypotheses: their translations.
        references: their references.
        target_language: selects BLEU's tokenizer.
        width: words per bin (5: 1-5, 6-10, ...); None is 5, or 10 if a sentence has more than 60 words.

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
        raise UserError("BLEU by length: no source line has a word. Give a source with text.")
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


def joined(bins: Sequence[tuple[int, int, list[int]]], fewest: int) -> list[tuple[int, int, list[int]]]:
    """The bins of `binned`, neighbours joined until each has enough sentences, from the longest to the shortest.

    Bins of a fixed width are the same for every test set, and the long sentences stay apart from the many short ones.
    Quantiles do neither.
    """
    found: list[tuple[int, int, list[int]]] = []
    for shortest, longest, rows in reversed(bins):
        if found and len(found[-1][2]) < fewest:
            found[-1] = shortest, found[-1][1], [*rows, *found[-1][2]]
        else:
            found.append((shortest, longest, list(rows)))
    if len(found) > 1 and len(found[-1][2]) < fewest:  # the shortest sentences have no shorter neighbours
        shortest, _, rows = found.pop()
        found[-1] = shortest, found[-1][1], [*rows, *found[-1][2]]
    return found[::-1]


def as_table(result: ByLength) -> str:
    """A plain-text table with one row per bin, and the signature below."""
    rows = [[f"{entry.shortest}-{entry.longest}", str(entry.sentences), f"{entry.bleu:.2f}"] for entry in result.bins]
    table = plain_table([f"source {result.unit}", "sentences", "BLEU"], rows)
    return f"{table}\n\nBLEU: {result.signature}"


def as_json(result: ByLength) -> dict[str, object]:
    """The result for `json.dumps`."""
    return {
        "unit": result.unit,
        "signature": result.signature,
        "bins": [entry._asdict() for entry in result.bins],
    }


def draw(result: ByLength, path: Path, title: str = "BLEU by source length") -> None:
    """Draw the figure into a PNG file, atomically (UserError if it cannot be written)."""
    from nmt.drawing.by_length import by_length  # loads matplotlib
    from nmt.drawing.style import save

    bins = [(entry.shortest, entry.longest, entry.sentences) for entry in result.bins]
    bleu_ = [entry.bleu for entry in result.bins]
    save(by_length(bins, {"BLEU": bleu_}, result.unit, title, result.signature), path)
