"""A page as a list of blocks, and two ways to write it: Markdown, and HTML that holds all it needs.

Knows nothing of what the page is about. The HTML loads nothing, runs nothing but the viewer, and follows the reader's
choice of light or dark.
"""

import base64
import html
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nmt.terminal import printable, visible
from nmt.viewer import embed


class Heading(NamedTuple):
    """Begins a section."""

    text: str


class Lines(NamedTuple):
    """Paragraphs; `lead` for what is to be read first."""

    lines: list[str]
    lead: bool = False


class Table(NamedTuple):
    """Rows of cells; `marks` colours a row by its judgement, `text` leaves all cells flush left."""

    header: list[str]
    rows: list[list[str]]
    marks: Sequence[str] = ()
    text: bool = False


class Picture(NamedTuple):
    """A PNG with a name for its file and a text for those who cannot see it."""

    name: str
    data: bytes
    alt: str


class Interactive(NamedTuple):
    """A viewer of sentences, with its id and data (`nmt.viewer.embed.viewer`); Markdown has the pictures instead."""

    name: str
    data: Mapping[str, Any]
    pictures: Sequence[Picture] = ()


Block = Heading | Lines | Table | Picture | Interactive


def pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    """Every picture of a page, those that stand for a viewer included."""
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Interactive):
            yield from block.pictures


def as_markdown(blocks: Sequence[Block], title: str, folder: str = "pictures") -> str:
    """Markdown; pictures are named by where `folder` has them."""

    def cell(text: str) -> str:
        # An underscore within a word marks nothing.
        marked = re.sub(r"[\\|*`\[\]!#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)
        return visible(re.sub(r"\s", " ", marked.replace("&", "&amp;").replace("<", "&lt;")))

    parts = [f"# {title}"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {text}")
            case Lines(lines):
                parts += [cell(line) for line in lines]
            case Table(header, rows, _, text):
                rule = ["---", *(["---"] if text else ["---:"]) * (len(header) - 1)]
                body = [f"| {' | '.join(map(cell, row))} |" for row in rows]
                parts.append("\n".join([f"| {' | '.join(map(cell, header))} |", f"| {' | '.join(rule)} |", *body]))
            case Picture() | Interactive():
                for name, _, alt in pictures([block]):
                    parts.append(f"![{cell(alt)}](<{folder}/{file_name(name)}>)")
    return "\n\n".join(parts) + "\n"


def file_name(name: str) -> str:
    """The file of a picture: what a split may be called, without what a link cannot hold."""
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name) + ".png"


#: CSS classes of rows by their judgement; all others are greyed.
_CLASSES = {"better": "better", "worse": "worse", "baseline": "baseline"}


def as_html(blocks: Sequence[Block], title: str) -> str:
    """One page with its pictures and its viewer inside it, that asks nothing of any network."""
    escape = _escaped
    parts: list[str] = []
    headings: list[str] = []
    for block in blocks:
        match block:
            case Heading(text):
                headings.append(text)
                parts.append(f'<h2 id="part-{len(headings)}">{escape(text)}</h2>')
            case Lines(lines, lead):
                paragraphs = "\n".join(f'<p dir="auto">{escape(line)}</p>' for line in lines)
                parts.append(f'<div class="lead">\n{paragraphs}\n</div>' if lead else paragraphs)
            case Table():
                parts.append(_table(block, headings[-1] if headings else title))
            case Picture(_, data, alt):
                encoded = base64.b64encode(data).decode("ascii")
                parts.append(f'<p><img alt="{escape(alt)}" src="data:image/png;base64,{encoded}"></p>')
            case Interactive(name, data):
                parts.append(embed.viewer(name, data))
    links = "\n".join(f'<li><a href="#part-{at}">{escape(text)}</a></li>' for at, text in enumerate(headings, 1))
    contents = f'<nav class="contents" aria-label="Contents"><ul>\n{links}\n</ul></nav>\n' if len(headings) > 1 else ""
    # The verdict comes before the contents.
    first = 1 if blocks and isinstance(blocks[0], Lines) and blocks[0].lead else 0
    body = "\n".join([*parts[:first], contents, *parts[first:]])
    scripted = any(isinstance(block, Interactive) for block in blocks)
    return embed.page(title, f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>", script=scripted)


def _escaped(text: str) -> str:
    return html.escape(printable(text))


def _table(table: Table, label: str) -> str:
    """A table in a box that scrolls on a narrow screen, by keyboard too."""
    escape = _escaped
    kinds = [_CLASSES.get(mark, "dim") for mark in table.marks] or [""] * len(table.rows)
    head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in table.header)
    body = "\n".join(
        (f'<tr class="{kind}">' if kind else "<tr>")
        + "".join(f'<td dir="auto">{escape(cell)}</td>' for cell in row)
        + "</tr>"
        for kind, row in zip(kinds, table.rows, strict=True)
    )
    return (
        f'<div class="wide" role="group" tabindex="0" aria-label="{escape(label)}">'
        f'<table class="{"text" if table.text else "figures"}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n'
        f"</tbody></table></div>"
    )
