"""The meaning of a phrase, and its text in a language with the characters of every field."""

import datetime
import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

Length = Literal["long", "short"]
Width = Literal["long", "short", "narrow"]
ListStyle = Literal["standard", "or", "unit"]

# Fields that only one language has, and the field to link them with: "PM" and the hour "15", "week 47" and "第47周".
_STAND_INS = {"period": "hour", "week-word": "week", "scale": "number"}


class Field(NamedTuple):
    """A field of a phrase and its characters [start, end) in the text."""

    name: str
    start: int
    end: int


class Text(NamedTuple):
    """The text of a phrase in one language. A field may have several spans, and spans may overlap."""

    text: str
    fields: tuple[Field, ...] = ()


class Pair(NamedTuple):
    """A phrase in both languages. Fields with equal names have the same meaning."""

    source: str
    target: str
    source_fields: tuple[Field, ...]
    target_fields: tuple[Field, ...]

    def links(self) -> str:
        """The word links in Pharaoh format, such as "0-2 1-0", over whitespace-separated words.

        All source words that overlap a field are linked with all target words that overlap the field of the same name.
        """
        source, target = _words_of(self.source, self.source_fields), _words_of(self.target, self.target_fields)
        links = set[tuple[int, int]]()
        for name in {*source, *target}:
            front, _, last = name.rpartition(".")
            stand_in = f"{front}.{_STAND_INS.get(last, '')}".lstrip(".")
            left = source.get(name) or source.get(stand_in) or set[int]()
            right = target.get(name) or target.get(stand_in) or set[int]()
            links.update((i, j) for i in left for j in right)
        return " ".join(f"{i}-{j}" for i, j in sorted(links))


def _words_of(text: str, fields: Iterable[Field]) -> dict[str, set[int]]:
    """The numbers of the words that each field overlaps; fields must not begin or end with white space."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    words: dict[str, set[int]] = {}
    for name, start, end in fields:
        words.setdefault(name, set()).update(range(bisect_right(starts, start) - 1, bisect_left(starts, end)))
    return words


@dataclass(frozen=True, slots=True)
class Name:
    kind: str  # "territory", "language", "script" or "currency"
    code: str


@dataclass(frozen=True, slots=True)
class Percent:
    value: Decimal


@dataclass(frozen=True, slots=True)
class Compact:
    value: Decimal  # a round number, written with a power of ten: "12 million"


@dataclass(frozen=True, slots=True)
class Money:
    value: Decimal
    currency: str
    named: bool  # with the plural name of the currency, not its symbol


@dataclass(frozen=True, slots=True)
class Quantity:
    value: Decimal
    unit: str
    style: Width


@dataclass(frozen=True, slots=True)
class RelativeTime:
    value: int  # before (negative) or after now
    unit: str


@dataclass(frozen=True, slots=True)
class Moment:
    value: datetime.datetime
    style: str  # the CLDR's pattern: "date full", "time short", "skeleton yMMMM"


@dataclass(frozen=True, slots=True)
class Meeting:
    value: datetime.datetime
    style: str  # of the date: "full", "long", "medium" or "short"
    clock: str  # style of the time


@dataclass(frozen=True, slots=True)
class Week:
    number: int
    value: datetime.datetime
    style: str  # of a year ("skeleton yw") or of a month ("skeleton MMMMW")


@dataclass(frozen=True, slots=True)
class Interval:
    start: Moment
    end: Moment


@dataclass(frozen=True, slots=True)
class Listing:
    style: ListStyle
    items: "tuple[Phrase, ...]"


@dataclass(frozen=True, slots=True)
class Remark:
    head: "Phrase"
    detail: "Phrase"  # in brackets


Leaf = Name | Percent | Compact | Money | Quantity | RelativeTime | Moment | Meeting | Week | Interval
Phrase = Leaf | Listing | Remark
