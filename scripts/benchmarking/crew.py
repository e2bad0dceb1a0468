"""A process a case, so that no case sees another's memory, and all of them wait while one measures.

The leading process loads neither torch nor the corpus. What the cases have in common is loaded once, in a process that
computes nothing and of which each case is a fork; a case's largest resident set starts from there.
"""

import contextlib
import multiprocessing
import os
import threading
import traceback
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, SpawnContext
from pathlib import Path
from typing import Self

from benchmarking.settings import Json
from nmt.system.errors import UserError
from nmt.system.platform import peak_memory

_LOADED_ONCE = ["torch", "numpy", "hydra", "omegaconf", "safetensors.torch", "sentencepiece", "tqdm", "nmt.build.parts"]


class Case:
    """A process that does one kind of work on request."""

    def __init__(self, job: str, settings: Json, log: Path) -> None:
        """Start it and wait until it is ready; what it says on standard error goes to `log`.

        Raises:
            UserError: what the case raised, or that it died.
        """
        known = "forkserver" in multiprocessing.get_all_start_methods()
        context: ForkServerContext | SpawnContext
        if known:
            context = multiprocessing.get_context("forkserver")
            context.set_forkserver_preload(_LOADED_ONCE)
        else:
            context = multiprocessing.get_context("spawn")
        self._name, self._log = job, log
        self._connection, other = context.Pipe()
        self._process = context.Process(target=_serve, args=(other, job, settings, log), daemon=True)
        self._process.start()
        other.close()
        self.ready = self._receive()

    def ask(self, **order: object) -> Json:
        """Has one order carried out and returns the answer, which holds the `peak_memory` so far."""
        self._connection.send(order)
        return self._receive()

    def _receive(self) -> Json:
        try:
            kind, answer = self._connection.recv()
        except (EOFError, ConnectionResetError) as error:
            raise UserError(
                f"The {self._name} case died, perhaps because memory ran out. The end of its log:\n{self._log_end()}"
            ) from error
        if kind == "mistake":
            raise UserError(answer)
        if kind == "error":
            raise RuntimeError(f"in the {self._name} case:\n{answer}")
        return dict(answer)

    def _log_end(self) -> str:
        return "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-5:])

    def close(self) -> None:
        """End the process."""
        with contextlib.suppress(OSError):
            self._connection.send(None)
        self._connection.close()
        self._process.join(10)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def once(job: str, settings: Json, log: Path) -> Json:
    """What a case that needs no orders answers."""
    with Case(job, settings, log) as case:
        return case.ready


def end_with_leader() -> None:
    """Let this process end when the leading one does, however that ends: a case may train for an hour on its own."""
    leader = multiprocessing.parent_process()

    def wait() -> None:
        if leader is not None:
            leader.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _serve(connection: Connection, job: str, settings: Json, log: Path) -> None:
    """The process of a case."""
    end_with_leader()
    file = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(file, 2)
    os.close(file)

    def exchange(answer: Json) -> Json | None:
        connection.send(("answer", {**answer, "peak_memory": peak_memory()}))
        try:
            order: Json | None = connection.recv()
        except EOFError:
            return None
        return order

    try:
        from benchmarking import work

        work.JOBS[job](settings, exchange)
    except UserError as error:
        connection.send(("mistake", str(error)))
    except KeyboardInterrupt:
        pass
    except Exception:
        connection.send(("error", traceback.format_exc()))
