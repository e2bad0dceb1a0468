"""Layout of plain text in any script, for terminals and captions. Imports no other file of nmt/drawing."""

import unicodedata
from collections.abc import Callable, Sequence


def columns_of(text: str) -> int:
    """The width of `text` in terminal columns: two for a wide character, none for a combining character."""
    wide = sum(unicodedata.east_asian_width(char) in "WF" for char in text)
    return len(text) + wide - sum(unicodedata.combining(char) > 0 for char in text)


def plain_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Lay out a table for a terminal, with the first column aligned left and the others aligned right."""
    widths = [max(columns_of(row[column]) for row in (header, *rows)) for column in range(len(header))]

    def line(row: Sequence[str]) -> str:
        gaps = [" " * (width - columns_of(cell)) for cell, width in zip(row, widths, strict=True)]
        cells = [row[0] + gaps[0], *(gap + cell for cell, gap in zip(row[1:], gaps[1:], strict=True))]
        return "  ".join(cells).rstrip()

    return "\n".join([line(header), line(["-" * width for width in widths]), *map(line, rows)])


def wrap(text: str, width: float, measure: Callable[[str], float] = columns_of) -> list[str]:
    """Break `text` into lines of at most `width`, at spaces, or within words that are too long for a line.

    A long word is broken after the last hyphen that fits, else anywhere. `width` is in the unit of `measure`.
    """
    lines = [""]
    for word in text.split():
        joined = f"{lines[-1]} {word}" if lines[-1] else word
        if measure(joined) <= width:
            lines[-1] = joined
            continue
        if lines[-1] and measure(word) <= width:
            lines.append(word)
            continue
        # Text without spaces, or a very long word: fill the line letter by letter.
        lines[-1] += " " if lines[-1] else ""
        for char in word:
            if measure(lines[-1] + char) > width:
                start, hyphen, rest = lines[-1].rpartition("-")
                if start.split(" ")[-1].strip("-") and " " not in rest and measure(rest + char) <= width:
                    lines[-1:] = [start + hyphen, rest]
                else:
                    lines.append("")
            lines[-1] += char
    return lines


def shorten(text: str, width: int) -> str:
    """Shorten `text` to `width` columns by replacing its middle with an ellipsis."""
    if columns_of(text) <= width:
        return text
    head, tail = "", ""
    for char in text:
        if columns_of(head + char) > width - width // 3 - 1:
            break
        head += char
    for char in reversed(text):
        if columns_of(char + tail) > width // 3:
            break
        tail = char + tail
    return f"{head}…{tail}"
