"""Training pairs from translation files (.tmx, .xliff, .po) and workbooks (.xlsx), as a table of text."""

import io
import re
import zipfile
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree

from nmt.documents.archive import DAMAGED, MOST_UNPACKED
from nmt.documents.catalogues import PO_DECLARED, po_entries
from nmt.documents.document_slots import decode
from nmt.documents.exchange import CODES
from nmt.documents.xml_text import XML_DECLARED, check_xml
from nmt.system.errors import UserError
from nmt.text.scripts import base_language

_LANGUAGE = "{http://www.w3.org/XML/1998/namespace}lang"

Row = Sequence[str]


def table_of(path: Path) -> bytes:
    """The pairs of a file as a tab-separated table in UTF-8. Except for .xlsx, its first row is a header.

    Raises:
        UserError: the file is damaged, too large, or of another format than its ending.
    """
    ending, data = path.suffix.lower(), path.read_bytes()
    try:
        if ending == ".xlsx":
            rows = _workbook(data)
        else:
            text = decode(data, str(path), PO_DECLARED if ending == ".po" else XML_DECLARED).text
            rows = {".po": _catalogue, ".tmx": _memory}.get(ending, _units)(text)
        lines = ["\t".join(" ".join(cell.split()) for cell in row) for row in rows]
    except (*DAMAGED, LookupError) as error:
        raise UserError(f"{path}: not a valid {ending} file: {error}. Save it again, or rename it.") from error
    if len(lines) < 2:
        raise UserError(f"{path}: it has no pairs of source and translation.")
    return "".join(f"{line}\n" for line in lines).encode()


def _parsed(text: str) -> ElementTree.Element:
    check_xml(text)  # without entities
    return ElementTree.fromstring(re.sub(r"\A\s*<\?xml[^>]*\?>", "", text))


def _name(element: ElementTree.Element) -> str:
    return element.tag.rpartition("}")[2]


def _text(element: ElementTree.Element | None) -> str:
    """The text of an element without the contents of inline codes."""
    if element is None:
        return ""
    inner = (("" if _name(each) in CODES else _text(each)) + (each.tail or "") for each in element)
    return (element.text or "") + "".join(inner)


def _catalogue(text: str) -> Iterator[Row]:
    yield "source", "target"
    for entry in po_entries(text):
        strings = [value for key, value in entry.values if key == "msgstr"]
        source = dict(entry.values).get("msgid", "")
        if source and strings and strings[0] and not entry.fuzzy:
            yield source, strings[0]


def _memory(text: str) -> Iterator[Row]:
    units = []
    for unit in _parsed(text).iter("tu"):
        variants = {base_language(each.get(_LANGUAGE) or each.get("lang") or ""): each for each in unit.iter("tuv")}
        units.append({language: _text(each.find("seg")) for language, each in variants.items()})
    languages = list(dict.fromkeys(language for unit in units for language in unit))
    yield languages
    yield from ([unit.get(language, "") for language in languages] for unit in units)


def _units(text: str) -> Iterator[Row]:
    root = _parsed(text)
    names = ("source-language", "srcLang"), ("target-language", "trgLang")
    languages = [next((each.get(key) for each in root.iter() for key in keys if each.get(key)), None) for keys in names]
    yield [language or usual for language, usual in zip(languages, ("source", "target"), strict=True)]
    for unit in root.iter():
        if _name(unit) in ("trans-unit", "segment"):
            parts = {_name(each): _text(each) for each in unit}
            if parts.get("source") and parts.get("target"):
                yield parts["source"], parts["target"]


def _workbook(data: bytes) -> Iterable[Row]:
    """The rows of the first sheet with rows."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        if sum(member.file_size for member in archive.infolist()) > MOST_UNPACKED:
            raise ValueError(f"it unpacks to more than {MOST_UNPACKED >> 20} MiB")
        names = archive.namelist()
        strings = list[str]()
        if "xl/sharedStrings.xml" in names:
            strings = [_cell_text(each) for each in _parsed(archive.read("xl/sharedStrings.xml").decode())]
        for name in sorted(names, key=lambda name: (len(name), name)):
            if re.fullmatch(r"xl/worksheets/[^/]+\.xml", name):
                rows = [
                    _row(row, strings) for row in _parsed(archive.read(name).decode()).iter() if _name(row) == "row"
                ]
                if rows:
                    width = max(map(len, rows))
                    return [[*row, *[""] * (width - len(row))] for row in rows]
    return []


def _cell_text(element: ElementTree.Element) -> str:
    """The text of a cell without phonetic guides."""
    parts = [
        each.text or "" for child in element if _name(child) != "rPh" for each in child.iter() if _name(each) == "t"
    ]
    return "".join(parts)


def _row(row: ElementTree.Element, strings: Sequence[str]) -> Row:
    cells = dict[int, str]()
    for cell in row:
        letters = re.match("[A-Z]*", cell.get("r") or "")[0]  # type: ignore[index]
        column = 0
        for letter in letters:
            column = column * 26 + ord(letter) - 64
        value = next((each.text or "" for each in cell if _name(each) == "v"), "")
        inline = next((_cell_text(each) for each in cell if _name(each) == "is"), "")
        column = min(column or len(cells) + 1, 1000)
        cells[column] = inline or (strings[int(value)] if cell.get("t") == "s" else value)
    return [cells.get(column, "") for column in range(1, max(cells, default=0) + 1)]
