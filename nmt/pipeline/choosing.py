"""The head and the shift whose weights make the best links: chosen on validation links, never on test links."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from nmt.alignment.error_rate import against_gold
from nmt.alignment.weights import SHIFTS
from nmt.data.dataset import DataSource, Split
from nmt.drawing.layout import plain_table
from nmt.errors import UserError
from nmt.heads import AUTO, MEAN, described, selections
from nmt.links import GoldLinks, Link, parse_file
from nmt.pipeline.aligner import Aligner, Evidence, SentencePairs
from nmt.pipeline.linking import WordSplitters
from nmt.pipeline.opening import default_head, own_data, own_split
from nmt.runs import Run
from nmt.terminal import print_message


class Chosen(NamedTuple):
    """The evidence of one run, and how its shift was found: "set", "validation", or "default" without links."""

    evidence: Evidence
    shift_from: str


def choose(aligner: Aligner, shift: str, pairs: SentencePairs | None, threshold: float | None = None) -> Chosen:
    """The head and the shift of a run, as they are set, or those with the lowest error rate on validation links.

    Every candidate and its error rate are printed.

    Args:
        aligner: the run, with its setting of the head.
        shift: "0", "1" or "auto".
        pairs: validation sentences with gold links; None without.
        threshold: of links, see `nmt.alignment.weights.best_links`.
    """
    shifts = list(SHIFTS) if shift == AUTO else [int(shift)]
    heads = selections(aligner.heads) if aligner.head == AUTO else [aligner.head]
    if aligner.head == AUTO and len(heads) < 2:
        heads = [MEAN]
    if len(shifts) * len(heads) == 1:
        return Chosen(Evidence("attention", shifts[0], heads[0]), "set")
    if pairs is None or pairs.gold is None:
        return _default(aligner, shifts, heads)
    candidates = [Evidence("attention", each, head) for head in heads for each in shifts]
    links: dict[Evidence, list[list[Link]]] = {kind: [] for kind in candidates}
    for weights in aligner.weights(pairs, candidates):
        for kind in candidates:
            links[kind].append(aligner.links(weights[kind], threshold))
    rates = {kind: 100 * against_gold(links[kind], pairs.gold).aer for kind in candidates}
    best = min(candidates, key=lambda kind: rates[kind])  # the first of equals: the mean, shift 0
    print_message(_report(aligner, len(pairs.source), rates, best))
    return Chosen(best, "validation" if shift == AUTO else "set")


def _default(aligner: Aligner, shifts: Sequence[int], heads: Sequence[str]) -> Chosen:
    """What is used without validation links, with a message."""
    head = heads[0] if len(heads) == 1 else default_head([aligner.run], aligner.translator)
    settings = [f"shift={shifts[0]}"] * (len(shifts) > 1)
    if len(heads) > 1:
        settings.append(f"head={head}, the {described(head, aligner.heads).partition(' (')[0]}")
    asked = " ".join(["shift=auto"] * (len(shifts) > 1) + ["head=auto"] * (len(heads) > 1))
    what = " and ".join(["the shift"] * (len(shifts) > 1) + ["the head"] * (len(heads) > 1))
    print_message(
        f"{asked}: no validation links, so {' and '.join(settings)}. To choose {what} on validation links, give "
        f"valid_gold=FILE.",
    )
    return Chosen(Evidence("attention", shifts[0], head), "default" if len(shifts) > 1 else "set")


def _report(aligner: Aligner, pairs: int, rates: dict[Evidence, float], best: Evidence) -> str:
    """The error rates of all candidates, in a sentence or in a table."""
    where = f"on the {pairs:,} validation pairs the AER of {aligner.run.folder} is"
    shifts, heads = (list(dict.fromkeys(kinds)) for kinds in zip(*((kind.shift, kind.head) for kind in rates)))
    belongs = f"a row of its weights belongs to {SHIFTS[best.shift]} (shift {best.shift})"
    if len(heads) == 1:
        figures = " and ".join(f"{rates[kind]:.1f} % with shift {kind.shift}" for kind in rates)
        return f"shift=auto: {where} {figures}, so {belongs}."
    rows = [
        [
            described(head, aligner.heads).partition(" (")[0],
            *(f"{rates[Evidence('attention', shift, head)]:.1f} %" for shift in shifts),
        ]
        for head in heads
    ]
    asked = "shift=auto head=auto" if len(shifts) > 1 else "head=auto"
    table = plain_table(("", *(f"shift {shift}" for shift in shifts)), rows)
    mean = f", the {described(best.head, aligner.heads)}" if best.head not in aligner.heads else ""
    return f"{asked}: {where}\n\n{table}\n\nLinks use head={best.head}{mean}; {belongs}.\n"


def own_validation(run: Run, data: str | None, source: DataSource | None = None) -> SentencePairs | None:
    """The validation set of the run's own data with its links; None if it has none, or may not be used."""
    if source is None:
        # Missing data are not an error: the user has not asked for them.
        with contextlib.suppress(UserError):
            source = own_data(run, data, "")
    if source is None or not source.has_links:
        return None
    split = own_split(run, source, "valid")
    words = WordSplitters.of("whitespace", ("", ""))
    return SentencePairs("valid", split.source, split.target, words, own_gold(split, words.name), split.documents)


def own_gold(split: Split, words: str) -> list[GoldLinks] | None:
    """The gold links of a split, between words that `words` names (UserError unless it is whitespace)."""
    if split.links is None:
        return None
    if words != "whitespace":
        raise UserError(
            f"words={words}: the gold links of {split.name} count words between white space. Leave words= out."
        )
    return parse_file(split.links, f"The gold of {split.name}", pairs=len(split.links))
