"""A page as a list of blocks, and two ways to write it: Markdown, and HTML that holds all it needs.

Knows nothing of what the page is about. The HTML loads nothing, runs nothing but the viewer, and follows the reader's
choice of light or dark.
"""

import base64
import html
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nmt.system.terminal import markdown, printable
from nmt.viewer import embed


class Heading(NamedTuple):
    """Begins a section."""

    text: str


class Lines(NamedTuple):
    """Paragraphs; `lead` for the ones to read first."""

    lines: list[str]
    lead: bool = False


class Linked(str):
    """A cell's text that leads to sentences of the page: their `lines`, from 1."""

    lines: Sequence[int]

    def __new__(cls, text: str, lines: Sequence[int] = ()) -> "Linked":
        linked = super().__new__(cls, text)
        linked.lines = tuple(lines)
        return linked


class Table(NamedTuple):
    """Rows of cells, which may be `Linked`.

    `marks` colours a row by its judgement, `text` leaves all cells flush left.
    """

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
    """A viewer of sentences, with its id and data (`nmt.viewer.embed.viewer`). Markdown leaves it out."""

    name: str
    data: Mapping[str, Any]


class Sentence(NamedTuple):
    """A sentence of a page: its line, from 1, and rows of what a text is, the text and a figure."""

    line: int
    rows: list[tuple[str, str, str]]


class Sentences(NamedTuple):
    """The sentences that cells of the page lead to, each once. Markdown leaves them out."""

    sentences: list[Sentence]


Block = Heading | Lines | Table | Picture | Interactive | Sentences


def pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    """Every picture of a page."""
    return (block for block in blocks if isinstance(block, Picture))


def as_markdown(blocks: Sequence[Block], title: str, folder: str = "pictures") -> str:
    """Markdown; pictures are named by where `folder` has them."""
    cell = markdown
    parts = [f"# {cell(title)}"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {cell(text)}")
            case Lines(lines):
                parts += [cell(line) for line in lines]
            case Table(header, rows, _, text):
                rule = ["---", *(["---"] if text else ["---:"]) * (len(header) - 1)]
                body = [f"| {' | '.join(map(cell, row))} |" for row in rows]
                parts.append("\n".join([f"| {' | '.join(map(cell, header))} |", f"| {' | '.join(rule)} |", *body]))
            case Picture(name, _, alt):
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
    reachable = {each.line for block in blocks if isinstance(block, Sentences) for each in block.sentences}
    for block in blocks:
        match block:
            case Heading(text):
                headings.append(text)
                parts.append(f'<h2 id="part-{len(headings)}">{escape(text)}</h2>')
            case Lines(lines, lead):
                paragraphs = "\n".join(f'<p dir="auto">{escape(line)}</p>' for line in lines)
                parts.append(f'<div class="lead">\n{paragraphs}\n</div>' if lead else paragraphs)
            case Table():
                parts.append(_table(block, headings[-1] if headings else title, reachable))
            case Picture(_, data, alt):
                encoded = base64.b64encode(data).decode("ascii")
                parts.append(f'<p><img alt="{escape(alt)}" src="data:image/png;base64,{encoded}"></p>')
            case Interactive(name, data):
                parts.append(embed.viewer(name, data))
            case Sentences(sentences):
                parts.append(_sentences(sentences))
    links = "\n".join(f'<li><a href="#part-{at}">{escape(text)}</a></li>' for at, text in enumerate(headings, 1))
    contents = (
        f'<nav class="contents" aria-label="Contents"><details><summary>Contents</summary>\n<ul>\n{links}\n</ul>\n'
        f"</details></nav>\n"
        if len(headings) > 1
        else ""
    )
    # The verdict comes before the contents.
    first = 1 if blocks and isinstance(blocks[0], Lines) and blocks[0].lead else 0
    body = "\n".join([*parts[:first], contents, *parts[first:]])
    scripted = any(isinstance(block, Interactive) for block in blocks)
    return embed.page(title, f"<main>\n<h1>{escape(title)}</h1>\n{body}\n</main>", script=scripted)


def _escaped(text: str) -> str:
    return html.escape(printable(text))


_FEW_COLUMNS = 3


def _table(table: Table, label: str, reachable: Collection[int]) -> str:
    """A table in a box that scrolls on a narrow screen, by keyboard too."""
    # Many columns of text would be as narrow as a letter on a phone.
    kind_of_table = ("text texts" if len(table.header) > _FEW_COLUMNS else "text") if table.text else "figures"
    kinds = [_CLASSES.get(mark, "dim") for mark in table.marks] or [""] * len(table.rows)
    head = "".join(f'<th scope="col">{_escaped(cell)}</th>' for cell in table.header)
    body = "\n".join(
        (f'<tr class="{kind}">' if kind else "<tr>")
        + "".join(f'<td dir="auto">{_cell(cell, reachable)}</td>' for cell in row)
        + "</tr>"
        for kind, row in zip(kinds, table.rows, strict=True)
    )
    return _box("wide", label, f'<table class="{kind_of_table}">\n<thead><tr>{head}</tr></thead>'
                f"\n<tbody>\n{body}\n</tbody></table>")  # fmt: skip


def _box(kind: str, label: str, content: str) -> str:
    return f'<div class="{kind}" role="group" tabindex="0" aria-label="{_escaped(label)}">{content}</div>'


def _cell(cell: str, reachable: Collection[int]) -> str:
    lines = [line for line in cell.lines if line in reachable] if isinstance(cell, Linked) else []
    if not lines:
        return _escaped(cell)
    if [cell] == [str(line) for line in lines]:
        return f'<a href="#line-{cell}">{cell}</a>'
    links = " ".join(f'<a href="#line-{line}">{line}</a>' for line in lines)
    return f"<details><summary>{_escaped(cell)}</summary>line {links}</details>"


def _sentences(sentences: Sequence[Sentence]) -> str:
    rows = []
    for line, texts in sentences:
        for at, (name, text, figure) in enumerate(texts):
            start = f'<tr id="line-{line}"><td>{line}</td>' if at == 0 else "<tr><td></td>"
            rows.append(f'{start}<td dir="auto">{_escaped(name)}</td><td>{_escaped(figure)}</td>'
                        f'<td dir="auto">{_escaped(text)}</td></tr>')  # fmt: skip
    head = "".join(f'<th scope="col">{name}</th>' for name in ("line", "", "chrF", "text"))
    body = "\n".join(rows)
    return _box("wide tall", "Sentences", f'<table class="text texts sentences">\n<thead><tr>{head}</tr></thead>'
                f"\n<tbody>\n{body}\n</tbody></table>")  # fmt: skip
