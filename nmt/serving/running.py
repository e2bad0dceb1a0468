"""The command: runs -> a server that ends when it is told to, after the requests at hand."""

import contextlib
import hashlib
import importlib.util
import socket
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated, Any

from nmt.data.languages import UNNAMED
from nmt.errors import UserError
from nmt.limits import Amount, Positive, between
from nmt.pipeline.linking import named_languages
from nmt.pipeline.opening import TranslatorRequest, default_head, has_weights
from nmt.runs import Run
from nmt.serving.examples import example
from nmt.terminal import print_message
from nmt.translation.stepping import heads_of
from nmt.translation.translator import Translator

if TYPE_CHECKING:
    from nmt.serving.asking import Served


@dataclass(frozen=True)
class Serving:
    """What `nmt.serve` is asked to do; `configs/serve.yaml` explains the settings."""

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

    def __post_init__(self) -> None:
        if self.translator.shortlist:
            raise UserError("shortlist= does not fit nmt.serve, whose page shows the whole vocabulary. Leave it out.")


def serve(request: Serving) -> int:
    """Serve until SIGTERM or Ctrl-C; the exit status.

    Raises:
        UserError: a run is missing or damaged, the port is taken, or the extra is not installed.
    """
    check_installed()
    from nmt.serving import listening
    from nmt.serving.app import application
    from nmt.serving.asking import Asker, Caps

    runs = request.translator.runs
    with listening.listening(request.host, request.port) as listener:
        models = [served(request, run, name) for run, name in zip(runs, names(runs), strict=True)]
        caps = Caps(request.max_texts, request.max_pieces, request.max_beam, seconds=request.deadline)
        app = application(
            Asker(models, caps),
            hosts=list(map(str, request.hosts)),
            most_bytes=request.max_bytes,
            host=request.host,
            split_sentences=request.split_sentences,
        )
        for model in models:
            model.worker.start()
        address, port = listener.getsockname()[:2]
        places = [f"http://{place}:{port}/" for place in addresses(address)]
        print_message(f"nmt.serve: {', '.join(model.id for model in models)} at {' and '.join(places)}")
        listening.run(app, listener)
        stopped = [model.worker.stop(listening.DRAIN) for model in models]
        if not all(stopped):
            print_message("nmt.serve: a model did not finish in time.")
            return 1
    return 0


def addresses(address: str) -> list[str]:
    """The addresses in URLs of a server that listens at `address`: of all, this computer's here and in its network."""
    if address not in ("0.0.0.0", "::"):
        return [f"[{address}]" if ":" in address else address]
    # Nothing is sent: the system only chooses the address that packets to elsewhere would have.
    family, own, elsewhere = (
        (socket.AF_INET6, "::1", "2001:db8::1") if ":" in address else (socket.AF_INET, "127.0.0.1", "192.0.2.1")
    )
    places = [own]
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as probe:
        probe.connect((elsewhere, 9))
        places.append(str(probe.getsockname()[0]))
    return [f"[{place}]" if ":" in place else place for place in dict.fromkeys(places)]


def names(runs: Sequence[Run]) -> list[str]:
    """The ids of runs: their names, or their folders where two have one name."""
    short = [run.folder.resolve().name for run in runs]
    return [name if short.count(name) == 1 else str(run.folder) for run, name in zip(runs, short, strict=True)]


def check_installed() -> None:
    """Raise UserError if the extra is not installed."""
    for name in ("fastapi", "uvicorn"):
        if importlib.util.find_spec(name) is None:
            raise UserError(f"nmt.serve needs the package {name}. Install it: pip install 'nmt[serve]'")


def served(request: Serving, run: Run, name: str) -> "Served":
    """A model, ready to be asked, after a first translation of its example."""
    from nmt.serving.asking import Served
    from nmt.serving.engine import Engine
    from nmt.serving.queueing import RowQueue
    from nmt.serving.worker import Worker

    opening = replace(request.translator, run=str(run.folder))
    translator = opening.open(keep_weights=True)
    description = describe(run, translator, request.languages)
    head = default_head([run], translator) if has_weights(translator) else "auto"
    model = {"id": name, "fingerprint": description["fingerprint"]}
    engine = Engine(translator, head=head, model=model)
    queue = RowQueue(request.queue_pieces, opening.batch_sentences, request.batch_pieces)
    description["search"] = engine.described(engine.defaults, engine.nbest)
    if description["example"]:  # the first request need not wait for what is loaded on first use
        translator.translate_chunk([description["example"]])
    worker = Worker(queue, engine.compute, name)
    translator.stepper.check = worker.check
    return Served(name, run, description, engine, worker)


def describe(run: Run, translator: Translator, languages: Any = None) -> dict[str, Any]:
    """What GET /v1/models says of a run; `languages` are those of a run whose training has not named them."""
    codes = tuple(str(code) for code in run.facts().get("languages", []))
    source, target = codes if len(codes) == 2 else (None, None)
    if languages is not None and {source, target} & {None, *UNNAMED}:
        source, target = named_languages(languages, UNNAMED)
    model = translator.models[0]
    return {
        "fingerprint": fingerprint(run),
        "source": source,
        "target": target,
        "languages": [language_name(code or word) for code, word in ((source, "source"), (target, "target"))],
        "attends": has_weights(translator),
        "heads": list(heads_of(translator.models)),
        "encoder_heads": list(model.encoder.heads),
        "self_heads": list(model.decoder.self_heads),
        "context_sentences": translator.context_sentences,
        "example": example(run),
        "bleu": scored(run, "bleu"),
        "chrf": scored(run, "chrf"),
        "splits": run.splits(),
        "validation": validation(run),
    }


def fingerprint(run: Run) -> str:
    """The first digits of a sum over the weights and the configuration of a run."""
    digest = hashlib.sha256()
    for path in (run.folder / "config.yaml", run.best if run.best.exists() else run.last):
        with path.open("rb") as file:
            while block := file.read(2**20):
                digest.update(block)
    return digest.hexdigest()[:16]


def language_name(code: str) -> str:
    """The English name of a language; the code itself if it has none."""
    from nmt.data.languages import english_name

    return english_name(code)


def validation(run: Run) -> dict[str, float] | None:
    """BLEU (chrF where BLEU cannot judge), exact matches and perplexity of the best validation; None without one."""
    best = [entry for entry in run.history() if entry.get("best")]
    names = {name: f"valid_{name}" for name in ("bleu", "chrf", "exact", "perplexity")} | {"step": "step"}
    return {name: best[-1][key] for name, key in names.items() if key in best[-1]} if best else None


def scored(run: Run, metric: str) -> dict[str, Any] | None:
    """A score of the first evaluated split with its signature; None without an evaluation, and for chrF beside BLEU.

    chrF comes with the exact matches in per cent, where BLEU cannot judge.
    """
    for split in run.splits():
        with contextlib.suppress(UserError, KeyError, TypeError):
            scores = run.scores(split)
            if metric == "chrf" and scores.get("judged_by") != "chrf":
                return None
            exact = {"exact": scores["exact_matches"]} if metric == "chrf" else {}
            found = scores[metric]
            return {"score": found["value"], "signature": found["signature"], "split": split, **exact}
    return None
