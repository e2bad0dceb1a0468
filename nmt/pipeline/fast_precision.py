"""Translating in bfloat16 and int8 where it loses nothing: measured when training ends, used for text alone.

A CPU translates faster in them (docs/benchmarks.md). Log-probabilities and weights are then rounded, so whoever asks
for them gets float32. A GPU has bfloat16 anyway.
"""

import dataclasses
from collections.abc import Mapping, Sequence

import torch

from nmt.compute import Compute, has_int8
from nmt.errors import UserError
from nmt.pipeline.opening import TranslatorRequest
from nmt.pipeline.requests import SearchRequest
from nmt.runs import Run
from nmt.text.scripts import language_by_script
from nmt.training.validation import in_case_of

SENTENCES = 500  # of the validation set
MINUTES = 1.0  # of training, below which the measurement is not worth its time


def precisions(compute: Compute) -> dict[str, Compute]:
    """What the processor can translate in besides float32, the fastest first; nothing on a GPU."""
    if compute.on_gpu:
        return {}
    bf16 = dataclasses.replace(compute, dtype=torch.bfloat16)
    # The output layer in int8, and the rest in bfloat16 or float32.
    mixed, int8 = dataclasses.replace(bf16, int8=True), dataclasses.replace(compute, dtype=None, int8=True)
    result = {} if bf16.emulates else {"bf16": bf16}
    if has_int8():
        result = {"int8": int8} if bf16.emulates else {"int8+bf16": mixed, **result, "int8": int8}
    return result


def measured(
    run: Run,
    compute: Compute,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    contexts: Sequence[Sequence[str]] = (),
) -> str | None:
    """Translate the first validation sentences with the run's best weights and its search in each precision.

    Note the BLEUs in run.json. Return what to tell the user; None where there is nothing to choose: on a GPU, on a
    processor that has nothing faster than float32, or if the search draws at random.
    """
    from nmt.evaluation.metrics import bleu

    faster = precisions(compute)
    if not faster:
        return None
    language = language_by_script(references, language)
    sources, references, contexts = sources[:SENTENCES], references[:SENTENCES], contexts[:SENTENCES]
    valid_bleu: dict[str, float] = {}
    for name, candidate in {"float32": dataclasses.replace(compute, dtype=None), **faster}.items():
        translator = _request(run, candidate).open(keep_weights=False)
        if translator.search.draws:
            return None
        texts = [nbest[0].text for nbest in translator.translate(sources, contexts=contexts)]
        valid_bleu[name] = bleu(texts, in_case_of(translator.tokenizer.target, references), language).value
    run.note(precision={"step": run.best_step(), "sentences": len(sources), "valid_bleu": valid_bleu})
    fastest = _fastest(faster, valid_bleu) or "float32"
    values = ", ".join(f"{value:.2f} in {name}" for name, value in valid_bleu.items())
    return (
        f"Translations of text alone use {fastest}: validation BLEU {values} (the search of the run, {len(sources)} "
        f"sentences)."
    )


def for_text(request: TranslatorRequest) -> TranslatorRequest:
    """The request for translations of which only the text is wanted, if precision=auto in the fastest precision.

    That is one in which the run's best weights have at least the BLEU of float32 on the validation set.
    """
    compute = request.compute
    if not compute.automatic or request.checkpoint != "best" or len(request.runs) > 1:  # these were not measured
        return request
    faster = precisions(compute)
    fastest = _fastest(faster, _noted(request.runs[0])) if faster else None
    return request if fastest is None else dataclasses.replace(request, compute=faster[fastest])


def _fastest(faster: Mapping[str, Compute], bleu: Mapping[str, float]) -> str | None:
    """The fastest precision in which BLEU is at least that of float32."""
    exact = bleu.get("float32")
    if exact is None:
        return None
    return next((name for name in faster if name in bleu and bleu[name] >= exact), None)


def _noted(run: Run) -> dict[str, float]:
    """The BLEU of each precision by a measurement of the present weights; empty without one."""
    run.config()  # raises what a folder that is no run deserves
    facts = run.facts()
    noted = facts.get("precision", facts.get("bfloat16"))  # so it was called before int8
    if not isinstance(noted, dict):
        return {}
    try:
        if noted.get("step") != run.best_step():  # trained on since
            return {}
    except UserError:  # translating needs no history
        return {}
    values = noted.get("valid_bleu")
    values = values if isinstance(values, dict) else {}
    return {name: value for name, value in values.items() if isinstance(value, int | float)}


def _request(run: Run, compute: Compute) -> TranslatorRequest:
    """How `nmt.translate` would translate by default."""
    return TranslatorRequest(
        run=str(run.folder),
        checkpoint="best",
        search=SearchRequest("", {}, ()),
        compute=compute,
        batch_sentences=128,
        shortlist=0,
        length_ratio=None,
        extra_length=10,
        max_source_length=250,
        long_lines="split",
    )
