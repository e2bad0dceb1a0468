"""Parser for the requests of LibreTranslate's clients: JSON, both kinds of forms, and the URL's query."""

import codecs
import itertools
import json
import re
from email.message import Message
from typing import Any, NamedTuple
from urllib.parse import parse_qsl, unquote

from starlette.requests import Request

from nmt.serve.problems import ProblemError

#: Maximum number of fields in a form, not counting repetitions of `q`.
_FIELDS = 100
_NAME = re.compile(rb'^content-disposition:.*?;\s*name\s*=\s*(?:"([^"\r\n]*)"|([^\s;]+))', re.IGNORECASE | re.MULTILINE)
_FILE_NAME = re.compile(
    rb'^content-disposition:.*?;\s*filename\s*=\s*(?:"([^"\r\n]*)"|([^\s;]+))', re.IGNORECASE | re.MULTILINE
)
#: The file name in the encoding of RFC 5987, which some programs send with or without a plain name.
_CODED_NAME = re.compile(
    rb"^content-disposition:.*?;\s*filename\*\s*=\s*utf-8'[^']*'([^\s;]+)", re.IGNORECASE | re.MULTILINE
)
_HEAD_END = re.compile(rb"\r?\n\r?\n")


class FormPart(NamedTuple):
    """A part of a form: its field, its content, and its file name (None if it is not a file)."""

    field: str
    data: bytes
    name: str | None


async def read_fields(request: Request, most_texts: int) -> dict[str, Any]:
    """Read the fields of a request; several fields `q` of a form become a list.

    Many programs send JSON with a wrong content type, so a body that begins with { is always read as JSON.

    Raises:
        ProblemError: 400, the body is neither JSON nor a form, is not UTF-8, or has too many fields.
    """
    content = Message()
    content["content-type"] = request.headers.get("content-type", "")
    body = (await request.body()).removeprefix(codecs.BOM_UTF8)
    try:
        if content.get_content_type().endswith("json") or body.lstrip()[:1] == b"{":
            fields = json.loads(body)
            if not isinstance(fields, dict):
                raise ProblemError(400, "The body must be a JSON object.", cure='Send {"q": TEXT}.')
            return fields
        pairs = parse_qsl(request.url.query, keep_blank_values=True, errors="strict", max_num_fields=most_texts)
        if content.get_content_type() == "multipart/form-data":
            parts = _parts(body, str(content.get_param("boundary", "")), most_texts + _FIELDS)
            pairs += [(part.field, part.data.decode()) for part in parts]  # a file is a field like any other
        else:
            text = body.decode("utf-8")
            pairs += parse_qsl(text, keep_blank_values=True, errors="strict", max_num_fields=most_texts + _FIELDS)
    except (ValueError, RecursionError) as error:  # not JSON, nested too deeply, or not UTF-8
        raise ProblemError(400, "The body is not valid.", cure="Send JSON or a form, in UTF-8.") from error
    texts = [value for name, value in pairs if re.fullmatch(r"q(\[\d*\])?", name)]
    return dict(pairs) | ({"q": texts if len(texts) > 1 else texts[0]} if texts else {})


async def read_file(request: Request) -> tuple[dict[str, str], FormPart]:
    """Read the fields of a form, and its `file` (ProblemError 400 unless it has exactly one)."""
    content = Message()
    content["content-type"] = request.headers.get("content-type", "")
    cure = "Send multipart/form-data with the fields file, source and target."
    try:
        if content.get_content_type() != "multipart/form-data":
            raise ValueError("no form")
        parts = _parts(await request.body(), str(content.get_param("boundary", "")), _FIELDS)
        files = [part for part in parts if part.field == "file" and part.name is not None]
        fields = {part.field: part.data.decode() for part in parts if part.name is None}
    except ValueError as error:
        raise ProblemError(400, "The body is not a form.", cure=cure) from error
    if len(files) != 1:
        raise ProblemError(400, "file: one file is expected.", field="file", cure=cure)
    return fields, files[0]


def _file_name(head: bytes) -> str | None:
    """The file name in the head of a part; None if there is none."""
    if coded := _CODED_NAME.search(head):
        return unquote(coded[1].decode("ascii"))
    file = _FILE_NAME.search(head)
    return None if file is None else (file[1] if file[2] is None else file[2]).decode().replace("%22", '"')


def _parts(body: bytes, boundary: str, most: int) -> list[FormPart]:
    """Parse the parts of a form (RFC 7578) in linear time (ValueError if the form is invalid)."""
    if not boundary:
        raise ValueError("no boundary")
    if not body.strip():
        return []
    line = re.compile(rb"(?:^|\r?\n)--" + re.escape(boundary.encode("latin-1")) + rb"(--)?[ \t]*(?=\r?\n|$)")
    lines = list(itertools.islice(line.finditer(body), most + 2))
    parts = []
    for begin, end in itertools.pairwise(lines):
        head, value = _HEAD_END.split(body[begin.end() : end.start()], maxsplit=1)
        if (name := _NAME.search(head)) is None:
            raise ValueError("a part has no name")
        parts.append(FormPart((name[1] or name[2]).decode(), value, _file_name(head)))
        if end[1]:
            return parts
    raise ValueError("too many parts, or no end")
