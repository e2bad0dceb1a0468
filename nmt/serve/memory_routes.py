"""Routes for corrections, which are stored in `corrections.tmx` of the run, and for similar pairs of the memory."""

import importlib.util
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from fastapi import FastAPI
from starlette.responses import JSONResponse

from nmt.serve.problems import ProblemError, of_user
from nmt.serve.schemas import CorrectionBody, MemoryBody
from nmt.system.errors import UserError, install_command
from nmt.system.terminal import print_message
from nmt.translation.translation_memory import Remembered, TranslationMemory, can_compare, open_memory

if TYPE_CHECKING:
    from nmt.serve.pool import ModelPool

#: File name in the folder of a run. The file is not shared with the run.
CORRECTIONS = "corrections.tmx"


class MemoryFile:
    """A translation memory in a file that may be missing, and may change while the server runs."""

    def __init__(self, path: Path, languages: tuple[str, str]) -> None:
        self.path, self.languages = path, languages
        self._lock = threading.Lock()
        self._version: tuple[int, int] | None = None
        self._memory: TranslationMemory | None = None

    def read(self) -> TranslationMemory | None:
        """The current pairs; None without the file. If the file is damaged, print a message and keep the last pairs."""
        with self._lock:
            try:
                status = self.path.stat()
            except OSError:
                self._version = self._memory = None
                return None
            version = status.st_mtime_ns, status.st_size
            if version != self._version:
                self._version = version
                try:
                    self._memory = open_memory(self.path, self.languages)
                except UserError as error:
                    print_message(f"nmt.serve: {error}")
            return self._memory


class ModelMemory:
    """The memories of a model: pairs that answer texts without a search (memory=), and corrections for suggestions."""

    def __init__(self, folder: Path, answers: Path | None, languages: tuple[str, str]) -> None:
        """`folder` is the run folder, which has the corrections; `answers` is the file of memory=."""
        self.languages = languages
        self.corrections = MemoryFile(folder / CORRECTIONS, languages)
        self._answers = None if answers is None else MemoryFile(answers, languages)

    def check(self, alone: bool) -> None:
        """Print a message if the file of memory= is missing or invalid (UserError if invalid for the only model)."""
        if self._answers is None:
            return
        if not self._answers.path.exists():
            print_message(f"nmt.serve: memory={self._answers.path} is missing. It is read as soon as it is there.")
        elif self._answers.read() is None and alone:
            open_memory(self._answers.path, self.languages)

    def answers(self) -> TranslationMemory | None:
        """The pairs that answer texts without a search; None without memory=."""
        return None if self._answers is None else self._answers.read()

    def similar(self, text: str) -> list[Remembered]:
        """The three pairs of both memories that are most similar to a text, the most similar first."""
        memories = [self.corrections.read(), self.answers()]
        pairs = {(each.source, each.target): each for memory in memories if memory for each in memory.similar(text)}
        return sorted(pairs.values(), key=lambda each: -each.similarity)[:3]


def keeps_documents() -> bool:
    """Whether the extra `documents` is installed."""
    return all(importlib.util.find_spec(name) is not None for name in ("nmt.documents", "markdown_it"))


def add_memories(app: FastAPI, pool: "ModelPool", corrections: bool) -> None:
    """Add the routes. Without `corrections`, corrections are rejected."""

    @app.post("/v1/corrections", summary="Keep a correction in the run's corrections.tmx")
    async def keep(body: CorrectionBody) -> JSONResponse:
        model = pool.model(body.model)
        if not corrections:
            raise ProblemError(403, "This server keeps no corrections.", cure="Start it with corrections=true.")
        if not keeps_documents():
            cure = f"Install it: {install_command('documents')}"
            raise ProblemError(501, "Corrections need the extra 'documents', which this server lacks.", cure=cure)
        from nmt.documents.corrections import keep_correction

        path, languages = model.memory.corrections.path, model.memory.languages
        try:
            added = await pool.off_loop(keep_correction, path, body.source, body.target, languages)
        except UserError as error:
            if str(error).startswith(("source:", "target:")):
                raise of_user(error) from error
            raise ProblemError(503, str(error)) from error
        return JSONResponse({"file": str(path), "added": added})

    @app.post("/v1/memory", summary="The pairs of the memory whose sources are most similar to a text")
    async def memory(body: MemoryBody) -> JSONResponse:
        model = pool.model(body.model)
        matches: list[Remembered] = await pool.off_loop(model.memory.similar, body.text) if can_compare() else []
        return JSONResponse({"matches": [each._asdict() for each in matches]})


def offers(corrections: bool) -> Mapping[str, Any]:
    """The optional features of the page: corrections, suggestions from the memory, and file endings."""
    files: Sequence[str] = ()
    if keeps_documents():
        from nmt.documents.formats import ENDINGS

        files = ENDINGS
    return {"corrections": corrections and keeps_documents(), "memory": can_compare(), "files": files}
