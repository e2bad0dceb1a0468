"""The models of a server: turns checked request bodies into rows for the models' queues, within limits."""

import asyncio
import functools
from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from starlette.requests import Request as HttpRequest

from nmt.attention import Pin, Pins
from nmt.data.document_lines import Follower
from nmt.inspection.details import Detail
from nmt.inspection.explanation import explain
from nmt.inspection.whatif import Edits, what_if
from nmt.runs.run import Run
from nmt.serve.answers import Answers
from nmt.serve.engine import Engine, Key, SearchSettings, Work
from nmt.serve.memory_routes import ModelMemory
from nmt.serve.problems import ProblemError, invalid, too_long
from nmt.serve.rows import Row, Worker
from nmt.serve.schemas import ExplainBody, ModelBody, PinBody, ScoreBody, SearchBody, TranslateBody, WhatIfBody
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.glossary import Glossary
from nmt.translation.request import Request
from nmt.translation.term_files import open_glossary

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Caps:
    """The limits of a request.

    Attributes:
        texts: texts of a request. pieces: pieces of a text. beam: beam size, and length of n-best lists.
        seconds: time until a request fails.
        numbers: numbers in the details of an answer. places: source pieces x target pieces of a translation to score.
    """

    texts: int = 10_000
    pieces: int = 1000
    beam: int = 50
    seconds: float = 600.0
    numbers: int = 4_000_000
    places: int = 250_000


@dataclass(frozen=True)
class Served:
    """A served model: its id, run, description (for GET /v1/models), engine, worker and memories."""

    id: str
    run: Run
    description: Mapping[str, Any]
    engine: Engine
    worker: Worker
    memory: ModelMemory

    @property
    def named(self) -> dict[str, Any]:
        """The fields that identify the model in answers."""
        return {**(self.engine.style.model or {})}

    @property
    def longest(self) -> int:
        """The maximum number of pieces in a text that the model reads as a whole."""
        return self.engine.translator.max_source_length


class ModelPool:
    """All models, and the checks that turn requests into rows."""

    def __init__(self, models: Sequence[Served], caps: Caps) -> None:
        self.models = {model.id: model for model in models}
        self.first = models[0]
        self.caps = caps
        # For slow functions, which must not block the event loop.
        self._threads = ThreadPoolExecutor(2, "nmt pool")

    async def off_loop(self, function: Callable[..., Answer], *arguments: Any, **named: Any) -> Answer:
        """Call a function in another thread, since it could block the event loop; return its result."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(function, *arguments, **named))

    async def ask(self, request: HttpRequest, model: Served, rows: Sequence[Row]) -> tuple[list[Any], dict[str, Any]]:
        """Compute rows; return results and `timing` (ProblemError for a failed row, a timeout or a lost client)."""
        return await Answers(rows, model.worker.queue, self.caps.seconds).unless_gone(request)

    def model(self, name: str | None, field: str = "model") -> Served:
        """The model with this id; None means the first (ProblemError 404 for the request's `field` if unknown)."""
        if name is None:
            return self.first
        if name not in self.models:
            known = ", ".join(self.models)
            raise ProblemError(404, f"{field}: there is no such model.", field=field, cure=f"Give one of: {known}.")
        return self.models[name]

    def translations(self, body: TranslateBody, live: bool = False) -> tuple[Served, list[Row], dict[str, Any]]:
        """The model, rows and search of a request to translate. With `live`, a single text is computed alone.

        Raises:
            ProblemError: a limit is exceeded, or fields do not fit together.
        """
        model = self.model(body.model)
        texts = [body.text] if isinstance(body.text, str) else body.text
        if len(texts) > self.caps.texts:
            raise too_long("text", f"{len(texts):,} texts.", self.caps.texts, "Send several requests.")
        prefixes = [body.prefix] * len(texts) if isinstance(body.prefix, str) else body.prefix
        if len(prefixes) != len(texts):
            raise invalid("prefix", f"{len(prefixes)} prefixes for {len(texts)} texts.", cure="Give one for each text.")
        self._check_prefixes("prefix", *prefixes)
        pins, include, settings = _pins(body.pins), frozenset(body.include), self._search(model.engine, body.search)
        if pins and not model.description["attends"]:
            raise invalid("pins", "this model has no attention.", cure="Leave pins out, or name another model.")
        alone, most = "beam" in include or (live and len(texts) == 1), body.search.max_length
        key = Key(settings, bool(include or pins), alone)
        glossary = self._glossary(model, body, texts, settings)
        pairs = model.memory.answers() if body.memory else None
        works = [
            Work(
                Request(text, prefix, context, pins, most, glossary=glossary, memory=pairs),
                include,
                keep_words=bool(pins) and body.keep_words,
            )
            for text, prefix, context in zip(texts, prefixes, self._contexts(model, body, texts), strict=True)
        ]
        sizes = self._sizes(model, [work.request for work in works])
        lengths = [model.engine.most_pieces(size, prefix, most) for size, prefix in zip(sizes, prefixes, strict=True)]
        _check_steps(pins, lengths)
        self._check_numbers(model, zip(sizes, lengths, strict=True), include, settings.nbest)
        rows = [Row(key, work, size) for work, size in zip(works, sizes, strict=True)]
        return model, rows, model.engine.described(settings)

    def _glossary(
        self, model: Served, body: TranslateBody, texts: Sequence[str], settings: SearchSettings
    ) -> Glossary | None:
        """The glossary of a request (ProblemError if it is invalid, or the terms of a text are too long in total)."""
        try:
            glossary = open_glossary(body.glossary or None, body.keep, model.engine.translator.tokenizer.target)
        except UserError as error:
            raise invalid("glossary", str(error), cure="Send other terms.") from error
        if glossary is None:
            return None
        if settings.beam_size == 1:
            raise invalid("search.beam_size", "a glossary needs beam search.", cure="Give search.beam_size=5.")
        most = self.caps.pieces
        if any(sum(max(map(len, match.targets)) for match in glossary.find(text[: 100 * most])) > most
               for text in texts):  # fmt: skip
            detail = f"the terms of a text have more than {most:,} characters."
            raise too_long("glossary", detail, most, "Split the text into sentences.")
        return glossary

    def scores(self, body: ScoreBody) -> tuple[Served, Row]:
        """The model and row of a request to score a translation (ProblemError if it is invalid)."""
        model, include = self.model(body.model), frozenset(body.include) - {"beam"}
        for field, text in (("text", body.text), ("target", body.target)):
            if shows_nothing(text):
                raise invalid(field, "is blank.", cure="Give a line with words.")
        (context,) = self._contexts(model, body, [body.text])
        (length,) = self._pieces(model, "target", [body.target], target=True)
        (size,) = self._sizes(model, [Request(body.text, context=context)])
        if size * length > self.caps.places:
            detail = f"{size:,} source pieces times {length:,} target pieces."
            raise too_long("text", detail, self.caps.places, "Split both into sentences.")
        self._check_numbers(model, [(size, length)], include)
        return model, Row(functools.partial(model.engine.score, body.text, body.target, context, include), None, size)

    def what_ifs(self, body: WhatIfBody) -> tuple[Served, Row]:
        """The model and row of a what-if request (ProblemError if it is invalid)."""
        model, include = self.model(body.model), frozenset(body.include) - {"beam"}
        edited = body.edits
        if body.search.max_length is not None:
            raise invalid("search.max_length", "has no effect here.", cure="Leave it out.")
        for field, asked in (("edits.pins", edited.pins), ("sweep", body.sweep), ("temperature", body.temperature)):
            if asked not in (None, []) and not model.description["attends"]:
                raise invalid(field, "this model has no attention.", cure=f"Leave {field} out, or name another model.")
        edits = Edits(edited.text, edited.prefix, _pins(edited.pins), edited.context, edited.keep_words)
        (context,) = self._contexts(model, body, [body.text])
        self._check_context(model, "edits.context", edits.context or [])
        self._check_prefixes("prefix", body.prefix)
        self._check_prefixes("edits.prefix", edits.prefix)
        sizes = self._pieces(model, "edits.text", [edits.text or ""], model.longest)
        sizes += self._sizes(model, [Request(body.text, context=context)], model.longest)
        length = model.engine.most_pieces(max(sizes), body.prefix)
        _check_steps(edits.pins, [length])
        self._check_numbers(model, [(max(sizes), length)] * 2, include)  # two documents, both at most this large
        translator, style = model.engine.for_one(self._search(model.engine, body.search), include)
        warmth = None if body.temperature is None else (body.temperature.step, body.temperature.value)
        more = include, body.sweep, context, body.prefix, warmth
        return model, Row(functools.partial(what_if, translator, body.text, edits, style, *more), None, sizes[-1])

    def explanations(self, body: ExplainBody) -> tuple[Served, Row]:
        """The model and row of a request to explain a translation (ProblemError if it is invalid)."""
        model, methods = self.model(body.model), tuple(dict.fromkeys(body.methods))
        self._pieces(model, "target", [body.target or ""], model.longest, target=True)
        (context,) = self._contexts(model, body, [body.text])
        (size,) = self._sizes(model, [Request(body.text, context=context)], model.longest)
        translator, style = model.engine.for_one(model.engine.defaults)
        style = replace(style, head=body.head or style.head, shift=body.shift)
        more = methods, context, body.word
        return model, Row(functools.partial(explain, translator, body.text, body.target, style, *more), None, size)

    def _contexts(self, model: Served, body: ModelBody, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """The previous sentences that the model sees for each text, the nearest last.

        Raises:
            ProblemError: the model uses no context, or the context could belong to several texts.
        """
        documents = body.documents if isinstance(body, TranslateBody) else "none"
        self._check_context(model, "documents", documents != "none")
        if body.context and documents == "none" and len(texts) != 1:
            raise invalid("context", f"there are {len(texts)} texts.", cure="Give documents=one, or one text.")
        self._check_context(model, "context", body.context)
        if not body.context and documents == "none":
            return [()] * len(texts)
        follower = Follower(model.engine.translator.context_sentences, "one" if documents == "none" else documents)
        follower.take(body.context)
        return [tuple(context) for context in follower.take(texts)]

    def _check_context(self, model: Served, field: str, given: Sequence[str] | bool) -> None:
        """Raise ProblemError for context if the model uses none, and for sentences too long or with line breaks."""
        if given and not model.engine.translator.context_sentences:
            raise invalid(field, "this model sees single sentences.", cure=f"Leave {field} out, or name another model.")
        if not isinstance(given, bool):
            self._pieces(model, field, given)

    def _check_prefixes(self, field: str, *prefixes: str) -> None:
        most = self.caps.pieces
        if any(len(prefix) > most for prefix in prefixes):
            raise too_long(field, f"a prefix has more than {most:,} characters.", most, "Give a shorter prefix.")

    def _search(self, engine: Engine, body: SearchBody) -> SearchSettings:
        """The run's search settings with the changes of a request; the beam is at least as large as the n-best list."""
        given = {name: value for name in SearchSettings._fields if (value := getattr(body, name)) is not None}
        most = self.caps.beam
        for name in ("beam_size", "nbest"):
            if given.get(name, 0) > most:
                raise invalid(f"search.{name}", f"is {given[name]}.", limit=most, cure=f"Give at most {most}.")
        settings = engine.defaults._replace(**given)
        size, nbest = settings.beam_size, settings.nbest
        if nbest > size and {"nbest", "beam_size"} <= given.keys():
            cure = f"Give search.beam_size={nbest}."
            raise invalid("search.nbest", f"must be at most beam_size={size}.", cure=cure)
        if "beam_size" in given:
            return settings._replace(nbest=min(nbest, size))
        return settings._replace(beam_size=max(nbest, size))

    def _pieces(
        self, model: Served, field: str, texts: Sequence[str], most: int | None = None, *, target: bool = False
    ) -> list[int]:
        """The number of pieces of each text (ProblemError if a text has more than `most` pieces, or a line break)."""
        if any("\n" in text or "\r" in text for text in texts):
            raise invalid(field, "has a line break.", cure="Send a list with one line in each text.")
        # A check before the tokenizer, which would be slow on very long texts.
        longest = 100 * self.caps.pieces
        if any(len(text) > longest for text in texts):
            raise too_long(field, f"a text has more than {longest:,} characters.", longest, "Send shorter texts.")
        sizes = model.engine.pieces(texts, target=target)
        most = self.caps.pieces if most is None else min(most, self.caps.pieces)
        if sizes and max(sizes) > most:
            detail = f"text {sizes.index(max(sizes))} has {max(sizes):,} pieces."
            raise too_long(field, detail, most, "Split it into sentences.")
        return sizes

    def _sizes(self, model: Served, requests: Sequence[Request], most: int | None = None) -> list[int]:
        """The number of pieces of each text with its context (ProblemError as for `_pieces`)."""
        sizes = self._pieces(model, "text", [request.text for request in requests], most)
        before = list({sentence: None for request in requests for sentence in request.context})
        pieces = dict(zip(before, model.engine.pieces(before), strict=True))
        return [
            size + sum(pieces[sentence] for sentence in request.context)
            for size, request in zip(sizes, requests, strict=True)
        ]

    def _check_numbers(
        self, model: Served, sizes: Iterable[tuple[int, int]], include: Set[Detail], nbest: int = 1
    ) -> None:
        """Raise ProblemError if the answer could be too large; `sizes` has source and target pieces of documents."""
        numbers = sum(model.engine.numbers(source, target, nbest, include) for source, target in sizes)
        if numbers > self.caps.numbers:
            detail = f"its details could have {numbers:,} numbers."
            raise too_long("include", detail, self.caps.numbers, "Ask for fewer details, hypotheses or texts.")


def _check_steps(pins: Pins, lengths: Sequence[int]) -> None:
    """Raise ProblemError for a pinned step beyond the maximum length of a translation."""
    if lengths and max(pins, default=-1) >= (steps := min(lengths)):
        raise invalid("pins", "a step does not exist.", limit=steps - 1, cure=f"Give 0 to {steps - 1}.")


def _pins(pins: Sequence[PinBody]) -> dict[int, Pin]:
    if len({pin.step for pin in pins}) < len(pins):
        raise invalid("pins", "a step is named twice.", cure="Name all source pieces of a step in one entry.")
    return {pin.step: Pin(pin.source, pin.weight) for pin in sorted(pins, key=lambda pin: pin.step)}
