"""The bodies of LibreTranslate's clients -> fields: JSON, both kinds of forms, and the query of the address."""

import codecs
import email
import json
import re
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qsl

from starlette.requests import Request

from nmt.serve.problems import ProblemError

#: Fields of a form, beside repetitions of `q`.
_FIELDS = 100


async def read_fields(request: Request, most_texts: int) -> dict[str, Any]:
    """The fields of a request; a `q` that a form repeats is a list.

    Many programs send JSON without naming its type, so an object is read as JSON whatever its type.

    Raises:
        ProblemError: 400, the body is none of these, or not UTF-8, or has too many fields.
    """
    header = request.headers.get("content-type", "")
    kind = header.partition(";")[0].strip().lower()
    body, most = (await request.body()).removeprefix(codecs.BOM_UTF8), most_texts + _FIELDS
    try:
        if kind.endswith("json") or body.lstrip()[:1] == b"{":
            fields = json.loads(body)
            if not isinstance(fields, dict):
                raise ProblemError(400, "The body must be a JSON object.", cure='Send {"q": TEXT}.')
            return fields
        pairs = parse_qsl(request.url.query, keep_blank_values=True, errors="strict", max_num_fields=most)
        if kind == "multipart/form-data":
            pairs += _multipart(body, header, most)
        else:
            pairs += parse_qsl(body.decode(), keep_blank_values=True, errors="strict", max_num_fields=most)
    except (ValueError, RecursionError) as error:  # not JSON, or of too many levels, or not UTF-8
        raise ProblemError(400, "The body is not valid.", cure="Send JSON or a form, in UTF-8.") from error
    texts = [value for name, value in pairs if re.fullmatch(r"q(\[\d*\])?", name)]
    return dict(pairs) | ({"q": texts if len(texts) > 1 else texts[0]} if texts else {})


def _multipart(body: bytes, kind: str, most: int) -> Iterator[tuple[str, str]]:
    """Yield the names and values of a form (RFC 7578; ValueError). A file is a field like any other."""
    if not body.strip():
        return
    if body.count(b"\n--") > most:
        raise ValueError("too many parts")
    form = email.message_from_bytes(b"Content-Type: %b\r\n\r\n%b" % (kind.encode("latin-1"), body))
    if not form.is_multipart() or form.defects:
        raise ValueError("no boundary, or no end")
    parts: Any = form.get_payload()
    for part in parts:
        name, value = part.get_param("name", header="content-disposition"), part.get_payload(decode=True)
        if not isinstance(name, str) or not isinstance(value, bytes):
            raise ValueError("a part has no name")
        yield name, value.decode()
