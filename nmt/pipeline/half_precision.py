"""Translating in bfloat16 where it loses nothing: measured when training ends, used where only the text is wanted.

A CPU with instructions for bfloat16 translates faster with it (docs/benchmarks.md). Log-probabilities and weights are
then rounded, so whoever asks for them gets float32. A GPU has bfloat16 anyway.
"""

import dataclasses
from collections.abc import Sequence

import torch

from nmt.compute import Compute
from nmt.errors import UserError
from nmt.pipeline.opening import TranslatorRequest
from nmt.pipeline.requests import SearchRequest
from nmt.runs import Run
from nmt.text.scripts import language_by_script
from nmt.training.validation import in_case_of

SENTENCES = 500  # of the validation set
MINUTES = 1.0  # of training, below which the measurement is not worth its time


def measured(
    run: Run,
    compute: Compute,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    contexts: Sequence[Sequence[str]] = (),
) -> str | None:
    """Translate the first validation sentences with the run's best weights and its search in float32 and in bfloat16.

    Note both BLEUs in run.json. Return what to tell the user; None where there is nothing to choose: on a GPU, without
    instructions for bfloat16, or if the search draws at random.
    """
    from nmt.evaluation.metrics import bleu

    rounded = dataclasses.replace(compute, dtype=torch.bfloat16)
    if compute.on_gpu or rounded.emulates:
        return None
    language = language_by_script(references, language)
    sources, references, contexts = sources[:SENTENCES], references[:SENTENCES], contexts[:SENTENCES]
    found: list[float] = []
    for own in (dataclasses.replace(compute, dtype=None), rounded):
        translator = _request(run, own).open(keep_weights=False)
        if translator.search.draws:
            return None
        texts = [nbest[0].text for nbest in translator.translate(sources, contexts=contexts)]
        found.append(bleu(texts, in_case_of(translator.tokenizer.target, references), language).value)
    run.note(
        bfloat16={
            "step": run.best_step(),
            "sentences": len(sources),
            "valid_bleu": {"float32": found[0], "bf16": found[1]},
        }
    )
    choice = "use bfloat16" if found[1] >= found[0] else "use float32"
    return (
        f"Translations of text alone {choice}: validation BLEU {found[1]:.2f} in bfloat16, {found[0]:.2f} in float32 "
        f"(the search of the run, {len(sources)} sentences)."
    )


def for_text(request: TranslatorRequest) -> TranslatorRequest:
    """The request for translations of which only the text is wanted: in bfloat16, if precision=auto and the run allows.

    It does if its best weights have at least the BLEU of float32 on the validation set.
    """
    compute = request.compute
    rounded = dataclasses.replace(compute, dtype=torch.bfloat16)
    if compute.on_gpu or not compute.automatic or request.checkpoint != "best" or rounded.emulates:
        return request
    alone = len(request.runs) == 1  # an ensemble was not measured
    return dataclasses.replace(request, compute=rounded) if alone and _loses_nothing(request.runs[0]) else request


def _loses_nothing(run: Run) -> bool:
    """Whether a measurement of the present weights says so."""
    run.config()  # raises what a folder that is no run deserves
    noted = run.facts().get("bfloat16")
    if not isinstance(noted, dict):
        return False
    try:
        if noted.get("step") != run.best_step():  # trained on since
            return False
    except UserError:  # translating needs no history
        return False
    values = noted.get("valid_bleu")
    rounded, exact = (values.get(name) for name in ("bf16", "float32")) if isinstance(values, dict) else (None, None)
    return isinstance(rounded, int | float) and isinstance(exact, int | float) and rounded >= exact


def _request(run: Run, compute: Compute) -> TranslatorRequest:
    """How `nmt.translate` would translate by default."""
    return TranslatorRequest(
        run=str(run.folder),
        checkpoint="best",
        search=SearchRequest("", {}, ()),
        compute=compute,
        batch_sentences=64,
        shortlist=0,
        length_ratio=None,
        extra_length=10,
        max_source_length=250,
        long_lines="split",
    )
