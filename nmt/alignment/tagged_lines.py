"""Translation of lines with HTML tags; the tags are projected by word links (`tag_projection`)."""

import re
from collections.abc import Callable, Sequence

from nmt.alignment.linker import Linker
from nmt.alignment.tag_projection import LinkedText, project
from nmt.system.errors import UserError
from nmt.text.html_text import escape, read_html
from nmt.text.tags import Segment
from nmt.translation.nbest import join
from nmt.translation.request import Request
from nmt.translation.translator import empty
from nmt.translation.types import Translation

# Character references to line ends, which would split a line.
_LINE_ENDS = re.compile(r"&(?:#0*1[03]|#[xX]0*[aAdD]|NewLine)(?:;|(?![0-9a-zA-Z;]))")

Translate = Callable[[list[Request]], list[list[Translation]]]


def plain_text(line: str) -> str:
    """The text of a line without its HTML tags (UserError if a character reference is too long)."""
    parts = _parts(line)
    texts = [part.text for part in parts if isinstance(part, Segment)]
    return texts[0] if _is_plain(parts) else " ".join(text.strip() for text in texts)


def translate_tagged(requests: Sequence[Request], translate: Translate, linker: Linker) -> list[list[Translation]]:
    """Translate lines with HTML tags: a list with the best translation of each; its `tagged` is the translated HTML.

    Args:
        requests: requests for lines with HTML tags. Texts between block tags are translated one by one.
        translate: a function that returns the n-best lists of requests without tags.
        linker: the linker of words.

    Raises:
        UserError: a character reference is too long.
    """
    lines = [_parts(request.text) for request in requests]
    asked = [
        request._replace(text=part.text if _is_plain(parts) else part.text.strip())
        for request, parts in zip(requests, lines, strict=True)
        for part in parts
        if isinstance(part, Segment)
    ]
    ranked = iter(translate(asked))
    results = []
    for request, parts in zip(requests, lines, strict=True):
        best: list[list[Translation]] = []
        written = ""
        for part in parts:
            if isinstance(part, Segment):
                best.append(next(ranked)[:1])
                written += _rendered(part, best[-1][0], _is_plain(parts), linker)
            else:
                written += part
        plain = plain_text(request.text)
        (joined,) = join(plain, best) if best else [empty(plain)]
        notes = [note for each in best for note in each[0].notes]
        remembered = bool(best) and all(each[0].remembered for each in best)
        results.append([joined._replace(source=plain, tagged=written, notes=notes, remembered=remembered)])
    return results


def _parts(line: str) -> list[str | Segment]:
    line = _LINE_ENDS.sub(" ", line)
    if "<" not in line and "&" not in line:
        return [Segment(line)]
    try:
        return [*read_html(line)]
    except ValueError as error:
        raise UserError("A character reference (&#...;) in a line is too long. Write the character itself.") from error


def _is_plain(parts: Sequence[str | Segment]) -> bool:
    """Whether a line is a single text without tags."""
    return len(parts) == 1 and isinstance(parts[0], Segment) and not parts[0].tags


def _rendered(segment: Segment, translation: Translation, is_plain: bool, linker: Linker) -> str:
    """A translated segment as HTML; white space at the ends of the source is restored unless the line is plain text."""
    linked = LinkedText.of(translation, linker)
    text = segment.text
    if not is_plain:
        ends = text[: len(text) - len(text.lstrip())], text[len(text.rstrip()) :]
        linked = LinkedText.join([LinkedText.same(ends[0]), linked, LinkedText.same(ends[1])])
    return project(linked, segment.tags).render(escape)
