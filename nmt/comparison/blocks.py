"""A page as a list of blocks, and two ways to write it: Markdown, and HTML that holds all it needs.

Knows nothing of what the page is about. The HTML loads nothing, runs nothing, and follows the reader's choice of light
or dark.
"""

import base64
import html
import re
from collections.abc import Sequence
from typing import NamedTuple


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


Block = Heading | Lines | Table | Picture


def as_markdown(blocks: Sequence[Block], title: str, folder: str = "pictures") -> str:
    """Markdown; pictures are named by where `folder` has them."""

    def cell(text: str) -> str:
        # An underscore within a word marks nothing.
        marked = re.sub(r"[\\|*`\[\]!#]|(?<!\w)_|_(?!\w)", r"\\\g<0>", text)
        return re.sub(r"\s", " ", marked.replace("&", "&amp;").replace("<", "&lt;"))

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
            case Picture(name, _, alt):
                parts.append(f"![{cell(alt)}](<{folder}/{file_name(name)}>)")
    return "\n\n".join(parts) + "\n"


def file_name(name: str) -> str:
    """The file of a picture: what a split may be called, without what a link cannot hold."""
    return "".join(char if char.isalnum() or char in "._-" else "-" for char in name) + ".png"


_CSS = """
:root { color-scheme: light dark; --ink: #1c1e21; --paper: #ffffff; --soft: #f3f4f6; --line: #d8dbe0; --dim: #5a5f66;
  --better: #1f5fa8; --worse: #b04f00; }
@media (prefers-color-scheme: dark) { :root { --ink: #e4e6ea; --paper: #16181c; --soft: #20242a; --line: #3a3f47;
  --dim: #a2a8b0; --better: #86b7f0; --worse: #f0a35e; } }
body { font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); max-width: 72rem;
  margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.15rem; margin-top: 2.4rem; }
.lead { background: var(--soft); border-left: 4px solid var(--better); padding: .6rem 1rem; border-radius: 4px; }
.lead p:first-child { font-size: 1.2rem; font-weight: 600; }
.lead p { margin: .4rem 0; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; font-size: .88rem; font-variant-numeric: tabular-nums; margin: .8rem 0; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid var(--line); text-align: right; white-space: nowrap; }
th:first-child, td:first-child { text-align: left; }
table.text th, table.text td { text-align: left; white-space: normal; vertical-align: top; overflow-wrap: anywhere; }
table.text td:first-child { min-width: 9rem; }
tr.better td:first-child { color: var(--better); font-weight: 600; } tr.worse td:first-child { color: var(--worse); }
tr.dim td { color: var(--dim); } tr.baseline td { background: var(--soft); }
img { max-width: 100%; height: auto; background: #ffffff; border-radius: 6px; padding: 6px; box-sizing: border-box; }
"""


#: CSS classes of rows by their judgement; all others are greyed.
_CLASSES = {"better": "better", "worse": "worse", "baseline": "baseline"}


def as_html(blocks: Sequence[Block], title: str) -> str:
    """One page with its pictures inside it, that asks nothing of any network."""
    escape = html.escape
    parts = []
    for block in blocks:
        match block:
            case Heading(text):
                parts.append(f"<h2>{escape(text)}</h2>")
            case Lines(lines, lead):
                paragraphs = "\n".join(f'<p dir="auto">{escape(line)}</p>' for line in lines)
                parts.append(f'<div class="lead">\n{paragraphs}\n</div>' if lead else paragraphs)
            case Table(header, rows, marks, text):
                kinds = [_CLASSES.get(mark, "dim") for mark in marks] or [""] * len(rows)
                head = "".join(f'<th scope="col">{escape(cell)}</th>' for cell in header)
                body = "\n".join(
                    (f'<tr class="{kind}">' if kind else "<tr>")
                    + "".join(f'<td dir="auto">{escape(cell)}</td>' for cell in row)
                    + "</tr>"
                    for kind, row in zip(kinds, rows, strict=True)
                )
                kind = "text" if text else "figures"
                parts.append(
                    f'<div class="wide"><table class="{kind}">\n<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n'
                    f"</tbody></table></div>"
                )
            case Picture(_, data, alt):
                encoded = base64.b64encode(data).decode("ascii")
                parts.append(f'<p><img alt="{escape(alt)}" src="data:image/png;base64,{encoded}"></p>')
    body = "\n".join(parts)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n<title>{escape(title)}</title>\n'
        f"<style>{_CSS}</style>\n</head>\n<body>\n<h1>{escape(title)}</h1>\n{body}\n</body>\n</html>\n"
    )
