"""The wall around the application: hosts, origins, sizes, and headers of every answer."""

import ipaddress
import time
from collections.abc import Callable, Collection
from urllib.parse import urlsplit

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from nmt.serving.problems import ProblemError

#: The page loads nothing from elsewhere.
POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
HEADERS = {
    "Content-Security-Policy": POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Guard:
    """Refuses what does not come from here, or is too large, before the application sees it.

    A page elsewhere could send its visitors' browsers here, under a host name of its own (DNS rebinding) or with
    requests that need no permission. So names of hosts must be known, and requests that a web page makes must come
    from a page of this server. Addresses are always known: a name has to be rebound, an address cannot be.
    """

    def __init__(
        self, app: ASGIApp, hosts: Collection[str], most_bytes: int, observe: Callable[[Scope, int, float], None]
    ) -> None:
        """`hosts` are names that are known beside localhost; "*" stands for all. `observe` sees each answer."""
        self.app, self.most_bytes, self.observe = app, most_bytes, observe
        self.hosts = {host.lower() for host in hosts} | {"localhost"}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        began = time.monotonic()
        state = {"status": 0}

        async def sending(message: Message) -> None:
            if message["type"] == "http.response.start":
                state["status"] = message["status"]
                headers = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    headers.setdefault(name, value)
                headers.setdefault("Cache-Control", "no-store")
            await send(message)

        try:
            try:
                body = self._limited(scope, receive)
                await self.app(scope, body, sending)
            except ProblemError as problem:
                if state["status"]:
                    raise
                await problem.response()(scope, receive, sending)
        finally:
            self.observe(scope, state["status"], time.monotonic() - began)

    def _limited(self, scope: Scope, receive: Receive) -> Receive:
        """`receive` with a limit on the body, after the headers have been checked (ProblemError)."""
        headers = Headers(scope=scope)
        host = headers.get("host", "")
        if not self._known(host):
            cure = f"Open the server by its address, or start it with hosts=[{_name(host)}]."
            raise ProblemError(421, "This host name is not known here.", cure=cure)
        origin = urlsplit(headers.get("origin", ""))
        if origin.scheme in ("http", "https") and origin.netloc.lower() != host.lower():
            cure = "Use the page of this server, or call it from a program."
            raise ProblemError(403, "Web pages of other sites may not use this server.", cure=cure)
        length = headers.get("content-length", "0")
        if not length.isascii() or not length.isdigit() or int(length) > self.most_bytes:
            raise self._too_large()
        received = 0

        async def counting() -> Message:
            nonlocal received
            message = await receive()
            if message["type"] == "http.request":
                received += len(message.get("body", b""))
                if received > self.most_bytes:
                    raise self._too_large()
            return message

        return counting

    def _too_large(self) -> ProblemError:
        limit = self.most_bytes
        return ProblemError(413, "The request is too large.", limit=limit, cure=f"Send at most {limit:,} bytes.")

    def _known(self, host: str) -> bool:
        name = _name(host)
        if "*" in self.hosts or name in self.hosts:
            return True
        try:
            ipaddress.ip_address(name)
        except ValueError:
            return False
        return True


def _name(host: str) -> str:
    """The name or the address in a Host header, without the port."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0].lower()
