"""Sentences cut into words at white space, as the Moses tools do, or into characters.

Gold links count words in one of these ways; `units.spelled` finds the pieces of such words. No other file imports
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
    """Return the function that prepares a sentence as the official Multi30k files are prepared.

    Lower-case, then the punctuation normaliser, then the tokenizer with escapes and without splitting at
    dashes; in this order it gives the official `*.lc.norm.tok.*` references exactly (val and both tests of
    German, English and French). Two details of the Perl script that made them count for that: its treatment
    of the curly apostrophe, and its rule for a closing quotation mark, which sees the line end.
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
    """A function that cuts a sentence into the words that links count.

    Args:
        kind: "whitespace"; "moses", the tokens of the Moses tools as `moses` prepares them
            (lower-cased, punctuation normalised; the words of Multi30k's official tokenised files); or "char", every
            character that is no white space.
        language: code, which only "moses" looks at.

    Raises:
        UserError: there is no such kind.
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
    """What counts as a word: the name of a splitter, and the splitters of sources and targets."""

    name: str
    source: Splitter
    target: Splitter

    @classmethod
    def of(cls, name: str, codes: tuple[str, str]) -> "WordSplitters":
        """The splitters of this name for these languages; see `splitter`."""
        return cls(name, splitter(name, codes[0]), splitter(name, codes[1]))

    def sizes(self, sources: Sequence[str], targets: Sequence[str]) -> list[tuple[int, int]]:
        """The number of source and target words of each sentence pair."""
        return [(len(self.source(source)), len(self.target(target))) for source, target in zip(sources, targets)]
