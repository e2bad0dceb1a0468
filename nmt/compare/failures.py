"""Translation failures that are detected automatically.

Repetitions, unattended source words, copies of the source, empty translations, and translations cut at the limit.
"""

from collections import Counter
from collections.abc import Sequence

from nmt.compare.estimates import estimate_text, share_estimate
from nmt.compare.ngrams import Ngram, ngrams_of
from nmt.compare.scorers import Texts
from nmt.viewer.blocks import Linked, Table

#: Length in words of a repeated or copied sequence; two words often coincide by chance.
SEQUENCE = 3
MOST_LINES = 12  # linked from one figure

KINDS = ("repeats itself", "unattended source words", "copies the source", "empty", "cut at the maximum length")


def sequences(words: Sequence[str]) -> Counter[Ngram]:
    """The count of each sequence of three words in a sentence."""
    return Counter(ngrams_of(words, SEQUENCE))


def repeats(hypothesis: Sequence[str], reference: Sequence[str]) -> bool:
    """Whether a translation has a three-word sequence at least twice, and more often than its reference."""
    expected = sequences(reference)
    return any(times > max(1, expected[sequence]) for sequence, times in sequences(hypothesis).items())


def copies(source: Sequence[str], hypothesis: Sequence[str], reference: Sequence[str]) -> bool:
    """Whether a translation equals its source, or has three source words in a row that the reference lacks.

    Text without letters, such as a number, does not count: copying it is correct.
    """
    if not any(map(str.isalpha, "".join(hypothesis))) or hypothesis == reference:
        return False
    copied = sequences(hypothesis).keys() & sequences(source).keys() - sequences(reference).keys()
    return hypothesis == source or any(any(map(str.isalpha, "".join(sequence))) for sequence in copied)


def failing(texts: Texts, variant: int, run: int) -> list[list[int] | None]:
    """The line numbers, from 1, of a run's failed translations by kind (`KINDS`); None if a kind was not measured."""
    rows = list(zip(texts.sources, texts.hypotheses[variant][run], texts.references, strict=True))
    measures = texts.runs[variant][run].measures

    def lines(failed: Sequence[object]) -> list[int]:
        return [line for line, fails in enumerate(failed, 1) if fails]

    def measured(name: str) -> list[int] | None:
        return lines([row.get(name) for row in measures]) if any(name in row for row in measures) else None

    return [
        lines([repeats(hypothesis, reference) for _, hypothesis, reference in rows]),
        measured("unattended"),
        lines([copies(*row) for row in rows]),
        lines([reference and not hypothesis for _, hypothesis, reference in rows]),
        measured("cut"),
    ]


def failures(texts: Texts, order: Sequence[int]) -> Table:
    """A table of the share of failed translations by kind: the mean over seeds with Wilson's interval.

    Each figure links to sentences of the first seed.
    """
    rows: list[list[str]] = []
    for variant in order:
        cells: list[str] = [texts.labels[variant]]
        for of_runs in zip(*(failing(texts, variant, run) for run in range(len(texts.runs[variant]))), strict=True):
            known = [lines for lines in of_runs if lines is not None]
            if len(known) < len(of_runs):
                cells.append("-")
                continue
            share = share_estimate(sum(map(len, known)) / len(known), len(texts.sources))
            cells.append(Linked(estimate_text(share), known[0][:MOST_LINES]))
        rows.append(cells)
    return Table(["% of translations", *KINDS], rows)
