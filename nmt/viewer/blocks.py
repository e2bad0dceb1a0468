"""A page as a list of blocks, written as Markdown or as a self-contained HTML file.

The blocks do not depend on the subject of the page. The HTML loads no other files, runs no script except the viewer,
and follows the reader's light or dark mode.
"""

import base64
import html
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from nmt.system.terminal import markdown, printable
from nmt.viewer import embed


class Heading(NamedTuple):
    """The heading of a section."""

    text: str


class Lines(NamedTuple):
    """Paragraphs; with `lead`, they are highlighted as the ones to read first."""

    lines: list[str]
    lead: bool = False


class Linked(str):
    """The text of a table cell that links to sentences of the page by their `lines`, from 1."""

    lines: Sequence[int]

    def __new__(cls, text: str, lines: Sequence[int] = ()) -> "Linked":
        linked = super().__new__(cls, text)
        linked.lines = tuple(lines)
        return linked


class Table(NamedTuple):
    """A table; cells may be `Linked`.

    `marks` are judgements, which colour the rows. With `text`, all cells are aligned left. `best` are the (row, column)
    indices, from 0, of the best figures, which LaTeX prints in bold.
    """

    header: list[str]
    rows: list[list[str]]
    marks: Sequence[str] = ()
    text: bool = False
    best: Collection[tuple[int, int]] = ()


class Picture(NamedTuple):
    """A PNG picture with a name for its file and an alternative text; and the same picture as PDF, for print."""

    name: str
    data: bytes
    alt: str
    pdf: bytes = b""


class Interactive(NamedTuple):
    """A viewer of sentences with its id and data (`nmt.viewer.embed.viewer`); Markdown shows the pictures instead."""

    name: str
    data: Mapping[str, Any]
    pictures: Sequence[Picture] = ()


class Sentence(NamedTuple):
    """A sentence of a page: its line, from 1, and rows of (kind of text, text, figure)."""

    line: int
    rows: list[tuple[str, str, str]]


class Sentences(NamedTuple):
    """The sentences that cells and points of the page link to, each once. Markdown leaves them out."""

    sentences: list[Sentence]


class Scatter(NamedTuple):
    """A scatter plot of sentences by the scores of two variants, which the reader may choose. Markdown leaves it out.

    Attributes:
        score: name of the score, such as "chrF".
        names: names of the variants.
        lines: line numbers of the sentences, from 1, to which the points link.
        values: for each variant, the score of each sentence, from 0 to 100.
        shown: indices of the variants that are first shown on the x and y axes.
    """

    score: str
    names: list[str]
    lines: list[int]
    values: list[list[float]]
    shown: tuple[int, int]


Block = Heading | Lines | Table | Picture | Interactive | Sentences | Scatter


def pictures(blocks: Sequence[Block]) -> Iterator[Picture]:
    """All pictures of a page, including the pictures that replace a viewer in Markdown."""
    for block in blocks:
        if isinstance(block, Picture):
            yield block
        elif isinstance(block, Interactive):
            yield from block.pictures


def as_markdown(blocks: Sequence[Block], title: str) -> str:
    """The page as Markdown; the links to pictures are to the folder `pictures`."""
    parts = [f"# {markdown(title)}"]
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"## {markdown(text)}")
            case Lines(lines):
                parts += [markdown(line) for line in lines]
            case Table(header, rows, _, text, _):
                rule = ["---", *(["---"] if text else ["---:"]) * (len(header) - 1)]
                body = [f"| {' | '.join(map(markdown, row))} |" for row in rows]
                parts.append("\n".join([f"| {' | '.join(map(markdown, header))} |", f"| {' | '.join(rule)} |", *body]))
            case Picture() | Interactive():
                for name, _, alt, _ in pictures([block]):
                    parts.append(f"![{markdown(alt)}](<pictures/{file_name(name)}>)")
    return "\n\n".join(parts) + "\n"


def file_name(name: str) -> str:
    """The file name of a picture; characters that are unsafe in links become hyphens."""
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name) + ".png"


#: CSS classes of rows by judgement; rows with other marks are greyed.
_CLASSES = {"better": "better", "worse": "worse", "baseline": "baseline"}


def as_html(blocks: Sequence[Block], title: str) -> str:
    """The page as one HTML file with its pictures and its viewer; it needs no network."""
    parts: list[str] = []
    headings: list[str] = []
    reachable = {each.line for block in blocks if isinstance(block, Sentences) for each in block.sentences}
    for block in blocks:
        match block:
            case Heading(text):
                headings.append(text)
                parts.append(f'<h2 id="part-{len(headings)}">{_escaped(text)}</h2>')
            case Lines(lines, lead):
                paragraphs = "\n".join(f'<p dir="auto">{_escaped(line)}</p>' for line in lines)
                parts.append(f'<div class="lead">\n{paragraphs}\n</div>' if lead else paragraphs)
            case Table():
                parts.append(_table(block, headings[-1] if headings else title, reachable))
            case Picture(_, data, alt):
                encoded = base64.b64encode(data).decode("ascii")
                parts.append(f'<p><img alt="{_escaped(alt)}" src="data:image/png;base64,{encoded}"></p>')
            case Interactive(name, data):
                parts.append(embed.viewer(name, data))
            case Sentences(sentences):
                parts.append(_sentences(sentences))
            case Scatter():
                parts.append(_scatter(block, reachable))
    links = "\n".join(f'<li><a href="#part-{at}">{_escaped(text)}</a></li>' for at, text in enumerate(headings, 1))
    contents = (
        f'<nav class="contents" aria-label="Contents"><details><summary>Contents</summary>\n<ul>\n{links}\n</ul>\n'
        f"</details></nav>\n"
        if len(headings) > 1
        else ""
    )
    # The verdict comes before the contents.
    first = 1 if blocks and isinstance(blocks[0], Lines) and blocks[0].lead else 0
    body = "\n".join([*parts[:first], contents, *parts[first:]])
    scripted = "<script" in body  # from a viewer or a scatter plot; texts are escaped
    return embed.page(title, f"<main>\n<h1>{_escaped(title)}</h1>\n{body}\n</main>", script=scripted)


def _escaped(text: str) -> str:
    return html.escape(printable(text))


_FEW_COLUMNS = 3


def _table(table: Table, label: str, reachable: Collection[int]) -> str:
    """A table in a box that scrolls on a narrow screen, also by keyboard."""
    # On a phone, many columns of text would become as narrow as a letter.
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


_SIDE, _MARGIN, _TOP = 230, 34, 8  # a scatter plot's side and margins, in CSS pixels


def _scatter(scatter: Scatter, reachable: Collection[int]) -> str:
    """A scatter plot as SVG, 300 pixels wide to fit a phone; axis names are below it, where long names can wrap.

    The viewer's `scatter.js` moves the points if the reader chooses other axes.
    """

    def place(x: float, y: float) -> tuple[float, float]:
        return _MARGIN + x / 100 * _SIDE, _TOP + (1 - y / 100) * _SIDE

    marks = []
    for value in (0, 50, 100):
        x, bottom = place(value, 0)
        left, y = place(0, value)
        marks.append(f'<text x="{x:.0f}" y="{bottom + 16:.0f}" text-anchor="middle">{value}</text>')
        marks.append(f'<text x="{left - 6:.0f}" y="{y + 4:.0f}" text-anchor="end">{value}</text>')
    points = []
    across, up = scatter.shown
    for line, x_score, y_score in zip(scatter.lines, scatter.values[across], scatter.values[up], strict=True):
        x, y = place(x_score, y_score)
        title = f"<title>line {line}: {x_score:.0f}, {y_score:.0f}</title>"
        circle = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3">{title}</circle>'
        # Not focusable by Tab: a thousand points would block the way, and the tables link to the same sentences.
        points.append(f'<a href="#line-{line}" tabindex="-1">{circle}</a>' if line in reachable else circle)
    (left, bottom), (right, top) = place(0, 0), place(100, 100)
    lines = (f'<path d="M{left} {top}V{bottom}H{right}M{left} {bottom}L{right} {top}" fill="none" '
             f'stroke="currentColor" stroke-opacity="0.4"/>')  # fmt: skip
    size = _MARGIN + _SIDE + 36
    caption = _escaped(f"across: {scatter.score}, {scatter.names[across]}; up: {scatter.score}, {scatter.names[up]}")
    data = ""
    if len(scatter.names) > 2:  # with two, there is nothing to choose
        values = [[round(value, 1) for value in row] for row in scatter.values]
        known = {**scatter._asdict(), "values": values, "side": _SIDE, "margin": _MARGIN, "top": _TOP}
        data = f'<script type="application/json">{embed.embedded_json(known)}</script>'
    return (
        f'<figure class="scatter">{data}<svg width="{size}" height="{_SIDE + 32}" '
        f'viewBox="0 0 {size} {_SIDE + 32}" role="group" '
        f'aria-label="{caption}" font-size="12" fill="currentColor">\n{lines}{"".join(marks)}\n'
        f'<g fill-opacity="0.45">{"".join(points)}</g></svg>\n<figcaption>{caption}</figcaption></figure>'
    )
