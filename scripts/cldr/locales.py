"""A language of the built-in corpus: renders phrases, with the spans of their fields.

A phrase is a small tree that is independent of a language (`Moment`, `Money`, `Listing`, ...). `Language.say` expands
the CLDR's patterns for it, and returns the text with the character span of every field: day, month, number, unit, item
and so on. Fields have the same names in every language, so two renderings of a phrase can be aligned exactly.

Extent of fields:

* Literal text of a date pattern that touches a field belongs to this field ("2026(e)ko" is the year, "11月" the month).
* A separate literal word of a date pattern belongs to the next field ("de noviembre"), or to the previous field if
  there is no next field or the year comes first ("2026 m. lapkričio 21 d."). In week patterns, the word for "week" is a
  separate field.
* The text around the number of an amount is its unit, currency, percent sign or power of ten ("% 35"). If a pattern
  has no number, as in Arabic for one and two, number and unit are the same word.
* Conjunctions of lists and the dash of intervals are fields; brackets and commas belong to no field.

White space of every kind becomes a plain space, and invisible direction marks are removed.
"""

import datetime
import functools
from decimal import Decimal
from typing import NamedTuple

from babel import Locale, dates, lists, numbers

from cldr import meaning
from cldr.fields import around_number, clean, fill, renumber, runs, same, shift, tell_direction, whole
from cldr.meaning import Field, Text


class MissingError(Exception):
    """The locale has no data for a phrase; Babel would use codes instead, from which a model can learn nothing."""


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
_ITEM = 0xE000  # first of the private-use characters that mark items, to read a list pattern from Babel's output


class _Token(NamedTuple):
    """A part of a date pattern: a field with its letters, or a literal with the fields that its words belong to.

    `reach` is the number of characters at the start of a literal that belong to the field right before it.
    """

    name: str
    letters: str
    reach: int = 0
    fields: tuple[Field, ...] = ()


class Language:
    """Renders phrases in one of Babel's locales."""

    def __init__(self, locale: Locale) -> None:
        self.locale = locale
        self._names: dict[str, dict[str, str]] = {
            "territory": dict(locale.territories.items()),
            "language": dict(locale.languages.items()),
            "script": dict(locale.scripts.items()),
            "currency": dict(locale.currencies.items()),
        }
        self._templates: dict[tuple[str, ...], Text] = {}
        # Phrases share parts, so their renderings and parsed patterns are cached.
        self.tokens = functools.cache(self._tokens)
        self._decimal = functools.cache(self._format_decimal)
        self._plan = functools.cache(self._make_plan)
        self._date_field = functools.cache(self._format_date_field)
        self._list_pattern = functools.cache(self._read_list_pattern)
        self._leaf = functools.lru_cache(65536)(self._say_leaf)

    def say(self, phrase: meaning.Phrase) -> Text:
        """Render a phrase: return its text and the spans of its fields.

        Raises MissingError if the locale has no data for the phrase.
        """
        match phrase:
            case meaning.Listing(style, items):
                texts = [self.say(item) for item in items]
                prefixes = [f"{index}." for index in range(len(texts))]
                return fill(self._list_pattern(style, len(items)), texts, prefixes, "and")
            case meaning.Remark(head, detail):
                return fill("{0} ({1})", [self.say(head), self.say(detail)], ["head.", "detail."], "of")
            case _:
                return self._leaf(phrase)

    def _say_leaf(self, phrase: meaning.Leaf) -> Text:
        try:
            return self._expand(phrase)
        except KeyError as error:
            raise MissingError(f"{self.locale} has nothing for {phrase}") from error

    def _expand(self, phrase: meaning.Leaf) -> Text:
        match phrase:
            case meaning.Name(kind, code):
                return self._name(kind, code)
            case meaning.Percent(value):
                text = numbers.format_percent(value / 100, locale=self.locale, decimal_quantization=False)
                return around_number(clean(text), "percent")
            case meaning.Compact(value):
                return self._compact(value)
            case meaning.Money(value, currency, named):
                return self._named_money(value, currency) if named else self._money(value, currency)
            case meaning.Quantity(value, unit, style):
                return self._quantity(value, unit, style)
            case meaning.RelativeTime(value, unit):
                return self._relative(value, unit)
            case meaning.Moment(moment, style):
                return self._date(moment, style)
            case meaning.Week(number, moment, style):
                return self._date(moment, style, number)
            case meaning.Meeting(moment, style, clock):
                both = [self._date(moment, clock), self._date(moment, f"date {style}")]
                glue = clean(str(self.locale.datetime_formats[style])).replace("'", "")
                return fill(glue, both, ["time.", "date."], "at")
            case meaning.Interval(start, end):
                # The locale's fallback pattern can join any two dates of one style (UTS 35, 2.6.3).
                both = [self._date(start.value, start.style), self._date(end.value, end.style)]
                glue = clean(str(self.locale.interval_formats[None]))
                return fill(glue, both, ["from.", "to."], "dash", symbols=True)

    # Names and amounts

    def _name(self, kind: str, code: str) -> Text:
        text = self._names[kind][code]
        if not text or text == code:
            raise MissingError(f"{self.locale} has no name for the {kind} {code}")
        return whole("name", clean(text).strip())

    def _format_decimal(self, value: Decimal) -> str:
        return clean(numbers.format_decimal(value, locale=self.locale))

    def _compact(self, value: Decimal) -> Text:
        length: meaning.Length = "long" if "long" in self.locale.compact_decimal_formats else "short"
        text = numbers.format_compact_decimal(value, format_type=length, locale=self.locale, fraction_digits=3)
        return around_number(clean(text), "scale")

    def _money(self, value: Decimal, currency: str) -> Text:
        if currency not in self.locale.currencies:
            raise MissingError(f"{self.locale} does not know the currency {currency}")
        return around_number(clean(numbers.format_currency(value, currency, locale=self.locale)), "currency")

    def _named_money(self, value: Decimal, currency: str) -> Text:
        name = clean(numbers.get_currency_name(currency, value, self.locale))
        if not name or name == currency:
            raise MissingError(f"{self.locale} has no name for the currency {currency}")
        pattern = clean(numbers.get_currency_unit_pattern(currency, value, self.locale))
        return fill(pattern, [whole("number", self._decimal(value)), whole("currency", name)], ["", ""], "of")

    def _quantity(self, value: Decimal, unit: str, style: meaning.Width) -> Text:
        plural = self.locale.plural_form(value)
        template = self._templates.get((unit, style, plural))
        if template is None:
            # units.format_unit does not fall back to the plural form "other", which the CLDR requires.
            patterns = self.locale._data["unit_patterns"][unit][style]
            pattern = clean(patterns.get(plural) or patterns["other"])
            template = around_number(pattern.replace("{0}", self._decimal(value)), "unit")
            self._templates[unit, style, plural] = template
        return renumber(template, self._decimal(value))

    def _relative(self, value: int, unit: str) -> Text:
        number, tense = Decimal(abs(value)), "future" if value > 0 else "past"
        plural = self.locale.plural_form(number)
        template = self._templates.get((unit, tense, plural))
        if template is None:
            patterns = self.locale._data["date_fields"][unit]
            both = {t: clean(patterns[t].get(plural) or patterns[t]["other"]) for t in ("past", "future")}
            pattern = both.pop(tense)
            template = self._templates[unit, tense, plural] = tell_direction(pattern, *both.values())
        return renumber(template, self._decimal(number))

    # Dates and times

    def pattern(self, style: str) -> str:
        """The CLDR's date pattern of a style. Raises KeyError if the locale has none."""
        kind, _, name = style.partition(" ")
        formats = {
            "date": self.locale.date_formats,
            "time": self.locale.time_formats,
            "skeleton": self.locale.datetime_skeletons,
        }
        return str(formats[kind][name].pattern)

    def _tokens(self, style: str) -> list[tuple[str, str]]:
        """The pattern as pairs (field name, pattern letters) and ("", literal), with adjacent literals joined."""
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
        # Use only the part of the date that the field depends on, so that the cache has few entries.
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
            fields += shift(literal, start)
        return Text(text, tuple(fields))

    def _make_plan(self, style: str) -> list[_Token]:
        """The tokens of a style, with literals assigned to fields as the module's docstring describes."""
        tokens = self.tokens(style)
        names = [name for name, _ in tokens]
        head = self._week_word(tokens)
        if head is not None:
            names = ["" if name == "week" else name for name in names]
        # "21 de noviembre", but "2026 m. lapkričio 21 d.": words follow their field if the year comes first.
        follow = "month" in names and "year" in names[: names.index("month")]
        plan = []
        for index, (name, letters) in enumerate(tokens):
            reach, fields = 0, list[Field]()
            for first, last in () if name else runs(letters):
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
        """The word for "week" in a week pattern, as (token, start, end); None without such a word.

        It is the word that touches no field and is most similar to the unit's name ("week 2 of November").
        """
        if not any(name == "week" for name, _ in tokens):
            return None
        words = [
            (index, first, last)
            for index, (name, letters) in enumerate(tokens)
            for first, last in (() if name else runs(letters))
            if not (index and first == 0) and not (index + 1 < len(tokens) and last == len(letters))
        ]
        return max(
            words,
            key=lambda w: (self._like_week(tokens[w[0]][1][w[1] : w[2]]), w[2] - w[1]),
            default=None,
        )

    def _like_week(self, word: str) -> int:
        """The number of first letters that a word shares with the name of the week in this language."""
        try:
            wording = self._relative(2, "week")
        except KeyError:
            return 0
        names = [wording.text[start:end] for name, start, end in wording.fields if name == "unit"]
        return max(sum(1 for _ in same(word.lower(), name.lower())) for name in names)

    # Lists

    def _read_list_pattern(self, style: meaning.ListStyle, count: int) -> str:
        """Babel's pattern for a list of `count` items, such as "{0}, {1} eta {2}"."""
        try:
            pattern = clean(lists.format_list([chr(_ITEM + index) for index in range(count)], style, self.locale))
        except (KeyError, ValueError) as error:
            raise MissingError(f"{self.locale} has no lists of style {style}") from error
        for index in range(count):
            pattern = pattern.replace(chr(_ITEM + index), f"{{{index}}}")
        return pattern
