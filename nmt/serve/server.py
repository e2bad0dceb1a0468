"""The command: serves runs until a signal, then finishes open requests and ends."""

import contextlib
import importlib.util
import itertools
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from nmt.build.open import TranslatorRequest
from nmt.data.habits import LineWatch
from nmt.data.languages import UNNAMED
from nmt.runs.run import Run
from nmt.serve.description import describe
from nmt.system.errors import UserError, install_command
from nmt.system.limits import Amount, Positive, between
from nmt.system.terminal import print_message
from nmt.text.known_words import load_known_words

if TYPE_CHECKING:
    from nmt.serve.pool import Served


@dataclass(frozen=True)
class Serving:
    """The settings of `nmt.serve`; `configs/serve.yaml` explains them."""

    translator: TranslatorRequest
    host: str
    port: Annotated[int, between(0, 65535)]
    hosts: Sequence[str]
    queue_pieces: Positive
    batch_pieces: Positive
    max_texts: Positive
    max_pieces: Positive
    max_beam: Positive
    max_bytes: Positive
    deadline: Amount
    languages: Any
    split_sentences: bool
    memory: Path | None
    corrections: bool
    page: Literal["full", "plain"]

    def __post_init__(self) -> None:
        if self.translator.shortlist:
            raise UserError("shortlist= does not fit nmt.serve, whose page shows the whole vocabulary. Leave it out.")


def serve(request: Serving) -> int:
    """Serve until SIGTERM or Ctrl-C; return the exit status.

    Raises:
        UserError: a run is missing or damaged, the port is taken, or the extra is not installed.
    """
    for name in ("fastapi", "prometheus_client", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise UserError(f"nmt.serve needs the package {name}. Install it: {install_command('serve')}")
    from nmt.serve import connections
    from nmt.serve.app import application
    from nmt.serve.pool import Caps, ModelPool

    runs = [run.files for run in request.translator.runs]
    with connections.listening(request.host, request.port) as listener:
        models = [served(request, run, name) for run, name in zip(runs, names(runs), strict=True)]
        caps = Caps(request.max_texts, request.max_pieces, request.max_beam, seconds=request.deadline)
        app = application(ModelPool(models, caps), request)
        for model in models:
            model.worker.start()
        address, port = listener.getsockname()[:2]
        places = [f"http://{place}:{port}/" for place in addresses(address)]
        print_message(f"nmt.serve: {', '.join(model.id for model in models)} at {' and '.join(places)}")
        connections.run(app, listener)
        stopped = [model.worker.stop(connections.DRAIN) for model in models]
        if not all(stopped):
            print_message("nmt.serve: a model did not finish in time.")
            return 1
    return 0


def addresses(address: str) -> list[str]:
    """The hosts in a server's URLs; if it listens at all addresses, localhost and this computer's network address."""
    places = [address]
    if address in ("0.0.0.0", "::"):
        # Nothing is sent: the system only chooses the source address for packets to other networks.
        family, loopback, elsewhere = (
            (socket.AF_INET6, "::1", "2001:db8::1") if ":" in address else (socket.AF_INET, "127.0.0.1", "192.0.2.1")
        )
        places = [loopback]
        with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
            probe.connect((elsewhere, 9))
            places.append(str(probe.getsockname()[0]))
    return [f"[{place}]" if ":" in place else place for place in dict.fromkeys(places)]


def names(runs: Sequence[Run]) -> list[str]:
    """The ids of runs: their names, with as many parent folders as are needed to make them unique."""
    folders = [run.folder.resolve() for run in runs]

    def tail(folder: Path, depth: int) -> str:
        return Path(*folder.parts[-depth:]).as_posix()

    short = [next(tail(each, depth) for depth in range(1, 1 + len(each.parts))
                  if not any(tail(each, depth) == tail(other, depth) for other in folders if other != each))
             for each in folders]  # fmt: skip
    free: list[str] = []
    for name in short:
        numbered = (f"{name} {number}" for number in itertools.count(1))
        free.append(name if short.count(name) == 1 else next(each for each in numbered if each not in {*free, *short}))
    return free


def served(request: Serving, run: Run, name: str) -> "Served":
    """Open a model for serving. Translating the page's example sentences warms it up."""
    from nmt.build.open import open_linker
    from nmt.build.word_doubts import open_doubts
    from nmt.serve.engine import Engine
    from nmt.serve.memory_routes import ModelMemory
    from nmt.serve.pool import Served
    from nmt.serve.rows import RowQueue, Worker

    opening = replace(request.translator, run=str(run.folder))
    translator = opening.open(keep_weights=True)
    words = load_known_words(run.words)
    description = describe(run, translator, words, request.languages, opening.checkpoint)
    named = [str(code) for code in run.facts().get("languages", [])]
    if request.languages is not None and named and not {*named} & {*UNNAMED}:
        print_message(f"{name}: languages= is not used, because the run names {' and '.join(named)}.")
    queue = RowQueue(request.queue_pieces, opening.most_sentences, request.batch_pieces)
    worker = Worker(queue, lambda key, works: engine.compute(key, works), name)
    head = translator.heads.default if translator.attends else "auto"
    model = {"id": name, "fingerprint": description["fingerprint"]}
    if note := description["hardly_trained"]:
        model["note"] = note
    doubts = open_doubts(opening.runs[0])
    linker = open_linker(opening.runs[0], translator)
    checked = replace(translator, check=worker.check)
    watch = LineWatch("The text", run.facts())
    engine = Engine(checked, head=head, model=model, linker=linker, doubts=doubts, words=words, watch=watch)
    if engine.defaults.beam_size > request.max_beam:
        size = engine.defaults.beam_size
        raise UserError(f"max_beam={request.max_beam}: {name} searches with a beam of {size}. Give max_beam={size}.")
    description["search"] = engine.described(engine.defaults)
    codes = str(description["source"] or UNNAMED[0]), str(description["target"] or UNNAMED[1])
    memory = ModelMemory(run.folder, request.memory, codes)
    memory.check(alone=len(request.translator.runs) == 1)
    return Served(name, run, description, engine, worker, memory)
