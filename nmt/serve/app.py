"""The application: the routes of the REST interface and of the page, and the handling of errors."""

import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from nmt import __version__
from nmt.serve.answers import Answers
from nmt.serve.corpus_rows import add_corpus
from nmt.serve.description import evaluated, labels
from nmt.serve.figures import ServerFigures
from nmt.serve.guard import Guard
from nmt.serve.libre import add_libre
from nmt.serve.memory_routes import add_memories, offers
from nmt.serve.pages import add_pages
from nmt.serve.pool import ModelPool, Served
from nmt.serve.problems import PROBLEM, SCHEMA, ProblemError, problem_of
from nmt.serve.rows import Row
from nmt.serve.schemas import ExplainBody, ScoreBody, TranslateBody, WhatIfBody
from nmt.serve.server import Serving
from nmt.serve.translated_files import add_files

#: Seconds without a step after which a busy model counts as stuck.
STUCK = 300.0
#: Number of nesting levels of an answer that are encoded part by part.
PARTS = 6


def application(pool: ModelPool, request: Serving) -> ASGIApp:
    """Build the application for a pool of models with the host names, limits and page of `request`."""
    figures = ServerFigures(list(pool.models.values()))
    app = FastAPI(
        title="nmt",
        version=__version__,
        description="Neural machine translation, and what its attention looks at.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a redirect would lose the path prefix of a proxy
        servers=[{"url": "."}],  # relative to openapi.json
        responses={"default": {"description": "A problem (RFC 9457).", "content": {PROBLEM: {"schema": SCHEMA}}}},
    )
    _add_errors(app)
    _add_models(app, pool)
    _add_state(app, pool, figures, offers(request.corrections))
    add_memories(app, pool, request.corrections)
    add_corpus(app, pool)
    add_libre(app, pool, lines_only=not request.split_sentences)
    add_files(app, pool, request.max_bytes)
    add_pages(app, request.page)
    return Guard(app, [*map(str, request.hosts)], request.max_bytes, figures.observe, request.host)


def _add_errors(app: FastAPI) -> None:
    async def refused(request: Request, error: Exception) -> Response:
        response: Response = problem_of(error).response()
        if response.status_code == 405:
            routes = [each for each in app.routes if isinstance(each, Route) and each.matches(request.scope)[0].value]
            methods = {method for route in routes for method in route.methods or ()}
            if request.method == "OPTIONS":
                response = Response(status_code=204)
            response.headers["Allow"] = ", ".join(sorted(methods | ({"HEAD"} if "GET" in methods else set())))
        return response

    for kind in (HTTPException, RequestValidationError, Exception):
        app.add_exception_handler(kind, refused)


def _add_models(app: FastAPI, pool: ModelPool) -> None:
    async def answered(content: dict[str, Any]) -> Response:
        text = await pool.off_loop(encoded, content)
        return Response(text.encode("utf-8", "replace"), media_type="application/json")

    async def single(request: Request, model: Served, row: Row) -> Response:
        (answer,), timing = await pool.ask(request, model, [row])
        return await answered({"model": model.named, **answer, "timing": timing})

    @app.post("/v1/translate", summary="Translate lines")
    async def translate(body: TranslateBody, request: Request) -> Response:
        model, rows, search = await pool.off_loop(pool.translations, body)
        documents, timing = await pool.ask(request, model, rows)
        return await answered({"model": model.named, "search": search, "translations": documents, "timing": timing})

    events_of = {200: {"content": {"text/event-stream": {}}, "description": "Events."}}

    @app.post(
        "/v1/translate/stream",
        summary="Translate lines; each is an event as soon as it is done",
        response_class=StreamingResponse,
        responses=events_of,  # type: ignore[arg-type]
    )
    async def stream(body: TranslateBody) -> StreamingResponse:
        model, rows, _ = await pool.off_loop(pool.translations, body, live=True)
        answers = Answers(rows, model.worker.queue, pool.caps.seconds, live=True)

        async def events() -> AsyncIterator[str]:
            try:
                async for at, event in answers.events():
                    if isinstance(event, str):
                        yield _event("beginning", {"index": at, "text": event})
                    else:
                        yield await pool.off_loop(_event, "translation", {"index": at, "translation": event[1]})
            except ProblemError as problem:
                yield _event("error", problem.document)
            else:
                yield _event("done", {"count": len(rows)})

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.post("/v1/score", summary="How probable is this translation?")
    async def score(body: ScoreBody, request: Request) -> Response:
        return await single(request, *await pool.off_loop(pool.scores, body))

    @app.post("/v1/whatif", summary="What would the model say if?")
    async def what_if(body: WhatIfBody, request: Request) -> Response:
        return await single(request, *await pool.off_loop(pool.what_ifs, body))

    @app.post("/v1/explain", summary="Which source words does each word depend on?")
    async def explain(body: ExplainBody, request: Request) -> Response:
        return await single(request, *await pool.off_loop(pool.explanations, body))


def _event(name: str, data: dict[str, Any]) -> str:
    return f"event: {name}\ndata: {encoded(data, ascii_only=True)}\n\n"


def encoded(value: Any, depth: int = 0, *, ascii_only: bool = False) -> str:
    """Encode a value as JSON part by part: the encoder blocks other threads while it works on a part."""
    if depth < PARTS and isinstance(value, dict):
        parts = (f"{json.dumps(key)}: {encoded(each, depth + 1, ascii_only=ascii_only)}" for key, each in value.items())
        return f"{{{', '.join(parts)}}}"
    if depth < PARTS and isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(encoded(each, depth + 1, ascii_only=ascii_only) for each in value)}]"
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)


def _add_state(app: FastAPI, pool: ModelPool, figures: ServerFigures, offered: Mapping[str, Any]) -> None:
    models = list(pool.models.values())

    names = labels([model.run for model in models], [model.id for model in models])

    @app.get("/v1/models", summary="The models")
    async def descriptions() -> JSONResponse:
        scores = await pool.off_loop(lambda: [evaluated(model.run) for model in models])  # evaluations may be new
        described = [
            {"id": model.id, "name": name, **model.description, **each}
            for model, name, each in zip(models, names, scores, strict=True)
        ]
        return JSONResponse({"models": described, "offers": offered})

    @app.get("/health", summary="Whether every model answers, and what waits")
    async def health() -> JSONResponse:
        workers = {model.id: model.worker for model in models}
        bad = [name for name, each in workers.items()
               if not each.alive or each.queue.closed or each.busy_seconds() > STUCK]  # fmt: skip
        if bad:
            detail = f"These models do not answer: {', '.join(bad)}."
            raise ProblemError(503, detail, retry_after=5, cure="Start the server again if this lasts.")
        queues = [each.queue for each in workers.values()]
        waiting = {"rows": sum(map(len, queues)), "pieces": sum(queue.pieces for queue in queues)}
        return JSONResponse({"status": "ok", "queue": waiting, "models": [*workers]})

    @app.get("/metrics", summary="Figures for Prometheus", response_class=PlainTextResponse)
    async def metrics() -> PlainTextResponse:
        return PlainTextResponse(figures.text(), media_type="text/plain; version=0.0.4")
