"""A sentence that the page opens with, translated: of the run's own text where there is any.

Reads nothing outside the run folder: its settings name files of text, but a stranger may have written them.
"""

import contextlib
import re
from itertools import islice

from nmt.data.languages import sample
from nmt.errors import UserError
from nmt.foreign import inside
from nmt.runs import EXAMPLE_FOLLOWS, Run

_LINES = 50  # of an evaluation, to choose from
_LOG = 65_536  # bytes at the end of a log, where the sentence stands
_LENGTH = range(4, 81)  # characters


def example(run: Run) -> str:
    """A sentence for the page's first view: of the run's evaluation, else of the validation set, else a date.

    Empty if there is none of these, and no one knows the run's source language.
    """
    languages = run.facts().get("languages", [])
    return _evaluated(run) or _validated(run) or (sample(str(languages[0])) if languages else "")


def _evaluated(run: Run) -> str:
    """A sentence of ordinary length from an evaluated split."""
    for split in run.splits():
        path = run.evaluation / split / "source.txt"
        with contextlib.suppress(OSError, UnicodeDecodeError), path.open(encoding="utf-8") as lines:
            some = [line.strip() for line in islice(lines, _LINES)]
            fitting = [line for line in some if 4 <= len(line.split()) <= 14]
            fitting += [line for line in some if len(line) in _LENGTH]  # a script may have no spaces
            if fitting:
                return fitting[0]
    return ""


def _validated(run: Run) -> str:
    """The sentence of the validation set that stands at the end of the log of a finished training."""
    with contextlib.suppress(OSError, UserError):
        path = inside(run.folder, "train.log")
        with path.open("rb") as file:
            file.seek(max(0, path.stat().st_size - _LOG))
            lines = file.read(_LOG).decode("utf-8", errors="replace").splitlines()
        at = [place for place, line in enumerate(lines[:-1]) if line == EXAMPLE_FOLLOWS]
        if at:
            # The log numbers the words that are linked: "Ein[1] Hund[2]".
            sentence = re.sub(r"(?<=\S)\[\d+\](?=\s|$)", "", lines[at[-1] + 1].strip())
            return sentence if len(sentence) in _LENGTH else ""
    return ""
