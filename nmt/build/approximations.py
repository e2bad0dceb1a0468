"""Faster approximations of search on a CPU, used if only text is needed and a measurement shows almost no loss.

They are a shortlist, bfloat16 and int8 (docs/benchmarks.md), measured when training ends. They change log-probabilities
and weights, so requests for these use float32 and the whole vocabulary. A GPU uses bfloat16 anyway.
"""

import contextlib
import dataclasses
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch

from nmt.build.open import OpenRun, TranslatorRequest, open_model, open_run, open_shortlist
from nmt.build.parts import build_search
from nmt.build.word_doubts import fit_doubts
from nmt.runs.run import Run
from nmt.system.compute import Compute, has_int8
from nmt.system.errors import UserError
from nmt.text.scripts import language_by_script
from nmt.training.validation import in_case_of
from nmt.translation.request import Request, requests_of
from nmt.translation.translator import LENGTH_RATIO, Translator
from nmt.translation.types import Translation

SENTENCES = 500  # sentences of the validation set
MINUTES = 1.0  # minutes of training below which the measurement is not worth its time
LOSS = 0.05  # loss of BLEU or chrF from which an approximation is not used: half a unit of the first decimal
SHORTLISTS = (50, 100)  # translations per source piece; shorter lists lose rare words, which BLEU hardly notices
PIECES = 2000  # the smallest target vocabulary for shortlists, which would contain most pieces of a smaller one


class Approximation(NamedTuple):
    """The precision of a faster search, and the length of its shortlist; 0 for the whole vocabulary."""

    compute: Compute
    shortlist: int = 0


EXACT = "float32"


def approximations(run: Run, compute: Compute, shortlists: Sequence[int] = SHORTLISTS) -> dict[str, Approximation]:
    """The approximations that the processor and the run allow, the fastest first; none on a GPU."""
    if compute.on_gpu:
        return {}
    exact, bf16 = (dataclasses.replace(compute, dtype=dtype) for dtype in (None, torch.bfloat16))
    name, best = (EXACT, exact) if bf16.emulates else ("bf16", bf16)
    result: dict[str, Approximation] = {}
    if run.lexicon.exists():
        result |= {f"{name}+shortlist={count}": Approximation(best, count) for count in shortlists}
    # The output layer in int8, and the rest in bfloat16 or float32.
    if has_int8() and not bf16.emulates:
        result["int8+bf16"] = Approximation(dataclasses.replace(bf16, int8=True))
    if not bf16.emulates:
        result["bf16"] = Approximation(bf16)
    if has_int8():
        result["int8"] = Approximation(dataclasses.replace(exact, int8=True))
    return result


def measured(
    run: Run,
    compute: Compute,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    contexts: Sequence[Sequence[str]] = (),
) -> list[str]:
    """Measure each approximation on the first validation sentences, with the run's best weights and its search.

    Fit the model of doubts on the exact translations, and note the score of each approximation in run.json: BLEU, or
    chrF where BLEU is not meaningful. Return messages for the user. No approximation is measured on a GPU, if processor
    and vocabulary allow none, or if the search is random.
    """
    from nmt.build.head_choice import LINKED, choose_for_tags  # loads sacremoses

    exact = _exact(open_run(run.folder), dataclasses.replace(compute, dtype=None))
    requests = list(requests_of(sources[:SENTENCES], contexts[:SENTENCES]))
    translations = [nbest[0] for nbest in exact.translate(requests)]
    references = in_case_of(exact.tokenizer.target, references[:SENTENCES])
    doubts = fit_doubts(run, exact, translations, references)
    choose_for_tags(run, exact, sources[:LINKED], references[:LINKED])
    large = exact.tokenizer.target.size >= PIECES
    candidates = approximations(run, compute, SHORTLISTS if large else ())
    if not candidates or exact.search.draws:
        return [doubts]
    return [_compared(run, exact, candidates, translations, requests, references, language), doubts]


def _compared(
    run: Run,
    exact: Translator,
    candidates: Mapping[str, Approximation],
    translations: Sequence[Translation],
    requests: Sequence[Request],
    references: Sequence[str],
    language: str,
) -> str:
    """Note the scores of the exact translations and of each candidate; return a message that says which is used."""
    from nmt.evaluation.metrics import TITLES, corpus_score, judge, reference_lengths

    language = language_by_script(references, language)
    metric = judge(reference_lengths(references, language))
    scores = {EXACT: corpus_score(metric, [each.text for each in translations], references, language).value}
    for name, (compute, count) in candidates.items():
        shortlist = open_shortlist(run, count, exact.tokenizer)
        translator = dataclasses.replace(exact, compute=compute, shortlist=shortlist, cast_models=())
        texts = [nbest[0].text for nbest in translator.translate(requests)]
        scores[name] = corpus_score(metric, texts, references, language).value
    run.note(precision={"step": run.best_step(), "sentences": len(requests), f"valid_{metric}": scores})
    fastest = _fastest(candidates, scores) or EXACT
    others = ", ".join(f"{value:.2f} with {name}" for name, value in scores.items() if name != fastest)
    return (
        f"Translating without attention weights will use {fastest}: validation {TITLES[metric]} {scores[fastest]:.2f}, "
        f"against {others} ({len(requests)} sentences)."
    )


def _exact(run: OpenRun, compute: Compute) -> Translator:
    """The translator with the best weights and the run's search, without attention weights."""
    model, tokenizer = open_model(run, "best", compute)
    ratio = float(run.facts.get("length_ratio", LENGTH_RATIO))
    search = build_search(run.config.search)
    return Translator(
        [model], tokenizer, search, compute=compute, batch_sentences=128, length_ratio=ratio, weights=False
    )


def for_text(request: TranslatorRequest) -> TranslatorRequest:
    """The request with the fastest approximation that its settings allow, for translations that need only text.

    With this approximation, the run's best weights lost less than `LOSS` on the validation set. The user allows it with
    precision=auto; a shortlist that the user gives is not changed. With a search other than the run's, which may sample
    from all pieces, no shortlist is added.
    """
    compute = request.compute
    if not compute.automatic or request.checkpoint != "best" or len(request.runs) > 1:  # these were not measured
        return request
    run = request.runs[0]
    candidates = approximations(run.files, compute, () if request.search.words else SHORTLISTS)
    if request.shortlist is not None:
        whole = {name: candidate for name, candidate in candidates.items() if not candidate.shortlist}
        candidates = {name: each._replace(shortlist=request.shortlist) for name, each in whole.items()}
    fastest = _fastest(candidates, _noted(run)) if candidates else None
    return request if fastest is None else dataclasses.replace(request, **candidates[fastest]._asdict())


def _fastest(candidates: Mapping[str, Approximation], scores: Mapping[str, float]) -> str | None:
    """The fastest candidate that loses less than `LOSS` against float32; None if there is none."""
    exact = scores.get(EXACT)
    if exact is None:
        return None
    return next((name for name in candidates if name in scores and scores[name] > exact - LOSS), None)


def _noted(run: OpenRun) -> dict[str, float]:
    """The score of each approximation, measured with the current best weights; {} without such a measurement."""
    measurement = run.facts.get("precision", {})
    with contextlib.suppress(UserError):  # translating needs no history
        if measurement and measurement.get("step") == run.best_step:  # not trained on since
            scores: dict[str, float] = measurement.get("valid_chrf") or measurement.get("valid_bleu") or {}
            return scores
    return {}
