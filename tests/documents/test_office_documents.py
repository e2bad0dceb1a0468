"""Office documents: zip archives in which only the text changes."""

import io
import tracemalloc
import zipfile
from pathlib import Path

import openpyxl
import pytest
from lxml import etree
from openpyxl.worksheet.table import Table

from nmt.documents.archive import content_of
from nmt.system.errors import UserError
from tests.documents.trips import generated, round_trip, swapped, translate

NAMES = 'xmlns:w="http://schemas.openxmlformats.org/wordprocessingml/2006/main"'
SHEET = 'xmlns="http://schemas.openxmlformats.org/spreadsheetml/2006/main"'
T = '<w:t xml:space="preserve">'


def packed(members: dict[str, str | bytes]) -> bytes:
    """A zip archive."""
    data = io.BytesIO()
    with zipfile.ZipFile(data, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, (2001, 2, 3, 4, 5, 6)), content)
    return data.getvalue()


def docx(body: str) -> bytes:
    """A document with a body, a picture and a macro."""
    document = f'<?xml version="1.0" encoding="UTF-8"?>\r\n<w:document {NAMES}><w:body>{body}</w:body></w:document>'
    others: dict[str, str | bytes] = {
        "word/vbaProject.bin": b"\0\1",
        "word/media/a.png": b"\x89PNG",
        "docProps/core.xml": "<a>Titel</a>",
    }
    return packed({"[Content_Types].xml": "<Types/>", "word/document.xml": document, **others})


def members(data: bytes) -> dict[str, bytes]:
    """The members of a zip archive."""
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        assert archive.testzip() is None
        return {member.filename: archive.read(member) for member in archive.infolist()}


def body_of(data: bytes) -> str:
    """The body of a document."""
    text = members(data)["word/document.xml"].decode()
    return text[text.index("<w:body>") + 8 : text.index("</w:body>")]


def run(text: str, properties: str = "") -> str:
    return f"<w:r>{properties and f'<w:rPr>{properties}</w:rPr>'}{T}{text}</w:t></w:r>"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (run("Ein Haus"), run("eIN hAUS")),
        (f"<w:pPr><w:jc/></w:pPr>{run('Haus', '<w:b/>')}", f"<w:pPr><w:jc/></w:pPr>{run('hAUS', '<w:b/>')}"),
        # Words that an editor has cut into runs are one text.
        ("<w:r><w:t>Ein Ha</w:t></w:r><w:proofErr/><w:r w:rsidR='1'><w:t>us</w:t></w:r>", run("eIN hAUS")),
        (
            run("Ein langes ") + run("rotes", "<w:b/>") + run(" Haus &amp; Hof"),
            run("eIN LANGES ") + run("ROTES", "<w:b/>") + run(" hAUS &amp; hOF"),
        ),
        (
            f"{run('Siehe ')}<w:hyperlink>{run('die Seite', '<w:u/>')}</w:hyperlink>{run(' dort oben.')}",
            f"{run('sIEHE ')}<w:hyperlink>{run('DIE sEITE', '<w:u/>')}</w:hyperlink>{run(' DORT OBEN.')}",
        ),
        (
            f"<w:r>{T}Ein Haus</w:t><w:br/><w:t>Ein Tag</w:t><w:tab/></w:r>",
            f"<w:r>{T}eIN hAUS</w:t><w:br/>{T}eIN tAG</w:t><w:tab/></w:r>",
        ),
        (
            f"{run('Haus')}<w:r><w:footnoteReference w:id='1'/></w:r>{run(' und Hof')}",
            f"<w:r>{T}hAUS</w:t><w:footnoteReference w:id='1'/>{T} UND hOF</w:t></w:r>",
        ),
        (
            "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>"
            f"{run('Seite')}<w:r><w:fldChar w:fldCharType='end'/></w:r>{run(' von Hand')}",
            "<w:r><w:fldChar w:fldCharType='begin'/></w:r><w:r><w:instrText>PAGE</w:instrText></w:r>"
            f"{run('Seite')}<w:r><w:fldChar w:fldCharType='end'/></w:r>{run(' VON hAND')}",
        ),
        # A text box in a paragraph.
        (
            f"{run('Aussen')}<w:r><w:pict><w:txbxContent><w:p>{run('Innen')}</w:p></w:txbxContent></w:pict></w:r>",
            f"<w:r>{T}aUSSEN</w:t><w:pict><w:txbxContent><w:p>{run('iNNEN')}</w:p></w:txbxContent></w:pict></w:r>",
        ),
        (run("12 %"), run("12 %")),
    ],
)
def test_runs_of_a_paragraph(tmp_path: Path, before: str, after: str) -> None:
    data = docx(f"<w:p>{before}</w:p><w:sectPr/>")
    _, written = translate(tmp_path / "a.docx", data, swapped)
    assert body_of(written) == f"<w:p>{after}</w:p><w:sectPr/>"
    before_, after_ = members(data), members(written)
    assert list(before_) == list(after_)
    assert {name for name in after_ if before_[name] != after_[name]} <= {"word/document.xml"}


def test_presentation(tmp_path: Path) -> None:
    names = 'xmlns:a="http://schemas.openxmlformats.org/drawingml/2006/main"'
    paragraph = (
        "<a:p><a:r><a:rPr/><a:t>Ein Haus</a:t></a:r><a:br><a:rPr/></a:br><a:r><a:rPr/><a:t>Zwei</a:t></a:r>{}</a:p>"
    )
    field = "<a:fld type='slidenum'><a:t>Nummer</a:t></a:fld><a:endParaRPr/>"
    slide = f"<p:sld xmlns:p='p' {names}>{paragraph.format(field)}</p:sld>"
    slides = {f"ppt/slides/slide{number}.xml": slide.replace("Zwei", f"Nummer {number}") for number in (10, 2)}
    data = packed({"ppt/presentation.xml": "<p/>", **slides})
    seen, written = translate(tmp_path / "a.pptx", data, swapped)
    assert seen == ["Ein Haus", "Nummer 2", "Ein Haus", "Nummer 10"]
    text = members(written)["ppt/slides/slide2.xml"].decode()
    assert f"eIN hAUS</a:t></a:r><a:br/><a:r><a:rPr/><a:t>nUMMER 2</a:t></a:r>{field}</a:p>" in text


def test_workbook(tmp_path: Path) -> None:
    book = openpyxl.Workbook()
    sheet = book.active
    assert sheet is not None
    for row in (["Spalte", "Wert"], ["Haus und Hof", 12], ["Tag\nNacht", "=A1"]):
        sheet.append(row)
    sheet.add_table(Table(displayName="Tafel", ref="A1:B3"))
    book.save(tmp_path / "made.xlsx")
    seen, written = translate(tmp_path / "a.xlsx", (tmp_path / "made.xlsx").read_bytes(), swapped)
    assert seen == ["Haus und Hof", "Tag", "Nacht"]
    (tmp_path / "b.xlsx").write_bytes(written)
    cells = [[cell.value for cell in row] for row in openpyxl.load_workbook(tmp_path / "b.xlsx").worksheets[0].rows]
    assert cells == [["Spalte", "Wert"], ["hAUS UND hOF", 12], ["tAG\nnACHT", "=A1"]]


def test_rich_text_of_a_workbook(tmp_path: Path) -> None:
    strings = (
        f"<sst {SHEET}><si><r><t>Ein langes </t></r><r><rPr><b/></rPr>"
        "<t>Haus</t></r><rPh><t>nein</t></rPh></si><si><t>Hof</t><rPh><t>nein</t></rPh></si></sst>"
    )
    data = packed({"xl/workbook.xml": "<a/>", "xl/sharedStrings.xml": strings})
    seen, written = translate(tmp_path / "a.xlsx", data, swapped)
    assert seen == ["Ein langes Haus", "Hof"]
    text = members(written)["xl/sharedStrings.xml"].decode()
    assert '<r><rPr><b/></rPr><t xml:space="preserve">hAUS</t></r></si><si><t>hOF</t></si>' in text


ODT = (
    '<office:document-content xmlns:office="o" xmlns:text="urn:oasis:names:tc:opendocument:xmlns:text:1.0">'
    "<office:body>{}</office:body></office:document-content>"
)


def test_open_document(tmp_path: Path) -> None:
    note = "<text:note-body><text:p>Fuss</text:p></text:note-body>"
    note = f"<text:note><text:note-citation>eins</text:note-citation>{note}</text:note>"
    red = '<text:span text:style-name="B">rotes Haus</text:span>'
    body = f"<text:h>Titel</text:h><text:p>Ein {red}{note}<text:line-break/>Neu.</text:p>"
    kind = "application/vnd.oasis.opendocument.text"
    data = packed({"mimetype": kind, "content.xml": ODT.format(body), "META-INF/manifest.xml": "<a/>"})
    seen, written = translate(tmp_path / "a.odt", data, swapped)
    assert sorted(seen) == ["Ein rotes Haus", "Fuss", "Neu.", "Titel"]
    text = members(written)["content.xml"].decode()
    for word in ("Titel", "Ein ", "rotes Haus", "Fuss", "Neu"):
        body = body.replace(word, swapped(word))
    assert text == ODT.format(body)


def test_damaged_archives(tmp_path: Path) -> None:
    whole = docx(f"<w:p>{run('Haus')}</w:p>")
    locked = bytearray(packed({"word/document.xml": "<a/>"}))
    locked[6] |= 1
    locked[locked.index(b"PK\1\2") + 8] |= 1
    bomb = '<!DOCTYPE a [<!ENTITY b "c">]><a>&b;</a>'
    cases = {
        "cut.docx": whole[:-30],
        "flipped.docx": whole.replace(b"word/document", b"word/docum\0nt", 1),
        "text.docx": b"Hallo",
        "old.docx": b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600),
        "locked.docx": bytes(locked),
        "sheet.xlsx": whole,
        "text.odt": whole,
        "bomb.docx": packed({"word/document.xml": bomb}),
        "deep.docx": packed({"word/document.xml": "<a>" * 9999}),
        "huge.docx": packed({"word/document.xml": b" " * (1 << 20)}).replace(b"\0\0\x10\0", b"\0\0\x10\x7f"),
    }
    for name, data in cases.items():
        with pytest.raises(UserError, match=name):
            translate(tmp_path / name, data, str)


TEXTS = ("Haus ", "rotes Haus ", "&amp; so ", "12 ", "Tag, Nacht ", "ein ")


def test_round_trip_of_runs(tmp_path: Path) -> None:
    """Texts and their properties are the same; a second trip changes no byte, as runs have their usual form."""
    styles = ("", "<w:b/>", "<w:i/>")

    def document(texts: list[str], number: int) -> bytes:
        runs = [run(text, styles[(number * at) % 3]) for at, text in enumerate(texts)]
        runs[0] = f"<w:ins>{runs[0]}</w:ins>" if number % 5 == 0 else runs[0]
        return docx(f"<w:p>{''.join(runs)}</w:p>")

    def formatted(data: bytes) -> list[tuple[str, str]]:
        root = etree.fromstring(members(data)["word/document.xml"])
        style = {each: each.find("{*}rPr") for each in root.iter("{*}r")}
        return [
            ("" if of_run is None else etree.tostring(of_run).decode(), letter)
            for each, of_run in style.items()
            for letter in "".join(map(str, each.itertext()))
            if letter != " "
        ]

    for data in generated(document, TEXTS):
        seen, changed = translate(tmp_path / "a.docx", data, swapped)
        assert formatted(changed) == [(style, swapped(letter)) for style, letter in formatted(data)]
        again, back = translate(tmp_path / "a.docx", changed, swapped)
        assert again == list(map(swapped, seen))
        assert formatted(back) == formatted(data)


@pytest.mark.long
def test_round_trip_of_workbooks_and_open_documents(tmp_path: Path) -> None:
    def book(texts: list[str], _: int) -> bytes:
        cells = "".join(f"<si><t>{text}</t></si>" for text in texts)
        strings = f"<sst {SHEET}>{cells}</sst>"
        return packed({"xl/workbook.xml": "<a/>", "xl/sharedStrings.xml": strings})

    def text(texts: list[str], number: int) -> bytes:
        body = "".join(f"<text:p>{each}<text:span>{each}</text:span></text:p>" for each in texts)
        return packed({"mimetype": "application/vnd.oasis.opendocument.text", "content.xml": ODT.format(body)})

    def content(data: bytes) -> str:
        # A tag may end before the space that it held.
        return "".join(value.decode().replace(" ", "") for value in members(data).values())

    round_trip(tmp_path / "a.xlsx", book, TEXTS, content)
    round_trip(tmp_path / "a.odt", text, TEXTS, content)


def test_what_a_file_is_takes_no_memory_to_say() -> None:
    data = packed({"mimetype": b"\0" * 50_000_000})
    tracemalloc.start()
    assert content_of(data) == ("", "")
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 5_000_000
