"""Translations, references, source lengths -> BLEU by length: figure 2 of Bahdanau, Cho and Bengio 2015.

Does quality hold for long sentences? BLEU of a bin is corpus BLEU of its sentences; chrF where BLEU cannot judge.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from nmt.drawing.layout import plain_table
from nmt.evaluation.metrics import TITLES, Metric, corpus_score
from nmt.system.errors import UserError, check_parallel
from nmt.text.scripts import lengths


class Bin(NamedTuple):
    """The score of the sentences whose source has `shortest` to `longest` words.

    Attributes:
        shortest: minimum number of source words.
        longest: maximum number of source words.
        sentences: number of sentences.
        score: their corpus BLEU or chrF, 0 to 100.
    """

    shortest: int
    longest: int
    sentences: int
    score: float


class ByLength(NamedTuple):
    """The scores of all bins.

    Attributes:
        bins: from short to long, without empty bins.
        unit: "words" or "characters".
        signature: sacreBLEU's signature, the same for every bin.
        metric: "bleu" or "chrf".
    """

    bins: list[Bin]
    unit: str
    signature: str
    metric: Metric = "bleu"

    @property
    def title(self) -> str:
        """The title of the figure."""
        return f"{TITLES[self.metric]} by source length"


def score_by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    target_language: str,
    width: int | None = None,
    metric: Metric = "bleu",
    others: Sequence[Sequence[str]] = (),
) -> ByLength:
    """The score of the translations in bins of source length.

    Args:
        sources: source sentences; empty ones belong to no bin.
        hypotheses: their translations.
        references: their references.
        target_language: selects BLEU's tokenizer.
        width: words per bin (5: 1-5, 6-10, ...); None is 5, or 10 if a sentence has more than 60 words.
        metric: "bleu" or "chrf".
        others: further references of the same lines.

    Raises:
        UserError: the three have different lengths, or every source line is empty.
    """
    check_parallel({"the source": len(sources), "the translation": len(hypotheses), "the reference": len(references)})
    counts, unit, _ = lengths(sources)
    bins = []
    for shortest, longest, rows in binned(counts, width):
        texts, first, *more = ([lines[row] for row in rows] for lines in (hypotheses, references, *others))
        score = corpus_score(metric, texts, first, target_language, more)
        bins.append(Bin(shortest, longest, len(rows), score.value))
    if not bins:
        raise UserError("Scores by length: no source line has a word. Give a source with text.")
    return ByLength(bins, unit, score.signature, metric)


def binned(counts: Sequence[int], width: int | None = None) -> list[tuple[int, int, list[int]]]:
    """The shortest and longest length of each bin with its rows, from short to long; as in `score_by_length`."""
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
    rows = [[f"{entry.shortest}-{entry.longest}", str(entry.sentences), f"{entry.score:.2f}"] for entry in result.bins]
    table = plain_table([f"source {result.unit}", "sentences", TITLES[result.metric]], rows)
    return f"{table}\n\n{TITLES[result.metric]}: {result.signature}"


def as_json(result: ByLength) -> dict[str, object]:
    """The result for `json.dumps`."""
    return {
        "unit": result.unit,
        "metric": result.metric,
        "signature": result.signature,
        "bins": [{**entry._asdict(), result.metric: entry.score} for entry in result.bins],
    }


def draw(result: ByLength, path: Path, title: str) -> None:
    """Draw the figure into a PNG file, atomically (UserError if it cannot be written)."""
    from nmt.drawing.length_plot import by_length  # loads matplotlib
    from nmt.drawing.style import save

    bins = [(entry.shortest, entry.longest, entry.sentences) for entry in result.bins]
    scores = {TITLES[result.metric]: [entry.score for entry in result.bins]}
    save(by_length(bins, scores, result.unit, title, result.signature, TITLES[result.metric]), path)
