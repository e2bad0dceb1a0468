"""The application: routes of the REST interface, the page, and their errors."""

import json
from collections.abc import AsyncIterator
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse, PlainTextResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp

from nmt import __version__
from nmt.serve.corpus_rows import add_corpus
from nmt.serve.figures import Metrics
from nmt.serve.guard import Guard
from nmt.serve.libre import add_libre
from nmt.serve.pages import add_pages
from nmt.serve.pool import Asker, Served, answers, beginnings, collected, enqueue, listen, unless_gone
from nmt.serve.problems import ProblemError, of_pydantic
from nmt.serve.rows import Row
from nmt.serve.schemas import ExplainBody, ScoreBody, TranslateBody, WhatIfBody

Json = dict[str, Any]
#: A model that computes one batch for longer than this is taken to be stuck, in seconds.
STUCK = 300.0
#: Levels of an answer that are encoded part by part: down to the layers of a hypothesis.
PARTS = 6


def application(
    asker: Asker, *, hosts: list[str], most_bytes: int, host: str = "localhost", split_sentences: bool = True
) -> ASGIApp:
    """The application for some models.

    Args:
        asker: the models, whose workers run.
        hosts: names by which clients may call the server, or a proxy in front of it.
        most_bytes: of a request.
        host: where the server listens.
        split_sentences: of texts of LibreTranslate's clients.
    """
    metrics = Metrics()
    app = FastAPI(
        title="nmt",
        version=__version__,
        description="Neural machine translation, and what its attention looks at.",
        docs_url=None,
        redoc_url=None,
        redirect_slashes=False,  # a proxy's prefix is not known here
        servers=[{"url": "."}],  # next to openapi.json
    )
    _add_errors(app)
    _add_translation(app, asker)
    _add_inspection(app, asker)
    _add_state(app, asker, metrics)
    add_corpus(app, asker)
    add_libre(app, asker, lines_only=not split_sentences)
    add_pages(app)
    for route in [*app.routes]:
        if isinstance(route, APIRoute) and route.methods == {"GET"}:
            app.add_api_route(route.path, route.endpoint, methods=["HEAD"], include_in_schema=False)
    return Guard(app, hosts, most_bytes, metrics.observe, host)


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(ProblemError)
    async def problem(request: Request, error: ProblemError) -> Response:
        return error.response()

    @app.exception_handler(RequestValidationError)
    async def refused(request: Request, error: RequestValidationError) -> Response:
        return of_pydantic(error.errors()[0]).response()

    @app.exception_handler(HTTPException)
    async def other(request: Request, error: HTTPException) -> Response:
        cure = "GET /docs lists the routes." if error.status_code in (404, 405) else "Send JSON."
        response: Response = ProblemError(error.status_code, f"{error.detail}.", cure=cure).response()
        if error.status_code == 405:
            if request.method == "OPTIONS":
                response = Response(status_code=204)
            routes = [
                route for route in app.routes if isinstance(route, Route) and route.matches(request.scope)[0].value
            ]
            response.headers["Allow"] = ", ".join(
                sorted({method for route in routes for method in route.methods or ()})
            )
        return response

    @app.exception_handler(Exception)
    async def failed(request: Request, error: Exception) -> Response:
        return ProblemError(500, "The server failed.", cure="Its log has the reason.").response()


def _add_translation(app: FastAPI, asker: Asker) -> None:
    @app.post("/v1/translate", summary="Translate lines")
    async def translate(body: TranslateBody, request: Request) -> Response:
        model, rows, search = await asker.off_loop(asker.translations, body)
        enqueue(model, rows)
        documents, timing = await unless_gone(request, collected(rows, asker.caps.seconds))
        return await answered(
            asker, {"model": model.named, "search": search, "translations": documents, "timing": timing}
        )

    @app.post("/v1/translate/stream", summary="Translate lines; each is an event as soon as it is done")
    async def stream(body: TranslateBody) -> StreamingResponse:
        model, rows, _ = await asker.off_loop(asker.translations, body, live=True)
        certain = listen(rows[0]) if len(rows) == 1 else None
        enqueue(model, rows)

        async def events() -> AsyncIterator[str]:
            try:
                if certain is not None:
                    async for text in beginnings(certain, asker.caps.seconds):
                        yield _event("beginning", {"index": 0, "text": text})
                async for at, _, document in answers(rows, asker.caps.seconds):
                    done = {"index": at, "translation": document}
                    yield await asker.off_loop(_event, "translation", done)
            except ProblemError as problem:
                yield _event("error", problem.document)
            else:
                yield _event("done", {"count": len(rows)})
            finally:
                for row in rows:
                    row.leave()

        return StreamingResponse(events(), media_type="text/event-stream")

    @app.post("/v1/score", summary="How probable is this translation?")
    async def score(body: ScoreBody, request: Request) -> Response:
        model, rows = await asker.off_loop(asker.scores, body)
        enqueue(model, rows)
        documents, timing = await unless_gone(request, collected(rows, asker.caps.seconds))
        return await answered(
            asker, {"model": model.named, "search": None, "translations": documents, "timing": timing}
        )


async def answered(asker: Asker, content: Json) -> Response:
    """The answer with this content, which may be large."""
    text = await asker.off_loop(encoded, content)
    return Response(text.encode("utf-8", "replace"), media_type="application/json")


def _event(name: str, data: Json) -> str:
    return f"event: {name}\ndata: {encoded(data, ascii_only=True)}\n\n"


def encoded(value: Any, depth: int = 0, *, ascii_only: bool = False) -> str:
    """JSON, of which parts are encoded one by one: no other thread runs while a part is."""
    if depth < PARTS and isinstance(value, dict):
        parts = (f"{json.dumps(key)}: {encoded(each, depth + 1, ascii_only=ascii_only)}" for key, each in value.items())
        return f"{{{', '.join(parts)}}}"
    if depth < PARTS and isinstance(value, list) and value and isinstance(value[0], dict):
        return f"[{', '.join(encoded(each, depth + 1, ascii_only=ascii_only) for each in value)}]"
    return json.dumps(value, ensure_ascii=ascii_only, allow_nan=False)


def _add_inspection(app: FastAPI, asker: Asker) -> None:
    @app.post("/v1/whatif", summary="What would the model say if?")
    async def what_if(body: WhatIfBody, request: Request) -> Response:
        model, rows = await asker.off_loop(asker.what_ifs, body)
        return await alone(request, model, rows)

    @app.post("/v1/explain", summary="Which source words does each word depend on?")
    async def explain(body: ExplainBody, request: Request) -> Response:
        model, rows = await asker.off_loop(asker.explanations, body)
        return await alone(request, model, rows)

    async def alone(request: Request, model: Served, rows: list[Row]) -> Response:
        enqueue(model, rows)
        (answer,), timing = await unless_gone(request, collected(rows, asker.caps.seconds))
        return await answered(asker, {"model": model.named, **answer, "timing": timing})


def _add_state(app: FastAPI, asker: Asker, metrics: Metrics) -> None:
    models = list(asker.models.values())

    @app.get("/v1/models", summary="The models")
    async def descriptions() -> JSONResponse:
        return JSONResponse({"models": [{"id": model.id, **model.description} for model in models]})

    @app.get("/health", summary="Whether every model answers, and what waits")
    async def health() -> JSONResponse:
        bad = [
            model.id
            for model in models
            if not model.worker.alive or model.worker.queue.closed or model.worker.busy_seconds() > STUCK
        ]
        if bad:
            detail = f"These models do not answer: {', '.join(bad)}."
            raise ProblemError(503, detail, retry_after=5, cure="Start the server again if this lasts.")
        waiting = [model.worker.queue for model in models]
        queue = {"rows": sum(map(len, waiting)), "pieces": sum(each.pieces for each in waiting)}
        return JSONResponse({"status": "ok", "queue": queue, "models": [model.id for model in models]})

    @app.get("/metrics", summary="Figures for Prometheus")
    async def figures() -> PlainTextResponse:
        return PlainTextResponse(metrics.text(models), media_type="text/plain; version=0.0.4")
