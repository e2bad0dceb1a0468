"""A phrase in both languages, and the word links that its fields give."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable
from typing import NamedTuple

from nmt.data.builtin.meaning import Field

# What a field that only one language has is linked to: "PM" to the hour "15", "week 47" to "第47周".
_STAND_INS = {"period": "hour", "week-word": "week", "scale": "number"}


class Pair(NamedTuple):
    """A phrase in both languages, with the character spans of its fields.

    Fields of one name say the same thing.
    """

    source: str
    target: str
    source_fields: tuple[Field, ...]
    target_fields: tuple[Field, ...]

    def links(self) -> str:
        """The gold word alignment in Pharaoh form; see `word_links`."""
        return word_links(self)


def word_links(pair: Pair) -> str:
    """Write the fields of a pair as Pharaoh links, such as "0-2 1-0".

    Words are what `str.split()` gives, counted from 0.  Every source word that overlaps a field is linked
    with every target word that overlaps the field of the same name; a word shared by two fields is linked
    for each.
    """
    source, target = _words_of(pair.source, pair.source_fields), _words_of(pair.target, pair.target_fields)
    links = set[tuple[int, int]]()
    for name in {*source, *target}:
        front, _, last = name.rpartition(".")
        stand_in = f"{front}.{_STAND_INS.get(last, '')}".lstrip(".")
        left = source.get(name) or source.get(stand_in) or set[int]()
        right = target.get(name) or target.get(stand_in) or set[int]()
        links.update((i, j) for i in left for j in right)
    return " ".join(f"{i}-{j}" for i, j in sorted(links))


def _words_of(text: str, fields: Iterable[Field]) -> dict[str, set[int]]:
    """The words (by number) that each field overlaps; no field begins or ends with white space."""
    starts = [match.start() for match in re.finditer(r"\S+", text)]
    found: dict[str, set[int]] = {}
    for name, start, end in fields:
        found.setdefault(name, set()).update(range(bisect_right(starts, start) - 1, bisect_left(starts, end)))
    return found
