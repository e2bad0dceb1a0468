"""Errors as RFC 9457 problem documents: what is wrong, which field, the limit, the cure."""

from typing import Any

from starlette.exceptions import HTTPException
from starlette.responses import JSONResponse

TITLES = {
    400: "Bad request",
    403: "Forbidden",
    404: "Not found",
    405: "Method not allowed",
    413: "Too long",
    421: "Unknown host",
    422: "Invalid value",
    500: "Internal error",
    503: "Busy",
    504: "Too slow",
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
        return {
            "type": "about:blank",
            "title": TITLES.get(self.status, "Error"),
            "status": self.status,
            "detail": self.detail,
            "error": self.detail,
            **self.more,
        }

    def response(self) -> JSONResponse:
        """The answer to the request."""
        headers = {} if self.retry_after is None else {"Retry-After": str(self.retry_after)}
        return JSONResponse(self.document, self.status, headers, media_type="application/problem+json")


def invalid(field: str, detail: str, **more: Any) -> ProblemError:
    """A problem with the value of a field."""
    return ProblemError(422, f"{field}: {detail}", field=field, **more)


def too_long(field: str, detail: str, limit: int, cure: str) -> ProblemError:
    """A problem with the size of a field."""
    return ProblemError(413, f"{field}: {detail}", field=field, limit=limit, cure=cure)
