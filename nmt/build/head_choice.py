"""The choice of the head and the shift with the best links, made on validation links, never on test links."""

import contextlib
from collections.abc import Sequence
from typing import NamedTuple

from nmt.alignment.error_rate import against_gold
from nmt.alignment.splitters import WordSplitters
from nmt.alignment.word_weights import SHIFTS
from nmt.build.aligner import Aligner, Evidence, SentencePairs
from nmt.build.open import OpenRun, open_linker, open_run, own_data, own_split
from nmt.data.dataset import DataSource, Split
from nmt.drawing.layout import plain_table
from nmt.links import GoldLinks, Link, parse_file
from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.terminal import print_message
from nmt.translation.named_heads import AUTO, MEAN, choose_head
from nmt.translation.translator import Translator

LINKED = 200  # validation pairs on which the head and the shift for the links of tags are chosen


class Choice(NamedTuple):
    """The chosen evidence of a run, and where its shift comes from: "set", "validation", or "default" without links."""

    evidence: Evidence
    shift_from: str


def choose(aligner: Aligner, shift: str, pairs: SentencePairs | None, threshold: float | None = None) -> Choice:
    """The head and the shift that are set, or those with the lowest alignment error rate on validation links.

    Every candidate and its error rate are printed.

    Args:
        aligner: the run, with the setting of its head.
        shift: "0", "1" or "auto".
        pairs: validation sentences with gold links; None if there are none.
        threshold: threshold of links; see `nmt.alignment.word_weights.best_links`.
    """
    shifts = list(SHIFTS) if shift == AUTO else [int(shift)]
    several = aligner.head == AUTO and len(aligner.heads.names) > 1
    heads = aligner.heads.selections if several else [MEAN if aligner.head == AUTO else aligner.head]
    if len(shifts) * len(heads) == 1:
        return Choice(Evidence("attention", shifts[0], heads[0]), "set")
    if pairs is None or pairs.gold is None:
        return _default(aligner, shifts, heads)
    candidates = [Evidence("attention", each, head) for head in heads for each in shifts]
    links: dict[Evidence, list[list[Link]]] = {kind: [] for kind in candidates}
    for weights in aligner.weights(pairs, candidates):
        for kind in candidates:
            links[kind].append(aligner.links(weights[kind], threshold))
    rates = {kind: 100 * against_gold(links[kind], pairs.gold).aer for kind in candidates}
    of_heads = {head: min(rates[Evidence("attention", each, head)] for each in shifts) for head in heads}
    head, _ = choose_head(aligner.heads, AUTO, of_heads)
    best = min((kind for kind in candidates if kind.head == head), key=lambda kind: rates[kind])  # if equal, shift 0
    print_message(_report(aligner, len(pairs.source), rates, best))
    return Choice(best, "validation" if shift == AUTO else "set")


def choose_for_tags(run: Run, translator: Translator, sources: Sequence[str], references: Sequence[str]) -> None:
    """Note in run.json the head and the shift whose links agree best with the run's lexicon, for the best weights.

    Nothing is chosen for a run without attention, without a lexicon, or with a head that guided alignment trained.
    """
    opened = open_run(run.folder)
    linker = open_linker(opened, translator)
    if not translator.attends or linker.lexicon is None or opened.trained_head(translator.heads.names):
        return
    heads = translator.heads
    names = [heads.default, *(name for name in heads.selections if name != heads.default)]
    best = linker.best_by_lexicon(translator.force(sources, references), names)
    run.note(tags={"step": run.best_step(), "head": str(best.head), "shift": best.shift})


def _default(aligner: Aligner, shifts: Sequence[int], heads: Sequence[str]) -> Choice:
    """The default choice without validation links; prints a message."""
    head = heads[0] if len(heads) == 1 else aligner.heads.default
    defaults = {"shift": f"shift={shifts[0]}"} if len(shifts) > 1 else {}
    if len(heads) > 1:
        defaults["head"] = f"head={head}, the {aligner.heads.describe(head)}"
    print_message(
        f"{' '.join(f'{key}=auto' for key in defaults)}: no validation links, so {' and '.join(defaults.values())}. To "
        f"choose {' and '.join(f'the {key}' for key in defaults)} on validation links, give valid_gold=FILE.",
    )
    return Choice(Evidence("attention", shifts[0], head), "default" if len(shifts) > 1 else "set")


def _report(aligner: Aligner, pairs: int, rates: dict[Evidence, float], best: Evidence) -> str:
    """A message with the error rates of all candidates, as a sentence or as a table."""
    where = f"on the {pairs:,} validation pairs the AER of {aligner.run.folder} is"
    shifts, heads = (list(dict.fromkeys(kinds)) for kinds in zip(*((kind.shift, kind.head) for kind in rates)))
    belongs = f"a row of its weights belongs to {SHIFTS[best.shift]} (shift {best.shift})"
    if len(heads) == 1:
        figures = " and ".join(f"{rates[kind]:.1f} % with shift {kind.shift}" for kind in rates)
        return f"shift=auto: {where} {figures}, so {belongs}."
    rows = [
        [
            aligner.heads.describe(head),
            *(f"{rates[Evidence('attention', shift, head)]:.1f} %" for shift in shifts),
        ]
        for head in heads
    ]
    asked = "shift=auto head=auto" if len(shifts) > 1 else "head=auto"
    table = plain_table(("", *(f"shift {shift}" for shift in shifts)), rows)
    mean = f", the {aligner.heads.describe(best.head)}" if best.head not in aligner.heads.names else ""
    return f"{asked}: {where}\n\n{table}\n\nLinks use head={best.head}{mean}; {belongs}.\n"


def own_validation(run: OpenRun, data: str | None, source: DataSource | None = None) -> SentencePairs | None:
    """The validation set of the run's own data with its links; None if it has no links, or may not be used."""
    if source is None:
        # Missing data are not an error here, since no setting names them.
        with contextlib.suppress(UserError):
            source = own_data(run, data, "")
    if source is None or not source.has_links:
        return None
    split = own_split(run, source, "valid")
    words = WordSplitters.of("whitespace", ("", ""))
    return SentencePairs("valid", split.source, split.target, words, own_gold(split, words.name), split.documents)


def own_gold(split: Split, words: str) -> list[GoldLinks] | None:
    """The gold links of a split, or None if it has none (UserError unless `words` is "whitespace")."""
    if split.links is None:
        return None
    if words != "whitespace":
        raise UserError(
            f"words={words}: the gold links of {split.name} count words between white space. Leave words= out."
        )
    return parse_file(split.links, f"The gold of {split.name}", pairs=len(split.links))
