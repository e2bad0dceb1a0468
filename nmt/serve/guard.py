"""Middleware that checks the host, origin and size of requests, and adds security headers to all answers."""

import ipaddress
import time
from collections.abc import Callable, Collection

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serve.problems import ProblemError

#: The content security policy: the page loads files from this server only.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}
#: Schemes of origins of browser extensions: the user installed them, and no page can send such an origin.
EXTENSIONS = ("moz-extension", "chrome-extension", "safari-web-extension")
#: Limit on all request bodies in memory, in multiples of the maximum size of a body.
BODIES = 16


class Guard:
    """Middleware that rejects requests from other sites and requests that are too large.

    A page of another site could make its visitors' browsers send requests here, under its own host name (DNS
    rebinding) or as requests that need no permission. So the host name must be known, and requests from web pages must
    come from a page of this server. IP addresses are always allowed: only names can be rebound. A proxy may send
    another host name than the browser, so pages under the names in `hosts` also count as pages of this server.
    X-Forwarded-* headers are ignored, because any client can forge them.

    The application gets a request only when its body is complete.
    """

    def __init__(
        self,
        app: ASGIApp,
        hosts: Collection[str],
        most_bytes: int,
        observe: Callable[[Scope, int, float], None],
        host: str = "localhost",
    ) -> None:
        """`hosts` are the server's names in addition to localhost and `host`, where it listens; "*" allows all names.
        `observe` is called with the scope, the status and the seconds of each answer.
        """
        self.app, self.most_bytes, self.observe = app, most_bytes, observe
        self.named = {_name(each.rpartition("//")[2].strip("/")) for each in hosts}
        self.hosts = self.named | {"localhost", _name(host)}
        self.held = 0  # bytes of bodies in memory

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began, status, body = time.monotonic(), 0, bytearray()
        bodies = iter([body])  # for the application, which then waits for its client to leave

        async def sending(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status, headers = message["status"], MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
            await send(message)

        async def receiving() -> Message:
            for whole in bodies:
                return {"type": "http.request", "body": bytes(whole), "more_body": False}
            return await receive()

        try:
            self._check(scope)
            # Clients and proxies may send double slashes, if address and path both have one.
            method = "GET" if scope["method"] == "HEAD" else scope["method"]  # uvicorn omits the body for HEAD
            scope = {**scope, "path": "/" + scope["path"].strip("/"), "method": method}
            await self._read(receive, body)
            await self.app(scope, receiving, sending)
        except ProblemError as problem:
            if status:
                raise
            await problem.response()(scope, receive, sending)
        except ClientDisconnect:  # no client to answer
            pass
        finally:
            self.held -= len(body)
            self.observe(scope, status, time.monotonic() - began)

    def _check(self, scope: Scope) -> None:
        """Raise ProblemError for an unknown host, a page of another site, or a body that is too large."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        # Browsers always name the host. Health checks in HTTP/1.0 do not.
        if host and not self._is_known(_name(host)):
            cure = f"Open the server by its address, or start it with hosts=[{_name(host)}]."
            raise ProblemError(421, "This host name is not known here.", cure=cure)
        origin = headers.get("origin", "").lower()
        scheme, _, place = origin.partition("://")
        is_page = scheme in ("http", "https")
        is_trusted = scheme in EXTENSIONS or (is_page and _name(place) in self.named)
        is_own = not origin or (is_page and place == host.lower())
        if not is_trusted and (not is_own or _is_foreign(scope["method"], headers)):
            cure = "Use the page of this server, or call it from a program."
            if is_page:
                cure += f" If {_name(place)} is a proxy in front of this server, start it with hosts=[{_name(place)}]."
            raise ProblemError(403, "Web pages of other sites may not use this server.", cure=cure)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or len(length) > 18 or int(length) > self.most_bytes:
            raise self._too_large()

    async def _read(self, receive: Receive, body: bytearray) -> None:
        """Receive a complete body (ProblemError if it is too large, ClientDisconnect if the client disconnects)."""
        message: Message = {"more_body": True}
        while message.get("more_body", False):
            message = await receive()
            if message["type"] == "http.disconnect":
                raise ClientDisconnect
            part = message.get("body", b"")
            body += part
            self.held += len(part)
            if len(body) > self.most_bytes:
                raise self._too_large()
            if self.held > BODIES * self.most_bytes:
                raise ProblemError(503, "Too many requests arrive.", retry_after=5, cure="Try again later.")

    def _too_large(self) -> ProblemError:
        limit = self.most_bytes
        return ProblemError(413, "The request is too large.", limit=limit, cure=f"Send at most {limit:,} bytes.")

    def _is_known(self, name: str) -> bool:
        try:
            return "*" in self.hosts or name in self.hosts or ipaddress.ip_address(name) is not None
        except ValueError:
            return False


def _is_foreign(method: str, headers: Headers) -> bool:
    """Whether a request comes from another site by its Sec-Fetch headers; following a link to the page is allowed.

    These headers are needed because browsers send no Origin with GET requests such as those for pictures.
    """
    if headers.get("sec-fetch-site", "none") in ("none", "same-origin"):
        return False
    visits = headers.get("sec-fetch-mode") == "navigate" and headers.get("sec-fetch-dest", "document") == "document"
    return method not in ("GET", "HEAD") or not visits


def _name(host: str) -> str:
    """The host name or address in a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower().rstrip(".")
