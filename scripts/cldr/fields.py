"""Finds the fields of a text that was made from a pattern: the number, its surroundings, and literal text."""

import functools
import itertools
import re
from collections.abc import Iterator, Sequence

from cldr.meaning import Field, Text

_MARKS = dict.fromkeys([0x200E, 0x200F, 0x061C, *range(0x202A, 0x202F), *range(0x2066, 0x206A)])
_NUMBER = re.compile(r"\d(?:[\d.,'’٫٬ ]*\d)?")
_WORDS = re.compile(r"\w(?:.*\w)?")


def clean(text: str) -> str:
    """Replace each white-space character by a plain space, and remove direction marks."""
    return re.sub(r"\s", " ", text.translate(_MARKS))


def shift(fields: Sequence[Field], by: int, prefix: str = "") -> list[Field]:
    """Move fields by `by` characters, and add a prefix to their names."""
    return [Field(prefix + name, start + by, end + by) for name, start, end in fields]


def trim(name: str, text: str, start: int) -> list[Field]:
    """The field of a literal that begins at `start`, without surrounding spaces; an empty list if it is blank."""
    bare = text.strip()
    if not bare:
        return []
    start += len(text) - len(text.lstrip())
    return [Field(name, start, start + len(bare))]


def whole(name: str, text: str) -> Text:
    """A text that is one field."""
    return Text(text, (Field(name, 0, len(text)),))


def around_number(text: str, rest: str) -> Text:
    """A text with one number: the field "number", then fields named `rest` for the text around it."""
    number = _NUMBER.search(text)
    if number is None:
        return Text(text, (Field("number", 0, len(text)), Field(rest, 0, len(text))))
    start, end = number.span()
    before, after = trim(rest, text[:start], 0), trim(rest, text[end:], end)
    return Text(text, (Field("number", start, end), *before, *after))


def tell_direction(pattern: str, opposite: str) -> Text:
    """A relative time with the number 1, and its fields number, unit and direction.

    Words around the number that past and future share are the unit; other words are the direction: "{0} hours ago",
    "in {0} hours". If all words differ ("5 órával ezelőtt", "5 óra múlva"), both fields cover all the text around the
    number.
    """
    joint = around_number(pattern.replace("{0}", "1"), "unit")
    both = (*joint.fields, *(field._replace(name="direction") for field in joint.fields if field.name == "unit"))
    words, others = pattern.split(" "), opposite.split(" ")
    at = next((i for i, word in enumerate(words) if "{0}" in word), -1)
    there = next((i for i, word in enumerate(others) if "{0}" in word), -1)
    if at < 0 or there < 0 or words[at] != others[there]:
        return Text(joint.text, both)
    before = sum(1 for _ in same(words[:at][::-1], others[:there][::-1]))
    after = sum(1 for _ in same(words[at + 1 :], others[there + 1 :]))
    amount = " ".join(words[at - before : at + after + 1])
    start = len(" ".join([*words[: at - before], ""]))
    amount_text = around_number(amount.replace("{0}", "1"), "unit")
    end = start + len(amount_text.text)
    rest = trim("direction", joint.text[:start], 0) + trim("direction", joint.text[end:], end)
    if len(amount_text.fields) == 1 or not rest:
        return Text(joint.text, both)
    return Text(joint.text, (*shift(amount_text.fields, start), *rest))


def same(words: Sequence[str], others: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the equal pairs at the beginning of two sequences."""
    return itertools.takewhile(lambda pair: pair[0] == pair[1], zip(words, others))


def renumber(template: Text, number: str) -> Text:
    """Put another number into the template's first field, unless this field has no digits."""
    at = template.fields[0]
    if not _NUMBER.fullmatch(template.text[at.start : at.end]):
        return template
    by = len(number) - (at.end - at.start)
    fields = [at._replace(end=at.end + by)]
    fields += [f if f.end <= at.start else Field(f.name, f.start + by, f.end + by) for f in template.fields[1:]]
    return Text(template.text[: at.start] + number + template.text[at.end :], tuple(fields))


@functools.cache
def _parts(pattern: str) -> list[tuple[str, int, tuple[int, int], tuple[int, int]]]:
    """Split a pattern into slots and literals: text, number of the slot or -1, spans of words and of symbols."""
    parts = []
    for part in re.split(r"(\{\d\})", pattern):
        words = _WORDS.search(part)
        bare = part.strip()
        symbols = (part.index(bare), part.index(bare) + len(bare))
        slot = int(part[1]) if re.fullmatch(r"\{\d\}", part) else -1
        parts.append((part, slot, words.span() if words else (0, 0), words.span() if words else symbols))
    return parts


def fill(pattern: str, texts: Sequence[Text], prefixes: Sequence[str], literal: str, symbols: bool = False) -> Text:
    """Fill the slots "{0}", "{1}", ... of a pattern.

    Literal words become a field whose name is `literal` and the number of slots before them; with `symbols`, literal
    punctuation does so, too.
    """
    text, fields, slots = "", list[Field](), 0
    for part, slot, words, marks in _parts(pattern):
        start = len(text)
        if slot >= 0:
            text += texts[slot].text
            fields += shift(texts[slot].fields, start, prefixes[slot])
            slots += 1
            continue
        text += part
        first, last = marks if symbols else words
        if first < last:
            fields.append(Field(f"{literal}{slots}", start + first, start + last))
    return Text(text, tuple(fields))


def runs(literal: str) -> list[tuple[int, int]]:
    """The spans of words in a literal, without commas and similar marks after them."""
    words = [(match.start(), match.group().rstrip(",;:،、")) for match in re.finditer(r"\S+", literal)]
    return [(start, start + len(run)) for start, run in words if _WORDS.search(run)]
