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
        text: one line; a blank one stays empty.
        prefix: the beginning of the translation, unless it is blank.
        context: the sentences before it in its document, the nearest one last; the models see as many as they can.
        pins: the slots that steps may attend to, in place of the translator's.
        max_length: the most target pieces of the text, or of each part of a long one.
        glossary: terms that the translation must use.
        memory: pairs that answer the text if they have it and nothing else is asked for.
        begins: the tokens that the translation begins with, in place of the prefix; () for none.
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
        """The translation that the memory has; None without it, and with a prefix or pins."""
        if self.memory is None or self.pins or not shows_nothing(self.prefix):
            return None
        return self.memory.exact(self.text)


def requests_of(texts: Iterable[str], contexts: Sequence[Sequence[str]] = ()) -> Iterator[Request]:
    """A request for each text, with its context if there are any."""
    if not contexts:
        return map(Request, texts)
    return (Request(text, context=context) for text, context in zip(texts, contexts, strict=True))


class SourcePart(NamedTuple):
    """A sentence or a part of it: its index, tokens and spans; the settings of its search; the sentences before it."""

    sentence: int
    tokens: list[int]
    spans: list[Span | None]
    prefix: Prefix
    context: Tokens
    pins: Pins
    max_length: int | None = None
    constraints: Sequence[Constraint] = ()

    def longest(self, ratio: float, extra: int) -> int:
        """The most pieces of its translation: ratio * source pieces + extra, and its prefix and its constraints."""
        most = math.ceil(ratio * len(self.tokens)) + extra
        most = most if self.max_length is None else min(most, max(1, self.max_length - len(self.prefix)))
        return len(self.prefix) + most + sum(each.longest for each in self.constraints)
