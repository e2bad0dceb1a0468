"""The output of `nmt.translate` for each line: records in text, TSV, JSON or HTML, JSON documents, links, heatmaps."""

import html
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from nmt.alignment.units import unit_spans
from nmt.alignment.word_weights import Head, links
from nmt.links import Link, format_links, linked
from nmt.system.terminal import print_message
from nmt.text.canonical import shows_nothing
from nmt.text.tokenizer import Vocabulary
from nmt.translation.glossary import Glossary, uses
from nmt.translation.named_heads import AUTO
from nmt.translation.translator import Translator
from nmt.translation.types import Doubt, Translation

if TYPE_CHECKING:
    from nmt.inspection.document import Beam

#: Marks around doubtful words, in text and in HTML.
MARKS = ("[?", "]")
HTML_MARKS = ('<u title="more likely wrong than right">', "<sup>?</sup></u>")
HTML_HEAD = (
    '<!DOCTYPE html><meta charset="utf-8"><title>Translation</title>'
    "<style>u { text-decoration: underline dotted } sup { line-height: 0 }</style>"
)
# Characters that some programs read as the end of a line or column.
_ENDS = re.compile("[\t\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")


def as_line(value: Mapping[str, Any] | Sequence[Any]) -> str:
    """The value as one line of JSON, with everything escaped that a program may read as the end of a line."""
    return _ENDS.sub(lambda end: f"\\u{ord(end[0]):04x}", json.dumps(value, ensure_ascii=False))


class Format(NamedTuple):
    """The format of the records.

    Attributes:
        name: text, tsv, jsonl or html.
        nbest: the maximum number of records per sentence.
        scores: whether text has scores; n-best lists, TSV and JSON always have them.
        weights: whether JSON has the attention weights.
        head, shift: head and shift of the links.
        doubts: whether doubtful words are marked, and TSV and JSON have the confidence of each word.
        memory: whether TSV and JSON say which translations come from the translation memory.
    """

    name: str = "text"
    nbest: int = 1
    scores: bool = False
    weights: bool = False
    head: Head = AUTO
    shift: int = 0
    doubts: bool = False
    memory: bool = False

    def legend(self) -> str:
        """The columns of a record in words; "" for formats that need none."""
        if self.name == "tsv":
            doubts = ", confidence of each word, their mean, the weakest word, unattended source words (words from 0)"
            memory = ", memory (yes or no)" * self.memory
            return f"Columns: source, translation, log-probability, score, pieces, links{doubts * self.doubts}{memory}."
        if self.name != "text":
            return ""
        marks = f"Words in {MARKS[0]} {MARKS[1]} are more likely wrong than right." * self.doubts
        if not (self.scores or self.nbest > 1):
            return marks
        number = "line number ||| " if self.nbest > 1 else ""
        return (
            f"Each line: {number}translation ||| score ||| log-probability. The score ranks translations: the "
            f"log-probability, adjusted for length as the search does. Nearer to 0 is better. {marks}"
        ).rstrip()

    def records(self, line: int, ranked: Sequence[Translation]) -> list[str]:
        """The records of a sentence, one for each translation.

        Args:
            line: the line number of the sentence in the input, from 1.
            ranked: the translations of the sentence, best first.
        """
        write = {"text": self._text, "tsv": self._tsv, "jsonl": self._json, "html": self._html}[self.name]
        return [write(line, rank, translation) for rank, translation in enumerate(ranked, 1)]

    def _text(self, line: int, rank: int, translation: Translation) -> str:
        del rank
        scores = f" ||| {translation.score:.4f} ||| {translation.log_prob:.4f}"
        text = translation.tagged or "".join(with_marks(translation, MARKS, str))
        return f"{line} ||| {text}{scores}" if self.nbest > 1 else text + scores * self.scores

    def _html(self, line: int, rank: int, translation: Translation) -> str:
        """A paragraph; the first paragraph also opens the page, which HTML allows to stay open."""
        head = HTML_HEAD * (line == rank == 1)
        kind = ' title="from the memory"' * translation.remembered
        marked = with_marks(translation, HTML_MARKS, html.escape)
        return _ENDS.sub(" ", head + "".join([f'<p dir="auto"{kind}>', *marked]))

    def _tsv(self, line: int, rank: int, translation: Translation) -> str:
        del line, rank
        columns: tuple[str, ...] = (
            translation.source,
            translation.text,
            f"{translation.log_prob:.6f}",
            f"{translation.score:.6f}",
            " ".join(translation.pieces),
            format_links(self._links(translation) or []),
        )
        if self.doubts:
            doubt = translation.doubt or Doubt(())
            numbers = [doubt.confidence, [doubt.mean], [doubt.weakest], doubt.unattended]
            columns += tuple(" ".join(str(each) for each in row if each is not None) for row in numbers)
        columns += ("yes" if translation.remembered else "no",) * self.memory
        return "\t".join(_ENDS.sub(" ", column) for column in columns)

    def _json(self, line: int, rank: int, translation: Translation) -> str:
        record: dict[str, Any] = {
            "line": line,
            "rank": rank,
            "source": translation.source,
            "translation": translation.text,
            "log_prob": round(translation.log_prob, 6),
            "score": round(translation.score, 6),
            "source_pieces": translation.source_pieces,
            "pieces": translation.pieces,
            "links": self._links(translation),
        }
        if self.doubts:
            record["doubt"] = None if translation.doubt is None else translation.doubt.as_json()
        if self.memory:
            record["memory"] = translation.remembered
        if self.weights:
            weights = translation.weights
            record["weights"] = None if weights is None else weights.astype(float).round(6).tolist()
        return as_line(record)

    def _links(self, translation: Translation) -> list[Link] | None:
        """Word links; None without attention, [] for an empty line."""
        if translation.weights is None:
            return [] if shows_nothing(translation.source) else None
        return links(translation, self.head, self.shift)


def with_marks(translation: Translation, marks: tuple[str, str], escape: Callable[[str], str]) -> Iterator[str]:
    """Yield the parts of a translation, escaped, with marks around each doubtful word."""
    text, doubt, last = translation.text, translation.doubt, 0
    if doubt is not None:
        edges = unit_spans(text, translation.spans)
        for word in doubt.doubtful:
            begin, end = edges[word]
            yield from (escape(text[last:begin]), marks[0], escape(text[begin:end]), marks[1])
            last = end
    yield escape(text[last:])


class Line(NamedTuple):
    """A translated line.

    Attributes:
        number: line number in the input, from 1.
        translations: the translations, best first.
        prefix: the required beginning of the translation; "" for none.
        beam: the tree of the search, if requested.
    """

    number: int
    translations: Sequence[Translation]
    prefix: str = ""
    beam: "Beam | None" = None


Write = Callable[[Line], None]


def records(write_line: Callable[[str], None], form: Format, line: Line) -> None:
    """Write the records of a line."""
    for record in form.records(line.number, line.translations):
        write_line(record)


def documents(
    write_line: Callable[[str], None], translator: Translator, head: str, shift: int, include: Sequence[str]
) -> Write:
    """Return a function that writes the JSON document of a line (docs/translation-json.md).

    Raises:
        UserError: `include` has an unknown detail.
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


def links_below(write_line: Callable[[str], None], head: Head, shift: int, line: Line) -> None:
    """Write the words of a line and of its translation, with their links."""
    best = line.translations[0]
    if best.weights is not None:
        word_links = links(best, head=head, shift=shift)
        for text in linked(best.source.split(), best.text.split(), word_links, sys.stdout):
            write_line(f"  {text}")


def links_of_words(write_line: Callable[[str], None], head: Head, shift: int, line: Line) -> None:
    """Write the word links of a line."""
    best = line.translations[0]  # without weights for an empty line
    write_line("" if best.weights is None else format_links(links(best, head=head, shift=shift)))


def terms(write_line: Callable[[str], None], glossary: Glossary, vocabulary: Vocabulary, unit: str = "line") -> Write:
    """Write a header; return a function that writes for each term of a line whether and where it is used."""
    write_line("\t".join((unit, "source", "target", "used", "characters", "reason")))

    def write(line: Line) -> None:
        best = line.translations[0]
        for match, span, reason in uses(glossary, best.source, best.text, vocabulary):
            source = best.source[match.begin : match.end]
            target = " | ".join(match.targets) if span is None else best.text[span[0] : span[1]]
            where = "" if span is None else f"{span[0]}-{span[1]}"
            reason = f"the {unit} comes from the memory" if span is None and best.remembered else reason
            cells = (str(line.number), source, target, "no" if span is None else "yes", where, reason)
            write_line("\t".join(_ENDS.sub(" ", cell) for cell in cells))

    return write


def pictures(
    folder: Path, kind: str, head: Head, shift: int, view: Callable[[Translation], Translation | None]
) -> Write:
    """Return a function that draws a heatmap of a line's view, if it has one; each warning is printed once."""
    from nmt.drawing.heatmap import figure

    warnings = set[str]()

    def write(line: Line) -> None:
        translation = view(line.translations[0])
        if translation is None or translation.weights is None:
            return
        for warning in figure(translation, head=head, shift=shift).save(folder / f"{line.number:05d}.{kind}"):
            if warning not in warnings:
                warnings.add(warning)
                print_message(f"warning: {warning}")

    return write
