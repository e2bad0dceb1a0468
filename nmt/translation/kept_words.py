"""The words before a pinned step, which stay those that a translator writes without the pins.

Pins name steps by number. A search that is free from the start may write other words before such a step, so that the
pin holds for another word.
"""

from collections.abc import Sequence

from nmt.search import Prefix
from nmt.text.canonical import shows_nothing
from nmt.translation.request import Request
from nmt.translation.translator import Translator
from nmt.translation.views import can_look


def beginning(tokens: Sequence[int]) -> Prefix:
    """What makes a translation begin with these tokens."""
    return [{token: at} for at, token in enumerate(tokens, 1)]


def keep_words(translator: Translator, requests: Sequence[Request]) -> list[Request]:
    """The requests, of which those with pins after the first step begin with the words that are written without pins.

    Those with a beginning of their own stay as they are, and so do those whose translation ends before the first pin,
    or that are translated in parts.
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
