"""One language of the built-in corpus: says a phrase and remembers where each of its fields stands.

A phrase is a small tree without any language (`Moment`, `Money`, `Listing`, ...).  `Language.say` expands
the CLDR's patterns for it and returns the text together with the character span of every field: day, month,
number, unit, item and so on.  Fields have the same names in every language, so two renderings of a phrase
align exactly.

What a field covers:

* literal text of a date pattern that touches a field belongs to it ("2026(e)ko" is the year, "11月" the
  month);
* a literal word of a date pattern that stands alone belongs to the field after it ("de noviembre"), or
  before it where none follows or the year comes first ("2026 m. lapkričio 21 d."); in week patterns the
  word for "week" is a field of its own;
* what surrounds the number of an amount is its unit, currency, percent sign or power of ten ("% 35"); where a
  pattern leaves the number out, as Arabic does for one and two, number and unit are the same word;
* conjunctions of lists and the dash of intervals are fields; brackets and commas belong to nothing.

White space of every kind becomes a plain space, and invisible direction marks are dropped.
"""

import datetime
import functools
import itertools
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Literal, NamedTuple

from babel import Locale, dates, lists, numbers

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


class MissingError(Exception):
    """The locale has no data for a phrase (Babel would fall back to codes, which teach nothing)."""


_FIELDS = {
    **dict.fromkeys("yYu", "year"),
    **dict.fromkeys("ML", "month"),
    **dict.fromkeys("Eec", "weekday"),
    **dict.fromkeys("HhKk", "hour"),
    **dict.fromkeys("abB", "period"),
    **dict.fromkeys("Qq", "quarter"),
    **dict.fromkeys("wW", "week"),
    "d": "day",
    "m": "minute",
    "s": "second",
    "G": "era",
}
_MARKS = dict.fromkeys([0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_NUMBER = re.compile(r"\d(?:[\d.,'’٫٬ ]*\d)?")
_WORDS = re.compile(r"\w(?:.*\w)?")
_ITEM = 0xE000  # private-use characters stand for the items while a list pattern is read off Babel


def clean(text: str) -> str:
    """Turn every white space into one plain space and drop direction marks."""
    return re.sub(r"\s", " ", text.translate(_MARKS))


def _shift(fields: Sequence[Field], by: int, prefix: str = "") -> list[Field]:
    return [Field(prefix + name, start + by, end + by) for name, start, end in fields]


def _trim(name: str, text: str, start: int) -> list[Field]:
    """The field of a literal that begins at `start` of the whole, without the spaces around it."""
    bare = text.strip()
    if not bare:
        return []
    start += len(text) - len(text.lstrip())
    return [Field(name, start, start + len(bare))]


def _whole(name: str, text: str) -> Text:
    return Text(text, (Field(name, 0, len(text)),))


def _around_number(text: str, rest: str) -> Text:
    """A text with one number in it: the field "number" first, then `rest` for what surrounds it."""
    found = _NUMBER.search(text)
    if found is None:
        return Text(text, (Field("number", 0, len(text)), Field(rest, 0, len(text))))
    start, end = found.span()
    before, after = _trim(rest, text[:start], 0), _trim(rest, text[end:], end)
    return Text(text, (Field("number", start, end), *before, *after))


def _tell_direction(pattern: str, opposite: str) -> Text:
    """A relative time with 1 for its number: the fields number, unit and direction.

    The words around the number that the past shares with the future are the unit, the others are the direction:
    "{0} hours ago", "in {0} hours".  Where all of them change ("5 órával ezelőtt", "5 óra múlva") both fields cover
    what surrounds the number.
    """
    joint = _around_number(pattern.replace("{0}", "1"), "unit")
    both = (*joint.fields, *(field._replace(name="direction") for field in joint.fields if field.name == "unit"))
    words, others = pattern.split(" "), opposite.split(" ")
    at = next((i for i, word in enumerate(words) if "{0}" in word), -1)
    there = next((i for i, word in enumerate(others) if "{0}" in word), -1)
    if at < 0 or there < 0 or words[at] != others[there]:
        return Text(joint.text, both)
    before = sum(1 for _ in _same(words[:at][::-1], others[:there][::-1]))
    after = sum(1 for _ in _same(words[at + 1 :], others[there + 1 :]))
    amount = " ".join(words[at - before : at + after + 1])
    start = len(" ".join([*words[: at - before], ""]))
    said = _around_number(amount.replace("{0}", "1"), "unit")
    end = start + len(said.text)
    rest = _trim("direction", joint.text[:start], 0) + _trim("direction", joint.text[end:], end)
    if len(said.fields) == 1 or not rest:
        return Text(joint.text, both)
    return Text(joint.text, (*_shift(said.fields, start), *rest))


def _same(words: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The pairs at the beginning of two sequences that are equal."""
    return itertools.takewhile(lambda pair: pair[0] == pair[1], zip(words, others))


def _renumber(template: Text, number: str) -> Text:
    """Put another number into the template's first field, unless that is said without digits."""
    at = template.fields[0]
    if not _NUMBER.fullmatch(template.text[at.start : at.end]):
        return template
    by = len(number) - (at.end - at.start)
    fields = [at._replace(end=at.end + by)]
    fields += [f if f.end <= at.start else Field(f.name, f.start + by, f.end + by) for f in template.fields[1:]]
    return Text(template.text[: at.start] + number + template.text[at.end :], tuple(fields))


@functools.cache
def _parts(pattern: str) -> list[tuple[str, int, tuple[int, int], tuple[int, int]]]:
    """Cut a pattern into slots and literals: text, slot or -1, the spans of its words and of its symbols."""
    parts = []
    for part in re.split(r"(\{\d\})", pattern):
        words = _WORDS.search(part)
        bare = part.strip()
        symbols = (part.index(bare), part.index(bare) + len(bare))
        slot = int(part[1]) if re.fullmatch(r"\{\d\}", part) else -1
        parts.append((part, slot, words.span() if words else (0, 0), words.span() if words else symbols))
    return parts


def _fill(pattern: str, texts: Sequence[Text], prefixes: Sequence[str], literal: str, symbols: bool = False) -> Text:
    """Fill "{0}", "{1}", ... of a pattern.

    Literal words become the field `literal` + the number of slots before them; with `symbols` so does
    punctuation.
    """
    text, fields, slots = "", list[Field](), 0
    for part, slot, words, marks in _parts(pattern):
        start = len(text)
        if slot >= 0:
            text += texts[slot].text
            fields += _shift(texts[slot].fields, start, prefixes[slot])
            slots += 1
            continue
        text += part
        first, last = marks if symbols else words
        if first < last:
            fields.append(Field(f"{literal}{slots}", start + first, start + last))
    return Text(text, tuple(fields))


class _Token(NamedTuple):
    """A part of a date pattern: a field with its letters, or a literal with the spans it gives to fields.

    `reach` is how much of a literal belongs to the field right before it.
    """

    name: str
    letters: str
    reach: int = 0
    fields: tuple[Field, ...] = ()


def _runs(literal: str) -> list[tuple[int, int]]:
    """The spans of what holds letters in a literal, without the commas behind."""
    found = [(match.start(), match.group().rstrip(",;:،、")) for match in re.finditer(r"\S+", literal)]
    return [(start, start + len(run)) for start, run in found if _WORDS.search(run)]


class Language:
    """Says phrases in one locale of Babel's."""

    def __init__(self, locale: Locale) -> None:
        self.locale = locale
        self._names: dict[str, dict[str, str]] = {
            "territory": dict(locale.territories.items()),
            "language": dict(locale.languages.items()),
            "script": dict(locale.scripts.items()),
            "currency": dict(locale.currencies.items()),
        }
        self._templates: dict[tuple[str, ...], Text] = {}
        # Phrases share their parts, and patterns are parsed once: a corpus is made at the start of every run.
        self.tokens = functools.cache(self._tokens)
        self._decimal = functools.cache(self._format_decimal)
        self._plan = functools.cache(self._make_plan)
        self._date_field = functools.cache(self._format_date_field)
        self._list_pattern = functools.cache(self._read_list_pattern)
        self._leaf = functools.lru_cache(65536)(self._say_leaf)

    def say(self, phrase: Phrase) -> Text:
        """The text of a phrase and the spans of its fields.

        Raises MissingError where the locale has no data for it.
        """
        match phrase:
            case Listing(style, items):
                texts = [self.say(item) for item in items]
                prefixes = [f"{index}." for index in range(len(texts))]
                return _fill(self._list_pattern(style, len(items)), texts, prefixes, "and")
            case Remark(head, detail):
                return _fill("{0} ({1})", [self.say(head), self.say(detail)], ["head.", "detail."], "of")
            case _:
                return self._leaf(phrase)

    def _say_leaf(self, phrase: Leaf) -> Text:
        try:
            return self._expand(phrase)
        except KeyError as error:
            raise MissingError(f"{self.locale} has nothing for {phrase}") from error

    def _expand(self, phrase: Leaf) -> Text:
        match phrase:
            case Name(kind, code):
                return self._name(kind, code)
            case Percent(value):
                text = numbers.format_percent(value / 100, locale=self.locale, decimal_quantization=False)
                return _around_number(clean(text), "percent")
            case Compact(value):
                return self._compact(value)
            case Money(value, currency, named):
                return self._named_money(value, currency) if named else self._money(value, currency)
            case Quantity(value, unit, style):
                return self._quantity(value, unit, style)
            case RelativeTime(value, unit):
                return self._relative(value, unit)
            case Moment(moment, style):
                return self._date(moment, style)
            case Week(number, moment, style):
                return self._date(moment, style, number)
            case Meeting(moment, style, clock):
                both = [self._date(moment, clock), self._date(moment, f"date {style}")]
                glue = clean(str(self.locale.datetime_formats[style])).replace("'", "")
                return _fill(glue, both, ["time.", "date."], "at")
            case Interval(start, end):
                # Any two dates of one style may be joined by the locale's fallback pattern (UTS 35, 2.6.3).
                both = [self._date(start.value, start.style), self._date(end.value, end.style)]
                glue = clean(str(self.locale.interval_formats[None]))
                return _fill(glue, both, ["from.", "to."], "dash", symbols=True)

    # Names and amounts

    def _name(self, kind: str, code: str) -> Text:
        text = self._names[kind][code]
        if not text or text == code:
            raise MissingError(f"{self.locale} has no name for the {kind} {code}")
        return _whole("name", clean(text).strip())

    def _format_decimal(self, value: Decimal) -> str:
        return clean(numbers.format_decimal(value, locale=self.locale))

    def _compact(self, value: Decimal) -> Text:
        length: Length = "long" if "long" in self.locale.compact_decimal_formats else "short"
        text = numbers.format_compact_decimal(value, format_type=length, locale=self.locale, fraction_digits=3)
        return _around_number(clean(text), "scale")

    def _money(self, value: Decimal, currency: str) -> Text:
        if currency not in self.locale.currencies:
            raise MissingError(f"{self.locale} does not know the currency {currency}")
        return _around_number(clean(numbers.format_currency(value, currency, locale=self.locale)), "currency")

    def _named_money(self, value: Decimal, currency: str) -> Text:
        name = clean(numbers.get_currency_name(currency, value, self.locale))
        if not name or name == currency:
            raise MissingError(f"{self.locale} has no name for the currency {currency}")
        pattern = clean(numbers.get_currency_unit_pattern(currency, value, self.locale))
        return _fill(pattern, [_whole("number", self._decimal(value)), _whole("currency", name)], ["", ""], "of")

    def _quantity(self, value: Decimal, unit: str, style: Width) -> Text:
        plural = self.locale.plural_form(value)
        template = self._templates.get((unit, style, plural))
        if template is None:
            # Not units.format_unit: it does not fall back to the plural form "other", as the CLDR asks.
            patterns = self.locale._data["unit_patterns"][unit][style]
            pattern = clean(patterns.get(plural) or patterns["other"])
            template = _around_number(pattern.replace("{0}", self._decimal(value)), "unit")
            self._templates[unit, style, plural] = template
        return _renumber(template, self._decimal(value))

    def _relative(self, value: int, unit: str) -> Text:
        number, tense = Decimal(abs(value)), "future" if value > 0 else "past"
        plural = self.locale.plural_form(number)
        template = self._templates.get((unit, tense, plural))
        if template is None:
            patterns = self.locale._data["date_fields"][unit]
            both = {t: clean(patterns[t].get(plural) or patterns[t]["other"]) for t in ("past", "future")}
            pattern = both.pop(tense)
            template = self._templates[unit, tense, plural] = _tell_direction(pattern, *both.values())
        return _renumber(template, self._decimal(number))

    # Dates and times

    def pattern(self, style: str) -> str:
        """The CLDR's date pattern of a style.  Raises KeyError where the locale has none."""
        kind, _, name = style.partition(" ")
        formats = {
            "date": self.locale.date_formats,
            "time": self.locale.time_formats,
            "skeleton": self.locale.datetime_skeletons,
        }
        return str(formats[kind][name].pattern)

    def _tokens(self, style: str) -> list[tuple[str, str]]:
        """The pattern as (field name, pattern letters) and ("", literal), neighbouring literals joined."""
        tokens: list[tuple[str, str]] = []
        for _, value in dates.tokenize_pattern(self.pattern(style)):
            if isinstance(value, tuple):
                tokens.append((_FIELDS[value[0]], value[0] * value[1]))
            elif tokens and not tokens[-1][0]:
                tokens[-1] = ("", tokens[-1][1] + clean(value))
            else:
                tokens.append(("", clean(value)))
        return tokens

    def _format_date_field(self, letters: str, value: datetime.datetime) -> str:
        return clean(dates.DateTimeFormat(value, self.locale)[letters])

    def _date_value(self, name: str, letters: str, value: datetime.datetime, week: int) -> str:
        # Only what the field depends on is kept of the value, so that the cache serves all of a corpus.
        base = datetime.datetime(2000, 1, 1)
        match name:
            case "week":
                return f"{week:0{len(letters)}d}"
            case "year":
                base = base.replace(year=value.year, day=15)
            case "month" | "quarter":
                base = base.replace(month=value.month)
            case "day":
                base = base.replace(day=value.day)
            case "weekday":
                base = base.replace(day=2 + value.isoweekday() % 7)  # 2 January 2000 was a Sunday
            case "hour" | "period":
                base = base.replace(hour=value.hour, minute=value.minute if name == "period" else 0)
            case "minute":
                base = base.replace(minute=value.minute)
            case "second":
                base = base.replace(second=value.second)
        return self._date_field(letters, base)

    def _date(self, value: datetime.datetime, style: str, week: int = 0) -> Text:
        text, fields = "", list[Field]()
        for name, letters, reach, literal in self._plan(style):
            start = len(text)
            if name:
                text += self._date_value(name, letters, value, week)
                fields.append(Field(name, start, len(text)))
                continue
            text += letters
            if reach:
                fields[-1] = fields[-1]._replace(end=start + reach)
            fields += _shift(literal, start)
        return Text(text, tuple(fields))

    def _make_plan(self, style: str) -> list[_Token]:
        """The tokens of a style, their literals given to fields as the head of this file says."""
        tokens = self.tokens(style)
        names = [name for name, _ in tokens]
        head = self._week_word(tokens)
        if head is not None:
            names = ["" if name == "week" else name for name in names]
        # "21 de noviembre", but "2026 m. lapkričio 21 d.": words follow their field if the year is first.
        follow = "month" in names and "year" in names[: names.index("month")]
        plan = []
        for index, (name, letters) in enumerate(tokens):
            reach, fields = 0, list[Field]()
            for first, last in () if name else _runs(letters):
                after, before = names[index:], names[index::-1]
                near = next((n for n in (before + after if follow else after + before) if n), "")
                if index and first == 0:
                    reach = last
                elif index + 1 < len(tokens) and last == len(letters):
                    fields.append(Field(tokens[index + 1][0], first, last))
                elif (index, first, last) == head:
                    fields.append(Field("week-word", first, last))
                elif near:
                    fields.append(Field(near, first, last))
            plan.append(_Token(name, letters, reach, tuple(fields)))
        return plan

    def _week_word(self, tokens: list[tuple[str, str]]) -> tuple[int, int, int] | None:
        """The word of a week pattern that says "week", as (token, start, end).

        Of the words that touch no field it is the one most like the unit's name ("week 2 of November").
        """
        if not any(name == "week" for name, _ in tokens):
            return None
        words = [
            (index, first, last)
            for index, (name, letters) in enumerate(tokens)
            for first, last in (() if name else _runs(letters))
            if not (index and first == 0) and not (index + 1 < len(tokens) and last == len(letters))
        ]
        return max(
            words,
            key=lambda w: (self._like_week(tokens[w[0]][1][w[1] : w[2]]), w[2] - w[1]),
            default=None,
        )

    def _like_week(self, word: str) -> int:
        """How many letters a word begins with that "week" begins with in this language."""
        try:
            said = self._relative(2, "week")
        except KeyError:
            return 0
        names = [said.text[start:end] for name, start, end in said.fields if name == "unit"]
        return max(sum(1 for _ in _same(word.lower(), name.lower())) for name in names)

    # Lists

    def _read_list_pattern(self, style: ListStyle, count: int) -> str:
        """Babel's pattern for `count` items in one piece, such as "{0}, {1} eta {2}"."""
        try:
            pattern = clean(lists.format_list([chr(_ITEM + index) for index in range(count)], style, self.locale))
        except (KeyError, ValueError) as error:
            raise MissingError(f"{self.locale} has no lists of style {style}") from error
        for index in range(count):
            pattern = pattern.replace(chr(_ITEM + index), f"{{{index}}}")
        return pattern
