"""The part of LibreTranslate's interface that its clients use: translate, languages, detect.

Clients send JSON or forms, texts of several sentences and lines, and HTML. Each sentence is translated separately. A
model with context sees the previous sentences of the same text.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.responses import JSONResponse

from nmt.alignment.tag_projection import LinkedText
from nmt.data.languages import UNNAMED, canonical, script_name
from nmt.inspection.details import Detail
from nmt.inspection.document import Json
from nmt.serve.form_fields import read_fields
from nmt.serve.passages import Passage, TextBlock, detectable, join_passages, split_passages
from nmt.serve.pool import ModelPool, Served
from nmt.serve.problems import ProblemError, of_pydantic
from nmt.serve.schemas import LibreBody, SearchBody, TranslateBody
from nmt.text.scripts import script_of

#: Maximum number of characters that are used to detect the script of a request.
_SAMPLE = 10_000
#: The beam size for requests with `glossary` or `keep`, if the run's search is greedy.
TERMS_BEAM = 5


def add_libre(app: FastAPI, pool: ModelPool, lines_only: bool) -> None:
    """Add the routes. With `lines_only`, lines are not split into sentences."""
    schema = LibreBody.model_json_schema()
    kinds = ("application/json", "application/x-www-form-urlencoded", "multipart/form-data")
    sent = {"requestBody": {"required": True, "content": {kind: {"schema": schema} for kind in kinds}}}

    @app.post("/translate", summary="LibreTranslate: translate", openapi_extra=sent)
    async def translate(request: Request) -> JSONResponse:
        body = await _body(request, pool)
        texts, markup = [body.q] if isinstance(body.q, str) else body.q, body.format == "html"
        detection = detected(pool, body, body.target)[0] if body.source.lower() == "auto" else None
        model = model_for(pool, body.source if detection is None else detection["language"], body.target)
        try:
            passages = await pool.off_loop(
                lambda: [split_passages(text, codes_of(model)[0], markup, lines_only) for text in texts]
            )
        except ValueError as error:
            raise ProblemError(400, "q: a character reference is too long.", field="q", cure="Send text.") from error
        sentences = await translations(request, pool, model, passages, body)
        joined = await pool.off_loop(lambda: [join_passages(each, sentences, markup) for each in passages])
        answer: dict[str, Any] = {"translatedText": joined}
        if detection is not None:
            answer["detectedLanguage"] = [detection] * len(texts)
        return JSONResponse({key: values[0] for key, values in answer.items()} if isinstance(body.q, str) else answer)

    @app.get("/languages", summary="LibreTranslate: languages")
    async def languages() -> JSONResponse:
        return JSONResponse(_languages(pool))

    app.add_api_route("/languages", languages, methods=["POST"], include_in_schema=False)

    @app.post("/detect", summary="LibreTranslate: which source language, by its script", openapi_extra=sent)
    async def detect(request: Request) -> JSONResponse:
        return JSONResponse(detected(pool, await _body(request, pool)))


async def translations(
    request: Request, pool: ModelPool, model: Served, texts: Sequence[Sequence[TextBlock]], body: LibreBody
) -> Iterator[LinkedText]:
    """Translate the sentences of texts, with word links if any text has tags (ProblemError as for /v1/translate)."""
    follows: Literal["blank", "none"] = "blank" if model.engine.translator.context_sentences else "none"
    # An empty line ends a document, so that no text is context for another text.
    lines = [
        passage.text if passage.translated else ""
        for text in texts
        for passage in [*(each for block in text for each in block.passages), Passage("", ends_document=True)]
        if passage.translated or (passage.ends_document and follows == "blank")
    ]
    # Only beam search supports terms.
    is_greedy = model.engine.defaults.beam_size == 1 and (body.glossary or body.keep)
    beam = min(TERMS_BEAM, pool.caps.beam) if is_greedy else None
    include: list[Detail] = ["alignment"] if any(block.tags for text in texts for block in text) else []
    asked = TranslateBody(
        model=model.id,
        text=lines,
        search=SearchBody(nbest=1, beam_size=beam),
        documents=follows,
        include=include,
        glossary=body.glossary,
        keep=body.keep or [],
    )
    try:
        model, rows, _ = await pool.off_loop(pool.translations, asked)
    except ProblemError as problem:  # the field is called q here
        more = {**problem.more, **({"field": "q"} if problem.more.get("field") == "text" else {})}
        detail = re.sub(r"text \d+ has", "a sentence has", problem.detail.replace("text:", "q:", 1))
        raise ProblemError(problem.status, detail, **more) from problem
    if include:
        for row in rows:
            row.work = row.work._replace(tags=True)
    documents, _ = await pool.ask(request, model, rows)
    return (_linked(each) for line, each in zip(lines, documents, strict=True) if line)


def _linked(document: Json) -> LinkedText:
    """The best translation in a document, with its word links if there are any."""
    best = document["hypotheses"][0]
    ours, theirs = ([(word["start"], word["end"]) for word in side["words"]] for side in (document["source"], best))
    links = document.get("tag_links")
    return LinkedText.of_words(document["source"]["text"], best["text"], ours, theirs, links).stripped()


async def _body(request: Request, pool: ModelPool) -> LibreBody:
    """Read the body from JSON or a form (ProblemError if it is invalid)."""
    fields = await read_fields(request, pool.caps.texts)
    try:
        return LibreBody.model_validate(fields)
    except ValidationError as error:
        raise of_pydantic(error.errors(), status=400) from error
    except ProblemError as problem:
        raise ProblemError(400, str(problem.detail), **problem.more) from problem


def codes_of(model: Served) -> tuple[str, str]:
    """The codes of a model's source and target language."""
    return str(model.description["source"] or UNNAMED[0]), str(model.description["target"] or UNNAMED[1])


def _fit(code: str, asked: str, alone: bool) -> int:
    """How well a model's language fits the requested language, 0 to 4; 0 is no match, "" requests any language."""
    if not asked or code.replace("-", "_").lower() == asked.replace("-", "_").lower():
        return 4
    if code in UNNAMED:  # the only model may be used for any language, since the client's user knows what it translates
        return int(alone and asked not in UNNAMED)
    (language, script), (wanted, in_script) = canonical(code), canonical(asked)
    return 0 if language != wanted else 3 if script == in_script else 2


def model_for(pool: ModelPool, source: str, target: str) -> Served:
    """The model that translates from `source` to `target` (ProblemError 400 if there is none)."""
    alone = len(pool.models) == 1
    fits = [
        (sum(fit), model)
        for model in pool.models.values()
        if all(fit := [_fit(code, asked, alone) for code, asked in zip(codes_of(model), (source, target), strict=True)])
    ]
    known = ", ".join(dict.fromkeys(" to ".join(codes_of(model)) for model in pool.models.values()))
    if not fits:
        detail = "source, target: no model translates between these languages."
        raise ProblemError(400, detail, cure=f"Give {known}.")
    if not target and len({codes_of(model)[1] for _, model in fits}) > 1:
        raise ProblemError(400, "target: several languages are possible.", field="target", cure=f"Give {known}.")
    return max(fits, key=lambda fit: fit[0])[1]


def detected(pool: ModelPool, body: LibreBody, target: str = "") -> list[dict[str, Any]]:
    """The source languages that are written in the script of the text, or all; each gets the same confidence."""
    text = "\n".join([body.q] if isinstance(body.q, str) else body.q)[:_SAMPLE]
    pairs = [codes_of(model) for model in pool.models.values()]
    codes = [ours for ours, theirs in pairs if _fit(theirs, target, alone=len(pairs) == 1)] or [pairs[0][0]]
    codes = list(dict.fromkeys(codes))
    script = script_of(detectable(text, body.format == "html").split("\n"))
    fitting = [code for code in codes if not script or script_name(code) in (script, "")]
    confidence = round(100 / len(fitting), 1) if fitting else 0.0
    return [{"language": code, "confidence": confidence} for code in fitting or codes]


def _languages(pool: ModelPool) -> list[dict[str, Any]]:
    """All languages, sources first; targets are included because clients look for both languages of a pair."""
    targets: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for model in pool.models.values():
        source, target = codes_of(model)
        if target not in targets.setdefault(source, []):
            targets[source].append(target)
        names |= dict(zip((source, target), model.description["languages"], strict=True))
    return [{"code": code, "name": names[code], "targets": targets.get(code, [])} for code in {**targets, **names}]
