"""Errors as RFC 9457 problem documents: what is wrong, which field, the limit, the cure."""

import http
import re
from collections.abc import Mapping, Sequence
from typing import Any

from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

from nmt.system.errors import UserError

#: The type of the answer to a refused request, and its schema.
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
    """A request that is refused.

    Attributes:
        status: of HTTP.
        detail: what is wrong, and the rule.
        more: `field`, `limit`, `cure` where they are known.
        retry_after: seconds, for 503.
    """

    def __init__(self, status: int, detail: str, *, retry_after: int | None = None, **more: Any) -> None:
        super().__init__(status, detail)
        self.status, self.more, self.retry_after = status, more, retry_after

    @property
    def document(self) -> dict[str, Any]:
        """The problem document. `error` is what LibreTranslate's clients read."""
        title = "Client left" if self.status == 499 else http.HTTPStatus(self.status).phrase
        texts = {"title": title, "status": self.status, "detail": self.detail, "error": self.detail}
        return {"type": "about:blank", **texts, **self.more}

    def response(self) -> JSONResponse:
        """The answer to the request."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse(self.document, self.status, headers, media_type=PROBLEM)


def invalid(field: str, detail: str, **more: Any) -> ProblemError:
    """A problem with the value of a field."""
    return ProblemError(422, f"{field}: {detail}", field=field, **more)


def too_long(field: str, detail: str, limit: int, cure: str) -> ProblemError:
    """A problem with the size of a field."""
    return ProblemError(413, f"{field}: {detail}", field=field, limit=limit, cure=cure)


def of_user(error: UserError) -> ProblemError:
    """The problem that a message "field: what is wrong. The fix." names."""
    message = str(error)
    field = re.match(r"([a-z_.]+)(=\[[^\]]*\]|=\S+| of line \d+)?: ", message)
    cure = re.search(r"(?<=\. )(Give|Leave|Send|Name) .*$", message)
    more: dict[str, Any] = {"field": field[1]} if field else {}
    return ProblemError(422, message, **more, cure=cure[0] if cure else f"Send another {more.get('field', 'text')}.")


def problem_of(error: Exception) -> ProblemError:
    """The problem that an exception is for the client."""
    if isinstance(error, ProblemError):
        return error
    if isinstance(error, RequestValidationError):
        return of_pydantic(error.errors())
    if isinstance(error, HTTPException):
        cure = "GET /docs lists the routes." if error.status_code in (404, 405) else "Send JSON."
        return ProblemError(error.status_code, f"{error.detail}.", cure=cure)
    return ProblemError(500, "The server failed.", cure="Its log has the reason.")


#: Of pydantic's errors: which of their figures is the limit, and the cure.
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
    """The problem of the first of pydantic's errors, or of one that says more about the place."""
    error = max(errors, key=lambda each: len(each["loc"]))
    if error["type"] == "json_invalid":
        return ProblemError(400, "The body is not JSON.", cure="Send JSON as application/json.")
    # Alternatives of a type stand in the place, as "int" or "list[constrained-str]".
    field = ".".join(
        str(part) for part in error["loc"] if not re.fullmatch(r"body|int|.*constrained-(str|int).*", str(part))
    )
    figures = error.get("ctx", {})
    name, cure = _CURES.get(error["type"], (None, "Give a value of the type that /docs names."))
    limit = {} if name is None else {"limit": figures[name]}
    # The library's message names the rule; the value, which may be text, stays out.
    field = field or "body"
    cure = cure.format(field=field, **figures)
    return ProblemError(status, f"{field}: {error['msg']}.", field=field, **limit, cure=cure)
