"""Sets of sentences by kind: by characters and words, by a user's regular expression, and by a user's labels."""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Sequence
from typing import NamedTuple

from nmt.evaluation.word_counts import split_words
from nmt.text.scripts import base_language

MOST_LABELS = 20  # only the most frequent labels become slices
#: Negation words in lower case, by language.
NEGATIONS = {
    "en": "no not never none nobody nothing neither nor nowhere cannot without",
    "de": "nicht nichts nie niemals niemand kein keine keinen keinem keiner keines weder noch ohne",
    "fr": "ne n' pas jamais rien personne aucun aucune sans ni",
    "es": "no nunca nada nadie ninguno ninguna ningún ni sin jamás tampoco",
    "it": "non mai niente nulla nessuno nessuna senza né",
    "nl": "niet niets nooit niemand geen zonder noch",
    "pt": "não nunca nada ninguém nenhum nenhuma sem nem",
    "cs": "ne není nikdy nic nikdo žádný žádná žádné bez ani",
    "ru": "не нет никогда ничего никто ни без",
}
_QUOTES = re.compile("[\"“”„‟«»「」『』]|(?<!\\w)['‘‚‹]\\w")
_QUESTION = re.compile("[?？؟](?:[\"“”»')\\]」]|\\s)*$")


class Slicing(NamedTuple):
    """A user's slices: a regular expression, and a label for each line of the split; None if not given."""

    pattern: str | None = None
    labels: Sequence[str] | None = None


def slices_of(sources: Sequence[str], language: str, slicing: Slicing) -> dict[str, list[int]]:
    """The rows, from 0, of each kind of sentence, by the name of the kind.

    Languages without a list of negation words have no negation slice. Only a user's most frequent labels are used,
    without the label "".
    """
    times = Counter(sources)
    negations = set(NEGATIONS.get(base_language(language), "").split())
    kinds: dict[str, Callable[[str], object]] = {
        "numbers": lambda line: any(map(str.isnumeric, line)),
        "all capitals": lambda line: any(len(word) > 1 and word.isalpha() and word.isupper() for word in line.split()),
        "quotes": _QUOTES.search,
        "questions": _QUESTION.search,
        "duplicates": lambda line: times[line] > 1,
    }
    if negations:
        kinds["negation"] = lambda line: not negations.isdisjoint(_folded(line))
    if slicing.pattern is not None:
        kinds[f"regex {slicing.pattern}"] = re.compile(slicing.pattern).search
    slices = {name: [row for row, line in enumerate(sources) if test(line)] for name, test in kinds.items()}
    labels = slicing.labels or ()
    usual = [label for label, _ in Counter(filter(None, labels)).most_common(MOST_LABELS)]
    return slices | {f"label {label}": [row for row, other in enumerate(labels) if other == label] for label in usual}


def _folded(line: str) -> set[str]:
    """The lower-case words of a line, with "not" added for words in "n't", and "n'" for words that begin with "n'"."""
    text = unicodedata.normalize("NFC", line.lower().replace("’", "'"))
    words = set(split_words(text))
    return words | {"not" for word in words if word.endswith("n't")} | {"n'" for word in words if word.startswith("n'")}
