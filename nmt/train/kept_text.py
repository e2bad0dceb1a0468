"""The text data that a run folder stores: a lexicon, the source words, and short pairs of the validation set."""

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

#: Number of example pairs that a run stores for the start page, and of validation lines that they are chosen from.
EXAMPLES, LINES = 24, 2000
#: The length of their source in words, or in characters for scripts without spaces.
WORDS, CHARACTERS = range(3, 10), range(4, 26)


def keep_text(recipe: Recipe, run: Run, pairs: EncodedPairs, tokenizer: Tokenizer, source: Sequence[str]) -> None:
    """Write a new run's lexicon and the words of its training text, merged with those of its ancestor."""
    if run.lexicon.exists():
        return
    lexicon, ancestor = lexicon_of(pairs, tokenizer.source.size), recipe.ancestor
    words = KnownWords.of(source)
    if ancestor is not None:
        files = ancestor.run.files
        with contextlib.suppress(UserError):  # the ancestor has no lexicon
            sizes = tokenizer.source.size, tokenizer.target.size
            lexicon = merged(lexicon, load_lexicon(files.lexicon, *sizes, tokenizer.fingerprint))
        earlier = load_known_words(files.words)
        words = None if words is None or earlier is None else words | earlier
    if words is not None and len(words) <= 2 * MOST:
        words.save(run.words)
    lexicon.save(run.lexicon, tokenizer.fingerprint)
    give_memory_back()


def examples(source: Sequence[str], target: Sequence[str]) -> list[list[str]]:
    """Short pairs [source, target] of a validation set, with different sources."""
    pairs = dict[str, str]()
    for line, translation in zip(source[:LINES], target[:LINES], strict=True):
        short = len(line) in CHARACTERS if unspaced(line) else len(line.split()) in WORDS and len(line) <= 80
        if short and 0 < len(translation.strip()) <= 400 and "\t" not in line:
            pairs.setdefault(line.strip(), translation.strip())
        if len(pairs) == EXAMPLES:
            break
    return [[*pair] for pair in pairs.items()]
