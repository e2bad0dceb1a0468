"""A glossary: finds the terms of a sentence, and constrains search to use their translations.

    sentence -find-> Match(begin, end, targets) -constraints_of-> Constraint of a search

The same code keeps text that must not be translated: a placeholder is a term that is its own translation.
"""

import functools
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple, get_args

from nmt.search import Constraint
from nmt.system.errors import UserError
from nmt.text.scripts import LANGUAGES, script
from nmt.text.spans import Span
from nmt.text.tokenizer import UNK, Vocabulary
from nmt.text.word_edges import without_space, word_edges

#: Kinds of text that stay untranslated.
Keep = Literal["placeholders", "numbers"]
_PATTERNS: Mapping[Keep, str] = {
    "placeholders": "|".join(
        (
            r"https?://[^\s<>\"]*[^\s<>\".,;:!?)\]]|www\.[^\s<>\"]*[^\s<>\".,;:!?)\]]",  # addresses
            r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+",
            r"`[^`]+`",  # code
            r"\$?\{\{?[^{}\s]*\}?\}|\$[A-Za-z_]\w*",  # {0}, {name}, {{name}}, ${VAR}, $VAR
            r"%\(\w+\)[-+#0]*\d*(?:\.\d+)?[a-zA-Z]|%(?:\d+\$)?[-+#0]*\d*(?:\.\d+)?[sdifgxXcu@](?!\w)",
            r"&(?:\w+|#\d+);",
        )
    ),
    "numbers": r"(?<![\w.,])\d+(?:[.,:/]\d+)*(?!\w)",
}
_WORD = re.compile(r"\w+|[^\w\s]")


class Match(NamedTuple):
    """A term in a sentence.

    Attributes:
        begin, end: the characters of the term in the sentence, [begin, end).
        targets: its translations; the translation of the sentence must use one.
        verbatim: whether the term stays untranslated.
    """

    begin: int
    end: int
    targets: Sequence[str]
    verbatim: bool = False


class Use(NamedTuple):
    """The use of a term: the match, and its characters [begin, end) in the translation, or None and the reason."""

    match: Match
    span: Span | None
    reason: str = ""


class Entry(NamedTuple):
    """A term: its source forms, its target forms, and its place for messages, such as a file and line."""

    sources: Sequence[str]
    targets: Sequence[str]
    place: str = "glossary"


class Glossary:
    """Terms with required translations, and kinds of text that stay untranslated.

    A term matches whole words; a term without capitals matches in any case. Longer matches take precedence.
    """

    def __init__(self, entries: Iterable[Entry] = (), keep: Sequence[Keep] = ()) -> None:
        """`keep` has the kinds of text that stay untranslated.

        Raises:
            UserError: a term is blank or has two translations, or a kind is unknown.
        """
        self.entries = list(entries)
        for kind in keep:
            if kind not in _PATTERNS:
                raise UserError(f"keep={kind}: must be one of {', '.join(get_args(Keep))}.")
        self._verbatim = re.compile("|".join(_PATTERNS[kind] for kind in _PATTERNS if kind in keep)) if keep else None
        #: Case-folded first word -> the words and entries of the terms that begin with it, the longest first.
        self._terms: dict[str, list[tuple[list[str], Entry]]] = {}
        seen: dict[str, Entry] = {}
        for entry in self.entries:
            if not any(map(str.strip, entry.sources)) or not any(map(str.strip, entry.targets)):
                raise UserError(f"{entry.place}: a term needs a source and a target.")
            for form in entry.sources:
                before = seen.setdefault(form, entry)
                if set(before.targets) != set(entry.targets):
                    raise UserError(
                        f"{entry.place}: '{form}' is '{entry.targets[0]}', but {before.place} says "
                        f"'{before.targets[0]}'. Keep one of them, or allow both: '{before.targets[0]} | "
                        f"{entry.targets[0]}'."
                    )
                words = [word for word, _ in _words(form)]
                if before is entry and words:
                    self._terms.setdefault(words[0].casefold(), []).append((words, entry))
        for terms in self._terms.values():
            terms.sort(key=lambda term: -len(term[0]))

    def find(self, text: str) -> list[Match]:
        """The terms of a text, in order."""
        words = _words(text)
        folded = [word.casefold() for word, _ in words]
        places = () if self._verbatim is None else self._verbatim.finditer(text)
        matches = [Match(*place.span(), (place[0],), verbatim=True) for place in places]
        for at, first in enumerate(folded):
            for term, entry in self._terms.get(first, ()):
                span = slice(at, at + len(term))
                lower = term == [word.casefold() for word in term]
                if term == (folded if lower else [word for word, _ in words])[span]:
                    matches.append(Match(words[at][1][0], words[span][-1][1][1], entry.targets))
        taken: list[Match] = []
        for match in sorted(matches, key=lambda each: (not each.verbatim, each.begin - each.end, each.begin)):
            if all(match.end <= other.begin or other.end <= match.begin for other in taken):
                taken.append(match)
        return sorted(taken)

    def check(self, vocabulary: Vocabulary) -> None:
        """Raise UserError if the target vocabulary has no pieces for a term."""
        for entry in self.entries:
            for form in entry.targets:
                if not _writes(vocabulary, form):
                    raise UserError(
                        f"{entry.place}: the model cannot write '{form}': it has no pieces for some of its characters."
                    )


def _words(text: str) -> list[tuple[str, Span]]:
    """The words and punctuation marks of a text with their spans; single characters in scripts without spaces."""
    words: list[tuple[str, Span]] = []
    for word in _WORD.finditer(text):
        begin = word.start()
        if word[0].isascii() or not any(map(_unspaced, word[0])):
            words.append((word[0], word.span()))
        else:
            words += [(each, (at, at + 1)) for at, each in enumerate(word[0], begin)]
    return words


def _unspaced(letter: str) -> bool:
    """Whether a letter belongs to a script without spaces between words."""
    name = script(letter)
    return name in ("Hiragana", "Katakana") or (name in LANGUAGES and name != "Hangul")


def _writes(vocabulary: Vocabulary, text: str) -> bool:
    """Whether a model can write a text."""
    return set(vocabulary.encode([text])[0]).isdisjoint({UNK, *vocabulary.forbidden})


def constraints_of(
    matches: Sequence[Match], text: str, spans: Sequence[Span | None], vocabulary: Vocabulary
) -> list[Constraint]:
    """Constraints for a part of a text whose pieces have these spans: the terms that lie completely in the part."""
    if not matches:
        return []
    constraints = []
    pieces = [(at, span) for at, span in enumerate(spans) if span is not None]
    for match in matches:
        slots = [at for at, (begin, end) in pieces if begin < match.end and match.begin < end]
        inside = pieces and pieces[0][1][0] <= match.begin and match.end <= pieces[-1][1][1]
        glued = match.verbatim and text[match.begin - 1 : match.begin].strip() != ""
        forms = [_alternatives(form, vocabulary, match.verbatim, glued) for form in match.targets]
        alternatives = [tokens for ways in forms for tokens in ways]
        if slots and inside and alternatives:
            # Tokenizers of other programs may have no space before the first word.
            begins = any(word_edges(vocabulary)[0][tokens[0]] for tokens in alternatives)
            constraints.append(Constraint(alternatives, slots, begins and _is_whole(match, text, vocabulary)))
    return constraints


@functools.lru_cache(maxsize=8)
def _writes_spaces(vocabulary: Vocabulary) -> bool:
    """Whether most letters of a model's pieces are of scripts with spaces between words."""
    texts = (each.decode("utf-8", "ignore") for each in vocabulary.shows if len(each) > 1)  # no single bytes
    letters = [letter for text in texts for letter in text[:20] if letter.isalpha()]
    return 2 * sum(map(_unspaced, letters)) <= len(letters)


def _is_whole(match: Match, text: str, vocabulary: Vocabulary) -> bool:
    """Whether the translation of a term must be whole words: not in text without spaces, nor glued to other letters.

    A term in a script without spaces is also a whole word if the model's texts have spaces.
    """
    beside = text[match.begin - 1 : match.begin] + text[match.end : match.end + 1]
    unspaced = any(_unspaced(form[0]) or _unspaced(form[-1]) for form in match.targets)
    return not (unspaced and not _writes_spaces(vocabulary)) and not (match.verbatim and any(map(str.isalnum, beside)))


def _alternatives(form: str, vocabulary: Vocabulary, verbatim: bool, glued: bool) -> list[tuple[int, ...]]:
    """Token sequences for a term: as a word, without a leading space, and with a capital at the start of a sentence."""
    forms = [form] if verbatim or form != form.lower() else [form, form[0].upper() + form[1:]]
    ways = []
    for each in forms:
        (tokens,) = vocabulary.encode([each])
        if set(tokens).isdisjoint(vocabulary.forbidden) and (not verbatim or vocabulary.decode(tokens) == form):
            ways.append(tuple(tokens))
            if (not verbatim or glued) and (inner := without_space(vocabulary, tokens)):
                ways.append(tuple(inner))
    return list(dict.fromkeys(ways))


def uses(glossary: Glossary, source: str, text: str, vocabulary: Vocabulary) -> list[Use]:
    """The terms of a source in order, each with its place in the translation, or the reason why it is missing."""
    uses_by_number: dict[int, Use] = {}
    taken: list[Span] = []
    matches = glossary.find(source)
    # The longest first: "York" must not match a part of "New York".
    for number, match in sorted(enumerate(matches), key=lambda each: -max(map(len, each[1].targets))):
        whole = _is_whole(match, source, vocabulary)
        pattern = "|".join(_pattern(form, whole) for form in sorted(match.targets, key=len, reverse=True))
        flags = re.IGNORECASE * (not match.verbatim)
        spans = (place.span() for place in re.finditer(pattern, text, flags))
        span = next((each for each in spans if all(each[1] <= a or b <= each[0] for a, b in taken)), None)
        reason = ""
        if span is not None:
            taken.append(span)
        elif not any(_writes(vocabulary, form) for form in match.targets):
            reason = "the model has no pieces for it"
        else:
            reason = "it is not in the translation, as where a long line was cut"
        uses_by_number[number] = Use(match, span, reason)
    return [uses_by_number[number] for number in range(len(matches))]


def _pattern(form: str, whole: bool) -> str:
    before, after = (r"(?<!\w)" * form[0].isalnum(), r"(?!\w)" * form[-1].isalnum()) if whole else ("", "")
    return before + re.escape(form) + after
