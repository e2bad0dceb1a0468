"""Splitting of sentences into words: at white space, by the Moses tools, or into characters.

Gold links refer to words of one of these kinds; `units.spelled` finds the pieces of these words. No other file imports
sacremoses.
"""

import html
from collections.abc import Callable, Sequence
from typing import NamedTuple

from sacremoses import MosesPunctNormalizer, MosesTokenizer  # type: ignore[import-untyped]

from nmt.system.errors import UserError
from nmt.text.scripts import base_language

Splitter = Callable[[str], list[str]]

KINDS = ("whitespace", "moses", "char")


def moses(language: str) -> Callable[[str], str]:
    """A function that prepares a sentence in the same way as the official Multi30k files.

    The steps are lower-casing, punctuation normalisation, and tokenization with escapes and without splitting
    at dashes. In this order they reproduce the official `*.lc.norm.tok.*` references exactly (val and both tests
    of German, English and French). This requires two details of the original Perl script: its treatment of the
    curly apostrophe, and its rule for a closing quotation mark, which depends on the line end.
    """
    base = base_language(language)
    normalizer = MosesPunctNormalizer(lang=base, perl_parity=True)
    tokenizer = MosesTokenizer(lang=base)

    def tokenised(sentence: str) -> str:
        normal = normalizer.normalize(sentence.lower() + "\n")
        pieces: list[str] = tokenizer.tokenize(normal, escape=True, aggressive_dash_splits=False)
        return " ".join(pieces)

    return tokenised


def splitter(kind: str, language: str) -> Splitter:
    """A function that splits a sentence into the words to which links refer.

    Args:
        kind: "whitespace"; "moses", the tokens of the Moses tools as `moses` prepares them
            (lower-cased, punctuation normalised; the words of Multi30k's official tokenised files); or "char", every
            character except white space.
        language: language code, used only by "moses".

    Raises:
        UserError: the kind does not exist.
    """
    if kind == "whitespace":
        return str.split
    if kind == "char":
        return lambda sentence: [char for char in sentence if not char.isspace()]
    if kind != "moses":
        raise UserError(f"words={kind} is not known. Give words= one of {', '.join(KINDS)}.")
    prepare = moses(language)
    return lambda sentence: [html.unescape(token) for token in prepare(sentence).split()]


class WordSplitters(NamedTuple):
    """The definition of a word: the name of a splitter, and the splitters of sources and of targets."""

    name: str
    source: Splitter
    target: Splitter

    @classmethod
    def of(cls, name: str, codes: tuple[str, str]) -> "WordSplitters":
        """The splitters of kind `name` for the language codes of source and target; see `splitter`."""
        return cls(name, splitter(name, codes[0]), splitter(name, codes[1]))

    def sizes(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[int, int]]:
        """The number of source and target words of each sentence pair."""
        return [(len(self.source(source)), len(self.target(target))) for source, target in zip(sources, targets)]
