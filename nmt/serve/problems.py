"""Errors as RFC 9457 problem documents: the error, the field, the limit and the cure."""

import http
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from nmt.system.errors import UserError

#: The media type of error answers, and their JSON schema.
PROBLEM = "application/problem+json"
SCHEMA = {
    "type": "object",
    "required": ["type", "title", "status", "detail", "error"],
    "properties": {
        **{name: {"type": "string"} for name in ("type", "title", "detail", "error", "field", "cure")},
        **{name: {"type": "integer"} for name in ("status", "limit")},
    },
}


class ProblemError(HTTPException):
    """A rejected or failed request.

    Attributes:
        status: HTTP status.
        detail: the error, and the rule.
        more: `field`, `limit` and `cure`, where known.
        retry_after: seconds until the client should try again, for status 503.
    """

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None, **more: Any) -> None:
        super().__init__(status, detail)
        self.status, self.more, self.retry_after = status, more, retry_after

    @property
    def document(self) -> dict[str, Any]:
        """The problem document. LibreTranslate's clients read its `error`."""
        title = "Client left" if self.status == 499 else http.HTTPStatus(self.status).phrase
        texts = {"title": title, "status": self.status, "detail": self.detail, "error": self.detail}
        return {"type": "about:blank", **texts, **self.more}

    def response(self) -> JSONResponse:
        """The HTTP response with the problem document."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse(self.document, self.status, headers, media_type=PROBLEM)


def invalid(field: str, detail: str, **more: Any) -> ProblemError:
    """A problem with the value of a field."""
    return ProblemError(422, f"{field}: {detail}", field=field, **more)


def too_long(field: str, detail: str, limit: int, cure: str) -> ProblemError:
    """A problem with the size of a field."""
    return ProblemError(413, f"{field}: {detail}", field=field, limit=limit, cure=cure)


def of_user(error: UserError) -> ProblemError:
    """Convert a UserError with a message "field: error. Fix." to a problem."""
    message = str(error)
    field = re.match(r"([a-z_.]+)(=\[[^\]]*\]|=\S+| of line \d+)?: ", message)
    cure = re.search(r"(?<=\. )(Give|Leave|Send|Name) .*$", message)
    more: dict[str, Any] = {"field": field[1]} if field else {}
    return ProblemError(422, message, **more, cure=cure[0] if cure else f"Send another {more.get('field', 'text')}.")


def problem_of(error: Exception) -> ProblemError:
    """Convert any exception to a problem for the client."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return of_pydantic(error.errors())
    if isinstance(error, HTTPException):
        cure = "GET /docs lists the routes." if error.status_code in (404, 405) else "Send JSON."
        return ProblemError(error.status_code, f"{error.detail}.", cure=cure)
    return ProblemError(500, "The server failed.", cure="Its log has the reason.")


#: pydantic's error types -> the key of the limit in the error's context, and the cure.
_CURES = {
    "missing": (None, "Give {field}."),
    "extra_forbidden": (None, "Leave {field} out."),
    "literal_error": (None, "Give one of: {expected}."),
    "greater_than_equal": ("ge", "Give at least {ge:g}."),
    "less_than_equal": ("le", "Give at most {le:g}."),
    "model_attributes_type": (None, "Send a JSON object as application/json."),
    "too_short": ("min_length", "Give at least {min_length}."),
    "too_long": ("max_length", "Give at most {max_length}."),
}


def of_pydantic(errors: Sequence[Mapping[str, Any]], status: int = 422) -> ProblemError:
    """Convert pydantic's errors to one problem: for the error with the longest path, the first if several."""
    error = max(errors, key=lambda each: len(each["loc"]))
    if error["type"] == "json_invalid":
        return ProblemError(400, "The body is not JSON.", cure="Send JSON as application/json.")
    # The path also contains the alternatives of a union type, such as "int" or "list[constrained-str]".
    field = ".".join(
        str(part) for part in error["loc"] if not re.fullmatch(r"body|int|.*constrained-(str|int).*", str(part))
    )
    figures = error.get("ctx", {})
    name, cure = _CURES.get(error["type"], (None, "Give a value of the type that /docs names."))
    limit = {} if name is None else {"limit": figures[name]}
    # The message names the rule, not the value, which may be private text.
    field = field or "body"
    cure = cure.format(field=field, **figures)
    return ProblemError(status, f"{field}: {error['msg']}.", field=field, **limit, cure=cure)
