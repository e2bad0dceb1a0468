"""What a phrase means, without any language, and what a language says for it, with the places of its fields."""

import datetime
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

Length = Literal["long", "short"]
Width = Literal["long", "short", "narrow"]
ListStyle = Literal["standard", "or", "unit"]


class Field(NamedTuple):
    """A field of a phrase and the characters [start, end) of the text in which it is said."""

    name: str
    start: int
    end: int


class Text(NamedTuple):
    """What a language says for a phrase.  A field may have several spans, and spans may overlap."""

    text: str
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True, slots=True)
class Name:
    """The name of a "territory", "language", "script" or "currency"."""

    kind: str
    code: str


@dataclass(frozen=True, slots=True)
class Percent:
    """A number of hundredths."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Compact:
    """A round number said with a power of ten: "12 million"."""

    value: Decimal


@dataclass(frozen=True, slots=True)
class Money:
    """An amount with the currency's symbol, or (`named`) with its plural name."""

    value: Decimal
    currency: str
    named: bool


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number with a unit of measurement, in "long", "short" or "narrow" `style`."""

    value: Decimal
    unit: str
    style: Width


@dataclass(frozen=True, slots=True)
class RelativeTime:
    """A whole number of "hour", "day", ... before (negative) or after now."""

    value: int
    unit: str


@dataclass(frozen=True, slots=True)
class Moment:
    """A date or a time of day; `style` names the CLDR's pattern: "date full", "skeleton yMMMM"."""

    value: datetime.datetime
    style: str


@dataclass(frozen=True, slots=True)
class Meeting:
    """A date in "full", "long", "medium" or "short" `style` and a time of day in the style `clock`."""

    value: datetime.datetime
    style: str
    clock: str


@dataclass(frozen=True, slots=True)
class Week:
    """A week of a year ("skeleton yw") or of a month ("skeleton MMMMW"), by its number."""

    number: int
    value: datetime.datetime
    style: str


@dataclass(frozen=True, slots=True)
class Interval:
    """From one date or time to another of the same style."""

    start: Moment
    end: Moment


@dataclass(frozen=True, slots=True)
class Listing:
    """Two to four phrases in a list of Babel's `style`."""

    style: ListStyle
    items: "tuple[Phrase, ...]"


@dataclass(frozen=True, slots=True)
class Remark:
    """A phrase with another behind it in brackets, as the CLDR shows a language and its territory."""

    head: "Phrase"
    detail: "Phrase"


Leaf = Name | Percent | Compact | Money | Quantity | RelativeTime | Moment | Meeting | Week | Interval
Phrase = Leaf | Listing | Remark
