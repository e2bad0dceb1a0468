"""Translations with pins keep the words that the translator writes before the first pin without pins.

A pin names its step by number. An unconstrained search might write other words before this step, and the pin would
apply to another word.
"""

from collections.abc import Sequence

from nmt.search import Prefix
from nmt.text.canonical import shows_nothing
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.views import can_look


def beginning(tokens: Sequence[int]) -> Prefix:
    """The prefix of a translation that begins with these tokens."""
    return [{token: at} for at, token in enumerate(tokens, 1)]


def keep_words(translator: Translator, requests: Sequence[Request]) -> list[Request]:
    """The requests; those with pins only after the first step get the words before the first pin as their beginning.

    The words come from a translation without pins. Requests with a prefix are returned unchanged, and so are requests
    whose translation ends before the first pin or is made in parts.
    """
    firsts = [min(translator.pins if each.pins is None else each.pins, default=0) for each in requests]
    waiting = [
        at
        for at, each in enumerate(requests)
        if firsts[at] > 0 and not shows_nothing(each.text) and shows_nothing(each.prefix) and each.remembered is None
    ]
    with_beginnings = list(requests)
    free = translator.translate_chunk([requests[at]._replace(pins={}) for at in waiting]) if waiting else []
    for at, (best, *_) in zip(waiting, free, strict=True):
        if firsts[at] < len(best.pieces) and can_look(best):
            tokens = translator.tokenizer.target.ids(best.pieces[: firsts[at]])
            with_beginnings[at] = requests[at]._replace(begins=beginning(tokens))
    return with_beginnings
