"""Translations that failed in a way that can be counted without a person: section 5 of the report.

An n-gram that repeats, words that nobody attended to, a copy of the source, nothing at all, or a cut at the limit.
"""

from collections import Counter
from collections.abc import Sequence

from nmt.compare.intervals import wilson
from nmt.compare.texts import Texts, Words, estimate_text
from nmt.viewer.blocks import Linked, Table

#: Words of a sequence that repeats or is copied: two are often a coincidence.
SEQUENCE = 3
MOST_LINES = 12  # behind one figure

KINDS = ("repeats itself", "unattended source words", "copies the source", "empty", "cut at the maximum length")


def sequences(words: Words, size: int = SEQUENCE) -> Counter[tuple[str, ...]]:
    """How often each sequence of `size` words is in a sentence."""
    return Counter(tuple(words[at : at + size]) for at in range(len(words) - size + 1))


def repeats(hypothesis: Words, reference: Words) -> bool:
    """Whether a translation has a sequence of three words twice or more often, and more often than its reference."""
    expected = sequences(reference)
    return any(times > max(1, expected[found]) for found, times in sequences(hypothesis).items())


def copies(source: Words, hypothesis: Words, reference: Words) -> bool:
    """Whether a translation is its source, or has three words of it in a row that the reference does not have.

    What has no letter, such as a number, is translated by a copy.
    """
    if not any(map(str.isalpha, "".join(hypothesis))) or hypothesis == reference:
        return False
    copied = sequences(hypothesis).keys() & sequences(source).keys() - sequences(reference).keys()
    return hypothesis == source or any(any(map(str.isalpha, "".join(found))) for found in copied)


def failing(texts: Texts, variant: int, run: int) -> list[list[int] | None]:
    """The lines, from 1, of a run's translations that failed, for each of `KINDS`; None where that is not known."""
    rows = list(zip(texts.sources, texts.hypotheses[variant][run], texts.references, strict=True))
    measures = texts.runs[variant][run].measures

    def lines(failed: Sequence[bool]) -> list[int]:
        return [line for line, fails in enumerate(failed, 1) if fails]

    def measured(name: str) -> list[int] | None:
        known = any(name in row for row in measures)
        return lines([bool(row.get(name)) for row in measures]) if known else None

    return [
        lines([repeats(hypothesis, reference) for _, hypothesis, reference in rows]),
        measured("unattended"),
        lines([copies(*row) for row in rows]),
        lines([bool(reference) and not hypothesis for _, hypothesis, reference in rows]),
        measured("cut"),
    ]


def failures(texts: Texts, order: Sequence[int]) -> Table:
    """The share of translations that failed in each way, a mean over seeds with Wilson's interval.

    Each figure leads to sentences of the first seed.
    """
    rows: list[list[str]] = []
    for variant in order:
        by_run = [failing(texts, variant, run) for run in range(len(texts.runs[variant]))]
        cells: list[str] = [texts.labels[variant]]
        for kind in range(len(KINDS)):
            known = [found for lines in by_run if (found := lines[kind]) is not None]
            if len(known) < len(by_run):
                cells.append("-")
                continue
            share = wilson(sum(map(len, known)) / len(known), len(texts.sources))
            cells.append(Linked(estimate_text(share), known[0][:MOST_LINES]))
        rows.append(cells)
    return Table(["% of translations", *KINDS], rows)
