"""The socket and the HTTP server, which ends after the requests at hand when a signal tells it to."""

import asyncio
import contextlib
import signal
import socket
from collections.abc import Generator, Iterator
from types import FrameType

import uvicorn
from starlette.types import ASGIApp

from nmt.errors import UserError
from nmt.signals import handling, stop_signals

#: Seconds that requests at hand have after SIGTERM.
DRAIN = 60


class Server(uvicorn.Server):
    """uvicorn's server without its handlers, which raise the signal again when all is done."""

    @contextlib.contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at SIGTERM and Ctrl-C; a second Ctrl-C does not wait for the requests at hand."""

        def stop(number: int, frame: FrameType | None) -> None:
            self.force_exit = self.should_exit and number == signal.SIGINT
            self.should_exit = True

        with handling(stop_signals(), stop):
            yield


def run(app: ASGIApp, listener: socket.socket) -> None:
    """Serve until a signal."""
    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # neither text nor addresses
        server_header=False,
        timeout_graceful_shutdown=DRAIN,
        lifespan="off",
        ws="none",
    )
    asyncio.run(Server(config).serve([listener]))


@contextlib.contextmanager
def listening(host: str, port: int) -> Iterator[socket.socket]:
    """A socket that accepts connections (UserError if the address cannot be used)."""
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        listener = socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = error.strerror or str(error)
        cure = "Give another port=, or port=0 for any free one."
        raise UserError(f"host={host} port={port}: {reason}. {cure}") from error
    with listener:
        yield listener
