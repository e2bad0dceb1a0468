"""Recognises runs that are hardly trained, whose attention therefore shows little."""

import contextlib
from typing import Any

from nmt.runs.run import Run, settings
from nmt.system.errors import UserError

#: Updates below which a model that began with random weights is hardly trained.
FEW_UPDATES = 100
#: The validation score below which a model is hardly trained: BLEU, or chrF in runs that are validated by chrF.
LOW = {"BLEU": 1.0, "chrF": 15.0}


def hardly_trained(run: Run) -> str:
    """A warning for users if a run has fewer than `FEW_UPDATES` or a score below `LOW`; "" for any other run.

    The updates are those of the best validation, whose weights are used; they are ignored if the run started from
    another run. The warning is "" without validations or with a damaged history, since it should not stop anybody.
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
