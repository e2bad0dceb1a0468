"""Documents by the ending of their file: bytes -> segments, and translated segments -> bytes."""

from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from nmt.documents.archive import KINDS, OLD, content_of, read_archive
from nmt.documents.catalogues import PO_DECLARED, read_json_strings, read_po, read_yaml_strings
from nmt.documents.cells import read_csv, read_tsv
from nmt.documents.document_slots import Slots, decode
from nmt.documents.exchange import Canonical, plain_code, read_tmx, read_xliff
from nmt.documents.markdown_text import read_markdown
from nmt.documents.subtitles import read_srt, read_vtt
from nmt.documents.web_pages import HTML_DECLARED, read_html
from nmt.documents.xml_text import XML_DECLARED
from nmt.system.encodings import RECOGNISE
from nmt.system.errors import UserError
from nmt.text.tags import Segment

#: The endings of formats whose placeholders are kept by default.
WITH_PLACEHOLDERS = (".po", ".pot", ".xliff", ".xlf", ".json", ".arb", ".yaml", ".yml")
#: The most bytes of a document's file.
MOST_BYTES = 1 << 28

Read = Callable[[str, Slots], str]


class DocumentFormat(NamedTuple):
    """A text format.

    Attributes:
        read: the reader: text -> text with marks.
        declared: pattern of the declaration of the encoding in the file.
        markup: whether a character that the encoding lacks can be written as a reference.
        bilingual: see `Slots`.
    """

    read: Read
    declared: str = ""
    markup: bool = False
    bilingual: bool = False


_XLIFF = DocumentFormat(read_xliff, XML_DECLARED, markup=True, bilingual=True)
_HTML = DocumentFormat(read_html, HTML_DECLARED, markup=True)
_YAML, _MARKDOWN = DocumentFormat(read_yaml_strings), DocumentFormat(read_markdown)
_TEXTS = {
    ".csv": DocumentFormat(read_csv),
    ".tsv": DocumentFormat(read_tsv),
    ".srt": DocumentFormat(read_srt),
    ".vtt": DocumentFormat(read_vtt),
    ".po": DocumentFormat(read_po, PO_DECLARED, bilingual=True),
    ".pot": DocumentFormat(read_po, PO_DECLARED, bilingual=True),
    ".xliff": _XLIFF,
    ".xlf": _XLIFF,
    ".md": _MARKDOWN,
    ".markdown": _MARKDOWN,
    ".html": _HTML,
    ".htm": _HTML,
    ".xhtml": _HTML,
    ".json": DocumentFormat(read_json_strings),
    ".arb": DocumentFormat(read_json_strings),
    ".tmx": DocumentFormat(read_tmx, XML_DECLARED, markup=True, bilingual=True),
    ".yaml": _YAML,
    ".yml": _YAML,
}


#: The endings of documents.
ENDINGS = (*_TEXTS, *KINDS)


class Document:
    """A document, after reading.

    Attributes:
        segments: the segments to translate.
        encoding: the recognised encoding, which may be wrong; "" if it is declared, given or UTF-8.
    """

    encoding = ""

    def __init__(self, slots: Slots, write: Callable[[Sequence[Segment | None]], bytes]) -> None:
        self.segments = slots.segments
        self._slots, self._write = slots, write

    def write(self, translations: Sequence[Segment | None]) -> bytes:
        """The bytes of the document with translations of its segments; None leaves a segment unchanged.

        Raises:
            UserError: the encoding of the document lacks a character of a translation.
        """
        return self._write(translations)

    @property
    def notes(self) -> list[str]:
        """Messages about what a person should check in the written document."""
        notes = [f"{note}: {count:,}." for note, count in self._slots.notes.items() if count]
        guess = f"in {self.encoding}, as the input seems to be. If letters look wrong, give encoding=NAME."
        return [guess, *notes] if self.encoding else notes


def read_document(
    path: Path, source: str = "", target: str = "", encoding: str | None = None, canonical: Canonical = plain_code
) -> Document:
    """Read a document in the format of its ending.

    Args:
        path: the file.
        source: the language to translate from, for formats that hold several languages.
        target: the language to translate into.
        encoding: encoding of text that is not UTF-8 and declares none; None recognises it.
        canonical: see `read_tmx`.

    Raises:
        UserError: the file cannot be read, is damaged, or is not in this format.
    """
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror or error}.") from error
    if len(data) > MOST_BYTES:
        raise UserError(f"{path} has more than {MOST_BYTES >> 20} MiB. Split it.")
    return parse_document(data, str(path), source, target, encoding, canonical)


def _check_content(data: bytes, name: str, ending: str) -> None:
    """Raise UserError if the contents of a file certainly do not fit its ending."""
    kind, other = content_of(data)
    if kind and KINDS[kind] is not KINDS.get(ending):
        raise UserError(f"{name} is a {kind} file with another ending. Rename it to {Path(name).stem}{kind}.")
    if other:
        raise UserError(f"{name} is {other}, whatever its ending says. Save it as .docx.")
    if ending in KINDS and not data.startswith((b"PK", OLD)):
        raise UserError(f"{name} is no {ending} file: its content is not that of an office document. Save it again.")


def parse_document(
    data: bytes,
    name: str,
    source: str = "",
    target: str = "",
    encoding: str | None = None,
    canonical: Canonical = plain_code,
) -> Document:
    """Parse the bytes of a file with this name; see `read_document`."""
    ending = Path(name).suffix.lower()
    _check_content(data, name, ending)
    if ending in KINDS:
        slots = Slots()
        return Document(slots, read_archive(data, name, ending, slots))
    form = _TEXTS[ending]
    if ending == ".tmx":
        form = form._replace(read=partial(read_tmx, source=source, target=target, canonical=canonical))
    slots = Slots(form.bilingual)
    encoded = decode(data, name, form.declared, encoding or RECOGNISE)
    try:
        text = form.read(encoded.text, slots)
    except (ValueError, RecursionError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else error
        raise UserError(f"{name}: not a valid {ending} file: {reason}. Save it again, or rename it.") from error
    document = Document(slots, lambda translations: encoded.encode(slots.fill(text, translations), form.markup))
    if encoded.recognised:
        document.encoding = encoded.encoding
    return document
