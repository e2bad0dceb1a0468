"""Faster ways to search on a CPU, used for text alone where they lose almost nothing: measured when training ends.

They are a shortlist, bfloat16 and int8 (docs/benchmarks.md). Log-probabilities and weights then differ, so whoever asks
for them gets float32 and the whole vocabulary. A GPU has bfloat16 anyway.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import torch

from nmt.compute import Compute, has_int8
from nmt.errors import UserError
from nmt.pipeline.opening import TranslatorRequest
from nmt.pipeline.requests import SearchRequest
from nmt.runs import Run
from nmt.text.scripts import language_by_script
from nmt.training.validation import in_case_of
from nmt.translation.translator import Translator

SENTENCES = 500  # of the validation set
MINUTES = 1.0  # of training, below which the measurement is not worth its time
LOSS = 0.05  # of BLEU, from which a way is not used: half of what one decimal shows
SHORTLISTS = (50, 100)  # translations of each source piece; shorter ones lose rare words, which BLEU hardly notices
PIECES = 2000  # minimum size of the target vocabulary: of a smaller one, a shortlist has most pieces


class Way(NamedTuple):
    """A way to search: what it computes in, and its shortlist, 0 for the whole vocabulary."""

    compute: Compute
    shortlist: int = 0


EXACT = "float32"


def ways(run: Run, compute: Compute, shortlists: Sequence[int] = SHORTLISTS) -> dict[str, Way]:
    """The ways that the processor and the run have besides float32, the fastest first; none on a GPU."""
    if compute.on_gpu:
        return {}
    exact, bf16 = (dataclasses.replace(compute, dtype=dtype) for dtype in (None, torch.bfloat16))
    name, best = (EXACT, exact) if bf16.emulates else ("bf16", bf16)
    result: dict[str, Way] = {}
    if run.lexicon.exists():  # a run of an early version has none
        result |= {f"{name}+shortlist={count}": Way(best, count) for count in shortlists}
    # The output layer in int8, and the rest in bfloat16 or float32.
    if has_int8() and not bf16.emulates:
        result["int8+bf16"] = Way(dataclasses.replace(bf16, int8=True))
    if not bf16.emulates:
        result["bf16"] = Way(bf16)
    if has_int8():
        result["int8"] = Way(dataclasses.replace(exact, int8=True))
    return result


def measured(
    run: Run,
    compute: Compute,
    sources: Sequence[str],
    references: Sequence[str],
    language: str,
    contexts: Sequence[Sequence[str]] = (),
) -> str | None:
    """Translate the first validation sentences with the run's best weights and its search in each way.

    Note the BLEUs in run.json. Return what to tell the user; None where there is nothing to choose: on a GPU, where
    processor and vocabulary allow nothing faster than float32, or if the search draws at random.
    """
    from nmt.evaluation.metrics import bleu

    if not ways(run, compute):
        return None
    exact = _request(run, Way(dataclasses.replace(compute, dtype=None))).open(keep_weights=False)
    large = exact.tokenizer.target.size >= PIECES
    faster = ways(run, compute, SHORTLISTS if large else ())
    if not faster or exact.search.draws:
        return None
    language = language_by_script(references, language)
    sources, references, contexts = sources[:SENTENCES], references[:SENTENCES], contexts[:SENTENCES]
    valid_bleu: dict[str, float] = {}
    for name, translator in _translators(run, exact, faster):
        texts = [nbest[0].text for nbest in translator.translate(sources, contexts=contexts)]
        valid_bleu[name] = bleu(texts, in_case_of(translator.tokenizer.target, references), language).value
    run.note(precision={"step": run.best_step(), "sentences": len(sources), "valid_bleu": valid_bleu})
    fastest = _fastest(faster, valid_bleu) or EXACT
    values = ", ".join(f"{value:.2f} with {name}" for name, value in valid_bleu.items())
    return (
        f"Translations of text alone use {fastest}: validation BLEU {values} (the search of the run, {len(sources)} "
        f"sentences)."
    )


def _translators(run: Run, exact: Translator, faster: Mapping[str, Way]) -> Iterator[tuple[str, Translator]]:
    """The translator of each way, one at a time, the exact one first."""
    yield EXACT, exact
    for name, way in faster.items():
        yield name, _request(run, way).open(keep_weights=False)


def for_text(request: TranslatorRequest) -> TranslatorRequest:
    """The request for translations of which only the text is wanted: by default, in the fastest way that was measured.

    With that way, the run's best weights lost less than `LOSS` on the validation set. precision=auto is automatic, and
    so is shortlist=null. A shortlist that the user gives is not changed, and with another search than that of the run,
    which may draw from all pieces, there is none.
    """
    compute = request.compute
    if not compute.automatic or request.checkpoint != "best" or len(request.runs) > 1:  # these were not measured
        return request
    run = request.runs[0]
    faster = ways(run, compute, () if request.search.words else SHORTLISTS)
    if request.shortlist is not None:
        faster = {name: way._replace(shortlist=request.shortlist) for name, way in faster.items() if not way.shortlist}
    fastest = _fastest(faster, _noted(run)) if faster else None
    return request if fastest is None else dataclasses.replace(request, **faster[fastest]._asdict())


def _fastest(faster: Mapping[str, Way], bleu: Mapping[str, float]) -> str | None:
    """The fastest way that loses less than `LOSS` against float32."""
    exact = bleu.get(EXACT)
    if exact is None:
        return None
    return next((name for name in faster if name in bleu and bleu[name] > exact - LOSS), None)


def _noted(run: Run) -> dict[str, float]:
    """The BLEU of each way by a measurement of the present weights; empty without one."""
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


def _request(run: Run, way: Way) -> TranslatorRequest:
    """How `nmt.translate` would translate in this way."""
    return TranslatorRequest(
        run=str(run.folder),
        checkpoint="best",
        search=SearchRequest("", {}, ()),
        compute=way.compute,
        batch_sentences=128,
        shortlist=way.shortlist,
        length_ratio=None,
        extra_length=10,
        max_source_length=250,
        long_lines="split",
    )
