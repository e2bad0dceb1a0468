"""Text for a terminal and for Markdown, with control characters and markup made visible."""

import re
import sys

#: Characters that a terminal may interpret: control characters except the tab, and marks of the text direction.
_OBEYED = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff]")


def visible(text: str) -> str:
    """The text with control characters as Python escapes: an escape byte becomes a backslash and x1b."""
    return _OBEYED.sub(lambda match: match[0].encode("unicode_escape", "surrogatepass").decode(), text)


def printable(text: str) -> str:
    """The text with `visible` applied to each line, so that line breaks stay."""
    return "\n".join(map(visible, text.split("\n")))


#: Markup of Markdown anywhere, and at the beginning of a line. An underscore inside a word is not markup.
_MARKS = re.compile(r"[\\|*`\[\]!#]|(?<![^\W_])_|_(?![^\W_])")
_STARTS = re.compile(r"^\d{0,9}[-+.)](?=[\s-]|$)|^>")
_ENTITIES = {"&": "&amp;", "<": "&lt;", "~": "&#126;", "$": "&#36;"}


def markdown(text: str) -> str:
    """Escape a text as one line of Markdown: no emphasis, formula, list, link, tag or table cell."""
    line = re.sub(r"\s", " ", text).strip()
    escaped = _STARTS.sub(lambda match: f"{match[0][:-1]}\\{match[0][-1]}", _MARKS.sub(r"\\\g<0>", line))
    return visible("".join(_ENTITIES.get(character, character) for character in escaped))


def print_message(text: str) -> None:
    """Print a message on standard error, with control characters in names and values escaped."""
    print(printable(text), file=sys.stderr, flush=True)
