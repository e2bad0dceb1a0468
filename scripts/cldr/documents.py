"""Documents whose later sentences cannot be translated without the first sentence.

In the CLDR's narrow forms of units, English "5′" means five feet or five minutes of arc, and "5m" means metres, minutes
or months. The first sentence of a document ("12 feet") tells the unit. Other languages spell out the units ("5 Fuß",
"5 Bogenminuten"). Each amount in narrow form occurs in only one split.
"""

import itertools
import random
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple

from cldr.locales import Language, MissingError
from cldr.meaning import Moment, Pair, Percent, Phrase, Quantity
from cldr.phrases import bare, day
from nmt.system.errors import UserError

#: Number of sentences after the sentence that names the unit.
FARTHEST = 3
#: Numbers with this last digit belong to one split; all other numbers belong to the training set.
_DIGITS = {"valid": {8}, "test": {9}}


class Line(NamedTuple):
    """A sentence in both languages; for an ambiguous sentence also its wrong translations."""

    document: int | None
    pair: Pair
    wrong: tuple[str, ...] = ()


def document_splits(source: Language, target: Language, seed: int, sizes: Mapping[str, int]) -> dict[str, list[Line]]:
    """Generate the lines of "train", "valid" and "test", with at least the given numbers of documents.

    Each document of the validation and test sets occurs once for each meaning of its narrow form, with equal numbers.
    So a model that does not see the first sentence is right in exactly one of two or three cases.

    Raises:
        UserError: the source language has no narrow form with two meanings that the target language distinguishes.
    """
    families = ambiguous(source, target)
    if not families:
        raise UserError(
            f"{source.locale} has no narrow unit with two meanings that {target.locale} tells apart. Give source=en."
        )
    return {split: list(_split(source, target, families, seed, split, size)) for split, size in sizes.items()}


def _split(
    source: Language, target: Language, families: Mapping[str, Sequence[str]], seed: int, split: str, size: int
) -> Iterator[Line]:
    rng, number = random.Random(f"{seed} {split} documents"), 0
    for units in itertools.cycle(families.values()):
        if number >= size:
            return
        values = [_number(rng, split) for _ in range(FARTHEST + 1)]
        fillers: list[Phrase | None] = [_filler(rng) if rng.random() < 0.25 else None for _ in range(FARTHEST)]
        for unit in [units[rng.randrange(len(units))]] if split == "train" else units:
            yield Line(number, _pair(source, target, Quantity(values[0], unit, "long")))
            for value, filler in zip(values[1:], fillers, strict=True):
                if filler is not None:
                    yield Line(number, _pair(source, target, filler))
                    continue
                narrow = {
                    one: _pair(source, target, Quantity(value, unit, "narrow"), Quantity(value, one, "long"))
                    for one in units
                }
                yield Line(number, narrow[unit], tuple(pair.target for one, pair in narrow.items() if one != unit))
            number += 1


def _pair(source: Language, target: Language, phrase: Phrase, translation: Phrase | None = None) -> Pair:
    left, right = bare(source.say(phrase)), bare(target.say(phrase if translation is None else translation))
    return Pair(left.text, right.text, left.fields, right.fields)


def ambiguous(source: Language, target: Language) -> dict[str, list[str]]:
    """Narrow forms of the source that stand for several units, which both languages distinguish in long form.

    Returns, for example, {"m": ["duration-minute", "length-meter"]}. Forms are compared for the numbers 2 and 5.
    """
    forms: dict[str, list[str]] = {}
    for unit in sorted(source.locale._data["unit_patterns"]):
        try:
            narrow = tuple(source.say(Quantity(Decimal(value), unit, "narrow")).text for value in (2, 5))
            for language in (source, target):
                language.say(Quantity(Decimal(5), unit, "long"))
        except MissingError:
            continue
        forms.setdefault("/".join(narrow), []).append(unit)
    families = {}
    for narrow_forms, units in forms.items():
        distinct: dict[tuple[str, str], str] = {}
        for unit in units:
            spelled = [language.say(Quantity(Decimal(5), unit, "long")).text for language in (source, target)]
            if spelled[0] not in {a for a, _ in distinct} and spelled[1] not in {b for _, b in distinct}:
                distinct[spelled[0], spelled[1]] = unit
        if len(distinct) > 1:
            families[narrow_forms.split("/")[1].replace("5", "").strip()] = list(distinct.values())
    return families


def _number(rng: random.Random, split: str) -> Decimal:
    """A random number from 2 to 999 that belongs to this split, with one, two or three digits equally often."""
    held = set().union(*_DIGITS.values())
    while True:
        number = rng.randrange(2, 10 ** rng.choice((1, 2, 3)))
        if number % 10 in _DIGITS[split] if split in _DIGITS else number % 10 not in held:
            return Decimal(number)


def _filler(rng: random.Random) -> Phrase:
    """A sentence without units."""
    return Moment(day(rng), "date long") if rng.random() < 0.5 else Percent(Decimal(rng.randrange(2, 100)))
