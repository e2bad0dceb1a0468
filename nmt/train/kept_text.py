"""What a run keeps of its text: a lexicon, the words of the source, and short sentences of the validation set."""

import contextlib
from collections.abc import Sequence

from nmt.data.pairs import EncodedPairs, lexicon_of
from nmt.runs.run import Run
from nmt.system.errors import UserError
from nmt.system.memory import give_memory_back
from nmt.text.known_words import MOST, KnownWords, load_known_words
from nmt.text.lexicon import load_lexicon, merged
from nmt.text.scripts import unspaced
from nmt.text.tokenizer import Tokenizer
from nmt.train.recipe import Recipe

#: Pairs that a run keeps for the page's first view, from the first lines of the validation set.
EXAMPLES, LINES = 24, 2000
#: How long their source is, in words or, without spaces between words, in characters.
WORDS, CHARACTERS = range(3, 10), range(4, 26)


def keep_text(recipe: Recipe, run: Run, pairs: EncodedPairs, tokenizer: Tokenizer, source: Sequence[str]) -> None:
    """Write a new run's lexicon and the words of its training text, with those of the run that it goes on from."""
    if run.lexicon.exists():
        return
    lexicon, ancestor = lexicon_of(pairs, tokenizer.source.size), recipe.ancestor
    words = KnownWords.of(source)
    if ancestor is not None:
        files = ancestor.run.files
        with contextlib.suppress(UserError):  # one without a lexicon
            sizes = tokenizer.source.size, tokenizer.target.size
            lexicon = merged(lexicon, load_lexicon(files.lexicon, *sizes, tokenizer.fingerprint))
        earlier = load_known_words(files.words)
        words = None if words is None or earlier is None else words | earlier
    if words is not None and len(words) <= 2 * MOST:
        words.save(run.words)
    lexicon.save(run.lexicon, tokenizer.fingerprint)
    give_memory_back()


def examples(source: Sequence[str], target: Sequence[str]) -> list[list[str]]:
    """Short pairs of a validation set, each with another source."""
    pairs = dict[str, str]()
    for line, translation in zip(source[:LINES], target[:LINES], strict=True):
        short = len(line) in CHARACTERS if unspaced(line) else len(line.split()) in WORDS and len(line) <= 80
        if short and 0 < len(translation.strip()) <= 400 and "\t" not in line:
            pairs.setdefault(line.strip(), translation.strip())
        if len(pairs) == EXAMPLES:
            break
    return [[*pair] for pair in pairs.items()]
