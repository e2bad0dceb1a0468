"""Contrastive accuracy of a run: how often the correct translation is more probable than all wrong translations.

A sentence has several translations, and the context determines which one is correct. Sennrich 2017 ("How grammatical is
character-level neural machine translation?") and Müller et al. 2018 (for pronouns in context) score models in this way.
"""

import contextlib
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from nmt.build.open import Checkpoint, OpenRun, open_for_forcing, open_run, own_data, own_split
from nmt.build.paths import check_paths, writer
from nmt.build.requests import Data, check_pair
from nmt.data.dataset import ContrastiveItem, Split, given_split
from nmt.data.document_lines import Followed, contexts_of, numbered
from nmt.data.lines import read_lines, read_parallel_lines
from nmt.drawing.layout import plain_table
from nmt.system.compute import Compute
from nmt.system.errors import UserError
from nmt.system.files import STANDARD, json_text
from nmt.system.limits import NotNegative, Positive
from nmt.system.terminal import printable
from nmt.text.canonical import shows_nothing
from nmt.translation.translator import Translator

FILES = "source=FILE reference=FILE contrasts=FILE"  # in place of the run's own data


@dataclass(frozen=True)
class Contrasting:
    """The settings of `nmt.contrast`; `configs/contrast.yaml` explains them."""

    run: Path
    checkpoint: Checkpoint
    split: str | None
    source: Path | None
    reference: Path | None
    contrasts: Path | None
    documents: Followed
    context_sentences: NotNegative | None
    output: Path | None
    compute: Compute
    batch_sentences: Positive
    data: Data | None = None

    def __post_init__(self) -> None:
        check_pair({"source": self.source, "reference": self.reference}, "a test needs both files")
        check_pair({"source": self.source, "contrasts": self.contrasts}, "a test needs wrong translations")
        if self.source is not None and self.split is not None:
            raise UserError("split= and source= cannot be combined. Give one of them.")


class Accuracy(NamedTuple):
    """The number of sentences with a given distance, the share that is right, and the expected share by guessing."""

    sentences: int
    accuracy: float
    chance: float


def contrast(request: Contrasting) -> int:
    """Print the accuracy by distance, and write it to `output` if given."""
    files = {key: getattr(request, key) for key in ("source", "reference", "contrasts")}
    check_paths(files, {"output": request.output})
    run = open_run(request.run)
    split, contrasts = _test(request, run)
    translator = open_for_forcing(
        run, request.checkpoint, request.compute, request.batch_sentences, request.context_sentences
    )
    by_distance = accuracies(translator, split, contrasts)
    seen = 0 if request.documents == "none" else translator.context_sentences
    report = printable(table(by_distance, seen))
    print(report, file=sys.stderr if request.output == STANDARD else sys.stdout)
    if request.output is not None:
        facts: dict[str, Any] = {
            "run": str(run.folder),
            "split": split.name,
            "text": split.fingerprint(),
            "context_sentences": seen,
            "by_distance": {distance: figures._asdict() for distance, figures in by_distance.items()},
        }
        with contextlib.ExitStack() as stack:
            writer(stack, request.output)(json_text(facts).rstrip("\n"))
    return 0


def accuracies(translator: Translator, split: Split, contrasts: Sequence[ContrastiveItem]) -> dict[str, Accuracy]:
    """The accuracy for each distance, in ascending order, and for "all" if there are several distances.

    A sentence is right if its reference is more probable than each wrong translation. Guessing among n translations is
    right with probability 1 / n.
    """
    contexts = contexts_of(split.source, split.documents, translator.context_sentences)
    rows = [item.row for item in contrasts for _ in range(1 + len(item.wrong))]
    texts = [text for item in contrasts for text in (split.target[item.row], *item.wrong)]
    forced = translator.force([split.source[row] for row in rows], texts, [contexts[row] for row in rows])
    scores = iter(translation.log_prob for translation in forced)
    right: dict[int, list[bool]] = {}
    chances: dict[int, list[float]] = {}
    for item in contrasts:
        reference = next(scores)
        wrong = [next(scores) for _ in item.wrong]
        right.setdefault(item.distance, []).append(all(reference > other for other in wrong))
        chances.setdefault(item.distance, []).append(1 / (1 + len(wrong)))
    groups = {str(distance): [distance] for distance in sorted(right)}
    if len(groups) > 1:
        groups["all"] = sorted(right)
    return {
        name: _mean([hit for d in distances for hit in right[d]], [share for d in distances for share in chances[d]])
        for name, distances in groups.items()
    }


def _mean(hits: Sequence[bool], chances: Sequence[float]) -> Accuracy:
    return Accuracy(len(hits), sum(hits) / len(hits), sum(chances) / len(chances))


def table(by_distance: dict[str, Accuracy], sentences: int) -> str:
    """A table of the accuracies in per cent, with the number of previous sentences that the model sees."""
    rows = [
        [distance, f"{figures.sentences:,}", f"{100 * figures.accuracy:.1f} %", f"{100 * figures.chance:.1f} %"]
        for distance, figures in by_distance.items()
    ]
    header = ("distance", "sentences", "accuracy", "chance")
    return f"The model sees {sentences} previous sentence{'s' * (sentences != 1)}.\n{plain_table(header, rows)}"


def _test(request: Contrasting, run: OpenRun) -> tuple[Split, Sequence[ContrastiveItem]]:
    """The split to test, and its contrasts."""
    if request.source is not None and request.reference is not None and request.contrasts is not None:
        split = given_split(request.source, *read_parallel_lines(request.source, request.reference))
        split = split._replace(documents=numbered(split.source, request.documents))
        return split, read_contrasts(request.contrasts, split)
    if request.documents != "blank":
        raise UserError(f"documents={request.documents} is for files: give {FILES}, or leave documents= out.")
    source = own_data(run, request.data, FILES)
    name = request.split or next(iter(source.tests()), "valid")
    split = own_split(run, source, name)
    contrasts = source.contrasts(name)
    if not contrasts:
        raise UserError(
            f"The data set of {run.folder} has no contrasts for {name}. Give files (source= reference= contrasts=), or "
            "a run that was trained with data=documents."
        )
    return split, contrasts


def read_contrasts(path: Path, split: Split) -> list[ContrastiveItem]:
    """Read contrasts from a file; a line has a line number, a distance and wrong translations, separated by tabs.

    Raises:
        UserError: a line is malformed or does not fit the text, or the file has no contrasts.
    """
    contrasts = []
    for number, line in enumerate(read_lines(path), start=1):
        if not line.strip():
            continue
        place, _, rest = line.partition("\t")
        distance, *fields = rest.split("\t")
        wrong = tuple(field for field in fields if not shows_nothing(field))
        if not (place.isdecimal() and distance.isdecimal() and len(place + distance) < 30 and wrong):
            raise UserError(
                f"{path}, line {number}: must have a line number, a distance and wrong translations, with tabs between."
            )
        row = int(place) - 1
        if not 0 <= row < len(split.source) or any(shows_nothing(side[row]) for side in (split.source, split.target)):
            raise UserError(f"{path}, line {number}: line {place} of {split.name} has no sentence pair.")
        if split.target[row] in wrong:
            raise UserError(f"{path}, line {number}: a wrong translation is the reference. Leave it out.")
        contrasts.append(ContrastiveItem(row, int(distance), wrong))
    if not contrasts:
        raise UserError(f"{path} is empty. Give wrong translations.")
    return contrasts
