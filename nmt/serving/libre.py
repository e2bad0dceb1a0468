"""The part of LibreTranslate's interface that its clients use: translate, languages, detect, frontend settings.

Clients send JSON or a form. A text may have several lines, which are translated one by one. A model with context sees
the lines before each one in the same text.
"""

from collections.abc import Sequence
from typing import Any, Literal
from urllib.parse import parse_qs

from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.responses import JSONResponse

from nmt.serving.asking import Asker, Served, collected, enqueue, unless_gone
from nmt.serving.bodies import LibreBody, SearchBody, TranslateBody
from nmt.serving.problems import ProblemError, invalid, of_pydantic
from nmt.text.scripts import base_language, script_of, script_of_language

#: The most alternatives, which are the rest of an n-best list.
MOST_ALTERNATIVES = 10


def add_libre(app: FastAPI, asker: Asker) -> None:
    """Add the routes."""

    @app.post("/translate", summary="LibreTranslate: translate")
    async def translate(request: Request) -> JSONResponse:
        body = await _body(request)
        if body.format == "html":
            raise invalid("format", "html is not supported.", cure="Give format=text.")
        texts = [body.q] if isinstance(body.q, str) else body.q
        model = _model_for(asker, texts, body.source, body.target)
        nbest = 1 + min(body.alternatives, MOST_ALTERNATIVES)
        lines = [text.split("\n") for text in texts]
        follows: Literal["blank", "none"] = "blank" if model.engine.translator.context_sentences else "none"
        # An empty line ends a document, so that no text is context of another one.
        gap = [""] if follows == "blank" else []
        flat = [line.rstrip("\r") for each in lines for line in (*each, *gap)]
        search = SearchBody(nbest=nbest)
        asked = TranslateBody(model=model.id, text=flat, search=search, documents=follows, include=[])
        model, rows, _ = await asker.off_loop(asker.translations, asked)
        enqueue(model, rows)
        documents, _ = await unless_gone(request, collected(rows, asker.caps.seconds))
        of_lines = [[hypothesis["text"] for hypothesis in document["hypotheses"]] for document in documents]
        results = []
        for each in lines:
            mine, of_lines = of_lines[: len(each)], of_lines[len(each) + len(gap) :]
            results.append(_ranked(mine, nbest))
        single = isinstance(body.q, str)
        answer: dict[str, Any] = {"translatedText": results[0][0] if single else [ranked[0] for ranked in results]}
        if body.alternatives:
            answer["alternatives"] = results[0][1:] if single else [ranked[1:] for ranked in results]
        if body.source == "auto":
            found = [_detected(asker, text)[0] for text in texts]
            answer["detectedLanguage"] = found[0] if single else found
        return JSONResponse(answer)

    @app.get("/languages", summary="LibreTranslate: languages")
    async def languages() -> JSONResponse:
        return JSONResponse(_languages(asker))

    @app.post("/detect", summary="LibreTranslate: which source language, by its script")
    async def detect(request: Request) -> JSONResponse:
        body = await _body(request)
        text = body.q if isinstance(body.q, str) else "\n".join(body.q)
        return JSONResponse(_detected(asker, text))

    @app.get("/frontend/settings", summary="LibreTranslate: settings")
    async def settings() -> JSONResponse:
        return JSONResponse(_settings(_languages(asker)[0]))


def _settings(language: dict[str, Any]) -> dict[str, Any]:
    """What LibreTranslate's page is told; the first source language is chosen."""
    target = language["targets"][0]
    return {
        "apiKeys": False,
        "keyRequired": False,
        "charLimit": -1,
        "frontendTimeout": 500,
        "suggestions": False,
        "supportedFilesFormat": [],
        "filesTranslation": False,
        "language": {
            "source": {"code": language["code"], "name": language["name"]},
            "target": {"code": target, "name": target},
        },
    }


async def _body(request: Request) -> LibreBody:
    """The body, JSON or a form (ProblemError)."""
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    try:
        if kind == "application/json":
            return LibreBody.model_validate(await request.json())
        if kind in ("application/x-www-form-urlencoded", ""):
            form = parse_qs((await request.body()).decode("utf-8"), keep_blank_values=True)
            return LibreBody.model_validate({name: values[-1] for name, values in form.items()})
    except ValidationError as error:
        raise of_pydantic(error.errors()[0], status=400) from error
    except (ValueError, RecursionError) as error:  # not JSON, or of too many levels, or not UTF-8
        raise ProblemError(400, "The body is not valid.", cure="Send JSON or a form, in UTF-8.") from error
    raise ProblemError(400, "The body has an unknown type.", cure="Send application/json or a form.")


def _codes(model: Served) -> tuple[str, str]:
    return str(model.description["source"] or "source"), str(model.description["target"] or "target")


def _model_for(asker: Asker, texts: Sequence[str], source: str, target: str) -> Served:
    """The model that translates from one language to another; ProblemError 400 if there is none."""
    if source == "auto":
        source = _detected(asker, "\n".join(texts), target)[0]["language"]
    for model in asker.models.values():
        ours, theirs = _codes(model)
        if base_language(source) == base_language(ours) and base_language(target) in ("", base_language(theirs)):
            return model
    known = ", ".join(f"{ours} to {theirs}" for ours, theirs in map(_codes, asker.models.values()))
    raise ProblemError(400, "source, target: no model translates between these languages.", cure=f"Give {known}.")


def _detected(asker: Asker, text: str, target: str = "") -> list[dict[str, Any]]:
    """Source languages whose script is that of the text, or all. Languages of one script are equally likely."""
    codes = []
    for model in asker.models.values():
        ours, theirs = _codes(model)
        if not target or base_language(target) == base_language(theirs):
            codes.append(ours)
    codes = list(dict.fromkeys(codes)) or [_codes(asker.first)[0]]
    script = script_of(text.split("\n"))
    fitting = [code for code in codes if script_of_language(code) in (script, "")] or codes
    confidence = round(100 / len(fitting), 1)
    return [{"language": code, "confidence": confidence} for code in fitting]


def _languages(asker: Asker) -> list[dict[str, Any]]:
    targets: dict[str, list[str]] = {}
    for model in asker.models.values():
        source, target = _codes(model)
        if target not in targets.setdefault(source, []):
            targets[source].append(target)
    names: dict[str, str] = {}
    for model in asker.models.values():
        names.update(zip(_codes(model), model.description["languages"], strict=True))
    return [{"code": code, "name": names[code], "targets": others} for code, others in targets.items()]


def _ranked(lines: Sequence[Sequence[str]], count: int) -> list[str]:
    """The n-best list of a text from those of its lines, rank by rank; distinct alternatives only."""
    ranked = ["\n".join(line[min(rank, len(line) - 1)] for line in lines) for rank in range(count)]
    return list(dict.fromkeys(ranked))
