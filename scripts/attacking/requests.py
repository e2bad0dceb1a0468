"""Attack a server with abandoned, incomplete and foreign requests, which its other clients must not notice."""

import contextlib
import json
import os
import random
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

from attacking.victim import Result, victim

ROOT = Path(__file__).resolve().parents[2]
#: Maximum seconds until another client gets its answer, on a busy machine; usually less than one second.
MOST_SECONDS = 20.0
#: Maximum growth of the server's memory in megabytes, and maximum bytes of its log.
MOST_MEGABYTES, MOST_LOG = 300, 10_000
#: Number of incomplete requests at a time: more than the server's limit on connections.
HALVES = 700
EVERYTHING = ["alignment", "weights", "self_weights", "alternatives", "stages", "beam"]
SHORT: dict[str, Any] = {"text": "Spain", "include": []}


class Server:
    """A process of `nmt.serve`, with its log."""

    def __init__(self, run: Path, folder: Path) -> None:
        self.log, self.connections = folder / "serve.log", list[socket.socket]()
        words = [f"run={run}", "port=0", "device=cpu", "threads=1", "hosts=[nmt.example.org]"]
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        command = [sys.executable, "-m", "nmt.serve", *words]
        with self.log.open("wb") as log:
            self.program = subprocess.Popen(command, stderr=log, cwd=folder, env=environment)
        while (address := re.search(r"http://127\.0\.0\.1:(\d+)/", self.log.read_text(encoding="utf-8"))) is None:
            if self.program.poll() is not None:
                raise RuntimeError(self.log.read_text(encoding="utf-8"))
            time.sleep(0.1)
        self.port = int(address[1])

    def asked(
        self, path: str, body: Any = None, seconds: float = MOST_SECONDS, headers: Mapping[str, str] | None = None
    ) -> int:
        """Send a request; return the status of the answer, or 0 if no answer arrives in time."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=seconds)
        try:
            if body is None:
                connection.request("GET", path, headers=headers or {})
            else:
                kind = {"Content-Type": "application/json"}
                connection.request("POST", path, json.dumps(body), {**kind, **(headers or {})})
            return connection.getresponse().status
        except OSError:
            return 0
        finally:
            connection.close()

    def opened(self, data: bytes) -> socket.socket:
        """Open a connection, send `data`, and leave the connection open."""
        self.connections.append(socket.create_connection(("127.0.0.1", self.port), MOST_SECONDS))
        self.connections[-1].sendall(data)
        return self.connections[-1]

    def megabytes(self) -> float:
        """The memory of the server's process; 0 if the system does not tell."""
        try:
            status = Path(f"/proc/{self.program.pid}/status").read_text(encoding="ascii")
        except OSError:
            return 0
        return int(re.findall(r"VmRSS:\s*(\d+)", status)[0]) / 1024

    def stopped(self) -> tuple[int | None, float]:
        """Send SIGTERM; return the exit status, None if the server does not end in time, and the seconds it took."""
        began = time.monotonic()
        self.program.send_signal(signal.SIGTERM)
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.program.wait(2 * MOST_SECONDS)
        status = self.program.poll()
        self.program.kill()
        self.program.wait()
        for connection in self.connections:
            connection.close()
        return status, time.monotonic() - began


def attack(count: int, seed: int, folder: Path) -> list[Result]:
    """Send and abandon `count` requests, then send requests of other sites, then incomplete requests."""
    server = Server(victim(folder), folder)
    try:
        results = [_abandoned(server, count, seed), _origins(server), _halves(server)]
    finally:
        status, seconds = server.stopped()
    ended, log = Result("SIGTERM among half requests"), server.log.read_text(encoding="utf-8")
    if status == 0 and seconds < MOST_SECONDS and len(log) < MOST_LOG and "Traceback" not in log:
        ended.add("ended with status 0")
    else:
        ended.fail(f"status {status} after {seconds:.0f} seconds, {len(log):,} bytes of log: {log[:1000]}")
    return [*results, ended]


def _heavy(generator: random.Random) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield requests that keep a model busy for seconds, or that the server rejects for their size."""
    while True:
        text = " ".join(["Spain"] * generator.randint(5, 60))
        search = {"beam_size": 50, "nbest": generator.choice((1, 10, 50))}
        yield generator.choice((
            ("/v1/explain", {"text": text, "target": text}),
            ("/v1/explain", {"text": text}),
            ("/v1/score", {"text": text, "target": text, "include": EVERYTHING}),
            ("/v1/whatif", {"text": text, "sweep": 5, "edits": {"prefix": "a"}, "include": EVERYTHING}),
            ("/v1/translate", {"text": [text] * 40, "search": search, "include": EVERYTHING}),
            ("/v1/translate", {"text": [text] * 40, "search": search, "include": []}),
            ("/v1/translate/stream", {"text": text, "search": search, "include": EVERYTHING}),
        ))  # fmt: skip


def _abandoned(server: Server, count: int, seed: int) -> Result:
    """Abandon requests: the next client must be answered soon, and memory must be freed."""
    result, generator = Result("requests of clients that leave"), random.Random(seed)
    server.asked("/v1/explain", {"text": "Spain", "target": "Spain"})  # warm-up before the first look at memory
    before = server.megabytes()
    for _, (path, body) in zip(range(count), _heavy(generator)):
        status = server.asked(path, body, 0.5)
        began = time.monotonic()
        health, other = server.asked("/health"), server.asked("/v1/translate", SHORT)
        what = f"{path} {len(str(body)):,} characters: status {status}"
        if (health, other) == (200, 200) and status in (0, 200, 413, 422):
            result.add("refused" if status >= 400 else "done" if status else "stopped")
        else:
            result.fail(f"{what}, then {health} and {other} after {time.monotonic() - began:.1f} seconds")
        print(f"{what}, the next client after {time.monotonic() - began:.1f} s", flush=True)
    time.sleep(2)
    if server.megabytes() > before + MOST_MEGABYTES:
        result.fail(f"{before:.0f} MB before, {server.megabytes():.0f} MB after")
    return result


def _origins(server: Server) -> Result:
    """Send requests as browsers do for other sites (to be rejected), for the page and for programs (to be served)."""
    result, site = Result("origins"), f"http://127.0.0.1:{server.port}"
    foreign = ("null", "file://", "http://evil.example", "https://[", f"{site}0", "ftp://127.0.0.1", "http://localhost")
    tries: list[tuple[int, str, dict[str, str]]] = [(403, "/v1/translate", {"Origin": each}) for each in foreign]
    tries += [(403, "/v1/translate", {"Sec-Fetch-Site": each}) for each in ("cross-site", "same-site")]
    tries += [(200, "/v1/translate", {"Origin": each}) for each in (site, "https://nmt.example.org:8443")]
    tries += [(200, "/v1/translate", {}), (200, "/v1/translate", {"Sec-Fetch-Site": "same-origin", "Origin": site})]
    visit = {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}
    tries += [(200, "/", visit), (403, "/v1/corpus", {"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors"})]
    tries += [(421, "/health", {"Host": "evil.example"}), (200, "/health", {"Host": "nmt.example.org"})]
    for expected, path, headers in tries:
        status = server.asked(path, SHORT if path == "/v1/translate" else None, headers=headers)
        if status == expected:
            result.add("refused" if status >= 400 else "served")
        else:
            result.fail(f"{path} {headers}: status {status}, not {expected}")
    answer = server.opened(b"GET /health HTTP/1.0\r\n\r\n").recv(100)
    result.add("served") if b" 200 " in answer else result.fail(f"HTTP/1.0 without a host: {answer!r}")
    return result


def _halves(server: Server) -> Result:
    """Open more connections with incomplete requests than the server allows; other clients must still be answered."""
    result = Result("half requests")
    head = b"POST /v1/translate HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    halves = (
        b"",
        head,
        head + b'Content-Length: 100\r\n\r\n{"text": ',
        head + b"Transfer-Encoding: chunked\r\n\r\n9\r\n",
    )
    for number in range(HALVES):
        try:
            server.opened(halves[number % len(halves)])
            result.add("sent")
        except OSError as error:
            result.fail(f"connection {number} is not accepted: {error}")
        if number % 100 == 99 and (status := server.asked("/v1/translate", SHORT)) != 200:
            result.fail(f"beside {number} of them: status {status}")
    return result
