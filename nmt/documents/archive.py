"""Office documents: zip archives of XML, of which only the members with text change."""

import io
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Sequence
from functools import partial
from typing import NamedTuple

from nmt.documents.document_slots import Slots
from nmt.documents.odf_text import read_odf
from nmt.documents.ooxml_text import DRAWING, SHEET, WORD, column_names, read_runs
from nmt.system.errors import UserError
from nmt.text.tags import Segment

#: The most unpacked bytes of all members together.
MOST_UNPACKED = 1 << 29
#: Errors raised by reading a damaged archive.
DAMAGED = (zipfile.BadZipFile, zlib.error, struct.error, EOFError, OSError, RuntimeError, ValueError)
#: The first bytes of Office files from before 2007, and of Office files with a password.
OLD = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"


class ArchiveKind(NamedTuple):
    """A kind of archive.

    Attributes:
        main: pattern of a member that every such archive has.
        members: pattern of the members with text.
        read: reads a member, given its text, the slots and the texts to keep.
        mimetype: the beginning of the contents of the member "mimetype"; "" if the kind has no such member.
    """

    main: str
    members: str
    read: Callable[[str, Slots, Collection[str]], str]
    mimetype: str = ""


_WORD = ArchiveKind(
    r"word/document\d*\.xml",
    r"word/(?:document\d*|header\d*|footer\d*|footnotes|endnotes)\.xml",
    partial(read_runs, names=WORD),
)
_SLIDES = ArchiveKind(
    r"ppt/presentation\.xml", r"ppt/(?:slides|notesSlides)/[^/]+\.xml", partial(read_runs, names=DRAWING)
)
_BOOK = ArchiveKind(r"xl/workbook\.xml", r"xl/(?:sharedStrings|worksheets/[^/]+)\.xml", partial(read_runs, names=SHEET))
_TEXT = ArchiveKind(r"content\.xml", r"(?:content|styles)\.xml", read_odf, "application/vnd.oasis.opendocument.text")
KINDS = {
    ".docx": _WORD,
    ".docm": _WORD,
    ".pptx": _SLIDES,
    ".pptm": _SLIDES,
    ".xlsx": _BOOK,
    ".xlsm": _BOOK,
    ".odt": _TEXT,
}


def content_of(data: bytes) -> tuple[str, str]:
    """The ending of `KINDS` for the contents of a file, or the name of an unsupported format; "" if unknown."""
    begins = ((b"%PDF", "a PDF file"), (b"{\\rtf", "an RTF document"))
    if not zipfile.is_zipfile(io.BytesIO(data)):
        return "", next((name for sign, name in begins if data.startswith(sign)), "")
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            names = archive.namelist()
            mimetype = ""
            if "mimetype" in names:
                with archive.open("mimetype") as member:
                    mimetype = member.read(100).decode()
    except (*DAMAGED, KeyError):
        return "", ""
    for ending, kind in KINDS.items():
        if any(re.fullmatch(kind.main, name) for name in names) and mimetype.startswith(kind.mimetype):
            return ending, ""
    return "", ""


def read_archive(data: bytes, name: str, ending: str, slots: Slots) -> Callable[[Sequence[Segment | None]], bytes]:
    """Read the members with text; return a function that writes the document with translations.

    Macros are kept and never run. A signature is kept, too, but no longer valid.

    Raises:
        UserError: the archive is damaged, too large, encrypted, or of another kind than its ending.
    """
    if data.startswith(OLD):
        raise UserError(
            f"{name}: it has a password, or is in the format of before 2007. Save it again as {ending} without one."
        )
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            members = archive.infolist()
            if sum(member.file_size for member in members) > MOST_UNPACKED:
                raise UserError(f"{name}: it unpacks to more than {MOST_UNPACKED >> 20} MiB. Split it.")
            if any(member.flag_bits & 1 for member in members):
                raise UserError(f"{name}: it has a password. Save it again without one.")
            if any(member.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for member in members):
                raise ValueError("it is packed in a way that no office document is")
            comment = archive.comment
            contents = [archive.read(member) for member in members]
        texts = _read_members(members, contents, ending, slots)
    except DAMAGED as error:
        reason = error if isinstance(error, ValueError) else "its archive is damaged"
        raise UserError(f"{name}: not a valid {ending} file: {reason}. Save it again, or restore it.") from error

    def write(translations: Sequence[Segment | None]) -> bytes:
        filled = {number: slots.fill(text, translations).encode() for number, text in texts.items()}
        if all(contents[number] == content for number, content in filled.items()):
            return data
        packed = io.BytesIO()
        with zipfile.ZipFile(packed, "w") as archive:
            archive.comment = comment
            for number, (member, content) in enumerate(zip(members, contents, strict=True)):
                archive.writestr(member, filled.get(number, content), member.compress_type)
        return packed.getvalue()

    return write


def _read_members(
    members: Sequence[zipfile.ZipInfo], contents: Sequence[bytes], ending: str, slots: Slots
) -> dict[int, str]:
    """Member number -> text with marks, for each member with text.

    Raises:
        ValueError: the archive is not of this kind, or a member is damaged.
    """
    kind = KINDS[ending]
    by_name = {member.filename: content for member, content in zip(members, contents, strict=True)}
    if not any(re.fullmatch(kind.main, name) for name in by_name):
        raise ValueError("its content is of another kind")
    if not by_name.get("mimetype", b"").decode().startswith(kind.mimetype):
        raise ValueError("its content is of another kind")
    if b"encryption-data" in by_name.get("META-INF/manifest.xml", b""):
        raise ValueError("it has a password")
    fixed_texts = column_names(content.decode() for name, content in by_name.items() if name.startswith("xl/tables/"))
    numbers = [number for number, member in enumerate(members) if re.fullmatch(kind.members, member.filename)]
    if kind is _BOOK:  # sheets may be large, and in few workbooks contain text themselves
        numbers = [at for at in numbers if "worksheets" not in members[at].filename or b"inlineStr" in contents[at]]
    numbers.sort(key=lambda number: _order(members[number].filename, kind.main))
    return {number: kind.read(contents[number].decode(), slots, fixed_texts) for number in numbers}


def _order(name: str, main: str) -> tuple[bool, list[tuple[int, str]]]:
    """A sort key that puts the main member first, and slide2 before slide10."""
    parts = re.split(r"(\d+)", name)
    return re.fullmatch(main, name) is None, [(int(part) if part.isdigit() else 0, part) for part in parts]
