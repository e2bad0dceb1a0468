"""The engine of a model: translations, scores, what-if answers and explanations for requests.

Computation runs in the thread of the model's worker.
"""

import math
from collections.abc import Callable, Mapping, Sequence, Set
from dataclasses import replace
from typing import Any, NamedTuple

from nmt.alignment.linker import Linker
from nmt.data.habits import LineWatch
from nmt.inspection.details import Detail, described_search, documented, forced_characters, translate
from nmt.inspection.document import ALTERNATIVES, COMPONENTS, FEWEST, Json, Style
from nmt.inspection.doubt import DoubtModel
from nmt.inspection.whatif import check_pins
from nmt.search import BeamSearch, GreedySearch, Search
from nmt.text.known_words import KnownWords
from nmt.translation.glossary import uses
from nmt.translation.kept_words import keep_words
from nmt.translation.request import Request
from nmt.translation.translator import Translator

#: Number of characters that are tokenised at a time.
SLICE = 50_000
#: Approximate count of numbers in a document for each piece, and for each weight with its stages.
PIECE, STAGES = 10, 6


class SearchSettings(NamedTuple):
    """The settings of a search; a beam of 1 without a coverage penalty is greedy search."""

    beam_size: int
    length_penalty: float
    coverage_penalty: float
    nbest: int

    @classmethod
    def of(cls, search: Search) -> "SearchSettings":
        """The settings of a run's search. Sampling is served as greedy search, so that answers are repeatable."""
        if isinstance(search, BeamSearch):
            return cls(search.beam_size, search.length_penalty, search.coverage_penalty, search.nbest)
        return cls(1, 1.0, 0.0, 1)

    def build(self) -> Search:
        """Build the search (SettingError if the beam is smaller than the n-best list)."""
        return GreedySearch() if self.beam_size == 1 and not self.coverage_penalty else BeamSearch(*self)


class Key(NamedTuple):
    """The settings that all translations of a batch share; prefix, pins and details may differ between rows."""

    search: SearchSettings
    weights: bool
    alone: bool = False


class Work(NamedTuple):
    """A translation to compute; `report_beginning` gets the beginning of a translation that is computed alone.

    With `tags`, the document has `tag_links`: pairs of the numbers of a source word and a target word. With
    `keep_words`, the words before the first pinned step stay the same as without pins.
    """

    request: Request
    include: frozenset[Detail] = frozenset()
    report_beginning: Callable[[str], None] | None = None
    tags: bool = False
    keep_words: bool = False


class Engine:
    """A model with its search, word links, doubts and checks of the input."""

    def __init__(
        self,
        translator: Translator,
        *,
        head: str,
        model: Mapping[str, Any],
        linker: Linker,
        doubts: DoubtModel | None = None,
        words: KnownWords | None = None,
        watch: LineWatch | None = None,
    ) -> None:
        """`head` is the head for word links; `linker` links words to place tags; `model` names the run in documents.

        `doubts` is the run's doubt model, `words` has the words of the training text; None if the run has none.
        `watch` compares lines with the training text.
        """
        self.translator, self.linker, self.words, self.watch = translator, linker, words, watch
        self.style = Style(translator.tokenizer.target, head, model=model, doubts=doubts)
        self.defaults = SearchSettings.of(translator.search)

    def pieces(self, texts: Sequence[str], *, target: bool = False) -> list[int]:
        """The number of source or target pieces of each text, with the end of sentence."""
        tokenizer = self.translator.tokenizer
        vocabulary = tokenizer.target if target else tokenizer.source
        # SentencePiece blocks all other threads, so it gets short slices.
        size = max(1, SLICE // max((1, *map(len, texts))))
        slices = (texts[first : first + size] for first in range(0, len(texts), size))
        return [len(tokens) + 1 for each in slices for tokens in vocabulary.encode(each)]

    def most_pieces(self, source: int, prefix: str = "", max_length: int | None = None) -> int:
        """Upper bound of the pieces in the translation of a text with `source` pieces."""
        translator = self.translator
        parts = -(-source // translator.max_source_length)
        most = math.ceil(translator.length_ratio * source) + parts * translator.extra_length
        return len(prefix) + (most if max_length is None else min(most, max_length))

    def numbers(self, source: int, target: int, nbest: int, include: Set[Detail]) -> int:
        """Approximate count of numbers in the document of a text with so many source and target pieces.

        The count includes details that a line in parts does not get, since its parts are not known yet.
        """
        models = self.translator.models
        encoder, decoder = len(models[0].encoder.heads), len(models[0].decoder.self_heads)
        cross = len(self.translator.heads.names) * source * target
        of_each = PIECE * target * (nbest > 1)
        if include & {"weights", "self_weights"}:
            of_each += cross
        if "self_weights" in include:
            of_each += encoder * source**2 + decoder * target**2
        if include & {"stages", "vectors"}:
            of_each += STAGES * cross
        if "vectors" in include:
            of_each += max(COMPONENTS, FEWEST * len(self.translator.heads.names) * (2 * target + 3 * source))
        if "alternatives" in include:
            of_each += ALTERNATIVES * PIECE * target
        return nbest * of_each

    def described(self, settings: SearchSettings) -> Json:
        """The settings of a search in the form that documents use."""
        return described_search(self._with(settings))

    def compute(self, key: Key | Callable[[], Json], works: Sequence[Work]) -> list[Json]:
        """Compute the documents of rows with the same key; a key that is a function computes the answer of one row.

        The worker calls this (UserError if a row cannot be served).
        """
        if not isinstance(key, Key):
            return [key()]
        translator = self._with(*key[:2])
        requests = iter(keep_words(translator, [work.request for work in works if work.keep_words]))
        works = [work._replace(request=next(requests)) if work.keep_words else work for work in works]
        if key.alone:
            return [
                self._completed(
                    translate(translator, request, self._style(translator, include), include, report_beginning), request
                )
                for request, include, report_beginning, *_ in works
            ]
        ranked = translator.translate_chunk([work.request for work in works])
        documents = []
        for (request, include, _, tags, _), hypotheses in zip(works, ranked, strict=True):
            if request.pins:
                check_pins(request.pins, hypotheses[0])
            style, forced = self._style(translator, include), forced_characters(translator, request.prefix)
            document = documented(translator, hypotheses, style, include, forced=forced)
            if tags and hypotheses[0].weights is not None:
                document["tag_links"] = self.linker.links(hypotheses[0])
            documents.append(self._completed(document, request))
        return documents

    def _completed(self, document: Json, request: Request) -> Json:
        """The document with `unseen`, `unlike` and, with a glossary, `terms`.

        `unseen` has the spans of words that the training text lacks. `unlike` describes differences from the training
        text, with advice. `terms` has the span of each term and of its translation.
        """
        source = document["source"]["text"]
        unseen = None if self.words is None else [[*span] for span in self.words.unseen(source)]
        document = {**document, "unseen": unseen, "unlike": self.watch and self.watch.unlike(source)}
        if request.glossary is None:
            return document
        best = document["hypotheses"][0]
        term_uses = uses(request.glossary, source, best["text"], self.translator.tokenizer.target)
        reason = {True: "the line comes from the memory"}.get(best["remembered"])
        terms = [
            {"source": [match.begin, match.end], "target": span and [*span], "reason": "" if span else reason or why}
            for match, span, why in term_uses
        ]
        return {**document, "terms": terms}

    def score(self, text: str, target: str, context: Sequence[str], include: Set[Detail]) -> Json:
        """Score a given translation; return its document in the form of an answer with translations."""
        translator, style = self.for_one(self.defaults, include)
        (forced,) = translator.force([text], [target], [context])
        style = replace(style, search=None)
        document = documented(translator, [forced], style, include | {"alternatives"}, forced=len(target))
        return {"search": None, "translations": [document]}

    def for_one(self, settings: SearchSettings, include: Set[Detail] = frozenset()) -> tuple[Translator, Style]:
        """The translator with a search for one hypothesis, and the style of its documents."""
        translator = self._with(settings._replace(nbest=1))
        return translator, self._style(translator, include)

    def _style(self, translator: Translator, include: Set[Detail]) -> Style:
        return replace(self.style, aligned="alignment" in include, search=described_search(translator))

    def _with(self, settings: SearchSettings, weights: bool = True) -> Translator:
        """The translator with another search, which shares the models."""
        return replace(self.translator, search=settings.build(), weights=weights)
