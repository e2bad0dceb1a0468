"""Fits, saves and loads a run's model of doubts (`doubt.json`): which words of a translation are likely wrong."""

import dataclasses
from collections.abc import Sequence

from nmt.build.open import OpenRun
from nmt.config.quotes import pasteable, python
from nmt.inspection.doubt import OF_ATTENTION, OF_PIECES, DoubtEvidence, DoubtModel, fit
from nmt.runs.run import Run
from nmt.system.errors import UserError, damaged
from nmt.system.facts import DOUBT
from nmt.system.files import json_text
from nmt.system.integrity import check
from nmt.translation.predictions import predict_again
from nmt.translation.translator import Translator
from nmt.translation.types import Translation


def open_doubts(run: OpenRun) -> DoubtModel | None:
    """Read a run's model of doubts; None if there is none for its best weights.

    Raises:
        UserError: the file is damaged.
    """
    path = run.files.doubt
    if not path.exists():
        return None
    check(path)
    facts = run.files.read_object(path.name, DOUBT)
    if tuple(facts["features"]) not in (OF_PIECES, OF_PIECES + OF_ATTENTION):
        raise damaged(path, "it has other features")
    if facts["step"] != run.best_step:  # training has continued since
        return None
    features = {name: (mean, deviation, weight) for name, (mean, deviation, weight) in facts["features"].items()}
    evidence = DoubtEvidence(*(facts["evidence"][name] for name in DoubtEvidence._fields))
    return DoubtModel(features, facts["intercept"], facts["sentences"], evidence)


def need_doubts(run: OpenRun) -> DoubtModel:
    """Read a run's model of doubts (UserError if there is none for its best weights)."""
    doubts = open_doubts(run)
    if doubts is None:
        command = f"{python()} -m nmt.evaluate {pasteable('run', run.folder)} split=valid"
        raise UserError(f"doubts=true: {run.folder} has no doubt.json of its best weights. To fit it: {command}")
    return doubts


def fit_doubts(run: Run, translator: Translator, translations: Sequence[Translation], references: Sequence[str]) -> str:
    """Fit a run's model of doubts on translations of its validation set with its best weights.

    Write `doubt.json`, and return a message for the user.
    """
    model = fit(predict_again(translator, translations), references)
    if model is None:
        return "Doubts are not fitted: the translations of the validation set have too few wrong or right words."
    facts = {"step": run.best_step(), **dataclasses.asdict(model), "evidence": model.evidence._asdict()}
    run.write(run.doubt.name, json_text(facts))
    return (
        f"Doubts are fitted on {model.sentences:,} validation sentences: a right word gets a higher confidence than a "
        f"wrong one in {100 * (model.evidence.auc or 0):.0f} % of pairs (AUC, cross-validated)."
    )
