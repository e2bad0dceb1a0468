"""Markdown (.md): the text of headings, paragraphs, lists and tables. Code, HTML and addresses are kept."""

import itertools
import re
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from nmt.documents.document_slots import Slots, is_language, marked
from nmt.documents.markup import Token, inline, matches, tokens_of
from nmt.documents.web_pages import VOID
from nmt.text.tags import Segment

if TYPE_CHECKING:
    from markdown_it.token import Token as Block

_FRONT_MATTER = re.compile(r"\A---[ \t]*\r?\n.*?^(?:---|\.\.\.)[ \t]*$", re.DOTALL | re.MULTILINE)
_ADDRESS = r"\((?:[^()\\]|\\.|\((?:[^()\\]|\\.)*\))*\)"
_LINK_END = rf"\](?:{_ADDRESS}|\[[^\]]*\])?"
_IMAGE = rf"!\[(?:[^\[\]\\]|\\.|\[[^\]]*\])*{_LINK_END}"
_TASK = re.compile(r"\[[ xX]\][ \t]+")
_FOOTNOTE = re.compile(r"(\[\^[^\]\s]+\])(?::[ \t]*)?")
_NEXT_LINE = re.compile(r"[ \t]*\\?\r?\n[ \t>]*")
_SPECIAL = re.compile(
    r"(?P<number>^\d{1,9}(?=[.)]\s))|[\\`*\[\]<|]|(?<!\w)_|_(?!\w)|&(?=#?\w+;)|^(?=#{1,6}\s|[-+>]\s)", re.MULTILINE
)


def read_markdown(text: str, slots: Slots) -> str:
    """The text of a Markdown file with marks. Blocks that cannot be located in the file are left unchanged."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark").enable(["table", "strikethrough"]).disable("text_join")
    front = _FRONT_MATTER.match(text)
    body = text[front.end() :] if front else text
    # The parser takes lone carriage returns for ends of lines, too.
    lines = re.split(r"(?<=\n)|(?<=\r)(?!\n)", body)
    starts = [front.end() if front else 0]
    for line in lines:
        starts.append(starts[-1] + len(line))
    marks = list[tuple[int, int, str]]()
    at = 0
    for block in parser.parse(body):
        if block.type != "inline" or not block.map or not block.content:
            continue
        first, last = (starts[min(number, len(starts) - 1)] for number in block.map)
        begin = _position(text, block.content.split("\n")[0], max(at, first), last)
        if begin < 0:
            continue
        tokens = _tokens(block.children or [], text, begin, last)
        at = begin + max(1, sum(len(token.raw) for token in tokens))
        built = inline(_labelled(tokens), unescape=str, collapse=False)
        if built is not None and is_language(built.segment.text):
            hard = next((token.raw for token in tokens if token.value == "\n"), "\n")
            start = begin + len(built.before)
            mark = slots.add(built.segment, text[start:at], partial(_written, hard, built.after))
            marks.append((start, at, mark))
    return marked(text, marks)


def _position(text: str, line: str, start: int, end: int) -> int:
    """The position of a line of a block in the file, or -1. In tables, bars are escaped by a backslash."""
    return max(text.find(line, start, end), text.find(line.replace("|", "\\|"), start, end))


def _tokens(children: Sequence["Block"], text: str, at: int, end: int) -> list[Token]:
    """The inline tokens of a block that begins at position `at` of the file; [] if they cannot all be located."""
    tokens, todo = list[Token](), list(children)[::-1]
    if todo and (task := _TASK.match(text, at)):
        tokens.append(Token("lone", task[0]))
        todo[-1].content = todo[-1].content[len(task[0]) :]
        at = task.end()
    while todo:
        if (note := _FOOTNOTE.match(text, at)) and not (todo[-1].type == "link_open" and text[note.end() :][:1] == "("):
            raw = note[0] if not tokens else note[1]  # with the colon of a definition
            if _take(todo, raw):
                tokens.append(Token("lone", raw))
                at += len(raw)
                continue
        child = todo.pop()
        if child.type == "text" and (note := _FOOTNOTE.search(child.content)) and note.start():
            todo.append(child.copy(content=child.content[note.start() :]))
            child.content = child.content[: note.start()]
        if child.type == "text" and not child.content:
            continue
        if child.markup == "autolink":
            while todo and child.type != "link_close":
                child = todo.pop()
            pattern, token = r"<[^<>\s]*>", Token("lone", "")
        else:
            pattern, token = _pattern(child)
        match = re.compile(pattern, re.DOTALL).match(text, at, end)
        if match is None:
            return []
        tokens.append(token._replace(raw=match[0]))
        at = match.end()
    return tokens


def _take(todo: list["Block"], note: str) -> bool:
    """Remove a footnote's mark (text, or a reference link) from the end of `todo`; return whether it was there."""
    if todo[-1].type == "link_open":
        while todo.pop().type != "link_close":
            pass
        return True
    texts = itertools.takewhile(lambda child: child.type == "text", reversed(todo))
    if not "".join(child.content for child in texts).startswith(note):
        return False
    while note:
        content = todo[-1].content
        todo[-1].content, note = content[len(note) :], note[len(content) :]
        if not todo[-1].content:
            todo.pop()
    return True


def _labelled(tokens: Sequence[Token]) -> list[Token]:
    """Add its label to each shortcut reference link, so that the link still works after its text is translated."""
    labelled = list(tokens)
    for opening, closing in matches(tokens).items():
        if tokens[opening].name == "link" and tokens[closing].raw in ("]", "][]"):
            label = "".join(token.raw for token in tokens[opening + 1 : closing])
            labelled[closing] = tokens[closing]._replace(raw=f"][{_NEXT_LINE.sub(' ', label)}]")
    return labelled


def _pattern(child: "Block") -> tuple[str, Token]:
    """The pattern of an inline token of the parser in the file, and the token without its raw text."""
    kind, _, side = child.type.rpartition("_")
    if child.type in ("text", "text_special"):
        raw = re.escape(child.markup or child.content).replace("\\|", r"\\?\|")  # in a table
        return raw, Token("text", "", value=child.content)
    if child.type in ("softbreak", "hardbreak"):
        # The next line of a quotation begins with its mark.
        return r"[ \t]*\\?\r?\n(?:[ \t]*>)*[ \t]*", Token("text", "", value=" " if child.type == "softbreak" else "\n")
    if child.type == "code_inline":
        mark = child.markup
        return rf"{mark}(?!`).*?(?<!`){mark}(?!`)", Token("lone", "")
    if child.type == "image":
        return _IMAGE, Token("lone", "")
    if child.type == "html_inline":
        return re.escape(child.content), tokens_of(child.content, void=VOID)[0]
    pattern = (r"\[" if side == "open" else _LINK_END) if kind == "link" else re.escape(child.markup)
    return pattern, Token(side, "", kind)


def _written(hard: str, after: str, segment: Segment) -> str:
    def escape(text: str) -> str:
        return _SPECIAL.sub(lambda m: f"{m[0]}\\" if m["number"] else f"\\{m[0]}", text).replace("\n", hard)

    return segment.render(escape) + after
