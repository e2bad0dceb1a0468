"""Built-in documents whose later sentences cannot be translated without the first one.

English writes "5′" for five feet and for five minutes of arc, "5m" for metres, minutes and months: the CLDR's narrow
forms of units. Which one is meant is said once, at the beginning of a document ("12 feet"). Other languages spell the
unit out ("5 Fuß", "5 Bogenminuten"), so that they mark what the source leaves open. Any two locales of Babel's will do,
if the source has such forms.
"""

import functools
import itertools
import random
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from nmt.data.builtin.corpus import locale_of, versions
from nmt.data.builtin.links import Pair
from nmt.data.builtin.locales import Language, MissingError
from nmt.data.builtin.meaning import Moment, Percent, Phrase, Quantity
from nmt.data.builtin.phrases import bare, day
from nmt.data.corpus import ContrastiveItem, DataSource, Split
from nmt.errors import UserError
from nmt.limits import NotNegative, Positive

#: Sentences of a document after the one that names the unit: the largest distance to it.
FARTHEST = 3
#: Of ten numbers, those whose last digit is here are kept for one split; the others are for training.
_DIGITS = {"valid": {8}, "test": {9}}


class _Line(NamedTuple):
    """A sentence in both languages; the other translations that its source could have, if it is ambiguous."""

    pair: Pair
    wrong: tuple[str, ...] = ()


class BuiltInDocuments(DataSource):
    """Documents of four sentences: an amount with its unit in full, then amounts in narrow form, dates and percentages.

    In the validation and the test set every document is there once for each meaning of its narrow form, with the same
    numbers. So whoever does not see the first sentence is right in exactly one of so many cases. Amounts in narrow form
    are in one set only.
    """

    has_links = True

    def __init__(
        self,
        source: str = "en",
        target: str = "de",
        seed: NotNegative = 1,
        train_documents: Positive = 6000,
        valid_documents: Positive = 100,
        test_documents: Positive = 300,
    ) -> None:
        """Take the locales and the number of documents; sets of families may have a few more.

        Raises:
            UserError: a locale is unknown, or the source has no narrow form with two meanings.
        """
        self._source, self._target = Language(locale_of(source, "source")), Language(locale_of(target, "target"))
        self.languages = (source, target)
        self.name = f"documents-{source}-{target}"
        self.seed = seed
        self._sizes = {"train": train_documents, "valid": valid_documents, "test": test_documents}
        self.families = _ambiguous(self._source, self._target)
        if not self.families:
            raise UserError(
                f"data=documents: {source} has no narrow unit with two meanings that {target} tells apart. "
                "Give data.source=en."
            )

    def tests(self) -> list[str]:
        """There is one test split, "test"."""
        return ["test"]

    def read(self, split: str) -> Split:
        """The split called "train", "valid" or "test", with gold word links."""
        documents = self._documents(split)
        lines = [line.pair for document in documents for line in document]
        return Split(
            split,
            [pair.source for pair in lines],
            [pair.target for pair in lines],
            [pair.links() for pair in lines],
            [number for number, document in enumerate(documents) for _ in document],
        )

    def contrasts(self, split: str) -> list[ContrastiveItem]:
        """The ambiguous sentences of a split, with the distance to the sentence that names the unit."""
        rows = (line for document in self._documents(split) for line in enumerate(document))
        return [ContrastiveItem(row, at, line.wrong) for row, (at, line) in enumerate(rows) if line.wrong]

    def notes(self) -> list[str]:
        """Where the corpus comes from, and what is ambiguous in it."""
        made_of = versions()
        sizes = " / ".join(f"{len(self._documents(split)):,}" for split in ("train", "valid", "test"))
        forms = ", ".join(f"{form} ({len(units)})" for form, units in self.families.items())
        return [
            f"Built-in documents {self.languages[0]}-{self.languages[1]}: {sizes} (train / valid / test) of Unicode "
            f"CLDR {made_of['cldr']} through Babel {made_of['babel']}, seed {self.seed}. "
            f"Narrow units with several meanings: {forms}."
        ]

    @functools.cache  # noqa: B019
    def _documents(self, split: str) -> list[list[_Line]]:
        if split not in self._sizes:
            raise self.unknown_split(split)
        rng = random.Random(f"{self.seed} {split} documents")
        forms, size = list(self.families), self._sizes[split]
        documents: list[list[_Line]] = []
        for number in itertools.count():
            if len(documents) >= size:
                break
            units = self.families[forms[number % len(forms)]]
            values = [_number(rng, split) for _ in range(FARTHEST + 1)]
            fillers: list[Phrase | None] = [_filler(rng) if rng.random() < 0.25 else None for _ in range(FARTHEST)]
            meant = [units[rng.randrange(len(units))]] if split == "train" else units
            documents += [self._document(unit, units, values, fillers) for unit in meant]
        return documents

    def _document(
        self, unit: str, units: Sequence[str], values: Sequence[Decimal], fillers: Sequence[Phrase | None]
    ) -> list[_Line]:
        """The document in which `unit` of these units is meant."""
        lines = [_Line(self._pair(Quantity(values[0], unit, "long")))]
        for value, filler in zip(values[1:], fillers, strict=True):
            if filler is not None:
                lines.append(_Line(self._pair(filler)))
                continue
            said = {one: self._pair(Quantity(value, unit, "narrow"), Quantity(value, one, "long")) for one in units}
            lines.append(_Line(said[unit], tuple(pair.target for one, pair in said.items() if one != unit)))
        return lines

    def _pair(self, phrase: Phrase, translation: Phrase | None = None) -> Pair:
        return _pair(self._source, self._target, phrase, phrase if translation is None else translation)


def _pair(source: Language, target: Language, phrase: Phrase, translation: Phrase) -> Pair:
    said, translated = bare(source.say(phrase)), bare(target.say(translation))
    return Pair(said.text, translated.text, said.fields, translated.fields)


def _ambiguous(source: Language, target: Language) -> dict[str, list[str]]:
    """Narrow forms of the source that stand for several units, which both languages tell apart where they spell them.

    {"m": ["duration-minute", "length-meter"]}, sorted; the numbers 2 and 5 are tried.
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
    """A number from 2 to 999 that belongs to this split, small ones as often as large ones."""
    held = set().union(*_DIGITS.values())
    while True:
        number = rng.randrange(2, 10 ** rng.choice((1, 2, 3)))
        if number % 10 in _DIGITS[split] if split in _DIGITS else number % 10 not in held:
            return Decimal(number)


def _filler(rng: random.Random) -> Phrase:
    """A sentence without units."""
    return Moment(day(rng), "date long") if rng.random() < 0.5 else Percent(Decimal(rng.randrange(2, 100)))
