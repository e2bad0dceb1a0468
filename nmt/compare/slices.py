"""Sentences of one kind, found without a model: section 12 of the report.

Numbers, capitals, quotes, questions, negation, duplicates; what a user's regular expression finds; a user's labels.
"""

import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from nmt.compare.results import SCORERS
from nmt.compare.texts import Buckets, Texts, by_bucket
from nmt.compare.variance import Statistics
from nmt.drawing.by_length import FEW
from nmt.evaluation.metrics import Metric
from nmt.evaluation.words import split_words
from nmt.text.scripts import base_language

MOST_LABELS = 20  # the most frequent ones
#: Words that negate a sentence, lower-case, by language.
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
    """What a user adds to the slices: a regular expression, and a label for each line of the split; None for none."""

    pattern: str | None = None
    labels: Sequence[str] | None = None


def slices_of(sources: Sequence[str], language: str, slicing: Slicing) -> dict[str, list[int]]:
    """The rows of each kind of sentence, by its name.

    Args:
        sources: the sentences.
        language: code of the sources, for negation words; without a list of these, the slice is missing.
        slicing: what a user adds, of labels the most frequent ones; the label "" is none.
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
    found = {name: [row for row, line in enumerate(sources) if test(line)] for name, test in kinds.items()}
    labels = slicing.labels or ()
    usual = [label for label, _ in Counter(filter(None, labels)).most_common(MOST_LABELS)]
    found |= {f"label {label}": [row for row, other in enumerate(labels) if other == label] for label in usual}
    return found


def _folded(line: str) -> set[str]:
    """Lower-case words; "n't" and "n'" are apart from the word that they are written with."""
    text = unicodedata.normalize("NFC", line.lower().replace("’", "'"))
    words = set(split_words(text))
    return words | {"not" for word in words if word.endswith("n't")} | {"n'" for word in words if word.startswith("n'")}


def score_by(
    texts: Texts,
    rows_by_slice: Mapping[str, Sequence[int]],
    score: Callable[[Statistics], Statistics] | None = None,
    title: str = "kind of source",
    metric: Metric = "bleu",
) -> Buckets:
    """A score of each slice that has enough sentences, of all sentences first.

    Args:
        texts: of the split.
        rows_by_slice: the rows of each slice.
        score: of sums of the metric's counts, of which BLEU's begin with the lengths of translations and references;
            None for the metric.
        title: see `Buckets`.
        metric: whose counts are summed.
    """
    everything = list(range(len(texts.references)))
    enough = {"all": everything, **{name: rows for name, rows in rows_by_slice.items() if len(rows) >= FEW}}
    masks = np.zeros((len(everything), len(enough), 1))
    for at, rows in enumerate(enough.values()):
        masks[rows, at] = 1

    def counts(variant: int, run: int) -> Statistics:
        table: Statistics = texts.runs[variant][run].counts[metric][:, None] * masks
        return table

    sizes = [len(rows) for rows in enough.values()]
    return by_bucket(texts, list(enough), counts, score or SCORERS[metric], title, "sentences", sizes)
