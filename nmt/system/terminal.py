"""Text on a terminal and in Markdown: characters that these obey made visible."""

import re
import sys

#: What a terminal may obey: controls but for the tab, and the marks that turn the direction of the text around them.
_OBEYED = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with what a terminal would obey written as Python writes it: an escape byte as a backslash and x1b."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


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
    escaped = _STARTS.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", _MARKS.sub(r"\\\g<0>", line))
    return visible("".join(_ENTITIES.get(character, character) for character in escaped))


def print_message(text: str) -> None:
    """Print a message on standard error. Names and values in it cannot command the terminal."""
    print(printable(text), file=sys.stderr, flush=True)
