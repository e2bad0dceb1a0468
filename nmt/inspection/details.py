"""Translation of sentences into documents with the requested details."""

from collections.abc import Callable, Sequence, Set
from typing import Final, Literal, get_args

from nmt.inspection.document import Beam, Details, Json, Style, document
from nmt.inspection.search_tree import BeamRecord
from nmt.inspection.steps import context_of, inspect, tokens_of
from nmt.system.errors import UserError
from nmt.text.canonical import shows_nothing
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.types import Translation
from nmt.translation.views import can_look

#: Optional details of a document: word links, weights of the attention to the source, weights of self-attention, the
#: most probable pieces of each step, the stages from energies to weights, the stages with their vectors, the search
#: tree, the confidence of each word.
Detail = Literal["alignment", "weights", "self_weights", "alternatives", "stages", "vectors", "beam", "doubt"]
DETAILS: Final[frozenset[Detail]] = frozenset(get_args(Detail))
Hook = Callable[[str], None] | None


def translate(translator: Translator, request: Request, style: Style, include: Set[Detail], hook: Hook = None) -> Json:
    """Translate one sentence, with its context, and return the document.

    During the search, `hook` is called with the common beginning of the hypotheses whenever it changes; see
    `BeamRecord.certain`. It is not called for a line translated in parts or for a sampling search.

    Raises:
        UserError: the model cannot write the prefix.
    """
    ranked, beam = searched(translator, request, tree="beam" in include, hook=hook)
    forced = forced_characters(translator, request.prefix)
    return documented(translator, ranked, style, include, forced=forced, beam=beam)


def searched(
    translator: Translator, request: Request, *, tree: bool = False, hook: Hook = None, line: int = 1
) -> tuple[list[Translation], Beam | None]:
    """Translate one sentence: its translations, best first, and with `tree` the search tree, if the search has one.

    `line` is the line number for error messages. For `hook` see `translate`.

    Raises:
        UserError: the model cannot write the prefix.
    """
    record = _record(translator, request.text, hook) if tree or hook is not None else None
    (ranked,) = translator.translate_chunk([request], line, watch=None if record is None else record.watch)
    beam = None
    if record is not None and tree and can_look(ranked[0]) and not ranked[0].remembered:
        hypotheses = [tokens_of(translator.tokenizer, each)[1] for each in ranked]
        beam = Beam(record.size, record.finish(), hypotheses)
    return ranked, beam


def _record(translator: Translator, sentence: str, hook: Hook) -> BeamRecord | None:
    """A record for the search of a sentence; None for a search without a tree or a line translated in parts."""
    search = translator.search
    (pieces,) = translator.tokenizer.source.encode([sentence])
    if search.beam_size is None or len(pieces) > translator.max_source_length:
        return None
    score = None if search.needs_weights else search.score_of
    return BeamRecord(search.beam_size, hook and _teller(translator, hook), score)


def _teller(translator: Translator, hook: Callable[[str], None]) -> Callable[[list[int]], None]:
    """A function of tokens that calls `hook` with their text if the text has changed since the last call."""
    last_text = ""

    def tell(tokens: list[int]) -> None:
        nonlocal last_text
        # The last bytes may be an incomplete character, and a trailing space belongs to the next word.
        text = translator.tokenizer.target.decode(tokens).rstrip("\N{REPLACEMENT CHARACTER}").rstrip()
        if text != last_text:
            last_text = text
            hook(text)

    return tell


def documented(
    translator: Translator,
    ranked: Sequence[Translation],
    style: Style,
    include: Set[Detail],
    *,
    forced: int = 0,
    beam: Beam | None = None,
) -> Json:
    """The document of translations of one sentence.

    Args:
        translator: the translator of the sentence.
        ranked: the translations, best first.
        style: the style of the document; its `doubts` add the detail "doubt".
        include: the details to include.
        forced: the number of characters at the beginning of each translation that the user gave.
        beam: the search tree.
    """
    if "doubt" in include and style.doubts is not None:
        (ranked,) = style.doubts.add(translator, [ranked])
    return document(ranked, style, [_details(translator, each, include, forced) for each in ranked], beam)


def _details(translator: Translator, translation: Translation, include: Set[Detail], forced: int) -> Details:
    """The details of a translation; a line translated in parts has none that need forced decoding."""
    inspected, views, before = None, None, translation.context_weights
    translator.check()
    if can_look(translation):
        if include & {"alternatives", "stages", "vectors"}:
            context = context_of(translator.tokenizer, translation)
            source, target = tokens_of(translator.tokenizer, translation)
            stages, vectors, pins = "stages" in include, "vectors" in include, translation.pins
            inspected = inspect(translator, source, target, stages=stages, vectors=vectors, context=context, pins=pins)
        merged = bool(translation.context) and before is None  # into the source's slots
        if "self_weights" in include or ("weights" in include and merged):
            (views,) = translator.look([translation])
            if merged and views is not None and views.cross is not None:
                before = views.cross.context_weights
    return Details(
        inspected,
        views if "self_weights" in include else None,
        before,
        cross=bool(include & {"weights", "self_weights"}),
        forced=len(translation.text) if translation.remembered else forced,
        **({} if "alternatives" in include else {"alternatives": 0}),
    )


def forced_characters(translator: Translator, prefix: str) -> int:
    """The number of characters of a prefix as the model writes it."""
    if shows_nothing(prefix):
        return 0
    vocabulary = translator.tokenizer.target
    return len(vocabulary.decode(vocabulary.encode([prefix])[0]).rstrip())


def described_search(translator: Translator) -> Json:
    """The translator's search and its settings."""
    return {"choice": translator.search.choice, **translator.search.settings()}


def included(names: Sequence[str]) -> frozenset[Detail]:
    """The details with these names (UserError for an unknown name)."""
    known = {str(detail): detail for detail in DETAILS}
    for name in names:
        if name not in known:
            raise UserError(f"include={name} does not exist. Give some of: {', '.join(get_args(Detail))}.")
    return frozenset(known[name] for name in names)
