"""One model -> what requests ask of it: translations, scores, what-if answers and explanations of rows.

It runs in the thread of the model's worker.
"""

import math
from collections.abc import Callable, Hashable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from nmt.attention import Pins
from nmt.inspection.details import Detail, described_search, documented, forced_characters, translate
from nmt.inspection.document import ALTERNATIVES, Json, Style
from nmt.inspection.explanation import METHODS, Method, explain
from nmt.inspection.whatif import Edits, check_pins, what_if
from nmt.search import BeamSearch, GreedySearch, Penalties, Search
from nmt.translation.glossary import Glossary
from nmt.translation.request import Request
from nmt.translation.translator import Translator

NO_EDITS = Edits()
#: Characters that are tokenised at a time.
SLICE = 50_000
#: Numbers of a piece in a document, and of a weight in its stages, about.
PIECE, STAGES = 10, 6


class SearchSettings(NamedTuple):
    """The settings of a search; beam_size 1 without penalties and n-best lists is greedy search."""

    beam_size: int
    length_penalty: float
    coverage_penalty: float

    def build(self, nbest: int = 1) -> Search:
        """The search that returns so many hypotheses (SettingError if the beam has fewer)."""
        if self.beam_size == 1 and not self.coverage_penalty and nbest == 1:
            return GreedySearch()
        return BeamSearch(self.beam_size, self.length_penalty, self.coverage_penalty, nbest)


class Key(NamedTuple):
    """What the rows of a batch have in common.

    Prefix, pins, length limit and details are each row's own, and so are the penalties of rows that have some.
    """

    kind: str
    search: SearchSettings
    weights: bool = True
    alone: bool = False
    nbest: int = 1


@dataclass(frozen=True)
class Work:
    """What is asked for one sentence; `told` is called with the beginning of a translation that is computed alone."""

    text: str
    include: frozenset[Detail] = frozenset()
    nbest: int = 1
    prefix: str = ""
    pins: Pins = field(default_factory=dict)
    max_length: int | None = None
    target: str | None = None
    edits: Edits = NO_EDITS
    sweep: int | None = None
    methods: tuple[Method, ...] = METHODS
    word: int | str | None = None
    context: tuple[str, ...] = ()
    penalties: Penalties | None = None
    glossary: Glossary | None = None
    told: Callable[[str], None] | None = None

    @property
    def request(self) -> Request:
        """The text, and what belongs to it."""
        of_search = self.pins, self.max_length, self.penalties, self.glossary
        return Request(self.text, self.prefix, self.context, *of_search)


class Engine:
    """A model and how it translates."""

    def __init__(
        self, translator: Translator, *, head: str, shift: int = 0, model: Mapping[str, Any] | None = None
    ) -> None:
        """`head` and `shift` are those of word links; `model` names the run in documents."""
        self.translator = translator
        self.style = Style(translator.tokenizer.target, head, shift, model=model)
        self.defaults = _defaults(translator.search)
        self.nbest = translator.search.nbest

    def pieces(self, texts: Sequence[str], *, target: bool = False) -> list[int]:
        """The number of source or target pieces of each text, with its end."""
        tokenizer = self.translator.tokenizer
        vocabulary = tokenizer.target if target else tokenizer.source
        # No other thread runs while SentencePiece works.
        size = max(1, SLICE // max((1, *map(len, texts))))
        slices = (texts[first : first + size] for first in range(0, len(texts), size))
        return [len(tokens) + 1 for each in slices for tokens in vocabulary.encode(each)]

    def most_pieces(self, source: int, prefix: str = "", max_length: int | None = None) -> int:
        """The most pieces of the translation of a text of so many source pieces."""
        translator = self.translator
        parts = -(-source // translator.max_source_length)
        most = math.ceil(translator.length_ratio * source) + parts * translator.extra_length
        return len(prefix) + (most if max_length is None else min(most, max_length))

    def numbers(self, source: int, target: int, nbest: int, include: Set[Detail]) -> int:
        """About how many numbers the document of a text of so many pieces has, beyond its one translation.

        What a line in parts does not have counts, too: nobody knows yet where it is cut.
        """
        models = self.translator.models
        encoder, own = len(models[0].encoder.heads), len(models[0].decoder.self_heads)
        cross = len(self.translator.heads.names) * source * target
        of_each = PIECE * target * (nbest > 1)
        if include & {"weights", "self_weights"}:
            of_each += cross
        if "self_weights" in include:
            of_each += encoder * source**2 + own * target**2
        if "stages" in include:
            of_each += STAGES * cross
        if "alternatives" in include:
            of_each += ALTERNATIVES * PIECE * target
        return nbest * of_each

    def described(self, settings: SearchSettings, nbest: int) -> Json:
        """The settings of a search as documents name them."""
        return described_search(self._with(settings, nbest))

    def compute(self, key: Hashable, works: Sequence[Any]) -> list[Json]:
        """The documents or answers of rows with one key; for the worker.

        Raises:
            UserError: a row cannot be served.
        """
        assert isinstance(key, Key)
        match key.kind:
            case "translate":
                return self._translate(key, works)
            case "score":
                return self._score(key, works)
            case "whatif":
                translator = self._with(key.search, 1)
                return [self._what_if(translator, work) for work in works]
            case "explain":
                translator = self._with(key.search, 1)
                return [self._explain(translator, work) for work in works]
        raise ValueError(key.kind)

    def _translate(self, key: Key, works: Sequence[Work]) -> list[Json]:
        penalties = [work.penalties for work in works if work.penalties is not None]
        # The search needs weights if one of its rows does.
        search = key.search._replace(coverage_penalty=max((each.coverage for each in penalties), default=0.0))
        search = search if penalties else key.search
        translator = self._with(search, key.nbest, key.weights)
        if key.alone:
            return [self._alone(translator, work) for work in works]
        ranked = translator.translate_chunk([work.request for work in works])
        for work, hypotheses in zip(works, ranked, strict=True):
            if hypotheses[0].weights is not None:
                check_pins(work.pins, hypotheses[0])
        return [
            documented(
                translator,
                hypotheses,
                self._style(translator, work),
                work.include,
                forced=forced_characters(translator, work.prefix),
            )
            for work, hypotheses in zip(works, ranked, strict=True)
        ]

    def _alone(self, translator: Translator, work: Work) -> Json:
        request = work.request._replace(penalties=None)
        return translate(translator, request, self._style(translator, work), work.include, work.told)

    def _score(self, key: Key, works: Sequence[Work]) -> list[Json]:
        translator = self._with(key.search, 1)
        targets = [work.target or "" for work in works]
        forced = translator.force([work.text for work in works], targets, [work.context for work in works])
        return [
            documented(
                translator,
                [translation],
                replace(self._style(translator, work), search=None),
                work.include | {"alternatives"},
                forced=len(target),
            )
            for translation, work, target in zip(forced, works, targets, strict=True)
        ]

    def _what_if(self, translator: Translator, work: Work) -> Json:
        style = self._style(translator, work)
        return what_if(translator, work.text, work.edits, style, work.include, work.sweep, work.context, work.prefix)

    def _explain(self, translator: Translator, work: Work) -> Json:
        style = self._style(translator, work)
        return explain(translator, work.text, work.target, style, work.methods, work.context, work.word)

    def _style(self, translator: Translator, work: Work) -> Style:
        search = {**described_search(translator), "nbest": work.nbest}
        if work.penalties is not None:
            search |= {"length_penalty": work.penalties.length, "coverage_penalty": work.penalties.coverage}
        return replace(self.style, aligned="alignment" in work.include, search=search)

    def _with(self, settings: SearchSettings, nbest: int, weights: bool = True) -> Translator:
        """The translator with another search; the models are shared."""
        return replace(self.translator, search=settings.build(nbest), weights=weights)


def _defaults(search: Search) -> SearchSettings:
    """The settings of a run's search; a sampling search is served as greedy search, whose answers are repeatable."""
    if isinstance(search, BeamSearch):
        return SearchSettings(search.beam_size, search.length_penalty, search.coverage_penalty)
    return SearchSettings(1, 1.0, 0.0)
