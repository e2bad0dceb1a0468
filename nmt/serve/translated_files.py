"""LibreTranslate's file routes: a client uploads a document, and fetches its translation from the returned address."""

import json
import re
import secrets
import time
from collections.abc import Callable
from pathlib import PurePosixPath
from typing import Any, NamedTuple
from urllib.parse import quote

from fastapi import FastAPI, Request
from pydantic import ValidationError
from starlette.responses import JSONResponse, Response

from nmt.data.languages import canonical
from nmt.serve.form_fields import FormPart, read_file
from nmt.serve.libre import codes_of, detected, model_for, translations
from nmt.serve.memory_routes import keeps_documents
from nmt.serve.passages import Passage, TextBlock
from nmt.serve.pool import ModelPool, Served
from nmt.serve.problems import ProblemError, of_pydantic
from nmt.serve.schemas import LibreBody
from nmt.system.errors import UserError, install_command

#: Seconds until a translated file is deleted; limit on all files in memory, in multiples of the maximum request size.
PATIENCE, WAITING = 1800.0, 16
_LEFT_OUT = re.compile(r'[\0-\x1f\x7f-\x9f/\\:*?"<>|]+')


class WaitingFile(NamedTuple):
    """A translated file: its name, its content, and the time when it expires."""

    name: str
    data: bytes
    until: float


#: Maximum number of files in memory, of any size.
MOST_FILES = 1000


class WaitingFiles:
    """Translated files in memory, available to clients that know their addresses; the oldest are deleted first."""

    def __init__(self, most_bytes: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._most, self._clock = WAITING * most_bytes, clock
        self._files: dict[str, WaitingFile] = {}

    def add(self, name: str, data: bytes) -> str:
        """Store a file; return the last part of its address."""
        moment = self._clock()
        self._files = {key: each for key, each in self._files.items() if each.until > moment}
        held = sum(len(each.data) for each in self._files.values()) + len(data)
        while self._files and (held > self._most or len(self._files) >= MOST_FILES):
            held -= len(self._files.pop(next(iter(self._files))).data)
        key = f"{secrets.token_urlsafe(16)}.{name}"
        self._files[key] = WaitingFile(name, data, moment + PATIENCE)
        return key

    def get(self, key: str) -> WaitingFile:
        """The file with this key (ProblemError 404 if it is unknown or expired)."""
        file = self._files.get(key)
        if file is None or file.until <= self._clock():
            raise ProblemError(404, "This file is not here, or not any more.", cure="Send the document again.")
        return file


def add_files(app: FastAPI, pool: ModelPool, most_bytes: int) -> None:
    """Add the routes; `most_bytes` is the limit of a request."""
    files = WaitingFiles(most_bytes)

    form = LibreBody.model_json_schema()["properties"]
    properties = {name: form[name] for name in ("source", "target")}
    properties |= {name: {"type": "string"} for name in ("file", "encoding", "model", "glossary", "keep")}
    properties["file"]["format"] = "binary"
    schema = {"type": "object", "properties": properties, "required": ["file"]}
    sent = {"requestBody": {"required": True, "content": {"multipart/form-data": {"schema": schema}}}}

    @app.post("/translate_file", summary="LibreTranslate: translate a document", openapi_extra=sent)
    async def translate(request: Request) -> JSONResponse:
        if not keeps_documents():
            cure = f"Install it: {install_command('documents')}"
            raise ProblemError(501, "Files need the extra 'documents', which this server lacks.", cure=cure)
        fields, file = await read_file(request)
        body, model_id, encoding = _body(fields), fields.get("model"), fields.get("encoding") or None
        try:
            model = pool.model(model_id) if model_id else None
            data, name, notes = await _translated(request, pool, file, body, model, encoding)
        except ProblemError as problem:
            if problem.more.get("field") != "q":
                raise
            detail = problem.detail.replace("q:", "file:", 1)  # the sentences come from the file
            raise ProblemError(problem.status, detail, **{**problem.more, "field": "file"}) from problem
        except UserError as error:
            detail, _, cure = str(error).rpartition(". ")
            raise ProblemError(400, f"{detail}.", field="file", cure=cure) from error
        key = files.add(name, data)
        address = f"{request.base_url}download_file/{quote(key)}"
        return JSONResponse({"translatedFileUrl": address, "file": quote(key), "notes": notes})

    whole = {200: {"content": {"application/octet-stream": {}}, "description": "The document."}}

    @app.get(
        "/download_file/{key}",
        summary="LibreTranslate: a translated document",
        response_class=Response,
        responses=whole,  # type: ignore[arg-type]
    )
    async def download(key: str) -> Response:
        file = files.get(key)
        headers = {"Content-Disposition": f"attachment; filename*=UTF-8''{quote(file.name)}"}
        return Response(file.data, media_type="application/octet-stream", headers=headers)


def _body(fields: dict[str, Any]) -> LibreBody:
    """Check the fields other than the file; `glossary` and `keep` are JSON (ProblemError if a field is invalid)."""
    try:
        given = {name: json.loads(fields[name]) for name in ("glossary", "keep") if fields.get(name)}
        return LibreBody.model_validate({**fields, "q": "", **given})
    except ValidationError as error:
        raise of_pydantic(error.errors(), status=400) from error
    except (ValueError, RecursionError) as error:
        raise ProblemError(400, "glossary, keep: not JSON.", field="glossary", cure="Send JSON.") from error


async def _translated(
    request: Request, pool: ModelPool, file: FormPart, body: LibreBody, form_model: Served | None, encoding: str | None
) -> tuple[bytes, str, list[str]]:
    """Translate a document; return it with its name and notes (UserError if it cannot be read, or ProblemError)."""
    from nmt.documents.formats import ENDINGS, WITH_PLACEHOLDERS, Document, parse_document
    from nmt.documents.sentences import SplitDocument

    path = PurePosixPath(_LEFT_OUT.sub("_", (file.name or "").replace("\\", "/").rpartition("/")[2])[-150:] or "file")
    if path.suffix.lower() not in ENDINGS:
        detail = f"file: {path.suffix or 'a file without an ending'} is not a format that is read here."
        raise ProblemError(400, detail, field="file", cure=f"Send one of: {' '.join(ENDINGS)}")

    def parsed(source: str, target: str) -> Document:
        return parse_document(file.data, path.name, source, target, encoding, canonical)

    first = codes_of(pool.first)
    language = body.source
    if language.lower() == "auto" and len(pool.models) > 1:
        text = ""
        for codes in dict.fromkeys(map(codes_of, pool.models.values())):  # some formats have text for one pair only
            if not text and body.target in ("", codes[1]):
                sample = await pool.off_loop(parsed, *codes)
                text = "\n".join(segment.text for segment in sample.segments[:500])
        language = detected(pool, LibreBody(q=text), body.target)[0]["language"]
    elif language.lower() == "auto":
        language = first[0]
    model = form_model or model_for(pool, language, body.target)
    source, target = codes_of(model)
    document = await pool.off_loop(parsed, source, target)
    split = await pool.off_loop(SplitDocument, document, source)
    tags = [tag for segment in document.segments for tag in segment.tags]
    block = TextBlock([Passage(re.sub(r"[\r\n]", " ", text), translated=True) for text in split.sentences], tags)
    if body.keep is None and path.suffix.lower() in WITH_PLACEHOLDERS:
        body = body.model_copy(update={"keep": ["placeholders"]})
    results = await translations(request, pool, model, [[block]], body)
    data: bytes = await pool.off_loop(lambda: document.write(split.joined(results)))
    nothing = [] if document.segments else ["There was nothing to translate, so it equals what was sent."]
    return data, f"{path.stem}.{target}{path.suffix}", [*document.notes, *nothing]
