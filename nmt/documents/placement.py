"""Where the tags of a segment stand in its translation: around the words at the same place of the same sentence."""

import bisect
import re
from collections.abc import Sequence
from typing import NamedTuple

from nmt.documents.segments import Segment, Tag

_CHARACTER = r"\u3041-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
#: A word, or the marks beside it. Chinese and Japanese, which have no spaces, are cut between any characters.
_WORD = re.compile(rf"[{_CHARACTER}]|[^\W{_CHARACTER}]+(?:['’.,-][^\W{_CHARACTER}]+)*|[^\w\s]+")


class Sentence(NamedTuple):
    """A sentence of a segment, its translation, and the white space between it and the next one."""

    source: str
    target: str
    space: str


class _Place(NamedTuple):
    """A sentence in its segment: where it ends, and the [begin, end) of its words there and in the translation.

    `shift` is the way from a character to the same one in the translation if the sentence stays as it is.
    """

    end: int
    shift: int | None
    source: list[tuple[int, int]]
    target: list[tuple[int, int]]
    start_of_target: int


def place(segment: Segment, sentences: Sequence[Sentence]) -> Segment:
    """The translation of a segment, whose sentences add up to its text, with its tags.

    No word is cut, no pair is lost, and nesting stays as it was.
    """
    places = list[_Place]()
    at, text = 0, ""
    for sentence in sentences:
        words = _words(sentence.source, at), _words(sentence.target, len(text))
        shift = len(text) - at if sentence.source == sentence.target else None
        at += len(sentence.source + sentence.space)
        places.append(_Place(at, shift, *words, len(text)))
        text += sentence.target + sentence.space
    tags = list[Tag]()
    around = [(len(segment.text), len(text))]  # ends of the pairs around a tag, in the source and in the target
    floor = 0
    for tag in segment.tags:
        while len(around) > 1 and tag.start >= around[-1][0]:
            floor = max(floor, around.pop()[1])
        most = around[-1][1]
        single = tag.start == tag.end
        before, after = segment.text[max(0, tag.start - 1) : tag.start], segment.text[tag.start : tag.start + 1]
        apart = single and before.isspace() and after.isspace()  # as a word is
        begins = not apart and (not single or not before or before.isspace())
        start = _position(places, tag.start, len(text), begins=begins)
        if apart and text[start - 1 : start].strip() and text[start : start + 1].isspace():
            start += 1
        start = min(max(start, floor), most)
        opening = tag.opening + " " * (apart and not text[start : start + 1].isspace())
        end = start
        if not single:
            end = _position(places, tag.end, len(text), begins=False)
            end = min(end if end > start else _end_of_word(text, start), most)
            around.append((tag.end, end))
        floor = start
        tags.append(Tag(start, end, opening, tag.closing))
    return Segment(text, tuple(tags))


def _words(text: str, offset: int) -> list[tuple[int, int]]:
    return [(word.start() + offset, word.end() + offset) for word in _WORD.finditer(text)]


def _end_of_word(text: str, start: int) -> int:
    word = _WORD.search(text, start)
    return word.end() if word else start


def _position(places: Sequence[_Place], at: int, end: int, *, begins: bool) -> int:
    """The place in the target of what begins, or ends, at a character of the source."""
    bisected = bisect.bisect_right if begins else bisect.bisect_left
    number = bisected([place.end for place in places], at)
    if number >= len(places):
        return end
    _, shift, source, target, start = places[number]
    if shift is not None:
        return at + shift
    if not source or not target:
        return start
    before = sum(1 for word in source if (word[1] <= at if begins else word[0] < at))
    word = (2 * before * len(target) + len(source)) // (2 * len(source))  # halves are rounded up
    if begins:
        return target[word][0] if word < len(target) else target[-1][1]
    return target[word - 1][1] if word else start
