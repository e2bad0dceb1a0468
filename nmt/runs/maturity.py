"""Whether a run is trained so little that its attention says little."""

import contextlib
from typing import Any

from nmt.runs.run import Run, settings
from nmt.system.errors import UserError

#: Updates below which a model that began with random weights is hardly trained.
FEW_UPDATES = 100
#: The validation score below which a model is hardly trained: BLEU, and chrF where BLEU cannot judge.
LOW = {"BLEU": 1.0, "chrF": 15.0}


def hardly_trained(run: Run) -> str:
    """One sentence for people who look at a run with fewer updates or a lower score than that; "" for any other.

    The updates are those of the best validation, whose weights are used; they do not count where a run has gone on from
    another. A run without validations says nothing, and neither does one whose history is damaged: a note stops nobody.
    """
    history: list[dict[str, Any]] = []
    with contextlib.suppress(UserError):
        history = run.history()
    best = next((entry for entry in reversed(history) if entry.get("best")), None)
    if best is None:
        return ""
    metric = "BLEU" if best.get("valid_chrf") is None else "chrF"
    score, updates = best[f"valid_{metric.lower()}"], int(best["step"])
    few = updates < FEW_UPDATES and not settings(run.config()).get("start")
    if not few and score >= LOW[metric]:
        return ""
    count = "1 update" if updates == 1 else f"{updates:,} updates"
    return f"This model had {count} and validation {metric} {score:.2f}: its translations and its attention say little."
