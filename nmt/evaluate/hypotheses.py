"""Scores for a file of another program's translations, without a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from nmt.build.link_scores import named_languages
from nmt.build.requests import GivenText
from nmt.data.lines import read_lines
from nmt.data.streams import decoding
from nmt.evaluation.metrics import as_table, score, tokenised_note
from nmt.system.errors import UserError, check_parallel
from nmt.system.terminal import print_message, printable
from nmt.text.scripts import language_by_script

#: Settings that may be combined with `hypotheses=`.
_SETTINGS = ("hypotheses", "source", "reference", "encoding", "languages")


@dataclass(frozen=True)
class Hypotheses:
    """The settings of `nmt.evaluate` for a file of translations."""

    hypotheses: Path
    text: GivenText
    languages: Any

    def __post_init__(self) -> None:
        if self.text.source is None:
            raise UserError("hypotheses= scores translations of another program. Give source=FILE reference=FILE.")


def score_hypotheses(request: Hypotheses, overrides: Sequence[str]) -> int:
    """Print the scores of a file of translations.

    Raises:
        UserError: a file cannot be read, the files have different numbers of lines, or the command line has other
            settings, which apply only to a run.
    """
    for key, _, value in (word.partition("=") for word in overrides):
        if key not in _SETTINGS and value != "null":
            raise UserError(
                f"hypotheses= scores translations of another program and writes no files: leave out {key}=."
            )
    with decoding(request.text.encoding, "encoding"):
        hypotheses, text = read_lines(request.hypotheses), request.text.read()
    assert text is not None
    check_parallel({str(request.hypotheses): len(hypotheses), str(request.text.references[0]): len(text.target)})
    known = "", language_by_script(text.target, "")
    scores = score(hypotheses, list(text.target), named_languages(request.languages, known)[1], text.others)
    print(printable(as_table({request.hypotheses.name: scores})))
    for path, lines in zip(request.text.references, (text.target, *text.others), strict=True):
        if note := tokenised_note(str(path), lines):
            print_message(f"note: {note}")
    return 0
