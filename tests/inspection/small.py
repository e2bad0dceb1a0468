"""Small untrained translators of every family, and a sentence for them."""

import functools

from nmt.inspection.document import Style
from nmt.search import BeamSearch, GreedySearch
from nmt.translation.translator import Translator
from tests.catalogue import model
from tests.test_configs import tokenizer

SENTENCE = "eins zwei drei"


@functools.cache
def translator(overrides: tuple[str, ...], *, beam: int = 3, nbest: int = 2) -> Translator:
    words = tokenizer("unigram")
    size = words.source.size
    made = model(*overrides, pieces=(size, size), joint=True).float()
    search = BeamSearch(beam, nbest=nbest) if beam > 1 else GreedySearch()
    return Translator([made], words, search, length_ratio=1.0, extra_length=4)


def style(made: Translator) -> Style:
    return Style(made.tokenizer.target)
