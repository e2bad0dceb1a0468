"""What `nmt.translate` writes of each line: records, documents, links, pictures."""

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from nmt.alignment.word_weights import Head
from nmt.links import format_links
from nmt.pipeline.formats import Format, as_line
from nmt.terminal import linked, print_message
from nmt.translation.translator import Translator
from nmt.translation.types import Translation

if TYPE_CHECKING:
    from nmt.inspection.document import Beam


class Line(NamedTuple):
    """A line that is translated.

    Attributes:
        number: in the input, from 1.
        translations: best first.
        prefix: what its translation had to begin with.
        beam: the tree of the search, if it was asked for.
    """

    number: int
    translations: Sequence[Translation]
    prefix: str = ""
    beam: "Beam | None" = None


Write = Callable[[Line], None]


def records(write_line: Callable[[str], None], form: Format) -> Write:
    """Write the records of each line."""

    def write(line: Line) -> None:
        for record in form.records(line.number, line.translations):
            write_line(record)

    return write


def documents(
    write_line: Callable[[str], None], translator: Translator, head: str, shift: int, include: Sequence[str]
) -> Write:
    """Write the document of each line (docs/translation-json.md).

    Raises:
        UserError: there is no such detail.
    """
    from nmt.inspection.details import described_search, documented, forced_characters, included
    from nmt.inspection.document import Style

    details = included(include)
    aligned, search = "alignment" in details, described_search(translator)
    style = Style(translator.tokenizer.target, head, shift, aligned=aligned, search=search)

    def write(line: Line) -> None:
        forced = forced_characters(translator, line.prefix)
        write_line(as_line(documented(translator, line.translations, style, details, forced=forced, beam=line.beam)))

    return write


def links_below(write_line: Callable[[str], None], head: Head, shift: int) -> Write:
    """Write the words of each line, and those of its translation, with their links."""
    from nmt.alignment.word_weights import links

    def write(line: Line) -> None:
        best = line.translations[0]
        if best.weights is not None:
            found = links(best, head=head, shift=shift)
            for text in linked(best.source.split(), best.text.split(), found, sys.stdout):
                write_line(f"  {text}")

    return write


def links_of_words(write_line: Callable[[str], None], head: Head, shift: int) -> Write:
    """Write the word links of each line."""
    from nmt.alignment.word_weights import links

    def write(line: Line) -> None:
        best = line.translations[0]  # without weights for an empty line
        write_line("" if best.weights is None else format_links(links(best, head=head, shift=shift)))

    return write


def pictures(folder: Path, head: Head, shift: int, view: Callable[[Translation], Translation | None]) -> Write:
    """Write a heatmap of the view of each line that has one; print each warning once."""
    from nmt.drawing.heatmap import figure

    warnings = set[str]()

    def write(line: Line) -> None:
        translation = view(line.translations[0])
        if translation is None or translation.weights is None:
            return
        for warning in figure(translation, head=head, shift=shift).save(folder / f"{line.number:05d}.png"):
            if warning not in warnings:
                warnings.add(warning)
                print_message(f"warning: {warning}")

    return write
