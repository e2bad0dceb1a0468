"""Text on a terminal and in Markdown: characters that these obey made visible, and words with their links."""

import os
import re
import sys
from collections.abc import Collection, Sequence
from typing import TextIO

from nmt.links import Link

#: What a terminal may obey: controls but for the tab, and the marks that turn the direction of the text around them.
_OBEYED = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SUPERSCRIPTS = str.maketrans("0123456789,", "⁰¹²³⁴⁵⁶⁷⁸⁹˒")
_COLOURS = (36, 33, 32, 35, 34, 31)


def visible(text: str) -> str:
    """The text with what a terminal would obey written as Python writes it: an escape byte as a backslash and x1b."""
    return _OBEYED.sub(lambda found: found[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable(text: str) -> str:
    """Several lines of text, each as `visible` shows it."""
    return "\n".join(map(visible, text.split("\n")))


#: What Markdown obeys: everywhere, and at the beginning of a line. An underscore within a word marks nothing.
_MARKS = re.compile(r"[\\|*`\[\]!#]|(?<![^\W_])_|_(?![^\W_])")
_STARTS = re.compile(r"^\d{0,9}[-+.)](?=[\s-]|$)|^>")
_ENTITIES = {"&": "&amp;", "<": "&lt;", "~": "&#126;", "$": "&#36;"}


def markdown(text: str) -> str:
    """A line of Markdown that shows the text as it is: no emphasis, formula, list, link, tag or cell of a table."""
    line = re.sub(r"\s", " ", text).strip()
    escaped = _STARTS.sub(lambda found: f"{found[0][:-1]}\\{found[0][-1]}", _MARKS.sub(r"\\\g<0>", line))
    return visible("".join(_ENTITIES.get(character, character) for character in escaped))


def print_message(text: str) -> None:
    """Print a message on standard error. Names and values in it cannot command the terminal."""
    print(printable(text), file=sys.stderr, flush=True)


def has_colours(stream: TextIO) -> bool:
    """Whether to write colours: to a terminal that is not `dumb`, unless NO_COLOR is set."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM", "") not in ("", "dumb")


def linked(source: Sequence[str], target: Sequence[str], links: Collection[Link], stream: TextIO) -> list[str]:
    """Two lines for a stream: the words of the source with their numbers, and those of the target with the same ones.

    Where the stream shows colours, words that are linked have one colour, too.

    Args:
        source: words of the source.
        target: words of the translation.
        links: pairs of a source and a target word, counted from 0.
        stream: that the lines are for.
    """
    raised = _raises(stream)

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


def _raises(stream: TextIO) -> bool:
    """Whether the stream can show raised numbers."""
    try:
        "¹⁰˒".encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True
