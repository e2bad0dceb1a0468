"""Segments of a document, and the rest of the document, which is written back unchanged.

A slot is the place of a translation in a file. A reader replaces each slot in the text by a mark; a writer replaces the
mark by the original or by the translation. Slots may be inside the tags of other slots.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from nmt.system.encodings import RECOGNISE, recognise
from nmt.system.errors import UserError
from nmt.text.tags import Segment

# Noncharacters, which Unicode reserves for internal use: no text contains them.
_BEGIN, _END = "\ufdd0", "\ufdd1"
_MARK = re.compile(f"{_BEGIN}([0-9]+){_END}")
#: Characters that XML does not allow, and the characters of marks.
_NO_TEXT = re.compile(f"[\0-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff{_BEGIN}{_END}]")


class Slot(NamedTuple):
    """A place in a file: the number of its segment, its original text, and a function that writes a translation."""

    segment: int
    raw: str
    write: Callable[[Segment], str]


class Slots:
    """The segments of a document and their slots.

    Attributes:
        segments: segments to translate, in the order of the document.
        bilingual: whether the format holds source and translation: then a translation that equals its source is
            written, too.
        notes: what a person should check in the written document -> number of cases.
    """

    def __init__(self, bilingual: bool = False) -> None:
        self.segments: list[Segment] = []
        self.bilingual = bilingual
        self.notes = Counter[str]()
        self._slots: list[Slot] = []

    def add(self, segment: Segment, raw: str, write: Callable[[Segment], str]) -> str:
        """Add a segment with its slot; return the slot's mark (ValueError if the text has half a surrogate pair)."""
        if re.search("[\ud800-\udfff]", segment.text):
            raise ValueError("it has half a surrogate pair")
        self.segments.append(segment)
        return self.also(raw, write)

    def also(self, raw: str, write: Callable[[Segment], str]) -> str:
        """Add another slot of the last segment; return its mark."""
        self._slots.append(Slot(len(self.segments) - 1, raw, write))
        return f"{_BEGIN}{len(self._slots) - 1}{_END}"

    def fill(self, text: str, translations: Sequence[Segment | None]) -> str:
        """Replace the marks of a text by translations, or by the original where the translation is None."""

        def value(mark: re.Match[str]) -> str:
            slot = self._slots[int(mark[1])]
            translation = translations[slot.segment]
            if translation is None or (not self.bilingual and translation == self.segments[slot.segment]):
                return _MARK.sub(value, slot.raw)
            clean = translation._replace(text=_NO_TEXT.sub("\ufffd", translation.text))
            return _MARK.sub(value, slot.write(clean))

        return _MARK.sub(value, text)


def marked(text: str, marks: Iterable[tuple[int, int, str]]) -> str:
    """Replace the spans [start, end) of a text, which do not overlap, by marks."""
    pieces, at = [], 0
    for start, end, mark in sorted(marks):
        pieces += [text[at:start], mark]
        at = end
    return "".join([*pieces, text[at:]])


#: A lone URL or e-mail address; matches in linear time.
_ADDRESS = re.compile(r"\s*+(?:(?:[a-z]+://|www\.)\S++|[^\s@]++@(?:[^\s@.]++\.)+[^\s@.]++)\s*+")


def is_language(text: str) -> bool:
    """Whether a text has words to translate: it has letters, and is not just an address."""
    return any(map(str.isalpha, text)) and not _ADDRESS.fullmatch(text)


def is_no_text(text: str) -> bool:
    """Whether a text has characters that no document has: NUL, or the characters of marks."""
    return "\0" in text or _BEGIN in text or _END in text


def is_unwritable(text: str) -> bool:
    """Whether a text has characters that XML does not allow, or the characters of marks."""
    return _NO_TEXT.search(text) is not None


class DecodedFile(NamedTuple):
    """A decoded file: text, encoding, byte order mark, and whether the encoding was guessed from the contents."""

    text: str
    encoding: str
    mark: bytes
    recognised: bool = False

    def encode(self, text: str, markup: bool) -> bytes:
        """Encode a text in the file's encoding; in `markup`, characters that it lacks become references.

        Raises:
            UserError: the encoding lacks a character.
        """
        try:
            return self.mark + text.encode(self.encoding, "xmlcharrefreplace" if markup else "strict")
        except UnicodeEncodeError as error:
            lost = error.object[error.start]
            raise UserError(
                f"The translation has the character '{lost}', which the file's encoding {self.encoding} lacks. Convert "
                "the input to UTF-8."
            ) from error


_NO_TEXT_ENCODINGS = ("punycode", "idna", "unicode_escape", "raw_unicode_escape")
_MARKS = ((b"\xef\xbb\xbf", "utf-8"), (b"\xff\xfe", "utf-16-le"), (b"\xfe\xff", "utf-16-be"))


def decode(data: bytes, name: str, declared: str = "", legacy: str | None = None) -> DecodedFile:
    """Decode a file by its byte order mark, its declared encoding, as UTF-8, or in `legacy`.

    Args:
        data: the bytes of the file.
        name: name of the file, for messages.
        declared: pattern of a declaration in the first 4096 bytes, whose group is the name of the encoding.
        legacy: encoding of files that declare none and are not UTF-8; "auto" recognises it, None raises an error.

    Raises:
        UserError: the file is not valid in its encoding, or not text.
    """
    recognised = False
    mark, encoding = next(((mark, name) for mark, name in _MARKS if data.startswith(mark)), (b"", "utf-8"))
    if not mark and declared and (declaration := re.search(declared.encode(), data[:4096], re.I)):
        encoding = next(filter(None, declaration.groups())).decode()
        if encoding.lower().replace("-", "_") in _NO_TEXT_ENCODINGS:
            raise UserError(f"{name}: declares the encoding {encoding}, which text does not have. Save it as UTF-8.")
    elif not mark and legacy and not _is_utf8(data):
        recognised = legacy == RECOGNISE
        encoding = recognise(data, name) if recognised else legacy
    try:
        text = data[len(mark) :].decode(encoding)
        if text.encode(encoding) != data[len(mark) :]:
            raise LookupError
    except (UnicodeError, LookupError) as error:
        cure = "Save it again as UTF-8." if mark else f"Convert it: iconv -f LATIN1 -t UTF-8 {name}"
        raise UserError(f"{name}: not valid {encoding}. {cure}") from error
    if is_no_text(text):
        raise UserError(f"{name}: its ending says that it is text, but it is not. Rename it, or save it again.")
    return DecodedFile(text, encoding, mark, recognised)


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError:
        return False
    return True
