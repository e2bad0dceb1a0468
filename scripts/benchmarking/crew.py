"""One process per case, so that the memory of each case is measured separately; while one case measures, others wait.

The leading process loads neither torch nor the corpus. The libraries of all cases are loaded once, in a process that
computes nothing. Each case is a fork of this process, and so its peak memory includes the libraries.
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
        """Start the process and wait until it is ready; its standard error goes to `log`.

        Raises:
            UserError: the case raised a UserError, or died.
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
        """Send an order and return the answer, which includes the `peak_memory` so far, in bytes."""
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
    """Start a case that needs no orders; return its answer."""
    with Case(job, settings, log) as case:
        return case.ready


def end_with_leader() -> None:
    """End this process when the leading process ends in any way: a case could go on training for an hour."""
    leader = multiprocessing.parent_process()

    def wait() -> None:
        if leader is not None:
            leader.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _serve(connection: Connection, job: str, settings: Json, log: Path) -> None:
    """Run a case: the main function of its process."""
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
