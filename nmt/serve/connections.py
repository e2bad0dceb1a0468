"""The socket and the HTTP server, which finishes open requests and ends at a signal.

Clients have limited time to send a request and to read the answer. With too many connections, the server closes the
connection whose client has been slowest to send its request.
"""

import asyncio
import contextlib
import errno
import signal
import socket
import sys
import time
from collections.abc import Generator, Iterable, Iterator
from types import FrameType
from typing import Any

import h11
import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from nmt.system.errors import UserError
from nmt.system.signals import handling, stop_signals

#: Seconds for open requests to finish after SIGTERM.
DRAIN = 60
#: Seconds for a client to send a request, or to read some of an answer.
PATIENCE = 30.0
#: Maximum number of connections; half of the process's limit on open files if that is less.
CONNECTIONS = 500
#: Backlog of the socket: connections that wait to be accepted.
BURST = 100
#: Minimum seconds between messages about failed connections.
SILENCE = 60.0


class Connection(H11Protocol):
    """A connection that measures how long it has waited for its client."""

    most = CONNECTIONS

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection; above the maximum, close the slowest one, which may be this one."""
        self.began, self._unsent = time.monotonic(), 0
        super().connection_made(transport)
        if len(self.connections) > self.most:
            make_room(self.connections)

    @property
    def is_asking(self) -> bool:
        """Whether the client has not sent a complete request, or the connection is closing."""
        return self.conn.their_state in (h11.IDLE, h11.SEND_BODY) or self.transport.is_closing()

    def tick(self, moment: float) -> None:
        """Close the connection if its client has been too slow; `moment` is the monotonic time in seconds."""
        unsent = self.transport.get_write_buffer_size()
        if unsent != self._unsent or (not unsent and not self.is_asking):
            self.began, self._unsent = moment, unsent
        if moment - self.began > PATIENCE:
            self.transport.abort()

    def data_received(self, data: bytes) -> None:
        """Read data of the current request; a pipelined request gets no answer.

        Reading must go on during an answer, or the server would not notice that the client disconnects.
        """
        if self.conn.their_state in (h11.DONE, h11.MUST_CLOSE) and not self.cycle.response_complete:
            self.cycle.keep_alive = False
            return
        super().data_received(data)

    def on_response_complete(self) -> None:
        """Restart the client's time limit for its next request."""
        self.began = time.monotonic()
        super().on_response_complete()

    def shutdown(self) -> None:
        """Finish the answer to a complete request; close the connection on an incomplete request."""
        if self.is_asking and not self.transport.get_write_buffer_size():
            self.transport.abort()
        else:
            super().shutdown()


def make_room(connections: Iterable[Any]) -> None:
    """Close the connection whose client has been sending its request for the longest time, if there is one."""
    waiting = [each for each in connections if each.is_asking and not each.transport.is_closing()]
    if waiting:
        min(waiting, key=lambda each: each.began).transport.abort()


class Server(uvicorn.Server):
    """uvicorn's server without its signal handlers, which raise the signal again after shutdown."""

    _message_time = -SILENCE  # when the last message was printed

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at SIGTERM and Ctrl-C; a second Ctrl-C does not wait for open requests."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

        with handling(stop_signals(), stop):
            yield

    async def watch(self) -> None:
        """Check the time limits of all connections once a second."""
        while True:
            await asyncio.sleep(1)
            for connection in list(self.server_state.connections):
                connection.tick(time.monotonic())  # type: ignore[union-attr]

    def failed(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        """Report a failed connection, at most once per SILENCE: without free files, thousands may fail per second."""
        error = context.get("exception")
        if getattr(error, "errno", None) in (errno.EMFILE, errno.ENFILE):
            make_room(self.server_state.connections)
        if time.monotonic() - self._message_time >= SILENCE:
            self._message_time = time.monotonic()
            reason = getattr(error, "strerror", None) or type(error).__name__
            print(f"nmt.serve: a connection failed: {reason}.", file=sys.stderr, flush=True)


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve the application until a signal arrives."""
    Connection.most = min(CONNECTIONS, files() // 2)
    config = uvicorn.Config(
        app,
        http=Connection,
        backlog=min(BURST, Connection.most),
        log_level="error",  # no warnings about invalid requests
        access_log=False,  # the log must contain neither text nor addresses
        server_header=False,
        proxy_headers=False,  # any client can forge them
        timeout_graceful_shutdown=DRAIN,
        lifespan="off",
        ws="none",
    )

    async def serve() -> None:
        server = Server(config)
        asyncio.get_running_loop().set_exception_handler(server.failed)
        watching = asyncio.create_task(server.watch())
        await server.serve([listener])
        watching.cancel()

    asyncio.run(serve())


def files() -> int:
    """The process's limit on open files."""
    try:
        import resource
    except ImportError:  # Windows
        return 2 * CONNECTIONS
    most, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * CONNECTIONS if most == resource.RLIM_INFINITY else most


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """Open a listening socket as a context (UserError if the address cannot be used)."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=BURST)
    except OSError as error:
        reason = error.strerror or str(error)
        unknown = isinstance(error, socket.gaierror) or error.errno == errno.EADDRNOTAVAIL
        cure = "Give another host=." if unknown else "Give another port=, or port=0 for any free one."
        raise UserError(f"host={host} port={port}: {reason}. {cure}") from error
    with listener:
        yield listener
