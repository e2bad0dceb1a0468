"""Projection of tags from a source to its translation, by word links.

A pair of tags is put around the target words that are linked to the source words inside it; a single tag is put beside
the translation of its neighbouring word. No pair is lost, no word is split, and the nesting of tags does not change.
"""

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from nmt.alignment.baselines import diagonal
from nmt.alignment.linker import Linker
from nmt.alignment.units import unit_spans
from nmt.links import Link
from nmt.text.scripts import unspaced
from nmt.text.spans import Span
from nmt.text.tags import Segment, Tag, nested
from nmt.translation.types import Translation


class LinkedText(NamedTuple):
    """A text and its translation, sentence by sentence.

    Attributes:
        source, target: the texts.
        source_words, target_words: the character span of each word.
        links: (source, target) word indices.
        sentences: the character spans of each sentence in the source and in the target.
    """

    source: str
    target: str
    source_words: Sequence[Span]
    target_words: Sequence[Span]
    links: Sequence[Link]
    sentences: Sequence[tuple[Span, Span]]

    @classmethod
    def of(cls, translation: Translation, linker: Linker) -> "LinkedText":
        """A translation with its links; without attention, words are linked along the diagonal."""
        words = (
            unit_spans(translation.source, translation.source_spans),
            unit_spans(translation.text, translation.spans),
        )
        word_links = None if translation.weights is None else linker.links(translation)
        return cls.of_words(translation.source, translation.text, *words, word_links)

    @classmethod
    def of_words(
        cls,
        source: str,
        target: str,
        source_words: Sequence[Span],
        target_words: Sequence[Span],
        word_links: Sequence[Link] | None,
    ) -> "LinkedText":
        """A sentence with its links; without links (None), words are linked along the diagonal."""
        if word_links is None:
            word_links = diagonal(len(source_words), len(target_words))
        (source_words, of_source), (target_words, of_target) = map(
            _unbroken, (source, target), (source_words, target_words)
        )
        word_links = [(of_source[one], of_target[other]) for one, other in word_links]
        sentences = [((0, len(source)), (0, len(target)))]
        return cls(source, target, source_words, target_words, word_links, sentences)

    @classmethod
    def same(cls, text: str) -> "LinkedText":
        """A text that is its own translation."""
        words = [match.span() for match in re.finditer(r"\S+", text)]
        return cls.of_words(text, text, words, words, [(at, at) for at in range(len(words))])

    def stripped(self) -> "LinkedText":
        """The text without white space at both ends of the translation."""
        text = self.target.strip()
        by = self.target.find(text)
        words = [(begin - by, end - by) for begin, end in self.target_words]
        sentences = [(source, (0, len(text))) for source, _ in self.sentences]
        return self._replace(target=text, target_words=words, sentences=sentences)

    @classmethod
    def join(cls, parts: Iterable["LinkedText"]) -> "LinkedText":
        """Concatenate linked texts."""
        words: tuple[list[Span], list[Span]] = [], []
        sentences: tuple[list[Span], list[Span]] = [], []
        word_links: list[Link] = []
        lengths = [0, 0]
        parts = [*parts]
        for part in parts:
            counts = len(words[0]), len(words[1])
            word_links += [(source + counts[0], target + counts[1]) for source, target in part.links]
            for side, of_part in enumerate((part.source_words, part.target_words)):
                by = lengths[side]
                words[side].extend((begin + by, end + by) for begin, end in of_part)
                sentences[side].extend((each[side][0] + by, each[side][1] + by) for each in part.sentences)
            lengths = [lengths[0] + len(part.source), lengths[1] + len(part.target)]
        texts = "".join(part.source for part in parts), "".join(part.target for part in parts)
        return cls(*texts, *words, word_links, list(zip(*sentences, strict=True)))


def _is_letter(character: str) -> bool:
    """Whether a character is part of a word: a letter, a digit or a combining mark."""
    return character.isalnum() or unicodedata.category(character)[0] == "M"


def _unbroken(text: str, words: Sequence[Span]) -> tuple[list[Span], list[int]]:
    """Join units that split a word of letters, in text without spaces; also return the new index of each unit."""
    joined: list[Span] = []
    index: list[int] = []
    for begin, end in words:
        if joined and joined[-1][1] == begin and _is_within_word(text[begin - 1], text[begin]):
            joined[-1] = joined[-1][0], end
        else:
            joined.append((begin, end))
        index.append(len(joined) - 1)
    return joined, index


def _is_within_word(before: str, after: str) -> bool:
    if not after.isalnum():
        return _is_letter(after)
    return _is_letter(before) and not unspaced(before) and not unspaced(after)


def project(linked: LinkedText, tags: Sequence[Tag]) -> Segment:
    """The translation with the projected tags of its source, in the order in which they open."""
    if not tags:
        return Segment(linked.target)
    source = [*nested(tags)]
    children: dict[int, list[int]] = defaultdict(list)
    around: list[int] = [-1]
    for number, tag in enumerate(source):
        del around[tag.depth + 1 :]
        children[around[-1]].append(number)
        around.append(number)
    words = _TaggedWords(linked, source)
    placed = {-1: (0, len(linked.target))}
    for parent in (-1, *range(len(source))):
        if children[parent]:
            siblings = words.arrange([(number, source[number]) for number in children[parent]], placed[parent])
            placed |= siblings
            children[parent].sort(key=lambda number: (*placed[number], number))
    waiting, ordered = children[-1][::-1], []
    while waiting:
        number = waiting.pop()
        begin, end = placed[number]
        ordered.append(source[number]._replace(start=begin, end=end))
        waiting += children[number][::-1]
    return Segment(linked.target, ordered)


class _TaggedWords:
    """The words of a linked text, and the placement of source tags in the target."""

    def __init__(self, linked: LinkedText, tags: Sequence[Tag]) -> None:
        self.linked = linked
        self.source, self.target, word_links = _cut(linked, tags)
        self.source_cores = [_core(linked.source, word) for word in self.source]
        self.target_cores = [_core(linked.target, word) for word in self.target]
        self.targets: list[list[int]] = [[] for _ in self.source]
        for one, other in sorted(set(word_links)):
            self.targets[one].append(other)
        self.source_starts = [begin for begin, _ in self.source]
        self.core_ends = [end for _, end in self.source_cores]
        self.core_starts = [begin for begin, _ in self.source_cores]
        self.target_starts = [begin for begin, _ in self.target]
        self.sentence_ends = [end for (_, end), _ in linked.sentences]
        # For each gap between source words: the nearest words with links before and after it.
        self.before, self.after = [-1], [len(self.source)]
        for at, targets in enumerate(self.targets):
            self.before.append(at if targets else self.before[-1])
        for at, targets in reversed([*enumerate(self.targets)]):
            self.after.append(at if targets else self.after[-1])
        self.after.reverse()

    def arrange(self, tags: Sequence[tuple[int, Tag]], within: Span) -> dict[int, Span]:
        """Place sibling tags `within` a target span: their spans by number, disjoint and in the order of the target."""
        low, high = within
        owner: dict[int, int] = {}
        inside = {number: self._inside(tag) for number, tag in tags}
        for number, targets in inside.items():
            for at in [at for at in targets if self._shows_letters(at)] or targets:
                if low <= self.target_cores[at][0] and self.target_cores[at][1] <= high:
                    owner.setdefault(at, number)
        runs: dict[int, list[int]] = {}
        for number, group in itertools.groupby(sorted(owner), key=owner.__getitem__):
            run = list(group)
            if len(run) > len(runs.get(number, ())):
                runs[number] = run
        places: dict[int, Span] = {}
        end = low
        by_number = dict(tags)
        for number, run in sorted(runs.items(), key=lambda item: item[1]):
            first, last = self._around(by_number[number], run, inside[number])
            first = min(max(first, end), high)
            places[number] = first, (end := max(first, min(last, high)))
        taken = sorted((*span, number) for number, span in places.items())
        for number, tag in tags:
            if number not in runs:
                places[number] = self._lone(number, tag, within, taken)
        return places

    def _lone(self, number: int, tag: Tag, within: Span, taken: Sequence[tuple[int, int, int]]) -> Span:
        """The span of a tag without linked words, outside the siblings already placed (`taken`)."""
        at = min(max(self._beside(tag), within[0]), within[1])
        index = bisect_left(taken, (at,)) - 1
        if index >= 0 and at < taken[index][1]:
            begin, end, other = taken[index]
            at = begin if number < other else end
        if tag.closing or tag.start == tag.end:
            return at, at
        for begin in (at, at - 1):
            if within[0] <= begin < within[1] and self.linked.target[begin].isspace():
                return begin, begin + 1
        return at, at

    def _inside(self, tag: Tag) -> list[int]:
        """The target words linked to source words inside a pair, and all target words of sentences inside it."""
        if not tag.closing or tag.start == tag.end:
            return []
        first, last = bisect_right(self.core_ends, tag.start), bisect_left(self.core_starts, tag.end)
        words = {target for word in range(first, last) for target in self.targets[word]}
        if first < last:
            low, high = bisect_left(self.sentence_ends, tag.start), bisect_right(self.sentence_ends, tag.end)
            for source, target in self.linked.sentences[low : high + 1]:
                of_sentence = range(*(bisect_left(self.core_starts, edge) for edge in source))
                if of_sentence and first <= of_sentence[0] and of_sentence[-1] < last:
                    words.update(range(*(bisect_left(self.target_starts, edge) for edge in target)))
        return sorted(words)

    def _shows_letters(self, word: int) -> bool:
        return _is_letter(self.linked.target[self.target_cores[word][0]])

    def _around(self, tag: Tag, run: Sequence[int], inside: Sequence[int]) -> Span:
        """The span of a run of target words, with signs and spaces at the ends as inside the source pair."""
        text, target = self.linked.source[tag.start : tag.end], self.linked.target
        first, last = run[0], run[-1]
        begins, ends = (not _is_letter(text.strip()[at]) for at in (0, -1))
        while ends and last + 1 in inside and not self._shows_letters(last + 1):
            last += 1
        while begins and first - 1 in inside and not self._shows_letters(first - 1):
            first -= 1
        start = (self.target if begins else self.target_cores)[first][0]
        stop = (self.target if ends else self.target_cores)[last][1]
        before = target[max(0, start - len(text) + len(text.lstrip())) : start]
        after = target[stop : stop + len(text) - len(text.rstrip())]
        return start - len(before) + len(before.rstrip()), stop + len(after) - len(after.lstrip())

    def _beside(self, tag: Tag) -> int:
        """The target position of a tag: beside the translation of the adjacent word, or of the nearest linked word."""
        source = self.linked.source
        sentence = min(bisect_left(self.sentence_ends, tag.start), len(self.linked.sentences) - 1)
        if sentence < 0:
            return 0
        (begin, end), (low, high) = self.linked.sentences[sentence]
        if source[begin:end].isspace():  # white space between sentences is copied unchanged
            return min(low + tag.start - begin, high)
        left = bisect_left(self.source_starts, tag.start)  # words that begin before the tag
        right = bisect_left(self.source_starts, tag.end)
        first, last = bisect_left(self.source_starts, begin), bisect_left(self.source_starts, end)
        if left <= first or right >= last:
            return low if left <= first and (right < last or tag.start == begin) else high
        before, after = self.before[left], self.after[right]
        of_right = source[tag.start - 1].isspace() and not source[tag.end : tag.end + 1].isspace()
        places: list[tuple[bool, bool, int]] = []
        if before >= first:
            words = self.target_cores if tag.start <= self.source_cores[before][1] else self.target
            places.append((before < left - 1, of_right, words[self.targets[before][-1]][1]))
        if after < last:
            places.append((after > right, not of_right, self.target[self.targets[after][0]][0]))
        return min(places)[-1] if places else high


def _core(text: str, word: Span) -> Span:
    """The span of a word without signs at its ends; a word of signs only is unchanged."""
    letters = [at for at in range(*word) if _is_letter(text[at])]
    return (letters[0], letters[-1] + 1) if letters else word


def _cut(linked: LinkedText, tags: Sequence[Tag]) -> tuple[list[Span], list[Span], list[Link]]:
    """The words and their links, with words split at tags if source and target word are spelled alike, as H2O.

    Numbers and signs at the end of a word, such as footnote marks, are also split off at a tag.
    """
    edges = sorted({edge for tag in tags for edge in (tag.start, tag.end)})
    cuts: tuple[dict[int, list[int]], dict[int, list[int]]] = {}, {}
    for one, other in linked.links:
        (begin, end), (low, high) = linked.source_words[one], linked.target_words[other]
        within = edges[bisect_right(edges, begin) : bisect_left(edges, end)]
        if not within or other in cuts[1]:
            continue
        word, translation, rest = linked.source[begin:end], linked.target[low:high], linked.source[within[0] : end]
        if word == translation or (
            not any(map(str.isalpha, rest)) and translation.endswith(rest) and len(rest) < high - low
        ):
            cuts[0][one] = within
            cuts[1][other] = [high - end + edge for edge in within]
    if not cuts[0]:
        return [*linked.source_words], [*linked.target_words], [*linked.links]
    (source, of_source), (target, of_target) = (
        _parts(words, at) for words, at in zip((linked.source_words, linked.target_words), cuts, strict=True)
    )
    word_links: list[Link] = []
    for one, other in linked.links:
        if one in cuts[0] and other in cuts[1] and len(of_source[one]) == len(of_target[other]):
            word_links += zip(of_source[one], of_target[other], strict=True)
        else:
            word_links += [(of_source[one][0], each) for each in of_target[other]]
    return source, target, word_links


def _parts(words: Sequence[Span], cuts: dict[int, list[int]]) -> tuple[list[Span], list[range]]:
    """Split words at `cuts`; return all parts, and the range of part indices of each word."""
    parts: list[Span] = []
    ranges: list[range] = []
    for at, (begin, end) in enumerate(words):
        edges = [begin, *cuts.get(at, ()), end]
        ranges.append(range(len(parts), len(parts) + len(edges) - 1))
        parts += itertools.pairwise(edges)
    return parts, ranges
