"""Word links as text, in Pharaoh format and in the format of the NAACL 2003 task.

A link is a pair of positions (source, target), both counted from 0. In Pharaoh format a line is a sentence pair,
"0-0 1-2 3p2": `-` for a sure link, `p` for a possible link. In NAACL format (Mihalcea and Pedersen 2003) a line is a
link, "18 1 2 S": the number of the sentence from 1, the two positions, optionally S or P, and optionally a confidence.

The formats are used for gold links, links for guided alignment and links to score. All code may import this module.
"""

import contextlib
import os
import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Literal, NamedTuple, TextIO

from nmt.system.errors import UserError, check_parallel
from nmt.system.terminal import visible

Link = tuple[int, int]
#: The number of the first word in a file of links.
Base = Literal[0, 1]

_SUPERSCRIPTS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
_COLOURS = (36, 33, 32, 35, 34, 31)
_NUMBER = "([0-9]{1,9})"
_NAACL = re.compile(rf"{_NUMBER}\s+{_NUMBER}\s+{_NUMBER}(?:\s+([SP]))?(?:\s+[-+.0-9eE]+)?")
#: Minimum number of links to detect counting from 1: fewer links may miss all first words by chance.
_ENOUGH = 20


class GoldLinks(NamedTuple):
    """The gold links of one sentence pair.

    Attributes:
        sure: links that a prediction must have.
        possible: links that a prediction may have, including the sure links.
    """

    sure: frozenset[Link]
    possible: frozenset[Link]


NO_LINKS = GoldLinks(frozenset(), frozenset())


def format_links(sure: Iterable[Link], possible: Iterable[Link] = ()) -> str:
    """Format links in Pharaoh format, "0-0 1-2"; links that are only possible as "1p2"."""
    certain = set(sure)
    marked = [(link, "-") for link in certain] + [(link, "p") for link in set(possible) - certain]
    return " ".join(f"{source}{mark}{target}" for (source, target), mark in sorted(marked))


def parse_links(line: str, *, base: int = 0) -> GoldLinks:
    """Parse one line in Pharaoh format.

    Words are counted from `base`, 0 or 1 (the gold links of WPT 2003 are counted from 1).

    Raises:
        UserError: the line is malformed, or a position is before the first word.
    """
    sure: set[Link] = set()
    possible: set[Link] = set()
    for item in line.split():
        match = re.fullmatch(f"{_NUMBER}([-p]){_NUMBER}", item)
        if match is None:
            raise UserError(f"'{item}' is not a word link. Write SOURCE-TARGET, such as 0-2 (possible links: 0p2).")
        link = (int(match[1]) - base, int(match[3]) - base)
        if min(link) < 0:
            raise UserError(f"'{item}' has word 0, but the setting says that words are counted from {base}.")
        possible.add(link)
        if match[2] == "-":
            sure.add(link)
    return GoldLinks(frozenset(sure), frozenset(possible))


def is_naacl(lines: Sequence[str]) -> bool:
    """Whether a file is in the NAACL format, judged by its first line with text."""
    return _NAACL.fullmatch(next((line for line in lines if line.strip()), "").strip()) is not None


def parse_file(lines: Sequence[str], name: str, *, base: int = 0, pairs: int, first: int = 0) -> list[GoldLinks]:
    """Parse the links of each of `pairs` sentence pairs from the lines of a file in either format.

    `name` is the file's name, for messages. In Pharaoh format, `lines` may be a part of the file that begins after
    `first` lines. For `base` see `parse_links` and `parse_numbered`.

    Raises:
        UserError: a line is malformed, or the number of sentence pairs is not `pairs`.
    """
    if is_naacl(lines):
        numbered = parse_numbered(lines, name, base=base, pairs=pairs)
        return [numbered.get(sentence, NO_LINKS) for sentence in range(1, pairs + 1)]
    check_parallel({name: len(lines), "the text": pairs})
    links = []
    for number, line in enumerate(lines, start=first + 1):
        with _line(name, number):
            links.append(parse_links(line, base=base))
    return links


def parse_numbered(lines: Sequence[str], name: str, *, base: int = 0, pairs: int | None = None) -> dict[int, GoldLinks]:
    """Parse the links of a file in NAACL format; return them by sentence number.

    Words are counted from `base`. If `base` is 1, a link to word 0 means that the other word has no partner; such links
    are left out.

    Raises:
        UserError: a line is malformed, or names a sentence that does not exist.
    """
    sure: dict[int, set[Link]] = {}
    possible: dict[int, set[Link]] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        with _line(name, number):
            sentence, link, certain = _parse_naacl(line, base)
            if pairs is not None and sentence > pairs:
                raise UserError(f"sentence {sentence:,} has a link, but there are {pairs:,} sentence pairs.")
            if max(link) < 0:
                raise UserError("it links word 0 to word 0, but the setting says that words are counted from 1.")
        links = possible.setdefault(sentence, set())
        if min(link) >= 0:
            links.add(link)
            if certain:
                sure.setdefault(sentence, set()).add(link)
    return {
        sentence: GoldLinks(frozenset(sure.get(sentence, ())), frozenset(links)) for sentence, links in possible.items()
    }


@contextlib.contextmanager
def _line(name: str, number: int) -> Iterator[None]:
    """Add the name of the file and the line number to errors in this context."""
    try:
        yield
    except UserError as error:
        raise UserError(f"{name}, line {number}: {error}") from error


def _parse_naacl(line: str, base: int) -> tuple[int, Link, bool]:
    """The sentence number, the link, and whether the link is sure."""
    match = _NAACL.fullmatch(line.strip())
    if match is None or int(match[1]) == 0:
        raise UserError(
            f"'{line.strip()}' is not a word link. Write SENTENCE SOURCE TARGET, such as 1 3 4, with sentences "
            f"numbered from 1 (and S or P at the end for sure or possible)."
        )
    return int(match[1]), (int(match[2]) - base, int(match[3]) - base), match[4] != "P"


def check_range(
    links: Sequence[GoldLinks],
    source_words: Sequence[int],
    target_words: Sequence[int],
    name: str,
    words: str,
    first: int = 0,
) -> None:
    """Raise UserError for the first link to a word that its sentence does not have.

    `source_words` and `target_words` are the numbers of words in each sentence pair; the pairs begin after `first`
    pairs of the file `name`. `words` describes what counts as a word, for the message.
    """
    for number, (pair, *counts) in enumerate(zip(links, source_words, target_words, strict=True), start=first + 1):
        for link in sorted(pair.possible):
            for side, position, count in zip(("source", "target"), link, counts, strict=True):
                if position >= count:
                    raise UserError(
                        f"{name}, sentence pair {number}: the link {link[0]}-{link[1]} (counted from 0) names word "
                        f"{position} of the {side}, which has {count} word{'s' * (count != 1)} ({words}). Check the "
                        f"number of the first word (0 or 1), the direction, and words=."
                    )


def looks_based_on_one(links: Iterable[GoldLinks], numbered: bool) -> bool:
    """Whether links that were read with words counted from 0 are probably counted from 1: none has a first word.

    In NAACL format (`numbered`), word 0 may mean no partner. There, no link may have word 0 on both sides.
    """
    possible = [link for pair in links for link in pair.possible]
    first = max if numbered else min
    return len(possible) >= _ENOUGH and all(first(link) > 0 for link in possible)


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours to a stream: if it is a terminal that is not `dumb`, and NO_COLOR is not set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def linked(source: Sequence[str], target: Sequence[str], links: Collection[Link], stream: TextIO) -> list[str]:
    """Two lines for a stream: linked source words with their numbers, and target words with the numbers of their links.

    If the stream has colours, linked words also have the same colour.
    """
    raised = _has_superscripts(stream)

    def numbered(word: str, numbers: Sequence[int]) -> str:
        text = visible(word)
        if not numbers:
            return text
        mark = ",".join(str(number + 1) for number in numbers)
        mark = mark.translate(_SUPERSCRIPTS) if raised else f"[{mark}]"
        colour = _COLOURS[numbers[0] % len(_COLOURS)]
        return f"\x1b[{colour}m{text}{mark}\x1b[0m" if has_colours(stream) else f"{text}{mark}"

    partners = {word: sorted(one for one, other in links if other == word) for word in range(len(target))}
    known = {one for one, _ in links}
    above = [numbered(word, [number] if number in known else []) for number, word in enumerate(source)]
    below = [numbered(word, partners[number]) for number, word in enumerate(target)]
    return [" ".join(above), " ".join(below)]


def _has_superscripts(stream: TextIO) -> bool:
    try:
        "¹⁰˒".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
