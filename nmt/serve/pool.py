"""The models of a server: checked bodies -> rows for their queues, within limits."""

import asyncio
import functools
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from starlette.requests import Request

from nmt.data.document_lines import Follower
from nmt.inspection.whatif import Edits
from nmt.runs.run import Run
from nmt.search import Penalties
from nmt.serve.answers import Answers
from nmt.serve.engine import Engine, Key, SearchSettings, Work
from nmt.serve.problems import ProblemError, invalid, too_long
from nmt.serve.rows import Row, Worker
from nmt.serve.schemas import ExplainBody, PinBody, ScoreBody, SearchBody, TranslateBody, WhatIfBody
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.glossary import Glossary
from nmt.translation.term_files import open_glossary

Answer = TypeVar("Answer")


@dataclass(frozen=True)
class Caps:
    """The limits of a request.

    Attributes:
        texts: in a request. pieces: of a text. beam: size of a beam, which is also the limit of n-best lists.
        seconds: until a request is given up.
        numbers: in the details of an answer. places: pieces of a text times pieces of a translation that is given.
    """

    texts: int = 10_000
    pieces: int = 1000
    beam: int = 50
    seconds: float = 600.0
    numbers: int = 4_000_000
    places: int = 250_000


@dataclass(frozen=True)
class Served:
    """A model that is served: its id, its run, what GET /v1/models says of it, its engine and its worker."""

    id: str
    run: Run
    description: Mapping[str, Any]
    engine: Engine
    worker: Worker

    @property
    def named(self) -> dict[str, Any]:
        """The model in answers."""
        return {"id": self.id, "fingerprint": self.description["fingerprint"]}


class ModelPool:
    """All models, and what requests ask of them."""

    def __init__(self, models: Sequence[Served], caps: Caps) -> None:
        self.models = {model.id: model for model in models}
        self.first = models[0]
        self.caps = caps
        # The event loop has other clients to serve meanwhile.
        self._threads = ThreadPoolExecutor(2, "nmt pool")

    async def off_loop(self, function: Callable[..., Answer], *arguments: Any, **named: Any) -> Answer:
        """What a function returns that may take longer than the event loop can wait."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._threads, functools.partial(function, *arguments, **named))

    async def ask(self, request: Request, model: Served, rows: Sequence[Row]) -> tuple[list[Any], dict[str, Any]]:
        """The results of rows and their `timing` (ProblemError if a row fails, time is up or the client leaves)."""
        return await Answers(rows, model.worker.queue, self.caps.seconds).unless_gone(request)

    def model(self, name: str | None, field: str = "model") -> Served:
        """The model of this id, or the first (ProblemError 404, which names the field of the request)."""
        if name is None:
            return self.first
        if name not in self.models:
            known = ", ".join(self.models)
            raise ProblemError(404, f"{field}: there is no such model.", field=field, cure=f"Give one of: {known}.")
        return self.models[name]

    def translations(self, body: TranslateBody, live: bool = False) -> tuple[Served, list[Row], dict[str, Any]]:
        """The model, the rows of a request, and its search. With `live`, a single row is computed alone.

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
        most = self.caps.pieces
        if any(len(prefix) > most for prefix in prefixes):
            raise too_long("prefix", f"a prefix has more than {most:,} characters.", most, "Give a shorter prefix.")
        include = frozenset(body.include)
        settings, nbest = self._search(model.engine, body.search)
        pins = _pins(body.pins)
        lone = "beam" in include or (live and len(texts) == 1)
        # What only the weights can tell is left out of the batch if nobody wants it.
        weights = bool(include)
        # A greedy search has no penalties, and a recorded beam has a batch of its own.
        own = settings.beam_size > 1 and not lone
        penalties = Penalties(settings.length_penalty, settings.coverage_penalty) if own else None
        shared = settings._replace(length_penalty=0.0, coverage_penalty=0.0) if own else settings
        key = Key("translate", shared, weights, lone, nbest)
        if pins and not model.description["attends"]:
            raise invalid("pins", "this model has no attention.", cure="Leave pins out, or name another model.")
        glossary = self._glossary(model, body, texts, settings)
        limits = pins, body.search.max_length
        works = [
            Work(text, include, nbest, prefix, *limits, context=context, penalties=penalties, glossary=glossary)
            for text, prefix, context in zip(texts, prefixes, self._contexts(model, body, texts), strict=True)
        ]
        rows = self._rows(model, key, works)
        self._check_answer(model, rows)
        return model, rows, model.engine.described(settings, nbest)

    def _glossary(
        self, model: Served, body: TranslateBody, texts: Sequence[str], settings: SearchSettings
    ) -> Glossary | None:
        """The glossary of a request (ProblemError if it is wrong, or its terms in a text are too long together)."""
        try:
            glossary = open_glossary(body.glossary or None, body.keep, model.engine.translator.tokenizer.target)
        except UserError as error:
            raise invalid("glossary", str(error), cure="Send other terms.") from error
        if glossary is None:
            return None
        if settings.beam_size == 1:
            raise invalid("search.beam_size", "a glossary needs a beam.", cure="Give search.beam_size=5.")
        most = self.caps.pieces
        if any(sum(max(map(len, match.targets)) for match in glossary.find(text[: 100 * most])) > most
               for text in texts):  # fmt: skip
            detail = f"the terms of a text have more than {most:,} characters."
            raise too_long("glossary", detail, most, "Split the text into sentences.")
        return glossary

    def scores(self, body: ScoreBody) -> tuple[Served, list[Row]]:
        """The model and the row of a request."""
        model = self.model(body.model)
        (context,) = self._contexts(model, body, [body.text])
        work = Work(body.text, frozenset(body.include) - {"beam"}, target=body.target, context=context)
        if shows_nothing(body.text) or shows_nothing(body.target):
            raise invalid("text" if shows_nothing(body.text) else "target", "is blank.", cure="Give a line with words.")
        (size,) = self._check(model, "target", [body.target], target=True)
        rows = self._rows(model, Key("score", model.engine.defaults), [work])
        if rows[0].pieces * size > self.caps.places:
            detail = f"{rows[0].pieces:,} pieces for {size:,} of the target."
            raise too_long("text", detail, self.caps.places, "Split both into sentences.")
        self._check_answer(model, rows, size)
        return model, rows

    def what_ifs(self, body: WhatIfBody) -> tuple[Served, list[Row]]:
        """The model and the row of a request."""
        model = self.model(body.model)
        settings, _ = self._search(model.engine, body.search)
        changed = body.edits.context
        edits = Edits(body.edits.text, body.edits.prefix, _pins(body.edits.pins), changed)
        (context,) = self._contexts(model, body, [body.text])
        self._check_context(model, "edits.context", changed or [])
        most = model.engine.translator.max_source_length
        sizes = self._check(model, "edits.text", [body.edits.text or ""], most)
        for field, prefix in (("prefix", body.prefix), ("edits.prefix", edits.prefix)):
            if len(prefix) > self.caps.pieces:
                raise too_long(field, "is too long.", self.caps.pieces, "Give a shorter prefix.")
        include = frozenset(body.include) - {"beam"}
        work = Work(body.text, include, prefix=body.prefix, edits=edits, sweep=body.sweep, context=context)
        rows = self._rows(model, Key("whatif", settings), [work], most)
        # Two documents; the larger one is counted twice.
        self._check_answer(model, [replace(rows[0], pieces=max(rows[0].pieces, *sizes))] * 2)
        return model, rows

    def explanations(self, body: ExplainBody) -> tuple[Served, list[Row]]:
        """The model and the row of a request."""
        model = self.model(body.model)
        # Two sentences that the model reads as a whole: every measure looks at each piece of one for each of the other.
        most = model.engine.translator.max_source_length
        self._check(model, "target", [body.target or ""], most, target=True)
        (context,) = self._contexts(model, body, [body.text])
        methods = tuple(dict.fromkeys(body.methods))
        work = Work(body.text, target=body.target, methods=methods, word=body.word, context=context)
        return model, self._rows(model, Key("explain", model.engine.defaults), [work], most)

    def _contexts(
        self, model: Served, body: TranslateBody | ScoreBody | WhatIfBody | ExplainBody, texts: Sequence[str]
    ) -> list[tuple[str, ...]]:
        """The sentences before each text that the model sees, the nearest one last.

        Raises:
            ProblemError: the model sees none, or it is not clear which text they belong to.
        """
        sentences = model.engine.translator.context_sentences
        documents = body.documents if isinstance(body, TranslateBody) else "none"
        self._check_context(model, "documents", documents != "none")
        if body.context and documents == "none" and len(texts) != 1:
            raise invalid("context", f"there are {len(texts)} texts.", cure="Give documents=one, or one text.")
        self._check_context(model, "context", body.context)
        asked = bool(body.context) or documents != "none"
        follower = Follower(sentences, "one" if documents == "none" else documents)
        follower.take(body.context)
        return [tuple(context) for context in follower.take(texts)] if asked else [()] * len(texts)

    def _check_context(self, model: Served, field: str, given: Sequence[str] | bool) -> None:
        """Refuse context for a model that sees none, and sentences that are too long or have several lines."""
        if given and not model.engine.translator.context_sentences:
            raise invalid(field, "this model sees single sentences.", cure=f"Leave {field} out, or name another model.")
        if not isinstance(given, bool):
            self._check(model, field, given)

    def _search(self, engine: Engine, body: SearchBody) -> tuple[SearchSettings, int]:
        for name in ("beam_size", "nbest"):
            value = getattr(body, name)
            if value is not None and value > self.caps.beam:
                most = self.caps.beam
                raise invalid(f"search.{name}", f"is {value}.", limit=most, cure=f"Give at most {most}.")
        fields = {name: getattr(body, name) for name in SearchSettings._fields}
        given = {name: value for name, value in fields.items() if value is not None}
        settings = engine.defaults._replace(**given)
        nbest = engine.nbest if body.nbest is None else body.nbest
        if nbest > settings.beam_size:
            if body.nbest is not None and body.beam_size is not None:
                cure = f"Give search.beam_size={nbest}."
                raise invalid("search.nbest", f"must be at most beam_size={settings.beam_size}.", cure=cure)
            if body.nbest is None:
                nbest = settings.beam_size
            else:
                settings = settings._replace(beam_size=nbest)
        return settings, nbest

    def _check(
        self, model: Served, field: str, texts: Sequence[str], most: int | None = None, *, target: bool = False
    ) -> list[int]:
        """The number of pieces of each text (ProblemError if one has more than `most` or several lines)."""
        if any("\n" in text or "\r" in text for text in texts):
            raise invalid(field, "has a line break.", cure="Send a list with one line in each text.")
        # The tokenizer is not asked about what is too long whatever it says.
        longest = 100 * self.caps.pieces
        if any(len(text) > longest for text in texts):
            raise too_long(field, f"a text has more than {longest:,} characters.", longest, "Send shorter texts.")
        sizes = model.engine.pieces(texts, target=target)
        most = self.caps.pieces if most is None else min(most, self.caps.pieces)
        if sizes and max(sizes) > most:
            detail = f"text {sizes.index(max(sizes))} has {max(sizes):,} pieces."
            raise too_long(field, detail, most, "Split it into sentences.")
        return sizes

    def _check_answer(self, model: Served, rows: Sequence[Row], target: int | None = None) -> None:
        """ProblemError if the answer might be too large, or pins are beyond any translation (of `target` pieces)."""
        numbers, engine = 0, model.engine
        for row in rows:
            work: Work = row.work
            steps = engine.most_pieces(row.pieces, work.prefix, work.max_length) if target is None else target
            numbers += engine.numbers(row.pieces, steps, work.nbest, work.include)
            if max((*work.pins, *work.edits.pins), default=-1) >= steps:
                raise invalid("pins", "a step does not exist.", limit=steps - 1, cure=f"Give 0 to {steps - 1}.")
            if (most := max(map(max, work.pins.values()), default=-1)) >= row.pieces:
                cure = f"Give 0 to {row.pieces - 1}."
                raise invalid("pins", f"there is no source piece {most}.", limit=row.pieces - 1, cure=cure)
        if numbers > self.caps.numbers:
            detail = f"its details might be {numbers:,} numbers."
            raise too_long("include", detail, self.caps.numbers, "Ask for fewer details, hypotheses or texts.")

    def _rows(self, model: Served, key: Key, works: Sequence[Work], most: int | None = None) -> list[Row]:
        sizes = self._check(model, "text", [work.text for work in works], most)
        pieces: dict[str, int] = {}
        for work in works:
            pieces.update(zip(work.context, model.engine.pieces(work.context), strict=True))
        return [
            Row(key, work, size + sum(pieces[sentence] for sentence in work.context))
            for work, size in zip(works, sizes, strict=True)
        ]


def _pins(pins: Sequence[PinBody]) -> dict[int, list[int]]:
    if len({pin.step for pin in pins}) < len(pins):
        raise invalid("pins", "a step is named twice.", cure="Name all source pieces of a step in one entry.")
    return {pin.step: pin.source for pin in sorted(pins, key=lambda pin: pin.step)}
