"""Draws phrases, renders each in both languages, and divides them into splits without common sentences.

Phrases are drawn independently of the languages. A phrase is left out if its source does not determine all of its
target: for example, some styles of dates, names and symbols with two meanings, and units that a locale lacks.
"""

import datetime
import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import TypeVar

from babel.numbers import get_currency_precision, get_territory_currencies

from cldr import meaning
from cldr.locales import Language, MissingError
from cldr.meaning import Field, Pair, Text
from nmt.system.errors import UserError

_DATES = (
    *(f"date {length}" for length in ("full", "long", "medium", "short")),
    *(f"skeleton {fields}" for fields in ("yMMMEd", "MMMMd", "MMMEd", "yMMMM", "yMMM", "yQQQQ")),
)
_INTERVALS = ("date full", "date long", "date medium", "skeleton yMMMEd")
_CLOCKS = ("time short", "time medium", "skeleton Hm")
_WEEKS = ("skeleton yw", "skeleton MMMMW")
_LISTS: tuple[meaning.ListStyle, ...] = ("standard", "or", "unit")
_LENGTHS: tuple[meaning.Length, ...] = ("long", "long", "short")
_NAMES = ("territory", "language", "currency", "script")
_SCRIPTS = (
    "Arab Armn Beng Bopo Cans Cher Cyrl Deva Ethi Geor Grek Gujr Guru Hang Hebr Hira Kana Khmr Knda Laoo "
    "Latn Mlym Mong Mymr Orya Sinh Taml Telu Thaa Thai Tibt"
)
# The first of two currencies with the same symbol keeps it.
_CURRENCIES = (
    "EUR USD GBP JPY CHF CNY INR CAD AUD NZD SEK NOK DKK PLN CZK HUF TRY RUB UAH KRW BRL MXN ZAR ILS THB VND "
    "EGP HKD SGD IDR"
)
_UNITS = {
    "length": "kilometer meter centimeter millimeter mile foot inch yard",
    "mass": "kilogram gram milligram pound ounce",
    "volume": "liter milliliter gallon",
    "area": "hectare acre square-kilometer square-meter",
    "temperature": "celsius fahrenheit",
    "speed": "kilometer-per-hour meter-per-second mile-per-hour",
    "duration": "second minute hour day week month year",
    "energy": "kilocalorie joule",
    "power": "watt kilowatt",
    "electric": "volt ampere",
    "frequency": "hertz megahertz",
    "digital": "byte megabyte gigabyte",
    "angle": "degree",
    "pressure": "hectopascal",
}
_SPANS = {"second": 60, "minute": 60, "hour": 48, "day": 30, "week": 20, "month": 24, "year": 60}
# Regions, unions and test codes among the CLDR's territories.
_NO_TERRITORIES = {"EU", "EZ", "UN", "QO", "ZZ", "XA", "XB"}


def bare(wording: Text) -> Text:
    """Remove white space at both ends of a text, which some patterns leave."""
    if wording.text == wording.text.strip():
        return wording
    by = len(wording.text) - len(wording.text.lstrip())
    return Text(wording.text.strip(), tuple(Field(name, start - by, end - by) for name, start, end in wording.fields))


def pair_splits(source: Language, target: Language, seed: int, sizes: Mapping[str, int]) -> dict[str, list[Pair]]:
    """Generate the pairs of "valid", "test" and "train"; no source or target sentence occurs twice in all of them.

    "valid" and "test" do not depend on the size of the training set. Single names are in the training set only, since
    no model can guess them.

    Raises:
        UserError: the two locales have too few phrases in common.
    """
    phrases = Phrases(source, target)
    sources, targets = set[str](), set[str]()
    splits = {}
    for split in ("valid", "test", "train"):
        size, rng = sizes[split], random.Random(f"{seed} {split}")
        pairs = list[Pair]()

        def add(pair: Pair, pairs: list[Pair] = pairs) -> None:
            if pair.source not in sources and pair.target not in targets:
                pairs.append(pair)
                sources.add(pair.source)
                targets.add(pair.target)

        if split == "train":
            names = [name for names in phrases.names.values() for name in names]
            for name in rng.sample(names, min(len(names), size // 10)):
                add(phrases.pair(name))
        for _ in range(50 * size + 1000):
            if len(pairs) >= size:
                break
            if (drawn := phrases.draw(rng)) is not None:
                add(drawn)
        else:
            raise UserError(f"{split}={size}: the CLDR has only {len(pairs):,} such phrases in these two languages.")
        rng.shuffle(pairs)
        splits[split] = pairs
    return splits


class Phrases:
    """Draws phrases that both languages can render, and whose source is unambiguous."""

    def __init__(self, source: Language, target: Language) -> None:
        self.source = source
        self.target = target
        self._translations: dict[str, str] = {}  # source text of an atom -> its only translation
        self.names = {kind: self._can_say(meaning.Name(kind, code) for code in _codes(source, kind)) for kind in _NAMES}
        self._named = [
            n.code for n in self.names["currency"] if self._all_told(meaning.Money(v, n.code, True) for v in _SAMPLES)
        ]
        self._signed = [c for c in _CURRENCIES.split() if self._all_told([meaning.Money(Decimal(5), c, False)])]
        units = [f"{kind}-{name}" for kind, names in _UNITS.items() for name in names.split()]
        self._units = {
            style: [u for u in units if self._all_told(meaning.Quantity(v, u, style) for v in _SAMPLES)]
            for style in _LENGTHS[1:]
        }
        self._spans = [
            u
            for u in _SPANS
            if self._all_told(meaning.RelativeTime(s * int(v), u) for v in _SAMPLES if v == int(v) for s in (1, -1))
        ]
        self._dates = self._told_styles(_DATES)
        self._clocks = self._told_styles(_CLOCKS)
        self._weeks = self._told_styles(_WEEKS)
        self._rivals = self._look_alikes()
        self._meetings = [s for s in self._dates if s.startswith("date ")]
        self._intervals = [s for s in self._dates if s in _INTERVALS and not self._two_digits(s)]
        # Style "unit" is used for lists of amounts only: in some languages it puts nothing between items.
        self._lists = self._told_lists()
        self._conjunctions = [style for style in self._lists if style != "unit"]
        self._kinds = self._usable(
            {
                self._moment: 5,
                self._meeting: 9,
                self._week: 2,
                self._interval: 10,
                self._percent: 1,
                self._compact: 1,
                self._money: 2,
                self._quantity: 2,
                self._relative: 1,
                self._remark: 12,
                self._list_of_remarks: 9,
                self._list_of_names: 6,
                self._list_of_amounts: 13,
                self._list_of_anything: 27,
            }
        )

    def draw(self, rng: random.Random) -> Pair | None:
        """Draw a phrase in both languages; None if a language cannot render it."""
        if not self._kinds:
            return None
        make = rng.choices(list(self._kinds), cum_weights=list(self._kinds.values()))[0]
        try:
            return self.pair(make(rng))
        except MissingError:
            return None

    def pair(self, phrase: meaning.Phrase) -> Pair:
        """Render a phrase in both languages. Raises MissingError if one of them has no data."""
        source, target = bare(self.source.say(phrase)), bare(self.target.say(phrase))
        return Pair(source.text, target.text, source.fields, target.fields)

    # Phrases that can be rendered and are unambiguous

    def _tells(self, phrase: meaning.Phrase) -> bool:
        try:
            pair = self.pair(phrase)
        except MissingError:
            return False
        whole = bool(pair.source and pair.target)
        return whole and self._translations.setdefault(pair.source, pair.target) == pair.target

    def _all_told(self, phrases: Iterable[meaning.Phrase]) -> bool:
        verdicts = [self._tells(phrase) for phrase in phrases]  # no early stop: each call reserves a source text
        return all(verdicts)

    def _can_say(self, names: Iterable[meaning.Name]) -> list[meaning.Name]:
        return [name for name in names if self._tells(name)]

    def _told_styles(self, styles: Sequence[str]) -> list[str]:
        """Date styles of both languages, with different patterns, whose source has all fields of the target."""
        clear_styles, patterns = list[str](), set[str]()
        for style in styles:
            try:
                source, target = self.source.tokens(style), self.target.tokens(style)
                pattern = self.source.pattern(style)
            except KeyError:
                continue
            missing = {name for name, _ in target} - {name for name, _ in source} - {"period", ""}
            half_a_day = any(letters[0] in "hK" for name, letters in source if name == "hour")
            vague = half_a_day and "period" not in dict(source)
            if not (missing or vague or pattern in patterns or {name for name, _ in source} == {""}):
                clear_styles.append(style)
                patterns.add(pattern)
        return clear_styles

    def _look_alikes(self) -> dict[str, set[str]]:
        """For each date style, the earlier styles that look the same in the source for some value."""
        first = datetime.datetime(2024, 1, 1)
        days = [first + datetime.timedelta(days=day, hours=day % 24) for day in range(366)]
        rivals = {}
        for styles in (self._dates, self._clocks):
            texts = {style: {self.source.say(meaning.Moment(day, style)).text for day in days} for style in styles}
            rivals.update({s: {r for r in styles[:i] if texts[r] & texts[s]} for i, s in enumerate(styles)})
        return rivals

    def _told_lists(self) -> list[meaning.ListStyle]:
        list_styles, patterns = list[meaning.ListStyle](), list[Text]()
        marks = (
            tuple(meaning.Moment(datetime.datetime(2000, 1, day), self._dates[0]) for day in (1, 2))
            if self._dates
            else ()
        )
        for style in _LISTS if marks else ():
            try:
                wording = self.source.say(meaning.Listing(style, marks))
                self.target.say(meaning.Listing(style, marks))
            except MissingError:
                continue
            if wording not in patterns:
                list_styles.append(style)
                patterns.append(wording)
        return list_styles

    def _usable(self, kinds: "dict[_Draw, int]") -> "dict[_Draw, int]":
        """The kinds of phrase that both languages can render, with cumulative weights."""
        usable, total = {}, 0
        for make, weight in kinds.items():
            if any(self._comes_to_something(make, random.Random(attempt)) for attempt in range(8)):
                total += weight
                usable[make] = total
        return usable

    def _comes_to_something(self, make: "_Draw", rng: random.Random) -> bool:
        try:
            return all(self.pair(make(rng))[:2])
        except MissingError:
            return False

    # Leaves

    def _style(self, rng: random.Random, styles: Sequence[str], phrase: Callable[[str], meaning.Leaf]) -> str:
        """A random style; of styles that look the same in the source ("May" is long and short), the first."""
        style = _one(rng, styles)
        rivals = [rival for rival in styles if rival in self._rivals[style]]
        if not rivals:
            return style
        text = self.source.say(phrase(style)).text
        return next((rival for rival in rivals if self.source.say(phrase(rival)).text == text), style)

    def _moment(self, rng: random.Random) -> meaning.Moment:
        value = day(rng)
        style = self._style(rng, self._dates, lambda style: meaning.Moment(value, style))
        if self._two_digits(style):
            return meaning.Moment(value.replace(year=2000 + value.year % 50, day=min(value.day, 28)), style)
        return meaning.Moment(value, style)

    def _two_digits(self, style: str) -> bool:
        """Whether the source has only two digits of the year in this style."""
        return ("year", "yy") in self.source.tokens(style)

    def _clock(self, rng: random.Random) -> meaning.Moment:
        value = datetime.datetime(2000, 1, 1, rng.randrange(24), rng.randrange(60), rng.randrange(60))
        return meaning.Moment(value, self._style(rng, self._clocks, lambda style: meaning.Moment(value, style)))

    def _meeting(self, rng: random.Random) -> meaning.Meeting:
        clock = self._clock(rng)
        value = datetime.datetime.combine(day(rng, 2000, 2049), clock.value.time())
        style = self._style(rng, self._meetings, lambda style: meaning.Moment(value, style))
        return meaning.Meeting(value, style.removeprefix("date "), clock.style)

    def _week(self, rng: random.Random) -> meaning.Week:
        style = _one(rng, self._weeks)
        return meaning.Week(rng.randint(1, 52 if style.endswith("w") else 5), day(rng), style)

    def _interval(self, rng: random.Random) -> meaning.Interval:
        if self._clocks and rng.random() < 0.3:
            first, last = sorted((self._clock(rng) for _ in range(2)), key=lambda moment: moment.value)
            return meaning.Interval(first, meaning.Moment(last.value, first.style))
        start = day(rng)
        end = start + datetime.timedelta(_one(rng, (rng.randint(1, 27), rng.randint(28, 400))))

        def in_style(style: str) -> meaning.Interval:
            return meaning.Interval(meaning.Moment(start, style), meaning.Moment(end, style))

        return in_style(self._style(rng, self._intervals, in_style))

    def _percent(self, rng: random.Random) -> meaning.Percent:
        return meaning.Percent(_number(rng, (2, 2, 3)))

    def _compact(self, rng: random.Random) -> meaning.Compact:
        return meaning.Compact(rng.randrange(2, 10 ** _one(rng, (1, 2, 3))) * Decimal(10) ** _one(rng, (3, 6, 9)))

    def _money(self, rng: random.Random) -> meaning.Money:
        if self._named and (not self._signed or rng.random() < 0.5):
            return meaning.Money(Decimal(rng.randrange(1, 10 ** _one(rng, (2, 3, 4)))), _one(rng, self._named), True)
        currency = _one(rng, self._signed)
        value = Decimal(rng.randrange(1, 10 ** _one(rng, (2, 3, 4, 5))))
        if get_currency_precision(currency) == 2:
            value += Decimal(rng.randrange(100)) / 100
        return meaning.Money(value, currency, False)

    def _quantity(self, rng: random.Random) -> meaning.Quantity:
        style = _one(rng, [style for style in _LENGTHS if self._units[style]])
        return meaning.Quantity(_number(rng, (1, 2, 2, 3, 4)), _one(rng, self._units[style]), style)

    def _relative(self, rng: random.Random) -> meaning.RelativeTime:
        unit = _one(rng, self._spans)
        return meaning.RelativeTime(_one(rng, (1, -1)) * rng.randint(1, _SPANS[unit]), unit)

    def _name(self, rng: random.Random) -> meaning.Name:
        return _one(rng, self.names[_one(rng, ("territory", "territory", *_NAMES))])

    # Phrases that join them

    def _remark(self, rng: random.Random) -> meaning.Remark:
        head = _one(rng, self.names[_one(rng, ("territory", "territory", "language"))])
        if head.kind == "language":
            return meaning.Remark(head, _one(rng, self.names[_one(rng, ("territory", "territory", "script"))]))
        details: list[_Draw] = [self._moment, self._moment, self._meeting, self._interval, self._money]
        details += [self._percent, self._relative, self._quantity]
        return meaning.Remark(head, _one(rng, details)(rng))

    def _list_of_remarks(self, rng: random.Random) -> meaning.Listing:
        return self._list(rng, self._conjunctions, [self._remark] * _one(rng, (2, 2, 3)))

    def _list_of_names(self, rng: random.Random) -> meaning.Listing:
        names = self.names[_one(rng, ("territory", "territory", "language", "currency", "script"))]
        count = _one(rng, (2, 3, 4))
        if len(names) < count:
            raise MissingError("too few names")
        return meaning.Listing(_one(rng, self._conjunctions), tuple(rng.sample(names, count)))

    def _list_of_amounts(self, rng: random.Random) -> meaning.Listing:
        makes: list[_Draw] = [self._money, self._quantity, self._quantity, self._relative, self._percent]
        makes.append(self._compact)
        return self._list(rng, self._lists, [_one(rng, makes)] * _one(rng, (2, 3, 4)))

    def _list_of_anything(self, rng: random.Random) -> meaning.Listing:
        makes: list[_Draw] = [self._name, self._moment, self._moment, self._clock, self._money]
        makes += [self._quantity, self._relative, self._week]
        draws = [_one(rng, makes) for _ in range(_one(rng, (2, 3, 4)))]
        # A date and a time in a list may look like a date with its time ("May 3, 2021, 6:45 PM").
        draws.sort(key=lambda make: make != self._clock)
        return self._list(rng, self._conjunctions, draws)

    def _list(
        self, rng: random.Random, styles: "Sequence[meaning.ListStyle]", makes: "Sequence[_Draw]"
    ) -> meaning.Listing:
        return meaning.Listing(_one(rng, styles), tuple(make(rng) for make in makes))


_Draw = Callable[[random.Random], meaning.Phrase]
_Option = TypeVar("_Option")


def _one(rng: random.Random, options: Sequence[_Option]) -> _Option:
    """A random option. Raises MissingError if there are no options in these locales."""
    if not options:
        raise MissingError("nothing to choose from")
    return options[int(rng.random() * len(options))]


def day(rng: random.Random, first: int = 1900, last: int = 2099) -> datetime.datetime:
    return datetime.datetime(rng.randint(first, last), 1, 1) + datetime.timedelta(rng.randrange(365))


def _number(rng: random.Random, digits: Sequence[int]) -> Decimal:
    """A random number, sometimes with a decimal; its maximum number of digits is drawn from `digits`."""
    whole = rng.randrange(1, 10 ** _one(rng, digits))
    return Decimal(whole) + (Decimal(rng.randint(1, 9)) / 10 if rng.random() < 0.2 and whole < 1000 else 0)


_SAMPLES = tuple(Decimal(value) for value in ("1", "2", "3", "5", "11", "21", "100", "1000", "1.5"))


def _codes(language: Language, kind: str) -> list[str]:
    """The codes whose names may occur in phrases, in an order that depends only on the CLDR."""
    locale = language.locale
    territories = [t for t in sorted(locale.territories) if len(t) == 2 and t not in _NO_TERRITORIES]
    match kind:
        case "territory":
            return territories
        case "language":
            return [code for code in sorted(locale.languages) if len(code) == 2]
        case "script":
            return _SCRIPTS.split()
        case _:
            # Currencies in use on a fixed day, so that the corpus does not change over time.
            day = datetime.date(2024, 1, 1)
            known = (get_territory_currencies(territory, day, day) for territory in territories)
            return sorted({currency for currencies in known for currency in currencies})
