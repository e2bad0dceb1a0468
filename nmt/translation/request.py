"""Requests to a translator, and the parts of a text that a search translates."""

import math
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from nmt.attention import Pin as Pin
from nmt.attention import Pins as Pins
from nmt.search import Constraint, Prefix
from nmt.text.canonical import shows_nothing
from nmt.text.spans import Span
from nmt.translation.contexts import Tokens
from nmt.translation.glossary import Glossary
from nmt.translation.translation_memory import TranslationMemory


class Request(NamedTuple):
    """A text to translate.

    Attributes:
        text: one line; the translation of a blank line is empty.
        prefix: the beginning of the translation; ignored if blank.
        context: the previous sentences of the document, the nearest last; the models see as many as they can.
        pins: the slots that single steps may attend to; None for the translator's pins.
        max_length: maximum number of target pieces for the text, or for each part of a long text.
        glossary: terms that the translation must use.
        memory: translation memory; used for a text that it has, unless there is a prefix or a pin.
        begins: the tokens that the translation begins with, instead of `prefix`; () for none.
    """

    text: str
    prefix: str = ""
    context: Sequence[str] = ()
    pins: Pins | None = None
    max_length: int | None = None
    glossary: Glossary | None = None
    memory: TranslationMemory | None = None
    begins: Prefix = ()

    @property
    def remembered(self) -> str | None:
        """The translation from the memory; None if the memory has none, or with a prefix or pins."""
        if self.memory is None or self.pins or not shows_nothing(self.prefix):
            return None
        return self.memory.exact(self.text)


def requests_of(texts: Iterable[str], contexts: Sequence[Sequence[str]] = ()) -> Iterator[Request]:
    """Return a request for each text, with its context if contexts are given."""
    if not contexts:
        return map(Request, texts)
    return (Request(text, context=context) for text, context in zip(texts, contexts, strict=True))


class SourcePart(NamedTuple):
    """A sentence or a part of it: sentence index, tokens and spans, and the settings and context for its search."""

    sentence: int
    tokens: list[int]
    spans: list[Span | None]
    prefix: Prefix
    context: Tokens
    pins: Pins
    max_length: int | None = None
    constraints: Sequence[Constraint] = ()

    def longest(self, ratio: float, extra: int) -> int:
        """Maximum pieces of the translation: ratio * source pieces + extra, plus pieces of prefix and constraints."""
        most = math.ceil(ratio * len(self.tokens)) + extra
        most = most if self.max_length is None else min(most, max(1, self.max_length - len(self.prefix)))
        return len(self.prefix) + most + sum(each.longest for each in self.constraints)
